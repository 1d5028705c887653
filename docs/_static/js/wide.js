// Formulas inside lines that are wider than their line scroll by themselves: on a phone the page must not.
function markWideFormulas() {
  for (const formula of document.querySelectorAll('mjx-container[jax="SVG"]:not([display="true"])')) {
    formula.classList.remove("wide");
    const block = formula.closest("p, li, td, th, dd, dt, figcaption, h1, h2, h3, h4, div");
    if (block && formula.getBoundingClientRect().width > block.clientWidth) formula.classList.add("wide");
  }
}
window.addEventListener("load", () => {
  const started = window.MathJax && window.MathJax.startup && window.MathJax.startup.promise;
  (started || Promise.resolve()).then(markWideFormulas);
});
window.addEventListener("resize", markWideFormulas);
