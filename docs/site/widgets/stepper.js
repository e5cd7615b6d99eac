// Chapter 2: the recurrence, a block at a time. Every number is from the program's trace.
"use strict";
courseWidget.widget("stepper", (box, data, narrow, kept) => {
  const {make, scrolling, significant, stepping} = courseWidget;
  const trace = data.trace;
  const scores = trace.flatMap((step) => step.scores);
  const weights = trace.flatMap((step) => step.weights);
  const first = trace.map((step, i) => trace.slice(0, i).reduce((n, s) => n + s.scores.length, 0));
  const low = Math.min(0, ...scores), high = Math.max(...scores);
  const WIDTH = narrow ? 380 : 640, BASE = 190, UNIT = 150 / (high - low), SLOT = WIDTH / scores.length;
  const y = (value) => BASE - (value - low) * UNIT;
  const DIGITS = narrow ? 4 : 6;
  const minus = (text) => String(text).replace("-", "−");

  // Position 0: nothing seen yet.
  const drawing = make("svg:svg", {viewBox: `0 0 ${WIDTH} 250`, role: "img"});
  const say = make("p", {class: "say", "aria-live": "polite"});
  const body = make("tbody");
  const steps = stepping(() => trace.length + 1, show, kept);
  box.append(make("h4", {}, "Eight scores, two at a time"), steps.row, drawing, say,
             scrolling("The state as a table", make("table", {}, make("thead", {}, make("tr", {}, make("th", {}, ""),
               make("th", {class: "number"}, "before"), make("th", {class: "number"}, narrow ? "× corr." : "× correction"),
               make("th", {class: "number"}, "+ new"), make("th", {class: "number"}, "after"))), body)));

  function show(at) {
    const step = at ? trace[at - 1] : null;
    const seen = step ? first[at - 1] + step.scores.length : 0, begin = step ? first[at - 1] : 0;
    drawing.textContent = "";
    drawing.append(make("svg:title", {}, "Scores as bars, and the running maximum"),
                   make("svg:line", {x1: 0, x2: WIDTH, y1: y(0), y2: y(0), stroke: "var(--grey)"}));
    if (step)
      drawing.append(make("svg:rect", {x: begin * SLOT, y: 8, width: step.scores.length * SLOT, height: 234, rx: 6,
                                       fill: "var(--orange)", opacity: .14}));
    scores.forEach((score, i) => {
      const top = Math.min(y(score), y(0)), height = Math.max(2, Math.abs(y(score) - y(0)));
      drawing.append(
        make("svg:rect", {x: i * SLOT + SLOT * .22, y: top, width: SLOT * .56, height,
                          fill: i < seen ? "var(--blue)" : "none", stroke: i < seen ? "none" : "var(--grey)",
                          "stroke-dasharray": "3 3"}),
        make("svg:text", {x: (i + .5) * SLOT, y: score < 0 ? y(score) + 18 : top - 6, "text-anchor": "middle", "font-size": 17}, minus(score)));
    });
    if (step) {
      drawing.append(make("svg:line", {x1: begin * SLOT, x2: seen * SLOT, y1: y(step.m_new), y2: y(step.m_new), stroke: "var(--orange)", "stroke-width": 4}));
      if (step.m_old !== null)
        drawing.append(make("svg:line", {x1: 0, x2: begin * SLOT, y1: y(step.m_old), y2: y(step.m_old), stroke: "var(--orange)", "stroke-width": 2, "stroke-dasharray": "5 5"}));
      step.weights.forEach((weight, j) => drawing.append(
        make("svg:text", {x: (begin + j + .5) * SLOT, y: 238, "text-anchor": "middle", "font-size": narrow ? 13 : 15}, significant(weight, narrow ? 2 : 3))));
    }
    body.textContent = "";
    const row = (name, key, ...cells) => body.append(make("tr", {"data-row": key}, make("td", {}, name),
      ...cells.map((cell) => make("td", {class: "number"}, cell))));
    if (!step) {
      say.textContent = "Nothing is seen yet: m = −∞, and l and acc are 0. Next takes the first block.";
      row("m", "m", "−∞", "", "", "−∞");
      row("l", "l", "0", "", "", "0");
      row("acc", "acc", "0", "", "", "0");
      return;
    }
    const l = significant(step.l_new - step.l_old * step.correction, DIGITS);
    row("m", "m", significant(step.m_old, DIGITS), "", `max(${step.scores.map(minus).join(", ")})`, significant(step.m_new, DIGITS));
    row("l", "l", significant(step.l_old, DIGITS), significant(step.l_old * step.correction, DIGITS), l, significant(step.l_new, DIGITS));
    row(narrow ? "acc" : "acc, first channel", "acc", significant(step.acc_old[0], DIGITS), significant(step.acc_old[0] * step.correction, DIGITS),
        significant(step.acc_new[0] - step.acc_old[0] * step.correction, DIGITS), significant(step.acc_new[0], DIGITS));
    const correction = significant(step.correction, DIGITS);
    say.textContent = step.m_old === null
      ? `The first block. There was nothing to correct: the factor is e to the −∞, ${correction}. The numbers below the bars are the weights e^(s − m).`
      : step.m_new > step.m_old
        ? `The maximum rises from ${minus(step.m_old)} to ${minus(step.m_new)}. All that was summed up is too large: the correction is e^(${minus(step.m_old)} − ${minus(step.m_new)}) = ${correction}.`
        : `The maximum stays at ${minus(step.m_new)}, and the correction is ${correction}.`;
    if (at === trace.length)
      say.textContent += ` All scores are seen: the first channel of O is acc / l = ${significant(step.acc_new[0] / step.l_new, 4)}.`;
  }
  steps.go(steps.at());
});
