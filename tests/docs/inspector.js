// What tests/docs/browser.py asks of each page.
window.inspector = {
  async ready() {
    // Formulas are set, what is folded is open, and nothing moves any more.
    if (window.MathJax && window.MathJax.startup && window.MathJax.startup.promise)
      await window.MathJax.startup.promise;
    for (const fold of document.querySelectorAll("details")) fold.open = true;
    const still = document.createElement("style");
    still.textContent = "*, *::before, *::after { transition: none !important; animation: none !important; }";
    document.head.append(still);
    window.dispatchEvent(new Event("resize"));
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 0)));
  },

  // The page itself must not scroll sideways; if it does: who reaches furthest.
  tooWide() {
    const width = document.documentElement.clientWidth;
    if (document.documentElement.scrollWidth <= width + 1) return [];
    const clipped = (element) => {
      for (let up = element.parentElement; up && up !== document.body; up = up.parentElement) {
        if (getComputedStyle(up).overflowX !== "visible") return true;
      }
      return false;
    };
    const out = [...document.body.querySelectorAll("*")]
      .filter((element) => element.getBoundingClientRect().right > width + 1 && !clipped(element))
      .slice(0, 3)
      .map((element) => `${element.tagName.toLowerCase()}.${element.className}`.slice(0, 80));
    return [`the page is ${document.documentElement.scrollWidth} px wide: ${out.join(", ")}`];
  },

  colour(text) {
    const parts = (text.match(/[\d.]+(?:e-?\d+)?%?/g) || []).map(parseFloat);
    const scale = text.startsWith("color(") ? 255 : 1; // color(srgb 0.1 0.2 0.3 / 0.5)
    const [r, g, b, a = 1] = parts;
    return [r * scale, g * scale, b * scale, a];
  },

  over(top, below) {
    const a = top[3];
    return [0, 1, 2].map((k) => a * top[k] + (1 - a) * below[k]).concat(1);
  },

  background(element) {
    const layers = [];
    for (let up = element; up; up = up.parentElement) {
      const style = getComputedStyle(up);
      if (style.backgroundImage !== "none") return null; // nobody knows what is there
      const colour = this.colour(style.backgroundColor);
      if (colour[3] > 0) layers.push(colour);
      if (colour[3] === 1) break;
    }
    return layers.reverse().reduce((below, top) => this.over(top, below), [255, 255, 255, 1]);
  },

  luminance(colour) {
    const [r, g, b] = colour.slice(0, 3).map((value) => {
      const c = value / 255;
      return c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  },

  // Texts whose contrast is below that of WCAG 2, level AA.
  unreadable(theme) {
    document.documentElement.dataset.theme = theme;
    document.documentElement.dataset.mode = theme;
    const seen = new Map();
    const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const element = texts.currentNode.parentElement;
      if (!texts.currentNode.textContent.trim() || seen.has(element)) continue;
      seen.set(element, "");
      if (element.closest("script, style, noscript, svg, .MathJax, mjx-assistive-mml, [hidden], :disabled")) continue;
      if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) continue;
      const style = getComputedStyle(element);
      const behind = this.background(element);
      if (behind === null) continue;
      const [one, other] = [this.over(this.colour(style.color), behind), behind].map((c) => this.luminance(c));
      const contrast = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
      const size = parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && parseInt(style.fontWeight) >= 700);
      if (contrast < (large ? 3 : 4.5) - 0.01) {
        const text = texts.currentNode.textContent.trim().slice(0, 30);
        const name = `${element.tagName.toLowerCase()}.${element.className}`.slice(0, 40);
        seen.set(element, `contrast ${contrast.toFixed(2)} of "${text}" in ${name}, ${style.color}`);
      }
    }
    return [...seen.values()].filter(Boolean).slice(0, 5);
  },

  errors() {
    const wrong = [];
    for (const formula of document.querySelectorAll("[data-mjx-error], [data-mml-node=merror]")) {
      wrong.push(`formula: ${formula.dataset.mjxError || formula.textContent}`.slice(0, 200));
    }
    for (const picture of document.images) {
      if (picture.complete && !picture.naturalWidth) wrong.push(`no picture: ${picture.src}`);
      const alt = picture.getAttribute("alt");
      if (alt === null || /\.(png|svg|jpe?g)$/.test(alt)) wrong.push(`no alternative text: ${picture.src}`);
    }
    for (const said of document.querySelectorAll(".system-message, .problematic")) {
      wrong.push(`message: ${said.textContent.trim().slice(0, 120)}`);
    }
    const seen = document.body.textContent; // of folded parts too
    for (const noise of ["| --- |", " object at 0x", "/tmp/", "?25l", "<page>:"]) {
      const k = seen.indexOf(noise);
      if (k >= 0) wrong.push(`raw, or of the machine: ${seen.slice(Math.max(0, k - 40), k + 40)}`);
    }
    return wrong;
  },
};
