// Chapter 3: the tiles of S in the order in which each schedule visits them, with what it loads and stores. Every
// step is from the program's trace.
"use strict";
courseWidget.widget("tile-scan", (box, data, narrow, kept) => {
  const {make, bytes, stepping} = courseWidget;
  const CELL = 38, LEFT = 46, TOP = 46;

  /** The visited tiles of a trace, each with the events that belong to it. Skipped tiles come between them. */
  function visits(trace) {
    const found = [];
    let before = [];
    for (const event of trace.steps) {
      if (event.tile === "skipped") { if (found.length) found.at(-1).skipped.push(event); continue; }
      if (event.tile) { found.push({...event, before, events: [], skipped: []}); before = []; continue; }
      // What a schedule loads before a tile is announced belongs to that tile.
      const ahead = !found.length || (event.load && (trace.schedule === "Q outside" ? event.load === "Q" : event.load === "K" || event.load === "V"));
      (ahead ? before : found.at(-1).events).push(event);
    }
    if (before.length) found.at(-1).events.push(...before);
    return found;
  }
  const scans = data.traces.map((trace) => ({trace, visits: visits(trace), name: trace.schedule}));
  let scan = scans.find((each) => each.name === kept.order) || scans.at(-1);
  const order = make("fieldset", {class: "order"}, make("legend", {}, "Outer loop:"));
  scans.forEach((each, i) => {
    const button = make("input", {type: "radio", name: "tile-scan-order", value: each.name, checked: each === scan,
                                  onchange: () => { scan = each; kept.order = each.name; steps.go(0); }});
    order.append(make("label", {}, button, each.name.replace(" outside", "")));
  });
  const drawing = make("svg:svg", {viewBox: "0 0 356 356", role: "img"});
  const side = make("div", {class: "side"});
  const say = make("p", {class: "say", "aria-live": "polite"});
  const totals = make("tbody");
  const steps = stepping(() => scan.visits.length, show, kept);
  box.append(make("h4", {}, "Which tile comes next?"), make("div", {class: "controls"}, order), steps.row,
             make("div", {class: "beside"}, drawing, side), say,
             make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, "so far"), make("th", {class: "number"}, "read"),
               make("th", {class: "number"}, "written"))), totals),
             make("p", {class: "about"}, `${scan.trace.len_q} queries and keys of ${scan.trace.head_dim} channels in fp32, causal, ` +
               `in tiles of ${scan.trace.block_q} × ${scan.trace.block_kv}. A query block can also be chosen by a click on its row, or by the arrow keys up and down while a button of the steps has the focus.`));

  steps.row.addEventListener("keydown", (event) => {
    const move = {ArrowUp: -1, ArrowDown: 1}[event.key];
    if (!move) return;
    event.preventDefault();
    const q = scan.visits[steps.at()].q + move, target = scan.visits.findIndex((visit) => visit.q === q);
    if (target >= 0) steps.go(target);
  });

  const text = (x, y, what, more = {}) => make("svg:text", {x, y, "font-size": 14, ...more}, what);
  const sum = (events, key) => events.filter((e) => e[key]).reduce((total, e) => total + e.bytes, 0);
  const named = (events, key) => {
    const names = [...new Set(events.filter((e) => e[key]).map((e) => e[key]))];
    return names.length ? names.join(", ") : "nothing";
  };

  function show(at) {
    const {trace, visits: all} = scan, here = all[at];
    const rows = trace.len_q / trace.block_q, columns = trace.len_kv / trace.block_kv;
    const turn = new Map(all.map((v, i) => [`${v.q},${v.kv}`, i]));
    drawing.textContent = "";
    drawing.append(make("svg:title", {}, `Tile of query block ${here.q} and key block ${here.kv}, number ${at + 1} of ${all.length}`));
    for (let kv = 0; kv < columns; ++kv)
      drawing.append(text(LEFT + (kv + .5) * CELL, TOP - 10, `K${kv}`, {"text-anchor": "middle", "font-weight": kv === here.kv ? 700 : 400,
                                                                        style: kv === here.kv ? "fill: var(--orange)" : ""}));
    for (let q = 0; q < rows; ++q) {
      drawing.append(text(LEFT - 8, TOP + (q + .5) * CELL + 5, `Q${q}`, {"text-anchor": "end", "font-weight": q === here.q ? 700 : 400,
                                                                        style: q === here.q ? "fill: var(--green)" : ""}));
      for (let kv = 0; kv < columns; ++kv) {
        const index = turn.get(`${q},${kv}`), done = index !== undefined && index <= at, current = index === at;
        const visit = index === undefined ? null : all[index];
        const cell = make("svg:rect", {
          x: LEFT + kv * CELL + 2, y: TOP + q * CELL + 2, width: CELL - 4, height: CELL - 4, rx: 3,
          fill: !visit ? "none" : visit.tile === "diagonal" ? "var(--orange)" : "var(--blue)",
          opacity: !visit ? .5 : current ? 1 : done ? .55 : .16,
          stroke: current ? "var(--ink)" : visit ? "none" : "var(--grey)", "stroke-width": current ? 3 : 1,
          "stroke-dasharray": visit ? "none" : "2 3", class: visit ? `tile ${visit.tile}` : "tile skipped"});
        const target = all.findIndex((v) => v.q === q);
        cell.addEventListener("click", () => steps.go(target));
        drawing.append(cell);
        if (done) drawing.append(text(LEFT + (kv + .5) * CELL, TOP + (q + .5) * CELL + 5, String(index + 1),
                                      {"text-anchor": "middle", "pointer-events": "none", style: current ? "fill: var(--paper)" : ""}));
      }
    }
    // On chip now, and what this tile moved
    const qOutside = trace.schedule === "Q outside";
    const ours = make("span", {style: "color: var(--green)"}, `Q${here.q}, its O, m, l`);
    const theirs = make("span", {style: "color: var(--orange)"}, `K${here.kv}, V${here.kv}`);
    const events = [...here.before, ...here.events];
    side.textContent = "";
    side.append(make("b", {}, "On chip"), ...(qOutside ? [ours, theirs] : [theirs, ours]), make("span", {}, "one tile of S"),
                make("b", {}, "This tile"), make("span", {class: "reads"}, `reads ${named(events, "load")}`),
                make("span", {class: "writes"}, `writes ${named(events, "store")}`),
                here.tile === "diagonal" ? make("span", {style: "color: var(--orange)"}, "on the diagonal: masked")
                                         : make("span", {style: "color: var(--blue)"}, "full: no mask"),
                make("span", {style: "color: var(--faint)"}, "dotted: skipped"));

    const past = all.slice(0, at + 1).flatMap((v) => [...v.before, ...v.events]);
    totals.textContent = "";
    totals.append(make("tr", {}, make("td", {}, `${at + 1} tile${at ? "s" : ""}`), make("td", {class: "number", "data-total": "read"}, bytes(sum(past, "load"))),
                       make("td", {class: "number", "data-total": "written"}, bytes(sum(past, "store")))));
    const skipped = here.skipped.length;
    say.textContent = qOutside
      ? `Query block ${here.q} stays; key block ${here.kv} passes by.` + (skipped ? ` Its scores end at the diagonal: ${skipped} tile${skipped > 1 ? "s" : ""} skipped.` : "") +
        (events.some((e) => e.store) ? " O is done and written once." : "")
      : `Key block ${here.kv} stays; query block ${here.q} passes by, and its O, m and l are read and written again.`;
  }
  steps.go(steps.at());
});
