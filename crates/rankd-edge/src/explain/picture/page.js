// The page around the picture of a plan: move, zoom, search, choose a node. Everything from the plan is written as text, never as markup.
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const picture = document.querySelector("main > svg");
const search = document.getElementById("search");
const shown = document.getElementById("shown");
const LISTED_MAX = 500;
const nodes = data.nodes;
const cards = new Map([...picture.querySelectorAll("[data-node]")].map((card) => [Number(card.dataset.node), card]));
const lines = [...picture.querySelectorAll("[data-from]")];
const readers = nodes.map(() => []);
nodes.forEach((node, at) => node.inputs.forEach((input) => readers[input].push(at)));
const words = nodes.map((node) =>
  [node.id, node.op, ...node.params.concat(node.facts).flat()].join("\n").toLowerCase());

// What part of the picture is seen.
const view = { x: 0, y: 0, scale: 1 };
function show() {
  const { clientWidth: width, clientHeight: height } = picture;
  picture.setAttribute("viewBox", `${view.x} ${view.y} ${width / view.scale} ${height / view.scale}`);
}
function zoom(factor, x, y) {
  const box = picture.getBoundingClientRect();
  const [left, top] = [x - box.left, y - box.top];
  const scale = Math.min(4, Math.max(0.002, view.scale * factor));
  view.x += left / view.scale - left / scale;
  view.y += top / view.scale - top / scale;
  view.scale = scale;
  show();
}
function zoomMiddle(factor) {
  const box = picture.getBoundingClientRect();
  zoom(factor, box.left + box.width / 2, box.top + box.height / 2);
}
function fit(least) {
  const { clientWidth: width, clientHeight: height } = picture;
  view.scale = Math.max(least, Math.min(1.1, width / data.width, height / data.height));
  view.x = (data.width - width / view.scale) / 2;
  view.y = Math.min(0, (data.height - height / view.scale) / 2);
  show();
}
function centre(at) {
  const { x, y, width, height } = nodes[at];
  view.scale = Math.max(view.scale, 0.7);
  view.x = x + width / 2 - picture.clientWidth / view.scale / 2;
  view.y = y + height / 2 - picture.clientHeight / view.scale / 2;
  show();
}

// The panel.
function make(name, text, className) {
  const element = document.createElement(name);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}
function entry(at) {
  const item = make("li");
  const button = make("button");
  const label = nodes[at].facts.find(([name]) => name === "label");
  button.append(make("span", nodes[at].id), make("span", label ? `${nodes[at].op}: ${label[1]}` : nodes[at].op));
  button.addEventListener("click", () => choose(at, true));
  item.append(button);
  return item;
}
function list(title, items) {
  if (items.length === 0) return [];
  const entries = make("ul");
  entries.append(...items.slice(0, LISTED_MAX).map(entry));
  const more = items.length > LISTED_MAX ? [make("p", `and ${items.length - LISTED_MAX} more`)] : [];
  return [make("h3", title), entries, ...more];
}
function facts(title, pairs) {
  if (pairs.length === 0) return [];
  const all = make("dl");
  pairs.forEach(([name, value]) => all.append(make("dt", name), make("dd", value === "" ? "yes" : value)));
  return [make("h3", title), all];
}
let chosen = null;
function choose(at, moves) {
  cards.get(chosen)?.classList.remove("chosen");
  lines.forEach((line) => line.classList.remove("near"));
  chosen = at;
  if (at === null) return searchFor();
  cards.get(at)?.classList.add("chosen");
  lines.filter((line) => [line.dataset.from, line.dataset.to].includes(String(at))).forEach((line) => line.classList.add("near"));
  const node = nodes[at];
  const back = make("button", "All nodes", "back");
  back.addEventListener("click", () => choose(null));
  const title = make("h2", `${node.op} `);
  title.append(make("code", node.id));
  shown.replaceChildren(back, title, ...facts("Node", node.facts), ...facts("Parameters", node.params),
    ...list("Reads", node.inputs), ...list("Is read by", readers[at]));
  shown.scrollTop = 0;
  if (moves) centre(at);
  history.replaceState(null, "", `#${encodeURIComponent(node.id)}`);
}

