// What a page does beyond standing there: it sorts tables, folds sections and unfolds them for print. Without it all
// is shown, in the order of the run.
"use strict";
(() => {
  const value = (cell) => {
    const text = cell.textContent.trim().replace(/−/g, "-").replace(/^\+/, "");
    const found = /^<?\s*(-?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)/i.exec(text);
    return found ? parseFloat(found[1]) : text;
  };
  const order = (one, other) => {
    if (typeof one === "number" && typeof other === "number") return one - other;
    if (typeof one === "number") return -1;
    return typeof other === "number" ? 1 : one.localeCompare(other);
  };
  // Entries that stand once for several lines are repeated, so that lines can part.
  const spread = (table) => {
    for (const cell of table.querySelectorAll("tbody [rowspan]")) {
      const place = cell.cellIndex;
      let line = cell.parentElement;
      for (let left = cell.rowSpan - 1; left > 0; left -= 1) {
        line = line.nextElementSibling;
        line.insertBefore(cell.cloneNode(true), line.cells[place] || null).removeAttribute("rowspan");
      }
      cell.removeAttribute("rowspan");
    }
    const bodies = [...table.tBodies];
    for (let i = bodies.length - 1; i > 0; i -= 1) {
      const [body, before] = [bodies[i], bodies[i - 1]];
      if (!body.classList.contains("group") && !before.classList.contains("group")) {
        before.append(...body.rows);
        body.remove();
      }
    }
  };
  const sort = (table, head) => {
    spread(table);
    const down = head.getAttribute("aria-sort") === "ascending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    for (const body of table.tBodies) {
      if (body.classList.contains("group")) continue;
      const lines = [...body.rows];
      lines.sort((a, b) => (down ? -1 : 1) * order(value(a.cells[head.cellIndex]), value(b.cells[head.cellIndex])));
      body.append(...lines);
    }
  };
  for (const table of document.querySelectorAll("table")) {
    if (!table.tHead || table.querySelectorAll("tbody tr").length < 3) continue;
    for (const head of table.tHead.rows[0].cells) {
      if (!head.textContent.trim()) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, head));
    }
  }

  const sections = [...document.querySelectorAll("main > section")].filter((each) => each.id !== "answer");
  const fold = (section, folded) => {
    section.classList.toggle("folded", folded);
    section.querySelector("h2 button").setAttribute("aria-expanded", String(!folded));
  };
  for (const section of sections) {
    const head = section.querySelector("h2");
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => fold(section, !section.classList.contains("folded")));
    fold(section, false);
  }
  const reveal = () => {
    const place = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!place) return;
    const section = place.closest("section");
    if (section && sections.includes(section)) fold(section, false);
    for (let each = place; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
    place.scrollIntoView();
  };
  const contents = document.querySelector("nav details");
  document.addEventListener("click", (event) => {
    if (!event.target.closest("a[href^='#']")) return;
    contents.open = false;
    setTimeout(reveal); // a link that was followed before changes no address
  });
  const long = document.documentElement.scrollHeight > 8 * window.innerHeight;
  if (long) for (const section of sections.slice(2)) fold(section, true);
  window.addEventListener("hashchange", reveal);
  reveal();

  let closed = [];
  window.addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("main details:not([open])")];
    for (const each of closed) each.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const each of closed) each.open = false;
  });
})();
