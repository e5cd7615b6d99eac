// Chapter 4: the plain fused kernel, step by step: the lines of the compiled source, and which memory they touch.
"use strict";
courseWidget.widget("kernel", (box, data, narrow, kept) => {
  const {make, bytes, stepping} = courseWidget;
  const PLACES = [["global memory", ["Q", "K", "V", "O"]],
                  ["shared memory of the block", ["Q_smem", "K_smem", "V_smem", "P_smem"]],
                  ["registers of a thread", ["S_regs", "O_regs", "m, l"]]];
  const WIDTH = narrow ? 380 : 640, GAP = narrow ? 8 : 14, SIZE = narrow ? 13 : 14;
  const drawing = make("svg:svg", {viewBox: `0 0 ${WIDTH} 218`, role: "img"});
  const choose = make("div", {class: "controls", role: "group", "aria-label": "Steps of the kernel"});
  const buttons = data.steps.map((step, i) =>
    make("button", {type: "button", "aria-pressed": "false", onclick: () => steps.go(i)}, `${i + 1}. ${step.title}`));
  choose.append(...buttons);
  const say = make("p", {class: "say", "aria-live": "polite"});
  const pre = make("pre", {}), list = make("div", {class: "listing", tabindex: 0, role: "region", "aria-label": "The kernel's source"}, pre);
  const lines = data.code.map((line) => {
    const shown = make("span", {class: "line"});
    shown.innerHTML = line || " ";  // coloured when the site was built
    pre.append(shown);
    return shown;
  });
  const steps = stepping(() => data.steps.length, show, kept);
  const launch = data.launch.find((l) => l.kernel === "tiled"), traffic = data.traffic.find((t) => t.kernel === "tiled");
  box.append(make("h4", {}, "The kernel, step by step"), choose, steps.row, drawing, say, list,
             make("p", {class: "about"}, `A block has ${launch.threads} threads, ${launch.block_m} queries and tiles of ${launch.block_n} keys, and takes ` +
               `${bytes(launch.shared_bytes)} of shared memory. For 2 heads of 256 tokens in bf16, causal, the executor counted ` +
               `${bytes(traffic.read_bytes)} read and ${bytes(traffic.written_bytes)} written.`));

  function show(at) {
    const step = data.steps[at];
    buttons.forEach((button, i) => button.setAttribute("aria-pressed", String(i === at)));
    say.textContent = step.text;
    drawing.textContent = "";
    drawing.append(make("svg:title", {}, `${step.title}: reads ${step.reads.join(", ") || "nothing"}, writes ${step.writes.join(", ") || "nothing"}`));
    PLACES.forEach(([place, names], row) => {
      const y = 6 + row * 70, width = WIDTH / 4 - GAP;
      drawing.append(make("svg:text", {x: 4, y: y + 12, "font-size": SIZE, style: "fill: var(--faint)"}, place));
      names.forEach((name, i) => {
        const read = step.reads.includes(name), written = step.writes.includes(name);
        const colour = written ? "var(--orange)" : read ? "var(--blue)" : "none";
        drawing.append(
          make("svg:rect", {x: 4 + i * (width + GAP), y: y + 20, width, height: 34, rx: 5, fill: colour, "data-name": name,
                            stroke: read || written ? colour : "var(--grey)", "data-state": written ? "written" : read ? "read" : ""}),
          make("svg:text", {x: 4 + i * (width + GAP) + width / 2, y: y + 43, "text-anchor": "middle", "font-size": narrow ? 14 : 16,
                            style: read || written ? "fill: var(--paper); font-weight: 600" : ""},
               name.replace("_smem", "").replace("_regs", "") + (read && written ? " (both)" : "")));
      });
    });
    const key = 4 + 3 * (WIDTH / 4);
    drawing.append(make("svg:rect", {x: key, y: 166, width: 12, height: 12, fill: "var(--blue)"}), make("svg:text", {x: key + 17, y: 177, "font-size": SIZE}, "read"),
                   make("svg:rect", {x: key, y: 186, width: 12, height: 12, fill: "var(--orange)"}), make("svg:text", {x: key + 17, y: 197, "font-size": SIZE}, "written"));
    lines.forEach((line, i) => line.classList.toggle("lit", step.lines.includes(i)));
    const first = lines[step.lines[0]];
    list.scrollTop = first.offsetTop - list.offsetTop - 40;
  }
  steps.go(steps.at());
});
