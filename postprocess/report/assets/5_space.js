// Pictures of d = 3, turned by the mouse: the largest density along each line of sight, tokens, and a box with axes.
"use strict";
V.Space = class {
  constructor(scene) {
    this.scene = scene;
    [this.yaw, this.pitch, this.size] = [-0.65, 0.42, 1];
  }

  // Rows: right, up, towards the eye.
  camera() {
    const [cy, sy, cp, sp] = [Math.cos(this.yaw), Math.sin(this.yaw), Math.cos(this.pitch), Math.sin(this.pitch)];
    return [
      [cy, sy, 0],
      [-sy * sp, cy * sp, cp],
      [sy * cp, -cy * cp, sp],
    ];
  }

  // The box [-1, 1]^3 stands for the window; pixels of its unit, and the middle of the picture.
  setting(width, height) {
    const view = this.scene.view(),
      half = view.map(([a, b]) => (b - a) / 2 || 1),
      most = Math.max(...half);
    const equal = this.scene.equal ? half.map((h) => h / most) : [1, 1, 1];
    this.center = view.map(([a, b]) => (a + b) / 2);
    this.half = half;
    this.edge = equal;
    this.unit = (Math.min(width, height) / (1.9 * Math.hypot(...equal))) * this.size;
    [this.mx, this.my] = [width / 2, height / 2];
    this.turn = this.camera();
  }

  place(x) {
    const u = x.map((value, i) => ((value - this.center[i]) / this.half[i]) * this.edge[i]);
    const [right, up, near] = this.turn.map((row) => row[0] * u[0] + row[1] * u[1] + row[2] * u[2]);
    return [this.mx + this.unit * right, this.my - this.unit * up, near];
  }

  draw(pen, width, height, at, rough) {
    const s = this.scene;
    this.setting(width, height);
    this.box(pen);
    if (s.density instanceof V.Grid && at.frame && at.frame.peak > 0) this.glow(pen, width, height, at, rough);
    const point = (x, i) => this.place([x[3 * i], x[3 * i + 1], x[3 * i + 2]]);
    if (s.tokens && s.asked.paths) V.paths(pen, s.tokens, at.time, point);
    if (s.tokens && s.asked.tokens) this.cloud(pen, s, at.time);
    if (s.asked.ellipses)
      V.outline(pen, V.ellipses(s.mean[at.time], s.covariance[at.time]), (x) => this.place(x).slice(0, 2));
  }

  box(pen) {
    const [a, b, c] = this.edge,
      corner = (i) => [i & 1 ? a : -a, i & 2 ? b : -b, i & 4 ? c : -c];
    const seen = (u) => this.turn.map((row) => row[0] * u[0] + row[1] * u[1] + row[2] * u[2]);
    const at = (u) => [this.mx + this.unit * seen(u)[0], this.my - this.unit * seen(u)[1]];
    pen.lineWidth = 1;
    for (let i = 0; i < 8; i++)
      for (const bit of [1, 2, 4]) if (!(i & bit)) V.line(pen, ...at(corner(i)), ...at(corner(i | bit)), "--grid");
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const view = this.scene.view();
    [
      [1, 0],
      [2, 1],
      [4, 2],
    ].forEach(([bit, axis]) => {
      // The edge of this axis that is seen best: the lowest but for the third, which stands at the left.
      const edges = [0, 1, 2, 3, 4, 5, 6, 7].filter((i) => !(i & bit)).map((i) => [at(corner(i)), at(corner(i | bit))]);
      const rank = axis < 2 ? ([p, q]) => p[1] + q[1] : ([p, q]) => -(p[0] + q[0]);
      const [p, q] = edges.reduce((best, one) => (rank(one) > rank(best) ? one : best));
      const away = axis < 2 ? [0, 15] : [-22, 0];
      V.line(pen, ...p, ...q, "--soft");
      pen.fillStyle = V.style("--soft");
      const [low, high] = view[axis],
        ticks = V.ticks(low, high, 3);
      for (const value of ticks) {
        const f = (value - low) / (high - low),
          [x, y] = [p[0] + f * (q[0] - p[0]), p[1] + f * (q[1] - p[1])];
        V.line(pen, x, y, x + Math.sign(away[0]) * 4, y + Math.sign(away[1]) * 4, "--soft");
        pen.fillText(V.tick(value, ticks), x + away[0], y + away[1]);
      }
      pen.fillStyle = V.style("--ink");
      pen.fillText(this.scene.labels[axis], (p[0] + q[0]) / 2 + away[0] * 2.1, (p[1] + q[1]) / 2 + away[1] * 2.1);
    });
  }

  // Near tokens stand before far ones, and are larger.
  cloud(pen, scene, time) {
    const { tokens } = scene,
      x = tokens.x[time],
      tints = V.tints(scene, tokens),
      base = scene.dense ? 1.7 : 3;
    const most = tokens.weights ? Math.max(...tokens.weights) : 1,
      all = [];
    for (let i = 0; i < tokens.count; i++) all.push([...this.place([x[3 * i], x[3 * i + 1], x[3 * i + 2]]), i]);
    all.sort((a, b) => a[2] - b[2]);
    pen.lineWidth = 0.7;
    pen.strokeStyle = V.style("--paper");
    for (const [u, v, near, i] of all) {
      const weight = tokens.weights ? Math.max(0.45, 1.4 * Math.sqrt(tokens.weights[i] / most)) : 1;
      pen.globalAlpha = Math.min(1, Math.max(0.35, 0.75 + 0.25 * near));
      pen.fillStyle = tints[i % tints.length];
      pen.beginPath();
      pen.arc(u, v, base * weight * Math.max(0.6, 1 + 0.25 * near), 0, 7);
      pen.fill();
      if (!scene.dense) pen.stroke();
    }
    pen.globalAlpha = 1;
  }

  // A line of sight in cells of a part: where it is at depth 0, how it goes on, and where it enters and leaves.
  ray(part, shape, px, py) {
    const right = (px - this.mx) / this.unit,
      up = (this.my - py) / this.unit,
      start = [],
      step = [];
    const x = [0, 1, 2].map(
      (i) => (this.turn[0][i] * right + this.turn[1][i] * up) * (this.half[i] / this.edge[i]) + this.center[i],
    );
    const e = [0, 1, 2].map((i) => this.turn[2][i] * (this.half[i] / this.edge[i]));
    let [near, far] = [-1e30, 1e30];
    for (let i = 0; i < 3; i++) {
      start[i] = part.move[i] + part.turn[i][0] * x[0] + part.turn[i][1] * x[1] + part.turn[i][2] * x[2];
      step[i] = part.turn[i][0] * e[0] + part.turn[i][1] * e[1] + part.turn[i][2] * e[2];
      if (Math.abs(step[i]) < 1e-12) {
        if (start[i] < 0 || start[i] >= shape[i]) return null;
        continue;
      }
      const [p, q] = [-start[i] / step[i], (shape[i] - start[i]) / step[i]];
      near = Math.max(near, Math.min(p, q));
      far = Math.min(far, Math.max(p, q));
    }
    return far > near
      ? { start, step, near, far, count: Math.ceil((far - near) * Math.max(...step.map(Math.abs)) * 1.2) }
      : null;
  }

  // The cell of the largest density along a line.
  brightest(part, shape, px, py) {
    const ray = this.ray(part, shape, px, py);
    if (!ray) return [-1, 0];
    const { start, step, near, far } = ray,
      count = Math.min(400, Math.max(1, ray.count)),
      h = (far - near) / count;
    let cell = -1,
      value = -1;
    for (let k = 0, s = near + h / 2; k < count; k++, s += h) {
      const i = Math.min(shape[0] - 1, Math.max(0, Math.floor(start[0] + s * step[0])));
      const j = Math.min(shape[1] - 1, Math.max(0, Math.floor(start[1] + s * step[1])));
      const l = Math.min(shape[2] - 1, Math.max(0, Math.floor(start[2] + s * step[2])));
      const flat = (i * shape[1] + j) * shape[2] + l;
      if (part.values[flat] > value) [cell, value] = [flat, part.values[flat]];
    }
    return [cell, value];
  }

  // Values between the middles of cells, linear along each axis; none outside.
  between(values, [n0, n1, n2], u, v, w) {
    const i = Math.floor(u - 0.5),
      j = Math.floor(v - 0.5),
      l = Math.floor(w - 0.5);
    const a = u - 0.5 - i,
      b = v - 0.5 - j,
      c = w - 0.5 - l;
    const one = (p, q, r) =>
      p < 0 || q < 0 || r < 0 || p >= n0 || q >= n1 || r >= n2 ? 0 : values[(p * n1 + q) * n2 + r];
    const near = (p) =>
      (1 - b) * ((1 - c) * one(p, j, l) + c * one(p, j, l + 1)) +
      b * ((1 - c) * one(p, j + 1, l) + c * one(p, j + 1, l + 1));
    return (1 - a) * near(i) + a * near(i + 1);
  }

  // The colour of the first cell on a line of sight that reaches a level: lit from the eye, by the slope of the density.
  surface(frame, shape, px, py, level, lit) {
    let nearest = -Infinity,
      colour = 0;
    for (const part of frame.parts) {
      const ray = this.ray(part, shape, px, py);
      if (!ray) continue;
      const { start, step, near, far } = ray,
        count = Math.min(400, Math.max(1, ray.count * 1.5)),
        h = (far - near) / count;
      const value = (u, v, w) => this.between(part.values, shape, u, v, w);
      const on = (s) => [0, 1, 2].map((i) => start[i] + s * step[i]);
      for (let k = 0, s = far - h / 2; k < count && s > nearest; k++, s -= h) {
        if (value(...on(s)) < level) continue;
        let outside = s + h;
        for (let half = 0; half < 8; half++) {
          const middle = (s + outside) / 2;
          if (value(...on(middle)) < level) outside = middle;
          else s = middle;
        }
        const [u, v, w] = on(s);
        const slope = [
          value(u - 1, v, w) - value(u + 1, v, w),
          value(u, v - 1, w) - value(u, v + 1, w),
          value(u, v, w - 1) - value(u, v, w + 1),
        ];
        const normal = [0, 1, 2].map(
          (j) => part.turn.reduce((sum, row, i) => sum + row[j] * slope[i], 0) * (this.half[j] / this.edge[j]),
        );
        const towards = normal.reduce((sum, v, j) => sum + v * this.turn[2][j], 0),
          size = Math.hypot(...normal);
        nearest = s;
        colour = lit[Math.round(255 * (size > 0 ? Math.max(0, towards / size) : 1))];
        break;
      }
    }
    return colour;
  }

  glow(pen, width, height, at, rough) {
    const s = this.scene,
      pixel = rough ? 6 : 2.5,
      columns = Math.ceil(width / pixel),
      rows = Math.ceil(height / pixel);
    const image = new ImageData(columns, rows),
      words = new Uint32Array(image.data.buffer),
      ramp = V.ramp("--ramp"),
      lit = V.ramp("--lit"),
      peak = s.peak();
    for (let r = 0, k = 0; r < rows; r++)
      for (let c = 0; c < columns; c++, k++) {
        let best = 0;
        if (s.surface) {
          words[k] = this.surface(at.frame, s.density.shape, (c + 0.5) * pixel, (r + 0.5) * pixel, s.level * peak, lit);
          continue;
        }
        for (const part of at.frame.parts) {
          const [, value] = this.brightest(part, s.density.shape, (c + 0.5) * pixel, (r + 0.5) * pixel);
          if (value > best) best = value;
        }
        const share = s.log ? (best > 0 ? 1 + Math.log10(best / peak) / V.DECADES : 0) : best / peak;
        words[k] = share > 0.004 ? ramp[Math.min(255, 255 * share) | 0] : 0;
      }
    const canvas = document.createElement("canvas");
    canvas.width = columns;
    canvas.height = rows;
    canvas.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = true;
    pen.drawImage(canvas, 0, 0, columns * pixel, rows * pixel);
  }

  told(x, y, at) {
    const s = this.scene,
      lines = [];
    if (s.density instanceof V.Grid && at.frame) {
      const found = at.frame.parts.map((part) => [part, ...this.brightest(part, s.density.shape, x, y)]);
      const [part, cell, value] = found.reduce((best, one) => (one[2] > best[2] ? one : best));
      if (cell >= 0 && value > 0)
        lines.push(
          `density ${s.density.text(part, cell)}, the largest on this line of sight,`,
          `at ${this.middle(part, s.density.shape, cell)}`,
        );
    }
    const point = (t, i) => this.place([t[3 * i], t[3 * i + 1], t[3 * i + 2]]);
    return lines.concat(V.nearest(s, at.time, x, y, point));
  }

  // The middle of a cell, in physical coordinates.
  middle(part, n, cell) {
    const index = [Math.floor(cell / (n[1] * n[2])), Math.floor(cell / n[2]) % n[1], cell % n[2]];
    const z = index.map((i, axis) => i + 0.5 - part.move[axis]);
    return `(${V.inverse(part.turn)
      .map((row) =>
        V.number(
          row.reduce((sum, v, j) => sum + v * z[j], 0),
          5,
        ),
      )
      .join(", ")})`;
  }

  drag(dx, dy) {
    this.yaw -= dx * 0.008;
    this.pitch = Math.max(-1.57, Math.min(1.57, this.pitch + dy * 0.008));
  }

  zoom(factor) {
    this.size = Math.max(0.3, Math.min(30, this.size / factor));
  }

  reset() {
    [this.yaw, this.pitch, this.size] = [-0.65, 0.42, 1];
  }
};
