// A solution at one time, with what moves and changes it: slider, play, zoom, drag, hover, and boxes to tick.
"use strict";
V.Scene = class {
  constructor(figure, given) {
    Object.assign(this, given);
    this.figure = figure;
    this.stage = figure.querySelector(".stage");
    this.canvas = figure.querySelector("canvas");
    this.tip = figure.querySelector(".tip");
    const density = given.density;
    this.density = density && (density.kind === "grid" ? new V.Grid(density) : new V.Bell(density));
    this.tokens = given.tokens && new V.Tokens(given.tokens);
    this.dense = this.tokens && this.tokens.count > 400;
    this.asked = {
      tokens: true,
      paths: false,
      ellipses: !this.tokens && !(density && density.kind === "grid") && this.d > 1,
    };
    [this.log, this.moved, this.at, this.busy] = [false, null, { time: 0 }, false];
    [this.surface, this.level] = [this.d === 3, 0.3];
    this.camera = this.d === 1 ? new V.Line(this) : this.d === 2 ? new V.Plane(this) : new V.Space(this);
    this.tools();
    this.listen();
  }

  view() {
    if (this.moved) return this.moved;
    return this.follow ? this.windows[this.at.time] : this.fixed;
  }

  peak() {
    return this.at.frame.peak;
  }

  async go(time) {
    this.wanted = time;
    if (this.busy) return;
    this.busy = true;
    try {
      while (this.wanted !== null) {
        const k = this.wanted;
        this.wanted = null;
        if (this.tokens) await this.tokens.open();
        const shown = this.density && this.density.frame ? await this.density.frame(k) : null;
        this.at = { time: k, frame: shown };
        this.draw();
      }
    } finally {
      this.busy = false;
    }
    this.figure.dataset.time = this.times[this.at.time]; // what is drawn now
  }

  draw(rough = false) {
    const wide = this.canvas.clientWidth,
      tall = this.d === 1 ? 0.5 : this.d === 2 ? this.shape() : 0.8;
    const [pen, width, height] = V.canvas(this.canvas, Math.round(Math.max(240, Math.min(560, wide * tall))));
    this.camera.draw(pen, width, height, this.at, rough);
    this.key();
  }

  // How tall a map is, over its width.
  shape() {
    const [[a, b], [c, e]] = this.fixed,
      share = this.equal ? (e - c) / (b - a) : 0.75;
    return Math.max(0.5, Math.min(1, share));
  }

  tools() {
    const bar = this.figure.querySelector(".tools"),
      button = (text, label, act) => {
        const made = V.element("button", "", text);
        made.type = "button";
        made.title = label;
        made.setAttribute("aria-label", label);
        made.addEventListener("click", act);
        bar.append(made);
      };
    const near = (factor) => () => (this.camera.zoom(factor), this.draw());
    button("+", "Nearer", near(0.7));
    button("−", "Farther", near(1 / 0.7));
    button("Reset", "The whole picture", () => this.reset());
    const tick = (text, value, act) => {
      const label = V.element("label"),
        box = V.element("input");
      Object.assign(box, { type: "checkbox", checked: value });
      box.addEventListener("change", () => (act(box.checked), this.draw()));
      label.append(box, text);
      bar.append(label);
      return label;
    };
    if (this.density)
      this.coloured = tick(this.d === 1 ? "log scale" : "log colours", this.log, (on) => (this.log = on));
    if (this.density && this.d === 3) {
      tick("surface", this.surface, (on) => (this.surface = on));
      const label = V.element("label", "", "at "),
        range = V.element("input"),
        said = V.element("span", "", "30 % of the peak");
      Object.assign(range, { type: "range", min: 1, max: 99, value: 30 });
      range.setAttribute("aria-label", "Level of the surface, in percent of the largest density");
      range.addEventListener("input", () => {
        [this.level, said.textContent] = [range.value / 100, `${range.value} % of the peak`];
        this.draw();
      });
      label.append(range, said);
      bar.append(label);
    }
    if (this.tokens) tick("tokens", true, (on) => (this.asked.tokens = on));
    if (this.tokens && this.d > 1) tick("paths", false, (on) => (this.asked.paths = on));
    if (this.d > 1) tick("1 and 2 deviations", this.asked.ellipses, (on) => (this.asked.ellipses = on));
    tick("follow", this.follow, (on) => ((this.follow = on), (this.moved = null)));
    if (this.d > 1) tick("equal scales", this.equal, (on) => ((this.equal = on), (this.moved = null)));
  }

  reset() {
    this.moved = null;
    if (this.camera.reset) this.camera.reset();
    this.draw();
  }

  // What the colours mean, in values of this time.
  key() {
    const key = this.figure.querySelector(".key");
    if (!key || !this.at.frame) return;
    const peak = this.at.frame.peak,
      level = this.figure.querySelector(".key.level");
    if (level) {
      [level.hidden, key.hidden] = [!this.surface, this.surface];
      level.textContent = `surface at density ${V.number(this.level * this.peak(), 3)}; shading: its slope to the eye`;
      this.coloured.hidden = this.surface;
    }
    key.querySelector(".low").textContent = this.log ? V.number(peak / 10 ** V.DECADES, 3) : "0";
    key.querySelector(".high").textContent = V.number(peak, 3);
  }

  listen() {
    let held = null;
    const canvas = this.canvas,
      spot = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
      };
    canvas.addEventListener("pointerdown", (event) => {
      held = spot(event);
      if (event.pointerType === "mouse") canvas.setPointerCapture(event.pointerId);
    });
    const drop = () => {
      if (held && this.d > 2) this.draw();
      held = null;
    };
    for (const name of ["pointerup", "pointercancel"]) canvas.addEventListener(name, drop);
    canvas.addEventListener("pointerleave", () => V.show(this.tip, [], 0, 0, 0));
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = spot(event);
      if (held && event.buttons) {
        this.camera.drag(x - held[0], y - held[1]);
        held = [x, y];
        V.show(this.tip, [], 0, 0, 0);
        this.draw(true);
      } else if (!this.busy) V.show(this.tip, this.camera.told(x, y, this.at), x, y, canvas.clientWidth);
    });
    canvas.addEventListener(
      "wheel",
      (event) => {
        if (!event.ctrlKey && !event.metaKey) return; // the page scrolls
        event.preventDefault();
        this.camera.zoom(Math.exp(event.deltaY * 0.004), ...spot(event));
        this.draw();
      },
      { passive: false },
    );
    canvas.addEventListener("dblclick", () => this.reset());
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: [-20, 0], ArrowRight: [20, 0], ArrowUp: [0, -20], ArrowDown: [0, 20] }[event.key];
      if (step) this.camera.drag(...step);
      else if (event.key === "+") this.camera.zoom(0.7);
      else if (event.key === "-") this.camera.zoom(1 / 0.7);
      else return;
      event.preventDefault();
      this.draw();
    });
  }
};

