// What is wider than its place: formulas in lines scroll by themselves, tables stack their cells on a phone, and what
// scrolls has a fading edge as long as there is more to see.
const PHONE = 600; // pixels

function markWideFormulas() {
  for (const formula of document.querySelectorAll('mjx-container[jax="SVG"]:not([display="true"])')) {
    formula.classList.remove("wide");
    const block = formula.closest("p, li, td, th, dd, dt, figcaption, h1, h2, h3, h4, div");
    if (block && formula.getBoundingClientRect().width > block.clientWidth) formula.classList.add("wide");
  }
}

function stackWideTables() {
  for (const table of document.querySelectorAll(".bd-article table")) {
    table.classList.remove("stacked");
    const place = table.closest(".pst-scrollable-table-container") || table.parentElement;
    const names = [...table.querySelectorAll(":scope > thead > tr:last-child > *")].map((cell) => cell.textContent.trim());
    if (window.innerWidth >= PHONE || names.length < 2 || table.scrollWidth <= place.clientWidth + 1) continue;
    for (const row of table.querySelectorAll(":scope > tbody > tr")) {
      if (row.children.length === names.length)
        [...row.children].forEach((cell, k) => (cell.dataset.label = names[k]));
    }
    table.classList.add("stacked");
  }
}

const SCROLLING = ".pst-scrollable-table-container, .highlight pre, mjx-container[display='true'], .cell_output";

function fade(box) {
  box.classList.toggle("more", box.scrollLeft + box.clientWidth < box.scrollWidth - 2);
}

function layOut() {
  markWideFormulas();
  stackWideTables();
  document.querySelectorAll(`.bd-article :is(${SCROLLING})`).forEach(fade);
}

window.addEventListener("load", () => {
  const started = window.MathJax && window.MathJax.startup && window.MathJax.startup.promise;
  (started || Promise.resolve()).then(layOut);
});
window.addEventListener("resize", layOut);
document.addEventListener(
  "scroll",
  (event) => event.target instanceof Element && event.target.matches(SCROLLING) && fade(event.target),
  { capture: true, passive: true },
);
