// One request: asked of a plan, its rows, where its time went, and why a row is where it is.
// @ts-check
import { get, parse, post } from "./api.js";
import { empty, fill, h, problem, say, table } from "./dom.js";
import { count, duration, value } from "./format.js";
import { timeline } from "./timeline.js";
import { whyStories } from "./why.js";

const ROWS_A_PAGE = 50;
const COLUMNS_MAX = 40;
/** What was asked last, for as long as the page is open. @type {Map<string, string>} */
const kept = new Map();

/** @param {import("./app.js").Context} context */
export function requestPage({ place, path: [name], about, signal }) {
  const chooser = /** @type {HTMLSelectElement} */ (h("select", { id: "plan", onchange: () => { location.hash = `#/request/${encodeURIComponent(chooser.value)}`; } }));
  const editor = /** @type {HTMLTextAreaElement} */ (h("textarea", { id: "request", rows: 12, spellcheck: "false", autocomplete: "off", onkeydown: onKey, oninput: check }));
  const wrong = h("p", { class: "bad", role: "status" });
  const params = h("div", { class: "params" });
  const run = /** @type {HTMLButtonElement} */ (h("button", { class: "primary", onclick: ask }, "Run"));
  const result = h("div", { class: "result" });
  fill(place, h("h1", null, "Request"), h("div", { class: "request" },
    h("section", { class: "card ask", "aria-label": "Request" }, h("label", { for: "plan" }, "Plan", chooser), h("label", { for: "request" }, "Request", editor), wrong,
      h("div", { class: "bar" }, run, h("span", { class: "muted" }, "or Ctrl Enter")), params), result));
  fill(result, h("div", { class: "card" }, empty("Nothing asked yet", "Run a request to see its rows and where its time went. It reads what any request reads, and is not counted with the plan's requests.")));
  let asking = new AbortController();
  signal.addEventListener("abort", () => asking.abort());

  get("plans", signal).then((told) => {
    const plans = told.plans.filter((/** @type {any} */ plan) => plan.serving).map((/** @type {any} */ plan) => plan.plan);
    fill(chooser, plans.map((/** @type {string} */ plan) => h("option", { value: plan, selected: plan === name }, plan)));
    if (plans.length === 0) return fill(result, h("div", { class: "card" }, empty("No plan is served", "The page Plans says why.")));
    if (!name) location.replace(`#/request/${encodeURIComponent(plans[0])}`);
  }, () => {});
  if (name) {
    editor.value = kept.get(name) ?? '{\n  "user_id": 1\n}';
    get(`plan/${encodeURIComponent(name)}`, signal).then((told) => showParams(told.params ?? []), (error) => !signal.aborted && fill(result, problem(error)));
  }

  /** @param {any[]} known */
  function showParams(known) {
    if (known.length === 0) return fill(params, h("p", null, "The plan reads no parameters."));
    fill(params, h("h3", null, "Parameters of the plan"), known.map(({ name: param, type, doc, default: preset, nullable }) =>
      h("p", { title: doc }, h("button", { class: "link mono", onclick: () => setParam(param, type) }, param), ` ${type}${preset === undefined ? (nullable ? "" : ", needed") : `, else ${preset}`}`)));
  }

  /**
   * Puts a parameter into the request, if the request can be read.
   * @param {string} param
   * @param {string} type
   */
  function setParam(param, type) {
    let request;
    try {
      request = JSON.parse(editor.value);
    } catch {
      return check();
    }
    const example = /** @type {Record<string, unknown>} */ ({ int: 1, float: 1, bool: true, string: "" })[type] ?? null;
    request.params = { ...request.params, [param]: request.params?.[param] ?? example };
    editor.value = JSON.stringify(request, null, 2);
    check();
  }

  function check() {
    try {
      JSON.parse(editor.value);
      say(wrong, "");
      return true;
    } catch (error) {
      say(wrong, `This is not JSON: ${error instanceof Error ? error.message : error}`);
      return false;
    }
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      ask();
    }
  }

  async function ask() {
    if (!name || !check()) return;
    asking.abort();
    asking = new AbortController();
    const { signal: over } = asking;
    kept.set(name, editor.value);
    run.disabled = true;
    const began = performance.now();
    try {
      const answer = await post(`ask/${encodeURIComponent(name)}`, editor.value, over);
      showAnswer(answer, performance.now() - began);
    } catch (error) {
      if (!over.aborted) fill(result, problem(/** @type {any} */ (error)));
    }
    run.disabled = false;
  }

  /**
   * @param {any} answer
   * @param {number} took
   */
  function showAnswer(answer, took) {
    const outputs = /** @type {[string, any[]][]} */ (Array.isArray(answer.outputs) || !answer.outputs ? [["", answer.candidates ?? []]] : Object.entries(answer.outputs));
    const rows = outputs.reduce((sum, [, rows]) => sum + rows.length, 0);
    const stories = h("div", { class: "section" });
    const tabs = /** @type {[string, () => Node][]} */ ([
      ["Rows", () => rowsOf(outputs, about.why ? (id) => why([id], stories) : null)],
      ["Timeline", () => timeline(answer.trace)],
      ["Answer", () => h("div", { class: "card" }, h("pre", { class: "json", tabindex: 0, "aria-label": "The answer as JSON" }, written({ ...answer, trace: undefined })))],
    ]);
    const panel = h("div", { role: "tabpanel" });
    const buttons = tabs.map(([title], at) => h("button", { role: "tab", "aria-selected": String(at === 0), onclick: () => open(at) }, title));
    /** @param {number} at */
    const open = (at) => {
      buttons.forEach((button, other) => button.setAttribute("aria-selected", String(other === at)));
      fill(panel, tabs[at][1]());
    };
    const asked = /** @type {HTMLInputElement} */ (h("input", { placeholder: "id", size: 14, "aria-label": "Id to ask about" }));
    fill(result, h("div", { class: "bar" }, h("span", { class: "choice", role: "tablist" }, buttons),
      h("span", { role: "status" }, h("strong", null, `${count(rows)} rows`), ` in ${duration(answer.trace.total_us / 1000)}`, h("span", { class: "muted" }, `, ${duration(took)} with the way here`)),
      answer.degraded ? h("span", { class: "tag warn" }, `degraded: ${answer.degraded.map((/** @type {any} */ one) => one.node).join(", ")}`) : null,
      answer.short ? h("span", { class: "tag" }, "short of rows") : null, h("span", { class: "grow" }),
      about.why ? h("form", { class: "bar", onsubmit: (/** @type {Event} */ event) => {
        event.preventDefault();
        if (asked.value.trim()) why([asked.value.trim()], stories);
      } }, asked, h("button", null, "Why?")) : null), stories, panel);
    open(0);
  }

  /**
   * Asks what became of ids in a run of the same request.
   * @param {(string | number | bigint)[]} ids
   * @param {Element} stories
   */
  async function why(ids, stories) {
    fill(stories, h("p", { class: "muted", role: "status" }, `Asking what became of ${ids.join(", ")} …`));
    try {
      const { trace: _, output_keys: __, deadline_ms: ___, node_timeout_ms: ____, ...request } = parse(editor.value);
      // Text that is a number is one: ids of rows are written as they are.
      const items = ids.map((id) => (/^-?\d+$/.test(String(id)) && typeof id !== "string" ? String(id) : typed(String(id))));
      const json = written({ ...request, items: [] }).replace(/"items": \[\]/, `"items": [${items.join(", ")}]`);
      const told = await post(`why/${encodeURIComponent(/** @type {string} */ (name))}`, json, signal);
      fill(stories, whyStories(told, () => fill(stories)));
    } catch (error) {
      if (!signal.aborted) fill(stories, problem(/** @type {any} */ (error)));
    }
  }
}

