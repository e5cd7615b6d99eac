// Chapter 6: the recorded results, of every implementation and of the peers. Nothing here is computed but the axes.
"use strict";
courseWidget.widget("explorer", (box, data, narrow, kept) => {
  const {make, scrolling, bytes, seconds, significant} = courseWidget;
  const COLOURS = ["#2f7ed8", "#d9730d", "#1a9c72", "#c2447d", "#8a63d2", "#a08a00", "#c0392b", "#5f7d95",
                   "#0f9aa8", "#b36ad9", "#7a9a1f", "#e0559a"];
  const QUANTITIES = {
    time: {label: "Time of a call", of: (r) => r.median_ms * 1e-3, show: seconds, logarithmic: true},
    memory: {label: "Memory: Q, K, V, O, LSE and scratch", of: (r) => r.peak_bytes, show: bytes, logarithmic: true},
    rate: {label: "Rate", of: (r) => r.tflops, show: (v) => `${significant(v, 3)} TFLOP/s`},
    share: {label: "Share of the bound", of: (r) => r.bound_share === null || r.bound_share === undefined ? null : 100 * r.bound_share,
            show: (v) => `${significant(v, 3)} %`},
  };
  // Files of one run belong together: ours and the peers'. These are runs of their own on the same machine.
  const RUNS = {small_card: ", with the memory of a small card", tensor_cores: ", chapter 8 beside FlashAttention-2"};
  const groups = new Map();
  for (const file of data.files) {
    const run = Object.keys(RUNS).find((name) => file.file.includes(name)) || "", device = file.rows[0].device === "cuda" ? "cuda" : "cpu";
    const key = `${file.file.split("/").slice(0, -1).join("/")}|${device}|${run}`;
    const name = (device === "cuda" && file.context.gpu || file.context.machine) + (RUNS[run] || "");
    if (!groups.has(key)) groups.set(key, {name, device, rows: [], contexts: []});
    groups.get(key).rows.push(...file.rows.map((row) => ({...row, peer: file.context.program.includes("peers")})));
    groups.get(key).contexts.push(file.context);
  }
  const all = [...groups.values()].sort((a, b) => (a.device === "cuda" ? 0 : 1) - (b.device === "cuda" ? 0 : 1));
  const options = (select, entries) => {
    const before = select.value || (kept.chosen || {})[select.getAttribute("aria-label")];
    select.textContent = "";
    for (const [value, text] of entries) select.append(make("option", {value}, text));
    if (entries.some(([value]) => value === before)) select.value = before;
  };
  const chooser = (label, change) => {
    const select = make("select", {"aria-label": label, onchange: change});
    return [make("label", {}, `${label} `, select), select];
  };
  const [machineLabel, machine] = chooser("Machine", () => refresh());
  const [setLabel, set] = chooser("Shapes", () => refresh());
  const [cacheLabel, cache] = chooser("Cache", () => refresh());
  const [quantityLabel, quantity] = chooser("Show", () => refresh());
  const names = make("fieldset", {class: "names"});
  const drawing = make("svg:svg", {viewBox: `0 0 ${narrow ? 400 : 640} 380`, role: "img"});
  const table = make("table", {}), context = make("p", {class: "about"});
  const hidden = kept.hidden = kept.hidden || new Set();
  options(machine, all.map((group, i) => [String(i), group.name]));
  options(quantity, Object.entries(QUANTITIES).map(([key, q]) => [key, q.label]));
  box.append(make("h4", {}, "The results"), make("div", {class: "controls"}, quantityLabel, machineLabel, setLabel, cacheLabel), drawing, names,
             scrolling("The results as a table", table), context);

  const shape = (row) => `${row.set}: B${row.batch} H${row.heads_q}` + (row.heads_kv !== row.heads_q ? `/${row.heads_kv}` : "") +
    ` d${row.head_dim} ${row.dtype}${row.causal ? " causal" : ""}`;

  function refresh() {
    const group = all[Number(machine.value) || 0];
    const shapes = new Map();
    for (const row of group.rows) if (!shapes.has(row.set)) shapes.set(row.set, shape(row));
    options(set, [...shapes]);
    const ofSet = group.rows.filter((row) => row.set === set.value);
    const states = [...new Set(ofSet.map((row) => row.cache))].sort();
    options(cache, states.map((state) => [state, `${state} L2`]));
    kept.chosen = Object.fromEntries([machine, set, cache, quantity].map((select) => [select.getAttribute("aria-label"), select.value]));
    const rows = ofSet.filter((row) => row.cache === cache.value);
    const series = new Map();
    for (const row of rows) {
      if (!series.has(row.implementation)) series.set(row.implementation, []);
      series.get(row.implementation).push(row);
    }
    const colour = new Map([...series.keys()].map((name, i) => [name, COLOURS[i % COLOURS.length]]));
    names.textContent = "";
    for (const name of series.keys()) {
      const tick = make("input", {type: "checkbox", checked: !hidden.has(name), "data-name": name,
                                  onchange: () => { tick.checked ? hidden.delete(name) : hidden.add(name); draw(series, colour); }});
      names.append(make("label", {}, tick, make("span", {class: "colour", style: `background: ${colour.get(name)}`}), ` ${name}`));
    }
    const first = group.contexts[0];
    context.textContent = [group.name, first.driver && `driver ${first.driver}`, first.compiler, first.commit && `commit ${first.commit}`,
      `random inputs, seed ${first.seed}`, first.date && first.date.slice(0, 10)].filter(Boolean).join(", ") +
      ". Medians; peers are drawn with dashes; a cross means out of memory, a ring unsupported.";
    draw(series, colour);
  }

  function draw(series, colour) {
    const q = QUANTITIES[quantity.value];
    const shown = [...series].filter(([name]) => !hidden.has(name));
    const value = (row) => row.status === "ok" ? q.of(row) : null;
    const lengths = [...new Set(shown.flatMap(([, rows]) => rows.map((row) => row.len_q)))].sort((a, b) => a - b);
    const values = shown.flatMap(([, rows]) => rows.map(value)).filter((v) => v !== null && v !== undefined && v > 0);
    drawing.textContent = "";
    table.textContent = "";
    drawing.append(make("svg:title", {}, `${q.label} against T`));
    if (!values.length) { drawing.append(make("svg:text", {x: 200, y: 190, "text-anchor": "middle"}, "Nothing to show.")); }
    const RIGHT = 16, TOP = 34, BOTTOM = 344, WIDTH = narrow ? 400 : 640;
    let low, high, ticks = [];
    if (q.logarithmic) {
      const base = quantity.value === "memory" ? 2 : 10;
      low = Math.floor(Math.log(Math.min(...values)) / Math.log(base));
      high = Math.max(low + 1, Math.ceil(Math.log(Math.max(...values)) / Math.log(base)));
      const every = Math.max(1, Math.ceil((high - low) / 7));
      for (let e = low; e <= high; e += every) ticks.push(base ** e);
      [low, high] = [base ** low, base ** high];
    } else {
      const top = Math.max(...values), power = 10 ** Math.floor(Math.log10(top));
      const step = [0.2, 0.5, 1, 2].map((f) => f * power).find((s) => top / s <= 6) || 2 * power;
      low = 0;
      high = Math.ceil(top / step) * step;
      for (let v = 0; v <= high * 1.0001; v += step) ticks.push(v);
    }
    const marks = values.length ? ticks.map((tick) => make("svg:text", {"text-anchor": "end", "font-size": 13}, q.show(tick))) : [];
    drawing.append(...marks);
    const LEFT = Math.max(60, ...marks.map((mark) => 12 + mark.getComputedTextLength()));  // room for the widest
    const spread = Math.log2(lengths.at(-1) / lengths[0]) || 1;
    const x = (T) => LEFT + 16 + (WIDTH - LEFT - RIGHT - 32) * (lengths.length > 1 ? Math.log2(T / lengths[0]) / spread : .5);
    const y = (v) => BOTTOM - (BOTTOM - TOP) * (q.logarithmic ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low));
    marks.forEach((mark, i) => {
      mark.setAttribute("x", LEFT - 8);
      mark.setAttribute("y", y(ticks[i]) + 4);
      drawing.append(make("svg:line", {x1: LEFT, x2: WIDTH - RIGHT, y1: y(ticks[i]), y2: y(ticks[i]), stroke: "var(--rule)"}));
    });
    for (const T of lengths)
      drawing.append(make("svg:text", {x: x(T), y: BOTTOM + 22, "text-anchor": "middle", "font-size": 13}, T >= 1024 ? `${T / 1024}k` : String(T)));
    drawing.append(make("svg:line", {x1: LEFT, x2: WIDTH - RIGHT, y1: BOTTOM, y2: BOTTOM, stroke: "var(--grey)"}));
    const stacked = new Map();
    for (const [name, rows] of shown) {
      const points = rows.filter((row) => value(row) > 0).sort((a, b) => a.len_q - b.len_q);
      const stroke = colour.get(name);
      if (points.length > 1)
        drawing.append(make("svg:polyline", {points: points.map((r) => `${x(r.len_q)},${y(value(r))}`).join(" "), fill: "none", stroke,
                                             "stroke-width": 2.5, "stroke-dasharray": rows[0].peer ? "7 5" : "none"}));
      for (const row of points)
        drawing.append(make("svg:circle", {cx: x(row.len_q), cy: y(value(row)), r: 4, fill: stroke, "data-name": name, "data-t": row.len_q},
                            make("svg:title", {}, `${name}, T = ${row.len_q}: ${q.show(value(row))}`)));
      for (const row of rows.filter((r) => r.status !== "ok")) {
        const cx = x(row.len_q), n = stacked.get(row.len_q) || 0, cy = 10 + 12 * n;
        stacked.set(row.len_q, n + 1);
        const why = `${name}, T = ${row.len_q}: ${row.status.replaceAll("_", " ")}`;
        drawing.append(row.status === "out_of_memory"
          ? make("svg:path", {d: `M${cx - 4} ${cy - 4}l8 8m0 -8l-8 8`, stroke, "stroke-width": 2.5, class: "missing"}, make("svg:title", {}, why))
          : make("svg:circle", {cx, cy, r: 4, fill: "none", stroke, "stroke-width": 2, class: "missing"}, make("svg:title", {}, why)));
      }
    }
    table.append(make("thead", {}, make("tr", {}, make("th", {}, q.label), ...lengths.map((T) => make("th", {class: "number"}, `T = ${T}`)))));
    const body = make("tbody", {});
    for (const [name, rows] of shown)
      body.append(make("tr", {"data-name": name}, make("td", {}, name), ...lengths.map((T) => {
        const row = rows.find((r) => r.len_q === T);
        const v = row && value(row);
        return make("td", {class: "number", "data-t": T}, !row ? "" : v !== null && v !== undefined ? q.show(v) : row.status === "ok" ? "" : row.status.replaceAll("_", " "));
      })));
    table.append(body);
  }
  refresh();
});
