// Curves against a common axis: lines, points and bands, straight or logarithmic; hover reads values, the key hides.
"use strict";
V.Chart = class {
  constructor(figure, given) {
    Object.assign(this, given);
    this.figure = figure;
    this.canvas = figure.querySelector("canvas");
    this.tip = figure.querySelector(".tip");
    this.hidden = new Set();
    this.legend(figure.querySelector(".legend"));
    this.canvas.addEventListener("pointermove", (event) => this.hover(event));
    this.canvas.addEventListener("pointerleave", () => (V.show(this.tip, [], 0, 0, 0), this.draw()));
    this.draw();
  }

  legend(box) {
    if (this.series.length < 2) return;
    this.series.forEach((one, k) => {
      const button = V.element("button"),
        mark = V.element("i"),
        colour = one.grey ? "var(--soft)" : `var(--series-${(one.colour ?? k) % 7})`;
      button.type = "button";
      mark.style.borderTop = `2.5px ${one.dash ? "dashed" : "solid"} ${colour}`;
      button.append(mark, one.name);
      button.setAttribute("aria-pressed", "true");
      button.title = "Show or hide";
      button.addEventListener("click", () => {
        if (!this.hidden.delete(k)) this.hidden.add(k);
        button.setAttribute("aria-pressed", String(!this.hidden.has(k)));
        this.draw();
      });
      box.append(button);
    });
  }

  shown() {
    return this.series.map((one, k) => ({ ...one, k })).filter((one) => !this.hidden.has(one.k));
  }

  range(values, log) {
    const good = values
      .filter((v) => v !== null && Number.isFinite(v) && (!log || v > 0))
      .map((v) => (log ? Math.log10(v) : v));
    if (!good.length) return log ? [-1, 0] : [0, 1];
    let low = good.reduce((a, b) => Math.min(a, b)),
      high = good.reduce((a, b) => Math.max(a, b));
    if (log && high - low > 30) low = high - 30;
    const least = 1e-9 * Math.max(Math.abs(low), Math.abs(high));
    const pad =
      high - low > least ? 0.05 * (high - low) : Math.max(0.5 * Math.abs(high) * (log ? 0 : 1), log ? 0.5 : 1e-12);
    return [low - pad, high + pad];
  }

  draw(mark = null) {
    const [pen, width, height] = V.canvas(this.canvas, 240),
      all = this.shown();
    const x = this.range(
      all.flatMap((one) => one.x),
      this.logx,
    );
    const bounding = all.some((one) => !one.grey) ? all.filter((one) => !one.grey || one.fits) : all;
    const y = this.range(
      bounding.flatMap((one) => [...one.y, ...(one.low || []), ...(one.high || [])]),
      this.logy,
    );
    if (!this.logy && this.least > y[1] - y[0])
      [y[0], y[1]] = [-1, 1].map((side) => (y[0] + y[1]) / 2 + (side * this.least) / 2);
    const f = (this.f = V.frame([x, y], width, height, false));
    this.to = [(v) => f.px(this.logx ? Math.log10(v) : v), (v) => f.py(this.logy ? (v > 0 ? Math.log10(v) : -400) : v)];
    V.axes(pen, f, [this.xname, ""], true, [this.logx, this.logy]);
    this.share(all);
    V.inside(pen, f, () => all.forEach((one) => this.curve(pen, one)));
    if (mark !== null) V.line(pen, this.to[0](mark), f.top, this.to[0](mark), f.top + f.h, "--soft");
    this.canvas.dataset.drawn = all.length;
  }

  // Curves that lie on one another take turns along the line, so that each can be seen.
  share(all) {
    const groups = [],
      [px, py] = this.to;
    for (const one of all.filter((one) => !one.grey && !one.points)) {
      const same = (other) =>
        other.x.length === one.x.length &&
        Boolean(other.dash) === Boolean(one.dash) &&
        one.x.every((x, i) => {
          const [p, q] = [one.y[i], other.y[i]];
          return p === null || q === null ? p === q : Math.hypot(px(x) - px(other.x[i]), py(p) - py(q)) < 1.5;
        });
      const group = groups.find(([first]) => same(first));
      if (group) group.push(one);
      else groups.push([one]);
    }
    for (const group of groups) group.forEach((one, k) => (one.turn = [k, group.length]));
  }

  curve(pen, one) {
    const [px, py] = this.to,
      colour = one.grey ? V.style("--soft") : V.series(one.colour ?? one.k);
    const known = one.x
      .map((x, i) => [x, i])
      .filter(([x, i]) => x !== null && one.y[i] !== null && (!this.logy || one.y[i] > 0));
    if (one.low) {
      const banded = known.filter(([, i]) => one.low[i] !== null && one.high[i] !== null);
      pen.fillStyle = colour;
      pen.globalAlpha = 0.16;
      pen.beginPath();
      banded.forEach(([x, i], k) => (k ? pen.lineTo(px(x), py(one.high[i])) : pen.moveTo(px(x), py(one.high[i]))));
      [...banded].reverse().forEach(([x, i]) => pen.lineTo(px(x), py(one.low[i])));
      pen.fill();
      pen.globalAlpha = 1;
    }
    pen.strokeStyle = pen.fillStyle = colour;
    pen.lineWidth = one.grey ? 1.3 : 1.9;
    const [turn, turns] = one.turn || [0, 1],
      dash = one.dash ? 6 : 9;
    pen.setLineDash(one.dash || turns > 1 ? [dash, turns > 1 ? dash * (turns - 1) : 4] : []);
    pen.lineDashOffset = -turn * dash;
    pen.beginPath();
    let last = -2;
    if (!one.points)
      for (const [x, i] of known) {
        if (last === i - 1) pen.lineTo(px(x), py(one.y[i]));
        else pen.moveTo(px(x), py(one.y[i]));
        last = i;
      }
    pen.stroke();
    pen.setLineDash([]);
    pen.lineDashOffset = 0;
    if (one.points || known.length < 14)
      for (const [x, i] of known) {
        pen.beginPath();
        pen.arc(px(x), py(one.y[i]), one.grey ? 0 : 2.8, 0, 7);
        pen.fill();
      }
  }

  hover(event) {
    const box = this.canvas.getBoundingClientRect(),
      x = event.clientX - box.left,
      y = event.clientY - box.top,
      all = this.shown();
    let best = null;
    for (const one of all)
      for (const value of one.x) {
        if (value === null) continue;
        const away = Math.abs(this.to[0](value) - x);
        if (best === null || away < best[0]) best = [away, value];
      }
    if (!best) return;
    const lines = [`${this.xname} = ${V.number(best[1])}`];
    for (const one of all) {
      const i = one.x.indexOf(best[1]);
      if (i < 0) continue;
      const band = one.low && one.low[i] !== null ? ` (${V.number(one.low[i], 3)} to ${V.number(one.high[i], 3)})` : "";
      lines.push(`${one.name}: ${V.number(one.y[i])}${band}`);
    }
    this.draw(best[1]);
    V.show(this.tip, lines.slice(0, 14), x, y, this.canvas.clientWidth);
  }
};
