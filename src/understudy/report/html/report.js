"use strict";
// Tables learn to sort by a click on a heading and, where they are long, to be searched.
const LONG = 8;

const number = (text) => (text === "–" ? -Infinity : Number(text.replaceAll(",", "")));

function sortBy(table, at, heading) {
  const down = heading.getAttribute("aria-sort") === "ascending";
  const body = table.tBodies[0];
  const text = (row) => row.cells[at].textContent;
  const order = heading.classList.contains("number")
    ? (a, b) => number(text(a)) - number(text(b))
    : (a, b) => text(a).localeCompare(text(b), "en", { numeric: true });
  const rows = [...body.rows].sort(down ? (a, b) => order(b, a) : order);
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  heading.setAttribute("aria-sort", down ? "descending" : "ascending");
  body.append(...rows);
}

for (const table of document.querySelectorAll("table.sortable")) {
  [...table.tHead.rows[0].cells].forEach((heading, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sortBy(table, at, heading));
    heading.append(button);
  });
  if (table.tBodies[0].rows.length < LONG) continue;
  const search = document.createElement("input");
  search.type = "search";
  search.placeholder = "Search these rows";
  search.setAttribute("aria-label", "Search: " + table.caption.textContent);
  search.addEventListener("input", () => {
    const wanted = search.value.toLowerCase();
    for (const row of table.tBodies[0].rows) {
      row.hidden = !row.textContent.toLowerCase().includes(wanted);
    }
  });
  table.parentElement.before(search);
}
