// Chapter 1: what S and P cost beside Q, K, V and O, at a length that the reader chooses. Figures are the program's.
"use strict";
courseWidget.widget("memory", (box, data, narrow, kept) => {
  const {make, scrolling, bytes, seconds, significant} = courseWidget;
  const rows = data.accounting.filter((row) => row.length >= 512);  // below, the strips are no strips
  const DIM = 64, TILE = 64;  // channels of a head, and the tile that is drawn, as in the chapter

  const slider = make("input", {type: "range", min: 0, max: rows.length - 1, value: kept.row ?? 1, step: 1,
                                "aria-label": "Length T", oninput: () => show()});
  const length = make("output", {});
  const way = make("button", {type: "button", "aria-pressed": "false",
                              onclick: () => { blocked = !blocked; show(); }}, "In tiles");
  let blocked = kept.blocked || false;
  const SIDE = 250, LEFT = 96, TOP = 74, SIZE = narrow ? 19 : 15;
  const drawing = make("svg:svg", {viewBox: "0 0 442 332", role: "img", style: "max-width: 500px"});
  const body = make("tbody");
  box.append(
    make("h4", {}, "How large are S and P?"),
    make("div", {class: "controls"}, make("label", {}, "T"), slider, length, way),
    drawing,
    make("p", {class: "about"}, "One head, to scale: the sides of S and P are T long, Q, K, V and O are T by 64; strips and tiles too small to be seen are drawn larger. " +
      "The figures below are of one layer of 4 sequences with 12 heads, bf16."),
    scrolling("The figures as a table", make("table", {},
      make("thead", {}, make("tr", {}, make("th", {}, "one layer"), make("th", {class: "number"}, "naive"),
                             make("th", {class: "number"}, "in tiles"))), body)));

  function strip(x, y, width, height, label, labelX, labelY) {
    drawing.append(
      make("svg:rect", {x, y, width: Math.max(width, 1), height: Math.max(height, 1), fill: "var(--blue)"}),
      make("svg:text", {x: labelX, y: labelY, "text-anchor": "middle", "font-size": SIZE}, label));
  }

  function show() {
    Object.assign(kept, {row: Number(slider.value), blocked});
    const row = rows[kept.row];
    const T = row.length, scale = SIDE / T;
    length.textContent = T.toLocaleString("en");
    slider.setAttribute("aria-valuetext", `${T} tokens`);
    way.setAttribute("aria-pressed", String(blocked));

    drawing.textContent = "";
    const thin = DIM * scale;
    drawing.append(make("svg:title", {}, `Q, K, V, O and ${blocked ? "one tile of S" : "S and P"} at T = ${T}`));
    strip(LEFT - 8 - thin, TOP, thin, SIDE, "Q", LEFT - 8 - thin - 14, TOP + SIDE / 2 + 6);
    strip(LEFT + SIDE + 8, TOP, thin, SIDE, "O", LEFT + SIDE + 8 + thin + 14, TOP + SIDE / 2 + 6);
    // Above the square there is room for two thin strips only.
    const high = Math.min(thin, 29);
    strip(LEFT, TOP - 8 - high, SIDE, high, "K", LEFT - 14, TOP - 2 - high / 2);
    // Their names keep the height of a line apart, however thin the strips are.
    strip(LEFT, TOP - 14 - 2 * high, SIDE, high, "V", LEFT - 14, TOP - 2 - high / 2 - Math.max(SIZE, 6 + high));
    drawing.append(make("svg:rect", {x: LEFT, y: TOP, width: SIDE, height: SIDE, fill: blocked ? "none" : "var(--orange)",
                                     stroke: "var(--orange)", "stroke-dasharray": blocked ? "4 4" : "none", class: "scores"}));
    if (blocked)
      drawing.append(make("svg:rect", {x: LEFT, y: TOP, width: Math.max(TILE * scale, 4), height: Math.max(TILE * scale, 4), fill: "var(--orange)", class: "tile"}));
    drawing.append(make("svg:text", {x: LEFT + SIDE / 2, y: TOP + SIDE / 2 + 6, "text-anchor": "middle", "font-size": narrow ? 24 : 20,
                                     style: blocked ? "" : "fill: var(--paper)"},
                        blocked ? "never written" : "S, and P after it"));

    const lines = [
      ["Q + K + V + O", bytes(row.qkvo_bytes), bytes(row.qkvo_bytes), "qkvo"],
      ["S + P", bytes(2 * row.score_bytes), "a tile a thread", "scores"],
      ["moved", bytes(row.naive_moved_bytes), bytes(row.flash_q_outside_moved_bytes), "moved"],
      ["time at the ceilings of an H200", seconds(row.naive_seconds), seconds(row.flash_seconds), "time"],
      ["S / (Q + K + V + O)", significant(row.score_bytes / row.qkvo_bytes, 3), "", "ratio"],
    ];
    body.textContent = "";
    for (const [name, naive, tiled, key] of lines)
      body.append(make("tr", {"data-row": key}, make("td", {}, name), make("td", {class: "number"}, naive),
                       make("td", {class: "number"}, tiled)));
  }
  show();
});