// The search.
let found = [];
function searchFor() {
  const wanted = search.value.trim().toLowerCase();
  found = nodes.map((_, at) => at).filter((at) => words[at].includes(wanted));
  picture.classList.toggle("searching", wanted !== "");
  cards.forEach((card) => card.classList.remove("found"));
  if (wanted !== "") found.forEach((at) => cards.get(at)?.classList.add("found"));
  const title = wanted === "" ? "All nodes" : `${found.length} of ${nodes.length} nodes`;
  if (chosen === null) shown.replaceChildren(...(found.length ? list(title, found) : [make("p", "No node has this text.")]));
}
search.addEventListener("input", () => choose(null));
search.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && found.length > 0) {
    const after = found.find((at) => chosen !== null && at > chosen) ?? found[0];
    choose(after, true);
  } else if (event.key === "Escape") {
    search.value = "";
    choose(null);
  }
});

// Pointers: one moves, two zoom; one that did not move chooses.
const pointers = new Map();
let moved = 0;
picture.addEventListener("pointerdown", (event) => {
  if (pointers.size === 0) moved = 0;
  pointers.set(event.pointerId, event);
});
picture.addEventListener("pointermove", (event) => {
  const before = pointers.get(event.pointerId);
  if (!before) return;
  const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
  moved += Math.abs(dx) + Math.abs(dy);
  if (moved > 4) {
    picture.setPointerCapture(event.pointerId);
    picture.classList.add("moving");
  }
  const other = [...pointers.values()].find((pointer) => pointer.pointerId !== event.pointerId);
  pointers.set(event.pointerId, event);
  if (other) {
    const far = (pointer) => Math.hypot(pointer.clientX - other.clientX, pointer.clientY - other.clientY) || 1;
    zoom(far(event) / far(before), other.clientX, other.clientY);
  } else if (moved > 4) {
    view.x -= dx / view.scale;
    view.y -= dy / view.scale;
    show();
  }
});
for (const name of ["pointerup", "pointercancel"]) {
  picture.addEventListener(name, (event) => {
    pointers.delete(event.pointerId);
    picture.classList.remove("moving");
  });
}
picture.addEventListener("click", (event) => {
  if (moved > 4) return;
  const card = event.target.closest("[data-node]");
  choose(card ? Number(card.dataset.node) : null);
});
picture.addEventListener("wheel", (event) => {
  event.preventDefault();
  const step = event.deltaMode === 1 ? 30 : 1;
  zoom(Math.exp(-event.deltaY * step * (event.ctrlKey ? 0.01 : 0.0015)), event.clientX, event.clientY);
}, { passive: false });

const acts = { "+": () => zoomMiddle(1.3), "-": () => zoomMiddle(1 / 1.3), 0: () => fit(0.002), "/": () => search.focus() };
document.querySelectorAll("[data-act]").forEach((button) => button.addEventListener("click", acts[button.dataset.act]));
addEventListener("keydown", (event) => {
  if (event.target === search || event.ctrlKey || event.metaKey || event.altKey) return;
  const steps = { ArrowLeft: [-80, 0], ArrowRight: [80, 0], ArrowUp: [0, -80], ArrowDown: [0, 80] };
  if (event.key in acts) {
    event.preventDefault();
    acts[event.key]();
  } else if (event.key in steps && !shown.contains(event.target)) {
    view.x += steps[event.key][0] / view.scale;
    view.y += steps[event.key][1] / view.scale;
    show();
  } else if (event.key === "Escape") {
    choose(null);
  }
});
addEventListener("resize", show);

fit(0.45);
searchFor();
function follow() {
  const asked = location.hash.slice(1);
  const at = nodes.findIndex((node) => encodeURIComponent(node.id) === asked || node.id === asked);
  if (at >= 0) choose(at, true);
}
addEventListener("hashchange", follow);
follow();
