// What everything on the page shares: numbers as text, packed arrays, colours and ticks of axes.
"use strict";
const V = { figures: [] };

V.style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// Numbers -----------------------------------------------------------------------------------------------------------
V.tidy = (text) =>
  text
    .replace(/(\.\d*?)0+($|e)/, "$1$2")
    .replace(/\.($|e)/, "$1")
    .replace("e+", "e")
    .replace("-", "−");
V.number = (value, digits = 6) => {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  return V.tidy(Number(value).toPrecision(digits));
};
V.mantissa = (mantissa, exponent, digits) => Number(`${mantissa}e${exponent}`).toPrecision(digits).replace("e+", "e");
V.fixed = (value, decimals) => (decimals >= 0 && decimals <= 12 ? value.toFixed(decimals) : value.toExponential(6));

// Packed arrays: planes of bytes, low ones first, of zigzag codes, deflated, in base64 ----------------------------
V.inflate = async (text) => {
  const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
};
V.integers = async (text, planes) => {
  const bytes = await V.inflate(text),
    count = bytes.length / planes,
    found = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    let code = 0;
    for (let p = 0; p < planes; p++) code |= bytes[p * count + i] << (8 * p);
    found[i] = (code >>> 1) ^ -(code & 1);
  }
  return found;
};
// Sums along each axis, in place: the inverse of differences along each.
V.sums = (values, shape) => {
  let stride = values.length;
  for (const size of shape) {
    const block = stride;
    stride = block / size;
    for (let start = 0; start < values.length; start += block)
      for (let i = start + stride; i < start + block; i++) values[i] += values[i - stride];
  }
  return values;
};

// Colours -----------------------------------------------------------------------------------------------------------
V.rgb = (hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
V.ramp = (name) => {
  const stops = V.style(name).split(/\s+/).map(V.rgb),
    table = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    const at = (i / 255) * (stops.length - 1),
      k = Math.min(Math.floor(at), stops.length - 2),
      f = at - k;
    const [r, g, b] = stops[k].map((low, c) => Math.round(low + f * (stops[k + 1][c] - low)));
    table[i] = (255 << 24) | (b << 16) | (g << 8) | r;
  }
  return table;
};
V.word = (colour) => `rgb(${colour & 255},${(colour >> 8) & 255},${(colour >> 16) & 255})`;
V.series = (k) => V.style(`--series-${k % 7}`);

// Ticks -------------------------------------------------------------------------------------------------------------
V.ticks = (low, high, count, log = false) => {
  if (!(high > low)) return [low];
  const found = [];
  if (log && high / low >= 9) {
    const first = Math.ceil(Math.log10(low) - 1e-9),
      last = Math.floor(Math.log10(high) + 1e-9);
    if (last - first < 2) {
      for (let e = first - 1; e <= last; e++)
        for (const m of [1, 2, 5])
          if (m * 10 ** e >= low * 0.999 && m * 10 ** e <= high * 1.001) found.push(Number(`${m}e${e}`));
      return found;
    }
    const every = Math.max(1, Math.min(Math.ceil((last - first + 1) / count), Math.floor((last - first) / 2)));
    for (let e = first; e <= last; e += every) found.push(Number(`1e${e}`));
    return found;
  }
  const raw = (high - low) / count,
    size = 10 ** Math.floor(Math.log10(raw));
  const steps = [10, 5, 2, 1, 0.5, 0.2].map((f) => f * size);
  const first = steps.findLastIndex((s) => s >= raw * (1 - 1e-9));
  for (const step of steps.slice(first)) {
    found.length = 0;
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++) found.push(i * step);
    if (found.length > 2) break;
  }
  return found;
};
V.tick = (value, ticks) => {
  const step = ticks.length > 1 ? Math.abs(ticks[1] - ticks[0]) : Math.abs(value) || 1;
  if (Math.abs(value) < 1e-9 * step) return "0";
  const size = Math.max(Math.abs(value), step);
  const large = Math.max(...ticks.map(Math.abs));
  if (large >= 1e5 || size < 1e-3)
    return V.tidy(value.toPrecision(Math.min(12, Math.max(1, Math.ceil(Math.log10(Math.abs(value) / step) + 1.01)))));
  return value.toFixed(Math.max(0, Math.min(8, -Math.floor(Math.log10(step) + 1e-9)))).replace("-", "−");
};

// On a logarithmic axis: mantissa and exponent, each tick for itself.
V.logTick = (value) => {
  const exact = Number(value.toPrecision(12));
  return V.tidy(value < 1e-3 || value >= 1e5 ? exact.toExponential() : String(exact));
};

// A canvas that is as wide as its figure, in pixels of the screen.
V.canvas = (canvas, height) => {
  const width = canvas.clientWidth || 300,
    ratio = window.devicePixelRatio || 1;
  canvas.style.height = `${height}px`;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "12px system-ui, sans-serif";
  return [pen, width, height];
};
// What hover shows, beside the pointer and inside the figure.
V.show = (tip, lines, x, y, width) => {
  tip.replaceChildren(...lines.map((line) => Object.assign(document.createElement("div"), { textContent: line })));
  tip.hidden = lines.length === 0;
  const left = x + 14 + tip.offsetWidth > width ? Math.max(0, x - 14 - tip.offsetWidth) : x + 14;
  tip.style.transform = `translate(${left}px, ${Math.max(0, y - tip.offsetHeight - 8)}px)`;
};
V.element = (kind, name, text) => {
  const made = document.createElement(kind);
  if (name) made.className = name;
  if (text) made.textContent = text;
  return made;
};
