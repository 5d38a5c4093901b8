// What became of ids in a run, as a story: where each row came from, what it went through, and where it ended.
// @ts-check
import { h } from "./dom.js";
import { value } from "./format.js";

const VERDICTS = /** @type {Record<string, string>} */ ({
  answered: "is in the answer", dropped: "was dropped", expanded: "was expanded into other rows", grouped: "was put into a group", never: "was in no source", failed: "was on its way when the run failed",
});
const REASONS = /** @type {Record<string, string>} */ ({
  predicate: "its predicate does not hold", cut: "it is beyond the rows that are taken", same: "another row is the same", full: "there are enough of its kind", named: "it is among those to leave out",
  not_named: "it is not among those to keep", no_match: "nothing matches it", served: "it was served before", no_place: "it has no place", condition: "the node did not run", not_asked: "it was not asked for",
});

/**
 * @param {any} told
 * @param {() => void} close
 * @returns {HTMLElement}
 */
export function whyStories(told, close) {
  return h("section", { class: "card story", "aria-label": "What became of rows" },
    told.error ? h("p", { class: "bad" }, `The run failed: ${told.error.message}`) : null,
    told.items.map((/** @type {any} */ item, /** @type {number} */ at) => h("div", { class: "section" },
      h("div", { class: "bar" }, h("h2", { tabindex: -1 }, `${value(item.id)} ${VERDICTS[item.verdict] ?? item.verdict}`), item.row_count > 1 ? h("span", { class: "muted" }, `${item.row_count} rows have this id`) : null,
        h("span", { class: "grow" }), at === 0 ? h("button", { onclick: close }, "Close") : null),
      change(item), (item.never ?? []).map((/** @type {any} */ source) => h("p", null, node(source), ` ${wordsOf(source.why)}`)),
      item.rows.map(story))));
}

/**
 * One number whose change alone brings a row into the answer.
 * @param {any} item
 * @returns {HTMLElement | null}
 */
function change(item) {
  if (item.change) return h("p", { class: "note" }, "It would be in the answer if one number were another: ", h("code", null, pairs(item.change)));
  return item.no_change ? h("p", { class: "muted" }, `No single number would bring it into the answer (${wordsOf(item.no_change)}).`) : null;
}

/**
 * @param {any} row
 * @returns {HTMLElement}
 */
function story(row) {
  const steps = row.path.map((/** @type {any} */ step) => h("li", null, node(step), position(step), step.written ? h("div", { class: "written" }, pairs(step.written)) : null));
  return h("ol", null,
    h("li", null, "from ", node(row.source), ` at ${row.source.position + 1}`, row.source.parent_id === undefined ? "" : ` of ${value(row.source.parent_id)}`,
      Object.keys(row.source.columns ?? {}).length ? h("div", { class: "written" }, pairs(row.source.columns)) : null),
    steps, end(row), row.score ? h("li", null, "what it was ordered by", tree(row.score)) : null);
}

/**
 * @param {any} row
 * @returns {HTMLElement}
 */
function end(row) {
  if (row.end === "answered") return h("li", { class: "end" }, h("strong", null, `in the answer at ${row.answered.position + 1}`), row.answered.output && !/^\d+$/.test(row.answered.output) ? h("span", { class: "muted" }, ` of ${row.answered.output}`) : null);
  if (row.end !== "dropped") return h("li", { class: "end" }, h("strong", null, VERDICTS[row.end] ?? row.end), row[row.end]?.node ? [" by ", node(row[row.end])] : null);
  const { node: _, op: __, label: ___, at: ____, position: from, why, pred, ...more } = row.dropped;
  return h("li", { class: "end dropped" }, h("strong", null, "dropped by "), node(row.dropped), ` from place ${from + 1}: ${REASONS[why] ?? wordsOf(why)}`,
    Object.keys(more).length ? h("div", { class: "written" }, pairs(more)) : null, pred ? tree(pred) : null);
}

/**
 * A value with what it was made of.
 * @param {any} part
 * @returns {HTMLElement}
 */
function tree(part) {
  return h("ul", { class: "tree" }, branch(part));
}

/**
 * The depth is bounded: what is deeper is left out.
 * @param {any} part
 * @param {number} [depth]
 * @returns {HTMLElement}
 */
function branch(part, depth = 0) {
  const name = part.text ?? part.key ?? (part.param ? `P.${part.param}` : part.feature ?? (part.raw_score_of ? `raw score of ${part.raw_score_of}` : part.expected ? "expected" : "number"));
  const shown = part.more ? "" : ` = ${value(part.value)}`;
  const added = part.contribution === undefined ? "" : ` adds ${value(part.contribution)}`;
  return h("li", { class: part.culprit ? "culprit" : null }, h("code", null, `${name}${shown}${added}`), part.node ? h("span", { class: "muted" }, ` by ${part.node}`) : null,
    part.of && depth < 40 ? h("ul", { class: "tree" }, part.of.map((/** @type {any} */ inner) => branch(inner, depth + 1))) : null);
}

/**
 * @param {any} told
 * @returns {HTMLElement}
 */
function node(told) {
  return h("span", null, h("code", null, told.node), ` ${told.op ?? ""}`, told.label ? h("span", { class: "muted" }, ` ${told.label}`) : null);
}

/**
 * @param {any} step
 * @returns {HTMLElement | null}
 */
function position({ before, after }) {
  if (before === null || after === null || before === after) return null;
  return h("span", { class: "muted" }, ` place ${before + 1} → ${after + 1}`);
}

/**
 * @param {Record<string, unknown>} object
 * @returns {string}
 */
function pairs(object) {
  return Object.entries(object).map(([name, given]) => `${name} ${value(given)}`).join(" · ");
}

/**
 * @param {unknown} text
 * @returns {string}
 */
function wordsOf(text) {
  return typeof text === "string" ? text.replaceAll("_", " ") : value(text);
}