/**
 * An id that somebody typed: a number, or a text.
 * @param {string} text
 * @returns {string}
 */
function typed(text) {
  return /^-?\d+$/.test(text) ? text : JSON.stringify(text);
}

/**
 * JSON for people. Bigints are written as the numbers that they are.
 * @param {unknown} given
 * @returns {string}
 */
function written(given) {
  const text = JSON.stringify(given, (_, inner) => (typeof inner === "bigint" ? `\0${inner}` : inner), 2);
  return text.replace(/"\\u0000(-?\d+)"/g, "$1");
}

/**
 * The rows of each output as tables, a page at a time.
 * @param {[string, any[]][]} outputs
 * @param {((id: string | number | bigint) => void) | null} why
 * @returns {HTMLElement}
 */
function rowsOf(outputs, why) {
  return h("div", { class: "section" }, outputs.map(([name, rows]) => {
    const body = h("div", { class: "card" });
    const pages = Math.max(1, Math.ceil(rows.length / ROWS_A_PAGE));
    const keys = [...new Set(rows.slice(0, 1000).flatMap((row) => Object.keys(row)))];
    const shown = keys.slice(0, COLUMNS_MAX);
    const isNumber = (/** @type {string} */ key) => rows.slice(0, 20).every((row) => row[key] === null || row[key] === undefined || ["number", "bigint"].includes(typeof row[key]));
    const columns = [{ title: "#", right: true }, ...shown.map((key) => ({ title: key, right: isNumber(key) })), ...(why ? [{ title: "" }] : [])];
    /** @param {number} page */
    const show = (page) => {
      const from = page * ROWS_A_PAGE;
      const lines = rows.slice(from, from + ROWS_A_PAGE).map((row, at) => h("tr", null, h("td", { class: "right muted" }, from + at + 1),
        shown.map((key, column) => h("td", { class: columns[column + 1].right ? "value number" : "value", title: value(row[key]) }, row[key] === null || row[key] === undefined ? h("span", { class: "null" }, "null") : value(row[key]))),
        why ? h("td", null, h("button", { class: "link", "aria-label": `Why is ${value(row.id)} here?`, onclick: () => why(row.id) }, "why")) : null));
      fill(body, rows.length ? table(name ? `Rows of ${name}` : "Rows", columns, lines, "rows") : empty("No rows", "The plan gave no rows for this request."),
        pages > 1 ? h("div", { class: "pager" }, h("button", { disabled: page === 0, onclick: () => show(page - 1) }, "Back"), h("span", { role: "status" }, `${from + 1} to ${Math.min(rows.length, from + ROWS_A_PAGE)} of ${rows.length}`),
          h("button", { disabled: page === pages - 1, onclick: () => show(page + 1) }, "Next")) : null);
    };
    show(0);
    return h("section", { class: "section" }, name ? h("h2", null, name) : null, body);
  }));
}
