// What every page does: theme, menu, mathematics, copy buttons, search.
"use strict";
(function () {
  const html = document.documentElement;
  const root = document.body.dataset.root;

  // Theme
  const themeButton = document.getElementById("theme-button");
  const isDark = () => html.classList.contains("dark-mode");
  const showTheme = () => themeButton.setAttribute("aria-pressed", String(isDark()));
  themeButton.addEventListener("click", () => {
    const dark = !isDark();
    html.classList.toggle("dark-mode", dark);
    html.classList.toggle("light-mode", !dark);
    try { localStorage.setItem("theme", dark ? "dark" : "light"); } catch (e) { /* this page only */ }
    showTheme();
  });
  showTheme();

  // Menu: always there on a wide screen, behind a button on a narrow one
  const menu = document.getElementById("menu"), menuButton = document.getElementById("menu-button");
  const openMenu = (open) => {
    html.classList.toggle("menu-open", open);
    menuButton.setAttribute("aria-expanded", String(open));
  };
  menuButton.addEventListener("click", () => openMenu(!html.classList.contains("menu-open")));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && html.classList.contains("menu-open")) { openMenu(false); menuButton.focus(); }
  });
  document.getElementById("content").addEventListener("click", () => openMenu(false));
  const current = menu.querySelector("[aria-current]");
  if (current && current.offsetTop > menu.clientHeight) menu.scrollTop = current.offsetTop - menu.clientHeight / 2;

  // Mathematics stands in the page as TeX
  if (window.katex)
    for (const element of document.querySelectorAll(".math"))
      katex.render(element.textContent, element,
                   {displayMode: element.classList.contains("display"), throwOnError: true});
  // A formula in a line breaks between its parts; where one part is wider than a phone it gets a line of its own.
  for (const element of document.querySelectorAll(".math:not(.display)"))
    if (Array.from(element.querySelectorAll(".base")).some((part) => part.getBoundingClientRect().width > 330))
      element.classList.add("wide");

  // Copy buttons
  const code = (block) => {  // without the numbers of a listing's lines
    const lines = Array.from(block.querySelectorAll(".line"), (line) =>
      Array.from(line.childNodes).filter((part) => part.className !== "n").map((part) => part.textContent).join(""));
    return lines.length ? lines.join("\n") : block.textContent;
  };
  const copy = async (text) => {
    if (navigator.clipboard && window.isSecureContext) return navigator.clipboard.writeText(text);
    const area = document.createElement("textarea");  // pages read from disk have no clipboard object
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  };
  for (const block of document.querySelectorAll("div.code > pre, div.fragment")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", "Copy this block");
    button.addEventListener("click", () => {
      const text = code(block);
      copy(text).then(() => { button.textContent = "Copied"; }, () => { button.textContent = "Failed"; });
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    if (block.matches("pre")) block.parentElement.append(button);
    else {
      const frame = document.createElement("div");
      frame.className = "code";
      block.replaceWith(frame);
      frame.append(block, button);
    }
  }

  // Blocks that scroll sideways can be reached with the keyboard
  for (const block of document.querySelectorAll("pre, .table, .fragment, .math.display"))
    if (block.scrollWidth > block.clientWidth) block.tabIndex = 0;

  // A link into a fold-out opens it
  const reveal = () => {
    let name = location.hash.slice(1);
    try { name = decodeURIComponent(name); } catch (e) { /* a lone % is no escape: then the name as it stands */ }
    const target = name && document.getElementById(name);
    for (let e = target && target.parentElement; e; e = e.parentElement) if (e.tagName === "DETAILS") e.open = true;
    if (target) target.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  if (location.hash) reveal();
  window.addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
  });

  // Search: the index is a script, since pages read from disk may not fetch. It is loaded when it is needed.
  const field = document.getElementById("search-field"), results = document.getElementById("search-results");
  let loading = null;
  const index = () => loading = loading || new Promise((resolve, reject) => {
    const script = document.createElement("script");
    script.src = root + "search-index.js";
    script.onload = () => resolve(window.COURSE_INDEX);
    script.onerror = reject;
    document.head.append(script);
  });
  // Where a word begins with `word`; -1 if none does.
  const begins = (text, word) => {
    let at = text.indexOf(word);
    while (at > 0 && /[\p{L}\p{N}]/u.test(text[at - 1])) at = text.indexOf(word, at + 1);
    return at;
  };
  const points = (text, word, whole, part) => begins(text, word) >= 0 ? whole : text.includes(word) ? part : 0;
  const found = (entries, query) => {
    const words = query.toLowerCase().split(/\s+/).filter(Boolean);
    if (!words.length) return [];
    const hits = [];
    for (const entry of entries) {
      const title = entry.title.toLowerCase(), page = entry.page.toLowerCase(), text = entry.text.toLowerCase();
      let score = 0;
      for (const word of words) {
        const often = Math.min(5, text.split(word).length - 2);
        const gained = (title === word ? 40 : points(title, word, 20, 8)) + points(page, word, 8, 2) + points(text, word, 3 + often, 1);
        if (!gained) { score = 0; break; }
        score += gained;
      }
      if (score) hits.push({entry, score: score - (entry.kind === "reference" && title !== query.toLowerCase() ? 15 : 0)});
    }
    return hits.sort((a, b) => b.score - a.score).slice(0, 30).map((hit) => hit.entry);
  };
  const excerpt = (text, query) => {
    const lower = text.toLowerCase();
    const word = query.toLowerCase().split(/\s+/).filter(Boolean).find((w) => lower.includes(w));
    const start = word ? begins(lower, word) : 0;
    const at = start >= 0 ? start : lower.indexOf(word);
    const from = Math.max(0, at - 50), line = document.createElement("span");
    line.append((from ? "… " : "") + text.slice(from, at));
    if (word) { const mark = document.createElement("mark"); mark.textContent = text.slice(at, at + word.length); line.append(mark); }
    line.append(text.slice(at + (word ? word.length : 0), at + 110) + (text.length > at + 110 ? " …" : ""));
    return line;
  };
  const show = (box, entries, query) => {
    box.textContent = "";
    if (!entries.length) { box.append(`Nothing found for “${query}”.`); return; }
    const list = document.createElement("ul");
    for (const entry of entries) {
      const item = document.createElement("li"), link = document.createElement("a");
      link.href = root + entry.url;
      const title = document.createElement("b");
      title.textContent = entry.title;
      const page = document.createElement("small");
      page.textContent = entry.page;
      link.append(title, " ", page, excerpt(entry.text, query));
      item.append(link);
      list.append(item);
    }
    box.append(list);
  };
  const unread = (box) => () => { box.textContent = "The index of the search cannot be read."; };
  const search = () => {
    const query = field.value.trim();
    results.hidden = query.length < 2;
    if (query.length >= 2)
      index().then((entries) => { if (field.value.trim() === query) show(results, found(entries, query), query); })
        .catch(unread(results));
  };
  field.addEventListener("input", search);
  field.addEventListener("focus", () => { index().catch(unread(results)); search(); });
  const hide = () => { results.hidden = true; };
  document.addEventListener("click", (event) => { if (!event.target.closest("#search")) hide(); });
  document.getElementById("search").addEventListener("keydown", (event) => {
    const links = Array.from(results.querySelectorAll("a"));
    const at = links.indexOf(document.activeElement);
    if (event.key === "Escape") { hide(); field.focus(); hide(); }
    if (results.hidden || !links.length) return;
    if (event.key === "ArrowDown") { links[Math.min(at + 1, links.length - 1)].focus(); event.preventDefault(); }
    if (event.key === "ArrowUp") { (at > 0 ? links[at - 1] : field).focus(); event.preventDefault(); }
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && !event.target.closest("input, textarea, select")) { field.focus(); event.preventDefault(); }
  });
  const page = document.getElementById("search-page");  // search.html?q=…
  if (page) {
    const query = new URLSearchParams(location.search).get("q") || "";
    field.value = query;
    if (query) index().then((entries) => show(page, found(entries, query), query)).catch(unread(page));
    else page.textContent = "Type what you look for into the field above: words of the pages, or names of functions and types.";
  }
})();
