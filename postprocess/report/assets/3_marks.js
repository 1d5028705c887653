// What is drawn in a frame: axes, a density as colours or a curve, tokens, their paths, ellipses of covariances.
"use strict";
V.MARGIN = { left: 52, right: 12, top: 10, bottom: 34 };

// The window in x of a picture of so many pixels; equal scales where asked for.
V.frame = (view, width, height, equal) => {
  const m = V.MARGIN,
    w = width - m.left - m.right,
    h = height - m.top - m.bottom;
  let [[a, b], [c, e]] = view;
  if (equal) {
    const unit = Math.max((b - a) / w, (e - c) / h),
      x = (a + b) / 2,
      y = (c + e) / 2;
    [a, b, c, e] = [x - (unit * w) / 2, x + (unit * w) / 2, y - (unit * h) / 2, y + (unit * h) / 2];
  }
  return {
    left: m.left,
    top: m.top,
    w,
    h,
    a,
    b,
    c,
    e,
    px: (x) => m.left + ((x - a) / (b - a)) * w,
    py: (y) => m.top + h - ((y - c) / (e - c)) * h,
    x: (px) => a + ((px - m.left) / w) * (b - a),
    y: (py) => c + ((m.top + h - py) / h) * (e - c),
  };
};

V.axes = (pen, f, names, grid = false, logs = [false, false]) => {
  pen.strokeStyle = pen.fillStyle = V.style("--soft");
  pen.lineWidth = 1;
  pen.textAlign = "center";
  pen.textBaseline = "top";
  const to = [logs[0] ? Math.log10 : (v) => v, logs[1] ? Math.log10 : (v) => v];
  const from = [logs[0] ? (v) => 10 ** v : (v) => v, logs[1] ? (v) => 10 ** v : (v) => v];
  const across = V.ticks(from[0](f.a), from[0](f.b), Math.max(2, Math.floor(f.w / 80)), logs[0]);
  const up = V.ticks(from[1](f.c), from[1](f.e), Math.max(2, Math.floor(f.h / 55)), logs[1]);
  const write = (value, all, log) => (log ? V.logTick(value) : V.tick(value, all));
  for (const value of across) {
    const x = f.px(to[0](value));
    if (grid) V.line(pen, x, f.top, x, f.top + f.h, "--grid");
    V.line(pen, x, f.top + f.h, x, f.top + f.h + 4, "--soft");
    pen.fillText(write(value, across, logs[0]), x, f.top + f.h + 6);
  }
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const value of up) {
    const y = f.py(to[1](value));
    if (grid) V.line(pen, f.left, y, f.left + f.w, y, "--grid");
    V.line(pen, f.left - 4, y, f.left, y, "--soft");
    pen.fillText(write(value, up, logs[1]), f.left - 6, y);
  }
  pen.strokeStyle = V.style("--soft");
  pen.strokeRect(f.left, f.top, f.w, f.h);
  pen.textAlign = "right";
  pen.textBaseline = "bottom";
  pen.fillStyle = V.style("--ink");
  pen.fillText(names[0], f.left + f.w, f.top + f.h + 33);
  pen.textAlign = "left";
  pen.textBaseline = "top";
  pen.fillText(names[1], f.left + 6, f.top + 5);
};
V.line = (pen, x, y, u, v, name) => {
  pen.save();
  pen.strokeStyle = V.style(name);
  pen.beginPath();
  pen.moveTo(x, y);
  pen.lineTo(u, v);
  pen.stroke();
  pen.restore();
};
V.inside = (pen, f, draw) => {
  pen.save();
  pen.beginPath();
  pen.rect(f.left, f.top, f.w, f.h);
  pen.clip();
  draw();
  pen.restore();
};

// Values at all pixels of the window, and their largest.
V.field = (source, frame, f, columns, rows) => {
  const values = new Float32Array(columns * rows),
    dx = (f.b - f.a) / columns,
    dy = (f.e - f.c) / rows;
  if (source instanceof V.Grid) {
    const [n0, n1] = source.shape;
    for (const part of frame.parts) {
      const [[t00, t01], [t10, t11]] = part.turn;
      for (let r = 0; r < rows; r++) {
        const y = f.e - (r + 0.5) * dy,
          x = f.a + 0.5 * dx;
        let u = part.move[0] + t00 * x + t01 * y,
          v = part.move[1] + t10 * x + t11 * y;
        for (let c = 0, i = r * columns; c < columns; c++, i++, u += t00 * dx, v += t10 * dx)
          if (u >= 0 && v >= 0 && u < n0 && v < n1) values[i] += part.values[Math.floor(u) * n1 + Math.floor(v)];
      }
    }
  } else {
    for (let r = 0, i = 0; r < rows; r++)
      for (let c = 0; c < columns; c++, i++) values[i] = source.at(frame, [f.a + (c + 0.5) * dx, f.e - (r + 0.5) * dy]);
  }
  return values;
};

