// A plan on a canvas: what the server laid out, drawn as far as it can be seen. It knows boxes and lines, no server.
// @ts-check

/**
 * @typedef {{ id: string, op: string, box: number[], is: string[], text: [string, string][], inputs: number[], params: [string, string][], facts: [string, string][] }} SceneNode
 * @typedef {{ width: number, height: number, nodes: SceneNode[], frames: { box: number[], caption: string, nodes: number[] }[], lines: number[][], direct: number[] }} Scene
 * @typedef {{ text: string, share: number, failed: boolean }} Figure
 */

/** Where text is too small to be read, boxes are drawn without. */
const TEXT_SCALE = 0.42;
/** At which scale a picture is shown at first that is too large to be seen whole. */
const READABLE = 0.62;
/** One that would be smaller than this is shown whole: of its top, most would be empty. */
const OVERVIEW = 0.2;
const FAR = 0.1;
/** So many lines that are led around nothing are drawn; of more, only those of the chosen node. */
const DIRECT_MAX = 20000;
const [SCALE_MIN, SCALE_MAX] = [0.002, 3];
const [PADDING, TITLE, LINE] = [12, 19, 16];
const COLOURS = ["ground", "card", "card-idle", "line-strong", "text", "muted", "faint", "accent", "good", "warn", "bad", "edge", "stand-in", "reserve",
  "frame", "frame-line", "heat-1", "heat-2", "heat-3", "heat-4", "heat-5", "heat-bar", "sans", "mono"];

