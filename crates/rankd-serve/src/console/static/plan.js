// One plan: its picture, the list of its nodes, and what there is to know of one of them.
// @ts-check
import { get, repeat } from "./api.js";
import { empty, facts, fill, h, problem, say } from "./dom.js";
import { Figures, mean } from "./figures.js";
import { ago, count, duration, percent } from "./format.js";
import { Picture } from "./picture.js";

const LISTED_MAX = 400;
/** Bounds of the histogram of times, in milliseconds. */
const BOUNDS = [0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000];
const SLOTS_BACK = 84;

/** @param {import("./app.js").Context} context */
export function planPage({ place, path: [name = "", node], about, signal }) {
  const at = encodeURIComponent(name);
  const figures = new Figures();
  /** @type {import("./picture.js").Scene | null} */
  let scene = null;
  /** @type {number[][]} */
  let readers = [];
  /** @type {string[]} */
  let words = [];
  /** @type {number | null} */
  let chosen = null;
  /** How far back figures are shown; null for all of the quarter of an hour. @type {number | null} */
  let back = null;
  let form = "runs";
  let version = -1;
  /** @type {number[] | null} */
  let histogram = null;

  const title = h("h1", null, name);
  const state = h("p", { class: "muted" });
  const troubles = h("div", { class: "section" });
  const live = h("span", { role: "status" });
  const forms = [["runs", "As it runs"], ["written", "As written"]].map(([key, text]) =>
    h("button", { "aria-pressed": String(key === form), "data-form": key, onclick: () => setForm(key) }, text));
  const slider = /** @type {HTMLInputElement} */ (h("input", { type: "range", min: 0, max: SLOTS_BACK, value: SLOTS_BACK, "aria-label": "Which minute of the last fifteen", oninput: () => goBack() }));
  const when = h("span", null, "last 15 min");
  const pause = h("button", { "aria-pressed": "false", onclick: () => setPaused(pause.getAttribute("aria-pressed") !== "true") }, "Pause");
  const canvas = /** @type {HTMLCanvasElement} */ (h("canvas", { tabindex: 0, role: "img", "aria-label": `Picture of the plan ${name}; the list of nodes has the same as text` }));
  const view = h("div", { class: "view" }, canvas,
    h("div", { class: "tools" }, h("button", { "aria-label": "Zoom in", onclick: () => picture.zoom(1.3) }, "+"), h("button", { "aria-label": "Zoom out", onclick: () => picture.zoom(1 / 1.3) }, "−"),
      h("button", { onclick: () => picture.fit(0) }, "Fit")),
    h("ul", { class: "legend" }, [["reads", "reads a store"], ["computes", "computes"], ["lazy", "runs when it is needed"], ["output", "output"], ["stands-in", "stands in"], ["hot", "answers wait for it"]]
      .map(([mark, text]) => h("li", null, h("i", { class: mark }), text))));
  const search = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: "Find a node: id, op, label, expression", "aria-label": "Find nodes", oninput: () => choose(null, false) }));
  const found = h("p", { class: "muted", role: "status" });
  const list = h("ul", { class: "list", "aria-label": "Nodes" });
  const details = h("div", { class: "details", "aria-live": "polite", hidden: true });
  const side = h("aside", { class: "side", "aria-label": "Nodes" }, h("div", { class: "find" }, search, found), list, details);
  const body = h("div", { class: "plan-body" }, view, side);
  fill(place, h("div", { class: "plan-head section" },
    h("div", { class: "bar" }, title, state, h("span", { class: "grow" }), h("span", { class: "back-in-time" }, live, slider, when, pause),
      h("span", { class: "choice" }, forms), h("a", { href: `#/request/${at}` }, "Ask this plan")), troubles), body);
  const picture = new Picture(canvas, (node) => choose(node, false), signal);
  let isPaused = false;

  /** @param {string} key */
  function setForm(key) {
    form = key;
    for (const button of forms) button.setAttribute("aria-pressed", String(button.dataset.form === key));
    load();
  }

  /** @param {boolean} paused */
  function setPaused(paused) {
    isPaused = paused;
    pause.setAttribute("aria-pressed", String(paused));
    say(pause, paused ? "Go on" : "Pause");
  }

  function goBack() {
    const slots = SLOTS_BACK - Number(slider.value);
    back = slots === 0 ? null : slots - 1;
    say(when, back === null ? "last 15 min" : `a minute, ${back === 0 ? "now" : ago(back * 10)}`);
    if (back !== null) setPaused(true);
    tellFigures();
  }

  async function load() {
    try {
      scene = await get(`picture/${at}?form=${form}`, signal);
    } catch (error) {
      if (signal.aborted) return;
      return fill(view, empty("There is no picture", error instanceof Error ? error.message : String(error)));
    }
    if (!scene) return;
    const { nodes } = scene;
    readers = nodes.map(() => []);
    nodes.forEach((node, at) => node.inputs.forEach((input) => readers[input].push(at)));
    words = nodes.map((node) => [node.id, node.op, ...node.params.concat(node.facts).flat()].join("\n").toLowerCase());
    picture.show(scene);
    const kept = chosen === null ? nodes.findIndex(({ id }) => id === node) : chosen;
    choose(kept >= 0 ? kept : null, kept >= 0);
    tellFigures();
  }

  /**
   * @param {number | null} at
   * @param {boolean} centres
   * @param {boolean} [focuses]
   */
  function choose(at, centres, focuses = false) {
    const before = chosen;
    chosen = at;
    histogram = null;
    picture.choose(at, centres);
    const id = at === null ? "" : `/${encodeURIComponent(scene?.nodes[at].id ?? "")}`;
    history.replaceState(null, "", `#/plan/${encodeURIComponent(name)}${id}`);
    details.hidden = at === null;
    list.hidden = at !== null;
    if (at === null) {
      showList();
      if (before !== null && document.activeElement === document.body) /** @type {HTMLElement | null} */ (list.querySelector(`[data-at="${before}"]`))?.focus();
    } else {
      showDetails(at);
      if (focuses) details.querySelector("button")?.focus();
    }
  }

  function showList() {
    if (!scene) return;
    const wanted = search.value.trim().toLowerCase();
    const matching = scene.nodes.map((_, at) => at).filter((at) => words[at].includes(wanted));
    picture.found = wanted === "" ? null : new Set(matching);
    picture.draw();
    const more = matching.length > LISTED_MAX ? `; the first ${LISTED_MAX} are listed` : "";
    say(found, wanted === "" ? `${scene.nodes.length} nodes${more}` : `${matching.length} of ${scene.nodes.length} nodes${more}`);
    fill(list, matching.slice(0, LISTED_MAX).map(entry));
  }

  /** @param {number} at */
  function entry(at) {
    const node = /** @type {import("./picture.js").Scene} */ (scene).nodes[at];
    const label = node.facts.find(([fact]) => fact === "label")?.[1];
    const sum = picture.figures.get(at);
    return h("li", null, h("button", { "data-at": at, onclick: () => choose(at, true, true) }, h("span", { class: "id" }, node.id),
      h("span", { class: "what" }, label ? `${node.op} · ${label}` : node.op), h("span", { class: "took" }, sum ? took(at) : "")));
  }

  /** @param {number} at */
  function took(at) {
    const sum = figures.of(at, back);
    return sum ? duration(sum.took_us / sum.runs / 1000) : "";
  }

  /** @param {number} at */
  function showDetails(at) {
    if (!scene) return;
    const node = scene.nodes[at];
    const source = h("section", { hidden: true });
    const links = (/** @type {string} */ heading, /** @type {number[]} */ nodes) =>
      nodes.length ? h("section", null, h("h3", null, heading), h("ul", { class: "list" }, nodes.slice(0, LISTED_MAX).map(entry))) : null;
    const back = h("button", { class: "link", onclick: () => choose(null, false) }, "← All nodes");
    fill(details, h("div", { class: "bar" }, back), h("h1", null, node.op, " ", h("code", { class: "muted" }, node.id)),
      h("section", { id: "node-figures" }),
      node.facts.length ? h("section", null, h("h3", null, "Node"), facts(node.facts.map(([fact, text]) => [fact, text || "yes"]))) : null,
      node.params.length ? h("section", null, h("h3", null, "Parameters"), facts(node.params)) : null,
      source, links("Reads", node.inputs), links("Is read by", readers[at]));
    details.scrollTop = 0;
    tellNode();
    get(`source/${encodeURIComponent(name)}?node=${at}`, signal).then((told) => showSource(source, told), () => {});
  }

  /** Figures of the chosen node. */
  function tellNode() {
    const section = details.querySelector("#node-figures");
    if (!section || chosen === null) return;
    const sum = figures.of(chosen, back);
    if (!sum) return fill(section, h("p", { class: "muted" }, about.trace_every === 0 ? "No run is traced: the server was started with --trace_every 0." : "No traced run of it yet."));
    const most = Math.max(1, ...(histogram ?? []));
    const bars = (histogram ?? []).map((runs, at) => {
      const bar = h("i", { title: `${runs} runs of up to ${duration(BOUNDS[at] ?? BOUNDS[BOUNDS.length - 1])}` });
      bar.style.height = `${(runs / most) * 100}%`;
      return bar;
    });
    fill(section, h("h3", null, `${back === null ? "Last 15 minutes" : "One minute"}, ${count(sum.runs)} traced runs`),
      facts([["rows", `${count(mean(sum.rows_in, sum))} → ${count(mean(sum.rows_out, sum))}`], ["time", `${duration(sum.took_us / sum.runs / 1000)}, at most ${duration(sum.most_us / 1000)}`],
        ["share", `${percent(picture.figures.get(chosen)?.share ?? 0)} of what answers waited for`], ...(sum.failed ? /** @type {[string, string][]} */ ([["failed", `${sum.failed} runs`]]) : [])]),
      bars.length ? h("figure", null, h("div", { class: "histogram", role: "img", "aria-label": `Times of ${sum.runs} runs` }, bars), h("div", { class: "scale" }, h("span", null, "0.1 ms"), h("span", null, "10 ms"), h("span", null, "10 s"))) : null);
  }

  function tellFigures() {
    picture.figures = figures.lines(back);
    picture.draw();
    say(live, figures.runs ? `${count(figures.runs)} traced runs` : about.trace_every === 0 ? "no run is traced" : "waiting for traced runs");
    if (chosen !== null) return tellNode();
    for (const button of list.querySelectorAll("[data-at]")) {
      say(/** @type {Element} */ (button.lastElementChild), took(Number(/** @type {HTMLElement} */ (button).dataset.at)));
    }
  }

  repeat(async () => {
    const told = await get(`plan/${at}`, signal).catch((error) => {
      if (!signal.aborted && error.status) fill(troubles, problem(error));
      throw error;
    });
    say(state, told.version ? `version ${told.version} · ${told.sha256.slice(0, 8)} · loaded ${ago((Date.now() - Date.parse(told.loaded_at)) / 1000)}` : told.file);
    state.title = told.file;
    tellTroubles(troubles, told);
    if (told.serving && told.version !== version) {
      version = told.version;
      await load();
    }
    if (!told.serving) fill(view, empty("Nothing is served", "No version of this plan could be loaded."));
  }, signal, 5000);
  repeat(async () => {
    if (isPaused) return;
    const asked = chosen === null ? "" : `&node=${chosen}`;
    const told = await get(`live/${at}?from=${figures.from()}${asked}`, signal);
    figures.add(told);
    histogram = told.histogram ?? null;
    tellFigures();
  }, signal);
}