// Solutions side by side, with one time for all.
V.Group = class {
  constructor(section, given) {
    this.scenes = [...section.querySelectorAll(".scene")].map(
      (figure) => new V.Scene(figure, given[figure.dataset.scene]),
    );
    this.times = [...new Set(this.scenes.flatMap((scene) => scene.times))].sort((a, b) => a - b);
    this.bar = section.querySelector(".time");
    this.slider = this.bar.querySelector("input");
    this.output = this.bar.querySelector("output");
    this.play = this.bar.querySelector("button");
    this.slider.max = this.times.length - 1;
    this.bar.hidden = this.times.length < 2;
    this.slider.addEventListener("input", () => this.go(Number(this.slider.value)));
    this.play.addEventListener("click", () => (this.timer ? this.stop() : this.start()));
    this.go(0);
  }

  go(k) {
    const t = this.times[k];
    this.slider.value = k;
    this.output.textContent = `t = ${V.number(t, 6)}`;
    this.slider.setAttribute("aria-valuetext", this.output.textContent);
    const nearest = (times) =>
      times.reduce((best, time, i) => (Math.abs(time - t) < Math.abs(times[best] - t) ? i : best), 0);
    return Promise.all(this.scenes.map((scene) => scene.go(nearest(scene.times))));
  }

  start() {
    const rate = Math.max(40, Math.min(400, 8000 / this.times.length));
    if (Number(this.slider.value) >= this.times.length - 1) this.go(0);
    this.play.textContent = "❚❚";
    this.timer = setInterval(() => {
      const k = Number(this.slider.value) + 1;
      if (k >= this.times.length) this.stop();
      else this.go(k);
    }, rate);
  }

  stop() {
    clearInterval(this.timer);
    this.timer = null;
    this.play.textContent = "▶";
  }

  draw() {
    for (const scene of this.scenes) if (!scene.busy) scene.draw();
  }
};