export class Picture {
  /**
   * @param {HTMLCanvasElement} canvas
   * @param {(at: number | null) => void} onChoose
   * @param {AbortSignal} signal
   */
  constructor(canvas, onChoose, signal) {
    this.canvas = canvas;
    this.onChoose = onChoose;
    this.context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    /** @type {Scene | null} */
    this.scene = null;
    this.view = { x: 0, y: 0, scale: 1 };
    /** @type {number | null} */
    this.chosen = null;
    /** @type {Set<number> | null} */
    this.found = null;
    /** @type {Map<number, Figure>} */
    this.figures = new Map();
    this.frames = 0;
    this.waiting = 0;
    /** The least scale that the picture was fitted with; null once it was moved. @type {number | null} */
    this.fitted = 0;
    /** @type {Record<string, string>} */
    this.colours = {};
    this.readColours();
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.readColours();
      this.draw();
    }, { signal });
    const sizes = new ResizeObserver(() => (this.fitted === null ? this.draw() : this.fit(this.fitted)));
    sizes.observe(canvas);
    signal.addEventListener("abort", () => {
      sizes.disconnect();
      cancelAnimationFrame(this.waiting);
    });
    this.listen();
  }

  readColours() {
    const style = getComputedStyle(document.documentElement);
    for (const name of COLOURS) this.colours[name] = style.getPropertyValue(`--${name}`).trim();
  }

  /** @param {Scene} scene */
  show(scene) {
    this.scene = scene;
    this.chosen = null;
    // What a line covers, to leave out those that are not seen.
    this.extents = scene.lines.map((line) => {
      let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
      for (let at = 4; at < line.length; at += 2) {
        left = Math.min(left, line[at]);
        right = Math.max(right, line[at]);
        top = Math.min(top, line[at + 1]);
        bottom = Math.max(bottom, line[at + 1]);
      }
      return [left, top, right, bottom];
    });
    const { width, height } = this.size();
    const whole = Math.min(width / scene.width, height / scene.height);
    this.fit(whole < OVERVIEW ? 0 : READABLE);
  }

  size() {
    return { width: this.canvas.clientWidth, height: this.canvas.clientHeight };
  }

  /**
   * Shows all of the picture, or its top where it would be smaller than this.
   * @param {number} least
   */
  fit(least) {
    if (!this.scene) return;
    const { width, height } = this.size();
    const whole = Math.min(width / (this.scene.width + 20), height / (this.scene.height + 20), 1.15);
    this.view.scale = Math.max(whole, least, SCALE_MIN);
    this.view.x = (this.scene.width - width / this.view.scale) / 2;
    this.view.y = Math.min(-10, (this.scene.height - height / this.view.scale) / 2);
    if (whole >= least) this.view.y = (this.scene.height - height / this.view.scale) / 2;
    this.fitted = least;
    this.draw();
  }

  /**
   * @param {number} factor
   * @param {number} [x]
   * @param {number} [y]
   */
  zoom(factor, x, y) {
    const { width, height } = this.size();
    const [left, top] = [x ?? width / 2, y ?? height / 2];
    const scale = Math.min(SCALE_MAX, Math.max(SCALE_MIN, this.view.scale * factor));
    this.view.x += left / this.view.scale - left / scale;
    this.view.y += top / this.view.scale - top / scale;
    this.view.scale = scale;
    this.fitted = null;
    this.draw();
  }

  /**
   * @param {number} dx
   * @param {number} dy
   */
  move(dx, dy) {
    this.view.x += dx / this.view.scale;
    this.view.y += dy / this.view.scale;
    this.fitted = null;
    this.draw();
  }

  /**
   * Marks a node, and brings it into the middle where that is asked for.
   * @param {number | null} at
   * @param {boolean} centres
   */
  choose(at, centres) {
    this.chosen = at;
    const node = at === null ? null : this.scene?.nodes[at];
    if (node && centres) {
      const [x, y, width, height] = node.box;
      const size = this.size();
      this.view.scale = Math.max(this.view.scale, 0.8);
      this.view.x = x + width / 2 - size.width / this.view.scale / 2;
      this.view.y = y + height / 2 - size.height / this.view.scale / 2;
      this.fitted = null;
    }
    this.draw();
  }

  /** Draws with the next frame. */
  draw() {
    if (this.waiting) return;
    this.waiting = requestAnimationFrame(() => {
      this.waiting = 0;
      this.drawNow();
    });
  }

  drawNow() {
    const { canvas, context: c, scene, view } = this;
    const { width, height } = this.size();
    const ratio = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    c.setTransform(1, 0, 0, 1, 0, 0);
    c.fillStyle = this.colours.ground;
    c.fillRect(0, 0, wide, high);
    if (!scene || width === 0) return;
    const zoom = view.scale * ratio;
    c.setTransform(zoom, 0, 0, zoom, -view.x * zoom, -view.y * zoom);
    const seen = [view.x, view.y, view.x + width / view.scale, view.y + height / view.scale];
    const isSeen = (/** @type {number} */ left, /** @type {number} */ top, /** @type {number} */ right, /** @type {number} */ bottom) =>
      left <= seen[2] && right >= seen[0] && top <= seen[3] && bottom >= seen[1];
    for (const frame of scene.frames) {
      const [x, y, w, h] = frame.box;
      if (!isSeen(x, y, x + w, y + h)) continue;
      this.rect(x, y, w, h, 10, this.colours.frame, this.colours["frame-line"], 1);
      if (view.scale >= TEXT_SCALE) this.text(frame.caption, x + 10, y + 18, "11px", this.colours.muted);
    }
    this.drawDirect(c, scene);
    this.drawLines(c, scene, isSeen);
    scene.nodes.forEach((node, at) => {
      const [x, y, w, h] = node.box;
      if (isSeen(x, y, x + w, y + h)) this.drawNode(node, at);
    });
    this.frames += 1;
  }

  /**
   * @param {CanvasRenderingContext2D} c
   * @param {Scene} scene
   */
  drawDirect(c, { direct, nodes }) {
    const all = direct.length / 2 <= DIRECT_MAX;
    c.beginPath();
    for (let at = 0; at < direct.length; at += 2) {
      const [from, to] = [direct[at], direct[at + 1]];
      if (!all && from !== this.chosen && to !== this.chosen) continue;
      const [a, b] = [nodes[from].box, nodes[to].box];
      c.moveTo(a[0] + a[2] / 2, a[1] + a[3]);
      c.lineTo(b[0] + b[2] / 2, b[1]);
    }
    c.globalAlpha = all ? 0.35 : 0.8;
    c.lineWidth = 0.6;
    c.strokeStyle = this.colours.edge;
    c.stroke();
    c.globalAlpha = 1;
  }

  /**
   * @param {CanvasRenderingContext2D} c
   * @param {Scene} scene
   * @param {(left: number, top: number, right: number, bottom: number) => boolean} isSeen
   */
  drawLines(c, { lines, frames, nodes }, isSeen) {
    const kinds = [
      { colour: "edge", dash: [], width: 1.4 },
      { colour: "stand-in", dash: [5, 4], width: 1.4 },
      { colour: "reserve", dash: [1.5, 3.5], width: 1.4 },
    ];
    const near = new Path2D();
    kinds.forEach(({ colour, dash, width }, kind) => {
      const [path, arrows] = [new Path2D(), new Path2D()];
      lines.forEach((line, at) => {
        const [left, top, right, bottom] = /** @type {number[][]} */ (this.extents)[at];
        if (line[0] !== kind || !isSeen(left, top, right, bottom)) return;
        const isNear = this.chosen !== null && (line[1] === this.chosen || line[2] === this.chosen);
        trace(isNear ? near : path, line);
        if (line[2] >= 0) arrow(arrows, line[line.length - 2], line[line.length - 1]);
      });
      if (kind === 0) {
        for (const frame of frames) {
          for (let at = 1; at < frame.nodes.length; at += 1) {
            const [x, y, w] = nodes[frame.nodes[at]].box;
            path.moveTo(x + w / 2, y - 14);
            path.lineTo(x + w / 2, y);
            arrow(arrows, x + w / 2, y);
          }
        }
      }
      c.setLineDash(dash);
      c.lineWidth = Math.max(width, 0.7 / this.view.scale);
      c.strokeStyle = c.fillStyle = this.colours[colour];
      c.stroke(path);
      c.setLineDash([]);
      if (this.view.scale > 0.2) c.fill(arrows);
    });
    c.lineWidth = Math.max(2.4, 1.4 / this.view.scale);
    c.strokeStyle = this.colours.accent;
    c.stroke(near);
  }

  /**
   * @param {SceneNode} node
   * @param {number} at
   */
  drawNode(node, at) {
    const { context: c, colours, view } = this;
    const [x, y, w, h] = node.box;
    const is = (/** @type {string} */ name) => node.is.includes(name);
    const figure = this.figures.get(at);
    const heat = figure && figure.share > 0 ? Math.min(5, Math.max(1, Math.ceil(figure.share * 5))) : 0;
    const isIdle = is("lazy") || is("never");
    c.globalAlpha = this.found && !this.found.has(at) && this.chosen !== at ? 0.28 : 1;
    let [stroke, line] = [colours["line-strong"], 1];
    if (is("is-output")) [stroke, line] = [colours.good, 2];
    if (figure?.failed) [stroke, line] = [colours.bad, 2];
    if (this.chosen === at) [stroke, line] = [colours.accent, Math.max(3, 2.5 / view.scale)];
    if (is("conditional")) c.setLineDash([5, 3]);
    if (is("never")) c.setLineDash([2, 3]);
    // From far away, boxes are darker than the ground.
    const paper = view.scale < FAR ? (isIdle ? colours["line-strong"] : colours.edge) : isIdle ? colours["card-idle"] : colours.card;
    this.rect(x, y, w, h, 7, heat ? colours[`heat-${heat}`] : paper, stroke, line);
    c.setLineDash([]);
    c.fillStyle = isIdle ? colours["line-strong"] : is("reads") ? colours.accent : colours.faint;
    c.fillRect(x, y + 7, 4, h - 14);
    if (figure && figure.share >= 0.01) {
      c.fillStyle = colours["heat-bar"];
      c.fillRect(x + 8, y + h - 5, Math.max(1, (w - 16) * figure.share), 2.5);
    }
    if (view.scale >= TEXT_SCALE) this.drawText(node, figure, isIdle);
    else if (view.scale >= 0.16) this.text(node.op, x + PADDING, y + h / 2 + 6, "600 17px", isIdle ? colours.muted : colours.text, w - 20);
    c.globalAlpha = 1;
  }

  /**
   * @param {SceneNode} node
   * @param {Figure | undefined} figure
   * @param {boolean} isIdle
   */
  drawText(node, figure, isIdle) {
    const { context: c, colours } = this;
    const [x, y, w] = node.box;
    const looks = /** @type {Record<string, string>} */ ({ when: "warn", fallback: "stand-in", output: "good", alarm: "bad", remark: "faint" });
    let down = y + TITLE + 1;
    this.text(node.op, x + PADDING, down, "600 13px", isIdle ? colours.muted : colours.text, w - 70);
    c.textAlign = "right";
    this.text(node.id.length > 16 ? `${node.id.slice(0, 15)}…` : node.id, x + w - 10, down, "11px", colours.faint, w, colours.mono);
    c.textAlign = "left";
    for (const [look, text] of node.text) {
      down += LINE;
      const font = look === "label" ? "italic 11px" : "11px";
      this.text(text, x + PADDING, down, font, colours[looks[look] ?? "muted"], w - 20, look === "code" ? colours.mono : colours.sans);
    }
    if (figure) this.text(figure.text, x + PADDING, down + LINE, "11px", colours.text, w - 20);
  }

  /**
   * @param {number} x
   * @param {number} y
   * @param {number} w
   * @param {number} h
   * @param {number} round
   * @param {string} fill
   * @param {string} stroke
   * @param {number} line
   */
  rect(x, y, w, h, round, fill, stroke, line) {
    const c = this.context;
    c.beginPath();
    if (this.view.scale < 0.1) c.rect(x, y, w, h);
    else c.roundRect(x, y, w, h, round);
    c.fillStyle = fill;
    c.fill();
    c.lineWidth = line;
    c.strokeStyle = stroke;
    c.stroke();
  }

  /**
   * @param {string} text
   * @param {number} x
   * @param {number} y
   * @param {string} font
   * @param {string} colour
   * @param {number} [most]
   * @param {string} [family]
   */
  text(text, x, y, font, colour, most = 1e9, family = this.colours.sans) {
    const c = this.context;
    c.font = `${font} ${family}`;
    c.fillStyle = colour;
    c.fillText(text, x, y, most);
  }

  /**
   * The node at a place of the canvas.
   * @param {number} x
   * @param {number} y
   * @returns {number | null}
   */
  nodeAt(x, y) {
    const [left, top] = [this.view.x + x / this.view.scale, this.view.y + y / this.view.scale];
    const at = this.scene?.nodes.findIndex(({ box: [bx, by, w, h] }) => left >= bx && left <= bx + w && top >= by && top <= by + h) ?? -1;
    return at < 0 ? null : at;
  }

  /** Pointers: one moves, two zoom; one that did not move chooses. Keys do the same. */
  listen() {
    const { canvas } = this;
    /** @type {Map<number, PointerEvent>} */
    const pointers = new Map();
    let moved = 0;
    canvas.addEventListener("pointerdown", (event) => {
      if (pointers.size === 0) moved = 0;
      pointers.set(event.pointerId, event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      const before = pointers.get(event.pointerId);
      if (!before) return;
      const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
      moved += Math.abs(dx) + Math.abs(dy);
      const other = [...pointers.values()].find((pointer) => pointer.pointerId !== event.pointerId);
      pointers.set(event.pointerId, event);
      if (moved <= 4) return;
      canvas.classList.add("moving");
      if (!other) return this.move(-dx, -dy);
      const far = (/** @type {PointerEvent} */ pointer) => Math.hypot(pointer.clientX - other.clientX, pointer.clientY - other.clientY) || 1;
      const place = canvas.getBoundingClientRect();
      this.zoom(far(event) / far(before), other.clientX - place.left, other.clientY - place.top);
    });
    for (const name of /** @type {const} */ (["pointerup", "pointercancel"])) {
      canvas.addEventListener(name, (event) => {
        pointers.delete(event.pointerId);
        canvas.classList.remove("moving");
      });
    }
    canvas.addEventListener("click", (event) => {
      if (moved <= 4) this.onChoose(this.nodeAt(event.offsetX, event.offsetY));
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      const step = event.deltaMode === 1 ? 30 : 1;
      this.zoom(Math.exp(-event.deltaY * step * (event.ctrlKey ? 0.01 : 0.0015)), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      /** @type {Record<string, () => void>} */
      const keys = {
        ArrowLeft: () => this.move(-60, 0), ArrowRight: () => this.move(60, 0), ArrowUp: () => this.move(0, -60), ArrowDown: () => this.move(0, 60),
        "+": () => this.zoom(1.25), "-": () => this.zoom(0.8), 0: () => this.fit(0),
      };
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
}

/**
 * A line of the scene: straight down, and in curves to the side.
 * @param {Path2D} path
 * @param {number[]} line
 */
function trace(path, line) {
  path.moveTo(line[4], line[5]);
  for (let at = 6; at < line.length; at += 2) {
    const [fromX, fromY, x, y] = [line[at - 2], line[at - 1], line[at], line[at + 1]];
    if (fromX === x) path.lineTo(x, y);
    else path.bezierCurveTo(fromX, (fromY + y) / 2, x, (fromY + y) / 2, x, y);
  }
}

/**
 * @param {Path2D} path
 * @param {number} x
 * @param {number} y
 */
function arrow(path, x, y) {
  path.moveTo(x, y);
  path.lineTo(x - 4.5, y - 8);
  path.lineTo(x + 4.5, y - 8);
  path.closePath();
}