/**
 * @param {Element} place
 * @param {any} told
 */
function tellTroubles(place, told) {
  const trouble = told.problem ?? told.held ?? told.registry_problem;
  if (!trouble) return fill(place);
  const diagnostics = (told.diagnostics ?? []).slice(0, 20).map((/** @type {any} */ found) =>
    h("li", null, h("code", null, `${found.code} `), found.at ? h("code", { class: "muted" }, `${found.at} `) : null, found.message ?? ""));
  fill(place, h("div", { class: told.problem ? "problem" : "note" }, h("div", null, h("strong", null, told.serving ? "An earlier version is served. " : "Nothing is served. "), trouble.message,
    diagnostics.length > 1 ? h("ul", { class: "tree" }, diagnostics) : null)));
}

/**
 * @param {HTMLElement} place
 * @param {any} told
 */
function showSource(place, told) {
  if (!told.file) return;
  place.hidden = false;
  const lines = told.lines ?? [];
  fill(place, h("h3", null, `${told.file}:${told.line}`), lines.length
    ? h("pre", { class: "source", tabindex: 0, "aria-label": "Source" }, lines.map((/** @type {string} */ line, /** @type {number} */ at) => {
      const number = told.first + at;
      return h("span", { "data-line": number, class: number >= told.line && number <= told.end_line ? "here" : null }, line || " ");
    }))
    : h("p", { class: "muted" }, "The file has changed since it was compiled, so its lines are not shown."));
}
