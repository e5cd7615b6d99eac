// Chapter 9: what each warpgroup does when. A bar lies between two clock stamps that a kernel left. Where the clock
// gives an order only, every change stands one step after the last.
"use strict";
courseWidget.widget("timeline", (box, data, narrow, kept) => {
  const {make, scrolling} = courseWidget;
  const WIDTH = narrow ? 380 : 720, LEFT = narrow ? 44 : 100, RIGHT = 22, HEAD = 26, LANE = 27, BAR = 21;
  const FIRST_CHANGES = narrow ? 22 : 40; // in the first window
  const COLOURS = {grey: "var(--grey)", purple: "var(--keyword)", orange: "var(--orange)", blue: "var(--blue)", green: "var(--green)",
                   gold: "#a08a00", faint: "none"};
  const whole = (value) => Math.round(value).toLocaleString("en");
  let source, schedules, shown, length, from, to, moment;

  /** Lanes of every schedule with places on the axis: clocks, or the number of changes before. */
  function read(lanes, order) {
    const found = new Map();
    for (const lane of lanes) {
      if (!found.has(lane.schedule)) found.set(lane.schedule, {name: lane.schedule, lanes: []});
      found.get(lane.schedule).lanes.push(lane);
    }
    for (const schedule of found.values()) {
      const clocks = [...new Set(schedule.lanes.flatMap((lane) => [lane.begin, ...lane.events.map((event) => event[2])]))].sort((a, b) => a - b);
      const place = new Map(clocks.map((clock, i) => [clock, order ? i : clock]));
      schedule.changes = clocks.map((clock) => place.get(clock));
      schedule.clocks = data.phases.map(() => 0);
      schedule.tiles = new Set(schedule.lanes.flatMap((lane) => lane.events.map((event) => `${lane.block} ${event[1]}`))).size;
      const blocks = new Set(schedule.lanes.map((lane) => lane.block)).size;
      schedule.lanes = schedule.lanes.map((lane) => {
        let begin = lane.begin;
        const events = lane.events.map(([phase, tile, end]) => {
          const event = {phase: data.phases[phase], tile, begin: place.get(begin), end: place.get(end)};
          schedule.clocks[phase] += end - begin;
          begin = end;
          return event;
        });
        return {name: (blocks > 1 ? `block ${lane.block}, ` : "") + `warpgroup ${lane.warpgroup}`,
                short: (blocks > 1 ? `${lane.block}.` : "") + lane.warpgroup, events};
      });
    }
    return found;
  }

  const chooser = (label, change) => {
    const select = make("select", {"aria-label": label, onchange: change});
    return [make("label", {}, `${label} `, select), select];
  };
  const fill = (select, entries, chosen) => select.replaceChildren(...entries.map(([value, text]) =>
    make("option", {value, selected: value === chosen}, text)));
  const [sourceLabel, sourceChoice] = chooser("Source", () => take(Number(sourceChoice.value)));
  const [aboveLabel, above] = chooser("Above", () => choose());
  const [belowLabel, below] = chooser("Below", () => choose());
  const button = (name, text, label, act) => make("button", {type: "button", class: name, "aria-label": label, title: label, onclick: act}, text);
  const row = make("div", {class: "controls", role: "group", "aria-label": "Moment and window"},
    button("back", "Back", "The change before (arrow left)", () => step(-1)), button("next", "Next", "The next change (arrow right)", () => step(1)),
    button("left", "←", "The window to the left (page up)", () => pan(-1)), button("right", "→", "The window to the right (page down)", () => pan(1)),
    button("closer", "+", "Closer (+)", () => zoom(.5)), button("wider", "−", "Wider (−)", () => zoom(2)), button("all", "All", "The whole timeline (0)", () => zoom(Infinity)));
  const drawing = make("svg:svg", {role: "img", tabindex: 0, "aria-label": "Timeline: arrow keys choose a moment, page keys move the window, plus and minus zoom"});
  const say = make("div", {class: "say moment", "aria-live": "polite"});
  const table = make("table", {class: "shares"}), about = make("p", {class: "about"});
  box.append(make("h4", {}, "What the warpgroups do when"), make("div", {class: "controls"}, sourceLabel, aboveLabel, belowLabel), about, row, drawing, say,
             scrolling("Shares of the phases", table));

  const KEYS = {ArrowLeft: () => step(-1), ArrowRight: () => step(1), PageUp: () => pan(-1), PageDown: () => pan(1), "+": () => zoom(.5), "=": () => zoom(.5),
                "-": () => zoom(2), "0": () => zoom(Infinity), Home: () => go(0), End: () => go(length)};
  for (const place of [row, drawing]) place.addEventListener("keydown", (event) => {
    if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    KEYS[event.key]();
  });
  drawing.addEventListener("click", (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(drawing.getScreenCTM().inverse()).x;
    if (at >= LEFT) go(Math.floor(from + (at - LEFT) / (WIDTH - LEFT - RIGHT) * (to - from)));
  });

  function take(index) {
    source = data.sources[index];
    schedules = read(source.lanes, source.order);
    const names = [...schedules.keys()].map((name) => [name, name]);
    fill(above, names, names[Math.min(1, names.length - 1)][0]);
    fill(below, [["", "nothing"], ...names], names.length > 2 ? names[2][0] : "");
    about.textContent = source.order
      ? `Recorded on the ${source.name}, ${source.problem}. Its clock counts ${source.clock}: it says what comes before what and who waits for whom, and nothing about time. ` +
        "So each change is drawn one step after the one before, and how long a bar is means nothing."
      : `Measured on ${source.name}, ${source.problem}, in cycles of the multiprocessor. The stamps themselves take some. Commit ${source.commit}, ${source.date}.`;
    tabulate();
    choose(true);
  }
  function choose(anew) {
    shown = [...new Set([above.value, below.value])].filter(Boolean).map((name) => schedules.get(name));
    length = Math.max(...shown.map((schedule) => schedule.changes.at(-1)));
    if (anew) {
      const changes = shown.map((schedule) => schedule.changes[Math.min(FIRST_CHANGES, schedule.changes.length - 1)]);
      [from, to, moment] = [0, Math.max(1, ...changes), 0];
    }
    go(Math.min(moment, length));
  }
  /** To the change before or after the moment, in any lane that is shown. */
  function step(direction) {
    const changes = shown.flatMap((schedule) => schedule.changes).filter((change) => (change - moment) * direction > 0);
    if (changes.length) go(direction > 0 ? Math.min(...changes) : Math.max(...changes));
  }
  function go(at) {
    moment = Math.max(0, Math.min(length, at));
    if (moment < from) place(moment - (to - from) / 4, to - from);
    else if (moment > to - (to - from) / 20) place(moment - (to - from) * 3 / 4, to - from);
    else place(from, to - from);
  }
  function pan(direction) { place(from + direction * Math.max(1, Math.floor((to - from) / 2)), to - from); } // by half a window
  function zoom(factor) {
    const span = Math.max(source.order ? 8 : 100, Math.min(length, (to - from) * factor));
    const inside = moment >= from && moment <= to, centre = inside ? moment : (from + to) / 2;
    place(centre - span * (inside ? (moment - from) / (to - from) : .5), span);
  }
  /** Shows a window of the axis that begins there, if the timeline is long enough. */
  function place(begin, span) {
    span = Math.round(Math.min(span, length));
    from = Math.round(Math.max(0, Math.min(length - span, begin)));
    to = from + span;
    kept.view = {source: Number(sourceChoice.value), above: above.value, below: below.value, from, to, moment};
    draw();
    tell();
  }

  function draw() {
    const x = (at) => LEFT + (at - from) / (to - from) * (WIDTH - LEFT - RIGHT);
    drawing.replaceChildren(make("svg:title", {}, `What the warpgroups do when: ${shown.map((schedule) => schedule.name).join(" and ")}`), stripes());
    let y = 0;
    for (const schedule of shown) {
      drawing.append(make("svg:text", {x: 0, y: y + 17, "font-size": 14, "font-weight": 600}, schedule.name));
      y += HEAD;
      const top = y;
      for (const lane of schedule.lanes) {
        drawing.append(make("svg:text", {x: 0, y: y + 15, "font-size": 13}, narrow ? `wg ${lane.short}` : lane.name),
                       make("svg:line", {x1: LEFT, x2: WIDTH - RIGHT, y1: y + BAR, y2: y + BAR, stroke: "var(--rule)"}));
        for (const event of lane.events) if (event.end > event.begin && event.begin < to && event.end > from) bar(schedule, lane, event, y, x);
        y += LANE;
      }
      if (moment >= from && moment <= to)
        drawing.append(make("svg:line", {class: "moment", x1: x(moment), x2: x(moment), y1: top - 3, y2: y - 3, stroke: "var(--ink)", "stroke-width": 2.5}));
      y += 6;
    }
    const least = (to - from) / (narrow ? 4 : 7), power = 10 ** Math.floor(Math.log10(least));
    const every = Math.max(1, [1, 2, 5, 10].map((f) => f * power).find((s) => s >= least));
    for (let at = Math.ceil(from / every) * every; at <= to; at += every)
      drawing.append(make("svg:line", {x1: x(at), x2: x(at), y1: y - 4, y2: y + 2, stroke: "var(--grey)"}),
                     make("svg:text", {x: x(at), y: y + 15, "text-anchor": "middle", "font-size": 12}, whole(at)));
    drawing.append(make("svg:text", {x: 0, y: y + 15, "font-size": 12}, source.order ? (narrow ? "step" : "changes") : narrow ? "clock" : "clock cycles"));
    Object.assign(drawing.dataset, {from, to});
    drawing.setAttribute("viewBox", `0 0 ${WIDTH} ${y + 22}`);
  }
  function bar(schedule, lane, event, y, x) {
    const left = x(Math.max(from, event.begin)), width = x(Math.min(to, event.end)) - left, {name, letter, colour, waits} = event.phase;
    const group = make("svg:g", {class: "event", "data-schedule": schedule.name, "data-lane": lane.name, "data-phase": name, "data-begin": event.begin, "data-end": event.end},
      make("svg:title", {}, `${lane.name}: ${name}, tile ${event.tile}, ${period(event)}`),
      make("svg:rect", {x: left, y, width: Math.max(.5, width - (width > 4 ? 1 : 0)), height: BAR, fill: waits ? `url(#stripes-${colour})` : COLOURS[colour],
                        "fill-opacity": waits ? 1 : .55, stroke: waits && width > 4 ? "var(--rule)" : "none"}));
    const text = width > name.length * 7.2 + 6 ? name : width > 11 ? letter : "";
    if (text) group.append(make("svg:text", {x: left + width / 2, y: y + 15.5, "text-anchor": "middle", "font-size": 13, "font-weight": waits ? 400 : 650, class: waits ? "wait" : false}, text));
    drawing.append(group);
  }
  /** Waits are striped, work is filled. */
  function stripes() {
    const all = make("svg:defs");
    for (const colour of new Set(data.phases.filter((phase) => phase.waits).map((phase) => phase.colour)))
      all.append(make("svg:pattern", {id: `stripes-${colour}`, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: `rotate(${colour === "purple" ? -45 : 45})`},
        make("svg:rect", {width: 6, height: 6, fill: "var(--paper)"}), make("svg:rect", {width: 2, height: 6, fill: COLOURS[colour], "fill-opacity": .75})));
    return all;
  }
  const period = (event) => source.order ? `from change ${whole(event.begin)} to ${whole(event.end)}`
    : `${whole(event.end - event.begin)} cycles, from ${whole(event.begin)} to ${whole(event.end)}`;

  /** In words what everybody does at the moment. */
  function tell() {
    const list = make("ul");
    for (const schedule of shown) for (const lane of schedule.lanes) {
      const event = lane.events.find((e) => e.begin <= moment && moment < e.end);
      const doing = event ? `${event.phase.name}, tile ${event.tile}, ${period(event)}`
        : moment < lane.events[0].begin ? "has not begun" : "has ended";
      list.append(make("li", {"data-schedule": schedule.name, "data-lane": lane.name}, `${lane.name} (${schedule.name}): ${doing}`));
    }
    say.replaceChildren(make("b", {class: "place"}, source.order ? `Change ${whole(moment)} of ${whole(length)}` : `Clock ${whole(moment)} of ${whole(length)}`), list);
  }
  /** Legend and shares in one. */
  function tabulate() {
    const all = [...schedules.values()], number = {class: "number"};
    const cell = (schedule, i) => make("td", {...number, "data-schedule": schedule.name},
      `${(100 * schedule.clocks[i] / (schedule.clocks.reduce((a, b) => a + b) || 1)).toFixed(1)} %`);
    const body = make("tbody", {}, ...data.phases.map((phase, i) => make("tr", {"data-phase": phase.name},
      make("td", {}, swatch(phase), ` ${phase.letter}\u00a0 ${phase.name}`), ...all.map((schedule) => cell(schedule, i)))));
    body.append(make("tr", {"data-phase": "tiles"}, make("td", {}, "tiles"), ...all.map((s) => make("td", {...number, "data-schedule": s.name}, String(s.tiles)))));
    table.replaceChildren(make("thead", {}, make("tr", {}, make("th", {}, source.order ? "share of turns" : "share of cycles"),
      ...all.map((schedule) => make("th", number, schedule.name.replace("warpgroups", "warp\u00adgroups"))))), body);
  }
  function swatch({colour, waits}) {
    return make("svg:svg", {class: "swatch", viewBox: "0 0 22 13", "aria-hidden": "true"}, make("svg:rect", {x: .5, y: .5, width: 21, height: 12,
      fill: waits ? `url(#stripes-${colour})` : COLOURS[colour], "fill-opacity": waits ? 1 : .55, stroke: "var(--rule)"}));
  }

  fill(sourceChoice, data.sources.map((s, i) => [String(i), s.order ? `${s.name}: order only` : `${s.name}: measured`]), "0");
  const {view} = kept;
  sourceChoice.value = String(view ? view.source : 0);
  take(Number(sourceChoice.value));
  if (view) {
    [above.value, below.value] = [view.above, view.below];
    choose(false);
    moment = view.moment;
    place(view.from, view.to - view.from);
  }
});
