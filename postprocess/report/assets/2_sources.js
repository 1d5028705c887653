// Where values come from: densities on cells of a frame, of Gaussians, and tokens; all in physical coordinates.
"use strict";

V.inverse = (m) => {
  const d = m.length,
    a = m.map((row, i) => [...row, ...row.map((_, j) => (i === j ? 1 : 0))]);
  for (let c = 0; c < d; c++) {
    let best = c;
    for (let r = c; r < d; r++) if (Math.abs(a[r][c]) > Math.abs(a[best][c])) best = r;
    [a[c], a[best]] = [a[best], a[c]];
    const pivot = a[c][c];
    for (let j = 0; j < 2 * d; j++) a[c][j] /= pivot;
    for (let r = 0; r < d; r++) {
      const factor = a[r][c];
      if (r !== c && factor) for (let j = 0; j < 2 * d; j++) a[r][j] -= factor * a[c][j];
    }
  }
  return a.map((row) => row.slice(d));
};

// Cells: code 0 is "below 10^low"; others are decimal numbers, mantissa and exponent, as many digits as are kept.
V.Grid = class {
  constructor(packed) {
    Object.assign(this, packed);
    this.kept = new Map();
    this.span = 10 ** (this.digits - 1);
  }

  async frame(time) {
    if (this.kept.has(time)) return this.kept.get(time);
    const parts = await Promise.all(this.frames[time].map((one, p) => this.part(one, time, p)));
    const found = { parts, peak: Math.max(...parts.map((part) => part.peak)) };
    if (this.kept.size > 40) this.kept.delete(this.kept.keys().next().value);
    this.kept.set(time, found);
    return found;
  }

  async part(packed, time, p) {
    const codes = V.sums(await V.integers(packed.data, 3), this.shape),
      values = new Float64Array(codes.length);
    const decade = 9 * this.span,
      tens = [];
    for (let e = 0; e <= this.floor + 2; e++) tens.push(Number(`1e${packed.low + e - this.digits + 1}`));
    let peak = 0;
    for (let i = 0; i < codes.length; i++) {
      if (codes[i] === 0) continue;
      const k = codes[i] - 1,
        e = Math.floor(k / decade);
      values[i] = (this.span + (k - e * decade)) * tens[e];
      if (values[i] > peak) peak = values[i];
    }
    // index = turn x + move, in cells from the lower corner
    const inverse = V.inverse(this.matrix[time][p]),
      origin = this.origin[time][p];
    const turn = inverse.map((row, i) => row.map((value) => value / this.step[i]));
    const move = turn.map(
      (row, i) => -row.reduce((sum, v, j) => sum + v * origin[j], 0) - this.lower[i] / this.step[i],
    );
    return { codes, values, peak, turn, move, low: packed.low };
  }

  cell(part, x) {
    let flat = 0;
    for (let i = 0; i < this.shape.length; i++) {
      let at = part.move[i];
      for (let j = 0; j < x.length; j++) at += part.turn[i][j] * x[j];
      const k = Math.floor(at);
      if (k < 0 || k >= this.shape[i]) return -1;
      flat = flat * this.shape[i] + k;
    }
    return flat;
  }

  at(frame, x) {
    let sum = 0;
    for (const part of frame.parts) {
      const cell = this.cell(part, x);
      if (cell >= 0) sum += part.values[cell];
    }
    return sum;
  }

  text(part, cell) {
    if (part.codes[cell] === 0) return `below 1e${part.low}`;
    const k = part.codes[cell] - 1,
      decade = 9 * this.span,
      e = Math.floor(k / decade);
    return V.mantissa(this.span + (k - e * decade), part.low + e - this.digits + 1, this.digits);
  }

  told(frame, x) {
    const held = frame.parts.map((part) => [part, this.cell(part, x)]).filter(([, cell]) => cell >= 0);
    const seen = held.filter(([part, cell]) => part.codes[cell] > 0);
    if (!held.length) return ["no cell here"];
    if (seen.length < 2) return [`density ${this.text(...(seen[0] || held[0]))}`];
    return [`density ≈ ${this.at(frame, x).toPrecision(this.digits - 1)}, of ${seen.length} parts`];
  }
};

// Of a Gaussian, by its formula.
V.Bell = class {
  constructor(given) {
    Object.assign(this, given);
  }

  async frame(time) {
    const covariance = this.covariance[time],
      d = covariance.length,
      inverse = V.inverse(covariance);
    const minor = (m) =>
      m.length === 1
        ? m[0][0]
        : m[0].reduce(
            (sum, v, j) => sum + (j % 2 ? -v : v) * minor(m.slice(1).map((row) => row.filter((_, c) => c !== j))),
            0,
          );
    const peak = 1 / Math.sqrt((2 * Math.PI) ** d * minor(covariance));
    return { inverse, peak: Number.isFinite(peak) ? peak : 0, mean: this.mean[time] };
  }

  at(frame, x) {
    if (!frame.peak) return 0;
    let square = 0;
    for (let i = 0; i < x.length; i++)
      for (let j = 0; j < x.length; j++)
        square += (x[i] - frame.mean[i]) * frame.inverse[i][j] * (x[j] - frame.mean[j]);
    return frame.peak * Math.exp(-square / 2);
  }

  told(frame, x) {
    return frame.peak ? [`density ${this.at(frame, x).toPrecision(4)}`] : ["all mass on a point or a line"];
  }
};

// Tokens: whole numbers of 10^-decimals, a time after the other, each less the one before where decimals agree.
V.Tokens = class {
  constructor(packed) {
    Object.assign(this, packed);
  }

  async open() {
    if (this.x) return this;
    const codes = await V.integers(this.data, 4),
      size = this.count * this.d,
      times = this.decimals.length;
    for (let k = 1; k < times; k++)
      if (this.decimals[k] === this.decimals[k - 1])
        for (let i = 0; i < size; i++) codes[k * size + i] += codes[(k - 1) * size + i];
    this.x = this.decimals.map((decimals, k) => {
      const unit = Number(`1e${-decimals}`),
        found = new Float64Array(size);
      for (let i = 0; i < size; i++) found[i] = codes[k * size + i] * unit;
      return found;
    });
    return this;
  }

  told(time, i) {
    const x = Array.from(this.x[time].slice(i * this.d, (i + 1) * this.d)),
      decimals = this.decimals[time];
    const lines = [`token ${this.index ? this.index[i] : i} at (${x.map((v) => V.fixed(v, decimals)).join(", ")})`];
    if (this.weights) lines.push(`weight ${V.number(this.weights[i], 4)}`);
    if (this.places) lines.push(`place s = ${V.number(this.places[i], 4)}`);
    return lines;
  }
};
