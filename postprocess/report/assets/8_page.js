// Tables that sort, texts that copy or save themselves, and the start of everything.
"use strict";
V.sortable = (table) => {
  const heads = [...table.tHead.rows[0].cells],
    body = table.tBodies[0];
  heads.forEach((head, column) => {
    const button = V.element("button", "", head.textContent);
    button.type = "button";
    button.title = "Sort";
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      heads.forEach((one) => one.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const numbers = [...body.rows].every((row) => row.cells[column].dataset.value !== undefined);
      const order = (a, b) => {
        const [p, q] = [value(a), value(b)];
        if (!numbers) return p.localeCompare(q, "en", { numeric: true });
        if (p === "" || q === "") return p === q ? 0 : (p === "") === up ? 1 : -1; // unknown ones stay last
        return Number(p) - Number(q);
      };
      body.append(...[...body.rows].sort((a, b) => (up ? 1 : -1) * order(a, b)));
    });
  });
};
V.copying = (block) => {
  const text = block.querySelector("pre").textContent,
    bar = V.element("div", "copy"),
    copy = V.element("button", "", "Copy");
  copy.type = "button";
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(block.querySelector("pre"));
      copy.textContent = "Selected: press Ctrl+C";
    }
  });
  bar.append(copy);
  if (block.dataset.file) {
    const save = V.element("a", "", `Save ${block.dataset.file}`);
    save.download = block.dataset.file;
    save.href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
    bar.append(save);
  }
  block.prepend(bar);
};
V.start = () => {
  const given = JSON.parse(document.getElementById("data").textContent);
  document.querySelectorAll("table.sortable").forEach(V.sortable);
  document.querySelectorAll(".code").forEach(V.copying);
  document
    .querySelectorAll(".chart")
    .forEach((figure) => V.figures.push(new V.Chart(figure, given.charts[figure.dataset.chart])));
  if (typeof DecompressionStream === "undefined")
    document
      .querySelectorAll(".stage")
      .forEach((stage) =>
        stage.replaceWith("This browser is too old for the pictures in time: it has no DecompressionStream."),
      );
  else document.querySelectorAll(".group").forEach((section) => V.figures.push(new V.Group(section, given.scenes)));
  const again = () => V.figures.forEach((one) => one.draw());
  let waiting = 0,
    width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(again, 80);
  });
  document.querySelectorAll("details").forEach((one) => one.addEventListener("toggle", again));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", again);
};
V.start();
