// Pictures of d = 1 and d = 2: a curve of the density over tokens, and a map with tokens on it.
"use strict";
V.Plane = class {
  constructor(scene) {
    this.scene = scene;
  }

  draw(pen, width, height, at) {
    const s = this.scene,
      f = (this.f = V.frame(s.view(), width, height, s.equal)),
      place = (x, i) => [f.px(x[2 * i]), f.py(x[2 * i + 1])];
    V.inside(pen, f, () => {
      if (s.density && at.frame && at.frame.peak > 0) V.heat(pen, f, s.density, at.frame, s.peak(), s.log);
      if (s.tokens && s.asked.paths) V.paths(pen, s.tokens, at.time, place);
      if (s.tokens && s.asked.tokens) V.dots(pen, s, s.tokens, at.time, place);
      if (s.asked.ellipses)
        V.outline(pen, V.ellipses(s.mean[at.time], s.covariance[at.time]), (x) => [f.px(x[0]), f.py(x[1])]);
    });
    V.axes(pen, f, s.labels);
  }

  told(x, y, at) {
    const s = this.scene,
      f = this.f,
      lines = [],
      where = [f.x(x), f.y(y)];
    if (x < f.left || x > f.left + f.w || y < f.top || y > f.top + f.h) return [];
    lines.push(`${s.labels[0]} = ${V.number(where[0], 5)}, ${s.labels[1]} = ${V.number(where[1], 5)}`);
    if (s.density && at.frame) lines.push(...s.density.told(at.frame, where));
    return lines.concat(V.nearest(s, at.time, x, y, (t, i) => [f.px(t[2 * i]), f.py(t[2 * i + 1])]));
  }

  drag(dx, dy) {
    const f = this.f,
      mx = (dx / f.w) * (f.b - f.a),
      my = (dy / f.h) * (f.e - f.c);
    this.scene.moved = [
      [f.a - mx, f.b - mx],
      [f.c + my, f.e + my],
    ];
  }

  zoom(factor, x, y) {
    const f = this.f,
      u = x === undefined ? (f.a + f.b) / 2 : f.x(x),
      v = y === undefined ? (f.c + f.e) / 2 : f.y(y);
    this.scene.moved = [
      [u + (f.a - u) * factor, u + (f.b - u) * factor],
      [v + (f.c - v) * factor, v + (f.e - v) * factor],
    ];
  }
};

V.nearest = (scene, time, x, y, place) => {
  if (!scene.tokens || !scene.asked.tokens) return [];
  let best = 81,
    found = -1;
  for (let i = 0; i < scene.tokens.count; i++) {
    const [u, v] = place(scene.tokens.x[time], i),
      away = (u - x) ** 2 + (v - y) ** 2;
    if (away < best) [best, found] = [away, i];
  }
  return found < 0 ? [] : scene.tokens.told(time, found);
};

V.Line = class {
  constructor(scene) {
    this.scene = scene;
  }

  draw(pen, width, height, at) {
    const s = this.scene,
      [window] = s.view(),
      top = at.frame ? s.peak() : 1,
      rug = s.tokens && s.asked.tokens;
    const range = s.log ? [Math.log10(top) - V.DECADES, Math.log10(top) + 0.2] : [rug ? -0.09 * top : 0, 1.06 * top];
    const f = (this.f = V.frame([window, range], width, height, false)),
      high = (v) => (s.log ? Math.log10(v) : v);
    V.axes(pen, f, [s.labels[0], s.density ? "density" : ""], true, [false, s.log]);
    V.inside(pen, f, () => {
      if (s.density && at.frame) {
        pen.strokeStyle = V.style("--series-0");
        pen.lineWidth = 1.8;
        pen.beginPath();
        for (let i = 0; i <= 2 * f.w; i++) {
          const value = s.density.at(at.frame, [f.x(f.left + i / 2)]),
            y = f.py(high(Math.max(value, 1e-300)));
          if (i) pen.lineTo(f.left + i / 2, y);
          else pen.moveTo(f.left, y);
        }
        pen.stroke();
      }
      if (rug) {
        const tints = V.tints(s, s.tokens),
          low = f.top + f.h - 3;
        pen.lineWidth = 1;
        for (let i = 0; i < s.tokens.count; i++) {
          pen.strokeStyle = tints[i % tints.length];
          pen.beginPath();
          pen.moveTo(f.px(s.tokens.x[at.time][i]), low);
          pen.lineTo(f.px(s.tokens.x[at.time][i]), low - 11);
          pen.stroke();
        }
      }
    });
  }

  told(x, y, at) {
    const s = this.scene,
      f = this.f;
    if (x < f.left || x > f.left + f.w) return [];
    const lines = [`${s.labels[0]} = ${V.number(f.x(x), 6)}`];
    if (s.density && at.frame) lines.push(...s.density.told(at.frame, [f.x(x)]));
    const low = f.top + f.h - 8;
    return y > low - 14 || !s.density
      ? lines.concat(V.nearest(s, at.time, x, low, (t, i) => [f.px(t[i]), low]))
      : lines;
  }

  drag(dx) {
    const f = this.f,
      m = (dx / f.w) * (f.b - f.a);
    this.scene.moved = [[f.a - m, f.b - m]];
  }

  zoom(factor, x) {
    const f = this.f,
      u = x === undefined ? (f.a + f.b) / 2 : f.x(x);
    this.scene.moved = [[u + (f.a - u) * factor, u + (f.b - u) * factor]];
  }
};
