// What the moving pictures share: finding their place on the page, building elements, writing numbers.
"use strict";
window.courseWidget = (function () {
  const SVG = "http://www.w3.org/2000/svg";

  /** An element with attributes and children; names after "svg:" are SVG's. */
  function make(name, attributes = {}, ...children) {
    const drawn = name.startsWith("svg:");
    const element = drawn ? document.createElementNS(SVG, name.slice(4)) : document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
      if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
      else if (value === true) element.setAttribute(key, "");
      else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
    }
    element.append(...children);
    return element;
  }

  /** A table that scrolls by itself where it is wider than its place, with the arrow keys too. */
  const scrolling = (label, table) => make("div", {class: "scroll", tabindex: 0, role: "region", "aria-label": label}, table);

  const phone = window.matchMedia("(max-width: 560px)");

  /** Calls show(box, data, narrow, kept) for each place on the page that asks for this picture, and again when the page
      becomes narrow or wide. What the reader chose is in `kept`, which outlives the box; kept.leave() ends what still
      runs for it. The still picture stays for print, and for the case that show() fails. */
  function widget(name, show) {
    for (const figure of document.querySelectorAll(`figure[data-widget="${name}"]`)) {
      const kept = {leave() {}};
      const draw = () => {
        const before = figure.querySelector(".live"), box = make("div", {class: "live"});
        const focused = before ? reachable(before).indexOf(document.activeElement) : -1;
        kept.leave();
        figure.append(box);  // first, since what is not on the page cannot be measured
        try { show(box, window.COURSE_DATA[name], phone.matches, kept); } catch (e) { box.remove(); throw e; }
        if (before) before.remove();
        if (focused >= 0) reachable(box)[focused]?.focus();
      };
      draw();
      phone.addEventListener("change", draw);
      figure.classList.add("ready");
    }
  }

  const reachable = (box) => Array.from(box.querySelectorAll("button, input, select, [tabindex]"));

  const bytes = (value) => {
    const units = ["B", "KiB", "MiB", "GiB", "TiB"];
    let i = 0;
    while (value >= 1024 && i < units.length - 1) { value /= 1024; i += 1; }
    return `${significant(value, 3)} ${units[i]}`;
  };
  const seconds = (value) => {
    for (const [factor, unit] of [[1, "s"], [1e-3, "ms"], [1e-6, "µs"]])
      if (value >= factor * 0.9995) return `${significant(value / factor, 3)} ${unit}`;
    return `${significant(value / 1e-9, 3)} ns`;
  };
  /** At most so many significant digits, no exponent, no zeros at the end. */
  const significant = (value, digits) => {
    if (value === 0) return "0";
    if (value === null || value === undefined || !isFinite(value)) return "−∞";
    const rounded = Number(value.toPrecision(digits));
    return String(rounded).replace("-", "−");
  };

  /** A row of buttons: start, back, next, play; also by the arrow keys when one of them has the focus. A button that leads
      nowhere says so and keeps the focus: disabled, it would lose it. The place is kept.at. */
  function stepping(count, show, kept) {
    let at = kept.at || 0, timer = null;
    const row = make("div", {class: "controls", role: "group", "aria-label": "Steps"});
    const back = make("button", {type: "button", class: "back", onclick: () => at > 0 && go(at - 1)}, "Back");
    const next = make("button", {type: "button", class: "next", onclick: () => at < count() - 1 && go(at + 1)}, "Next");
    const start = make("button", {type: "button", class: "start", onclick: () => at > 0 && go(0)}, "Start");
    const play = make("button", {type: "button", class: "play", onclick: () => timer ? stop() : run()}, "Play");
    const place = make("span", {class: "place"});
    const stop = () => { clearInterval(timer); timer = null; play.textContent = "Play"; };
    const run = () => {
      if (at >= count() - 1) go(0);
      play.textContent = "Pause";
      timer = setInterval(() => { if (at >= count() - 1) stop(); else move(at + 1); }, 650);
    };
    const move = (to) => {
      kept.at = at = Math.max(0, Math.min(count() - 1, to));
      for (const [button, useless] of [[back, at === 0], [start, at === 0], [next, at === count() - 1]])
        button.setAttribute("aria-disabled", String(useless));
      place.textContent = `${at + 1} of ${count()}`;
      show(at);
    };
    const go = (to) => { stop(); move(to); };
    row.addEventListener("keydown", (event) => {
      const to = {ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: count() - 1}[event.key];
      if (to === undefined) return;
      event.preventDefault();
      go(to);
    });
    row.append(start, back, next, play, place);
    kept.leave = stop;
    return {row, go, at: () => at};
  }

  return {widget, make, scrolling, bytes, seconds, significant, stepping};
})();
