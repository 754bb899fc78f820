"use strict";
// A click on a heading sorts: numbers from the largest, texts from A; the second one the other way. Unknown goes last.
for (const table of document.querySelectorAll("table")) {
  const headings = [...table.tHead.rows[0].cells];
  headings.forEach((heading, column) => {
    const button = heading.querySelector("button");
    button.disabled = false;
    button.addEventListener("click", () => {
      const numeric = heading.classList.contains("n");
      const state = heading.getAttribute("aria-sort");
      const up = state ? state === "descending" : !numeric;
      const key = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const rows = [...table.tBodies[0].rows].map((row) => ({row, key: key(row)}));
      rows.sort((a, b) => {
        if (!a.key || !b.key) return !a.key - !b.key;
        const order = numeric ? Number(a.key) - Number(b.key) : a.key.localeCompare(b.key, "en", {numeric: true});
        return up ? order : -order;
      });
      table.tBodies[0].append(...rows.map(({row}) => row));
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      heading.setAttribute("aria-sort", up ? "ascending" : "descending");
    });
  });
}
// The rows behind the first ones are shown on request.
for (const button of document.querySelectorAll("button.all")) {
  button.disabled = false;
  button.addEventListener("click", () => {
    button.closest("section").querySelector("table").classList.add("whole-table");
    button.remove();
  });
}