V.DECADES = 4; // of logarithmic colours
V.heat = (pen, f, source, frame, peak, log) => {
  const ratio = Math.min(window.devicePixelRatio || 1, 1.5);
  const columns = Math.round(Math.min(f.w * ratio, 700)),
    rows = Math.max(1, Math.round((columns * f.h) / f.w));
  const values = V.field(source, frame, f, columns, rows),
    ramp = V.ramp("--ramp");
  const image = new ImageData(columns, rows),
    words = new Uint32Array(image.data.buffer),
    scale = 255 / peak;
  for (let i = 0; i < values.length; i++) {
    const share = log ? (values[i] > 0 ? 255 * (1 + Math.log10(values[i] / peak) / V.DECADES) : 0) : values[i] * scale;
    words[i] = ramp[share < 0 ? 0 : share > 255 ? 255 : share | 0];
  }
  const canvas = document.createElement("canvas");
  canvas.width = columns;
  canvas.height = rows;
  canvas.getContext("2d").putImageData(image, 0, 0);
  pen.imageSmoothingEnabled = false;
  pen.drawImage(canvas, f.left, f.top, f.w, f.h);
};

V.dots = (pen, scene, tokens, time, place) => {
  const x = tokens.x[time],
    size = scene.dense ? (scene.density ? 1.1 : 1.6) : 2.6,
    most = tokens.weights ? Math.max(...tokens.weights) : 1;
  const tinted = V.tints(scene, tokens);
  pen.lineWidth = 0.7;
  pen.strokeStyle = V.style("--paper");
  for (let i = 0; i < tokens.count; i++) {
    const [u, v] = place(x, i);
    if (!Number.isFinite(u + v)) continue;
    pen.fillStyle = tinted[i % tinted.length];
    pen.beginPath();
    pen.arc(u, v, tokens.weights ? size * Math.max(0.45, Math.sqrt(tokens.weights[i] / most) * 1.4) : size, 0, 7);
    pen.fill();
    if (!scene.dense) pen.stroke();
  }
};
// By place in a sequence, else by where tokens began where nothing else has colours, else all alike.
V.tints = (scene, tokens) => {
  if (scene.density && !tokens.places) return [V.style("--token")];
  const ramp = V.ramp("--order");
  if (tokens.places) return tokens.places.map((s) => V.word(ramp[Math.round(255 * s)]));
  const first = Array.from({ length: tokens.count }, (_, i) => tokens.x[0][i * tokens.d]);
  const order = first.map((x, i) => [x, i]).sort((a, b) => a[0] - b[0]),
    found = new Array(tokens.count);
  order.forEach(([, i], rank) => (found[i] = V.word(ramp[Math.round((255 * rank) / Math.max(1, tokens.count - 1))])));
  return found;
};

V.paths = (pen, tokens, time, place) => {
  const every = Math.max(1, Math.ceil(tokens.count / 150));
  pen.strokeStyle = V.style("--path");
  pen.lineWidth = 0.8;
  for (let i = 0; i < tokens.count; i += every) {
    pen.beginPath();
    for (let k = 0; k <= time; k++) {
      const [u, v] = place(tokens.x[k], i);
      if (k) pen.lineTo(u, v);
      else pen.moveTo(u, v);
    }
    pen.stroke();
  }
};

// Mean and ellipses of one and two deviations, as points on curves: those of d = 3 are the three principal ones.
V.ellipses = (mean, covariance) => {
  const d = mean.length,
    root = V.cholesky(covariance),
    planes =
      d === 2
        ? [[0, 1]]
        : [
            [0, 1],
            [0, 2],
            [1, 2],
          ],
    curves = [];
  for (const size of [1, 2])
    for (const [p, q] of planes) {
      const curve = [];
      for (let k = 0; k <= 72; k++) {
        const angle = (k * Math.PI) / 36,
          z = new Array(d).fill(0);
        z[p] = size * Math.cos(angle);
        z[q] = size * Math.sin(angle);
        curve.push(mean.map((m, i) => m + root[i].reduce((sum, value, j) => sum + value * z[j], 0)));
      }
      curves.push(curve);
    }
  return curves;
};
V.cholesky = (m) => {
  const d = m.length,
    l = m.map((row) => row.map(() => 0));
  for (let i = 0; i < d; i++)
    for (let j = 0; j <= i; j++) {
      let sum = m[i][j];
      for (let k = 0; k < j; k++) sum -= l[i][k] * l[j][k];
      l[i][j] = i === j ? Math.sqrt(Math.max(sum, 0)) : l[j][j] > 0 ? sum / l[j][j] : 0;
    }
  return l;
};
V.outline = (pen, curves, place) => {
  pen.strokeStyle = V.style("--mark");
  pen.lineWidth = 1.3;
  for (const curve of curves) {
    pen.beginPath();
    curve.forEach((x, k) => (k ? pen.lineTo(...place(x)) : pen.moveTo(...place(x))));
    pen.stroke();
  }
};
