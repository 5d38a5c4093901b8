// All plans: what is served, since when, and how it is doing.
// @ts-check
import { get, repeat } from "./api.js";
import { empty, fill, h, say, svg, table } from "./dom.js";
import { ago, count, duration, percent } from "./format.js";

/** So many rows are shown; the filter finds the others. */
const SHOWN_MAX = 500;
const COLUMNS = [
  { title: "Plan" },
  { title: "Version" },
  { title: "Nodes", right: true },
  { title: "Loaded" },
  { title: "Requests/s", right: true, hint: "Over the last minute" },
  { title: "p50", right: true, hint: "Of the last minute" },
  { title: "p99", right: true, hint: "Of the last minute" },
  { title: "Degraded", right: true, hint: "Share of the answers of the last minute" },
  { title: "Errors", right: true, hint: "Share of the answers of the last minute" },
  { title: "Last 15 minutes" },
];

/**
 * What is known of a plan: its state, its figures now, and its slots.
 * @typedef {{ plan: string, place?: string, ok: boolean, serving: boolean, file: string, version?: number, sha256?: string, loaded_at?: string, nodes?: number, pinned?: string,
 *   problem?: { at: string, message: string }, held?: { at: string, message: string }, registry_problem?: { at: string, message: string },
 *   now: { requests_per_s: number, p50_ms: number | null, p99_ms: number | null, degraded: number, failed: number, requests: number }, slots: number[][] }} Plan
 */

/**
 * The rows of one plan, and what is changed in them when there is news.
 * @typedef {{ rows: HTMLElement[], tell: (plan: Plan) => void }} Shown
 */

/** @param {import("./app.js").Context} context */
export function plansPage({ place, signal }) {
  /** @type {Map<string, Plan>} */
  let plans = new Map();
  /** @type {Map<string, Shown>} */
  let shown = new Map();
  let [slot, catalog, slotsMax] = [0, 0, 90];
  const title = h("h1", null, "Plans");
  const about = h("p", { class: "muted" });
  const filter = /** @type {HTMLInputElement} */ (h("input", { type: "search", placeholder: "Filter", "aria-label": "Filter plans", oninput: () => list() }));
  const warnings = h("div", { class: "section" });
  const body = h("div", { class: "card" });
  fill(place, h("div", { class: "bar" }, title, about, h("span", { class: "grow" }), filter), warnings, body);

  function list() {
    const wanted = filter.value.trim().toLowerCase();
    const found = [...plans.values()].filter((plan) => `${plan.plan} ${plan.file} ${plan.problem?.message ?? ""}`.toLowerCase().includes(wanted));
    shown = new Map(found.slice(0, SHOWN_MAX).map((plan) => [plan.plan, row(plan)]));
    if (plans.size === 0) return fill(body, empty("No plans", "The plan folder has no plan that could be read."));
    if (found.length === 0) return fill(body, empty("No plan has this text", "The filter looks at names, files and problems."));
    fill(body, table("Plans", COLUMNS, [...shown.values()].flatMap(({ rows }) => rows)),
      found.length > SHOWN_MAX ? h("p", { class: "pager muted" }, `${found.length - SHOWN_MAX} more: filter to see them`) : null);
  }

  repeat(async () => {
    const told = await get(`plans?slot=${slot}&catalog=${catalog}`, signal);
    if (told.all) {
      const known = plans;
      plans = new Map(told.plans.map((/** @type {Plan} */ plan) => [plan.plan, { ...plan, slots: [...(known.get(plan.plan)?.slots ?? []), ...plan.slots] }]));
    } else {
      for (const news of told.plans) {
        const plan = plans.get(news.plan);
        if (!plan) continue;
        plan.now = news.now;
        plan.slots.push(...news.slots);
      }
    }
    for (const plan of plans.values()) plan.slots.splice(0, Math.max(0, plan.slots.length - told.slots_max));
    [slot, catalog, slotsMax] = [told.slot, told.catalog, told.slots_max];
    const all = [...plans.values()];
    const wrong = all.filter((plan) => !plan.ok).length;
    const rate = all.reduce((sum, plan) => sum + plan.now.requests_per_s, 0);
    say(about, `${all.filter((plan) => plan.serving).length} of ${all.length} served · ${count(rate)} requests/s${wrong ? ` · ${wrong} with a problem` : ""}`);
    fill(warnings, (told.state.warnings ?? []).map((/** @type {any} */ warning) => h("p", { class: "note" }, h("strong", null, `${warning.about}: `), warning.message)));
    if (told.all) list();
    else for (const news of told.plans) shown.get(news.plan)?.tell(/** @type {Plan} */ (plans.get(news.plan)));
  }, signal);

  /**
   * @param {Plan} plan
   * @returns {Shown}
   */
  function row(plan) {
    const cells = COLUMNS.slice(4, 9).map(() => h("td", { class: "right" }));
    const spark = h("td");
    const loaded = h("td", { title: plan.loaded_at ?? "" });
    const state = plan.serving ? (plan.ok ? "" : " warn") : " bad";
    const meaning = plan.serving ? (plan.ok ? "served" : "an earlier version is served") : "not served";
    const trouble = plan.problem ?? plan.held ?? plan.registry_problem;
    const first = h("tr", { class: trouble ? "has-trouble" : "" },
      h("td", { class: "name" }, h("span", { class: `dot${state}`, role: "img", "aria-label": meaning, title: meaning }),
        h("a", { href: `#/plan/${encodeURIComponent(plan.plan)}` }, plan.plan), " ", plan.pinned ? h("span", { class: "tag accent" }, "pinned") : null),
      h("td", null, plan.version ? `${plan.version}` : "–", " ", h("code", { class: "sub", title: plan.sha256 ?? "" }, plan.sha256?.slice(0, 8) ?? "")),
      h("td", { class: "right" }, plan.nodes ?? "–"), loaded, cells, spark);
    const rows = trouble ? [first, h("tr", { class: "trouble" }, h("td", { colspan: COLUMNS.length }, plan.place ? `${plan.place}: ` : "", trouble.message))] : [first];
    /** @param {Plan} news */
    const tell = ({ now, slots, loaded_at }) => {
      const texts = [count(now.requests_per_s), duration(now.p50_ms), duration(now.p99_ms), percent(now.degraded), percent(now.failed)];
      cells.forEach((cell, at) => say(cell, texts[at]));
      cells[3].classList.toggle("warn", now.degraded > 0);
      cells[4].classList.toggle("bad", now.failed > 0);
      say(loaded, loaded_at ? ago((Date.now() - Date.parse(loaded_at)) / 1000) : "–");
      if (Number(spark.dataset.slot ?? -1) !== slot) {
        spark.dataset.slot = String(slot);
        fill(spark, sparkline(slots, slotsMax));
      }
    };
    tell(plan);
    return { rows, tell };
  }
}

/**
 * Requests by slot, the newest at the right; what failed in another colour.
 * @param {number[][]} slots
 * @param {number} slotsMax
 * @returns {SVGElement}
 */
export function sparkline(slots, slotsMax) {
  const [width, height] = [slotsMax * 2, 22];
  const most = Math.max(1, ...slots.map(([requests]) => requests));
  const bars = (/** @type {(slot: number[]) => number} */ of) => slots.map((slot, at) => {
    const high = of(slot) === 0 ? 0 : Math.max(1, (of(slot) / most) * (height - 2));
    return high ? `M${width - (slots.length - at) * 2} ${height}v${-high.toFixed(1)}h1.5v${high.toFixed(1)}z` : "";
  }).join("");
  const all = slots.reduce((sum, [requests]) => sum + requests, 0);
  return svg("svg", { class: "spark", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${all} requests in the last ${Math.round(slots.length / 6)} minutes`, preserveAspectRatio: "none" },
    svg("path", { class: "base", d: `M0 ${height - 0.5}H${width}` }),
    svg("path", { class: "bars", d: bars(([requests]) => requests) }),
    svg("path", { class: "failed", d: bars(([, , failed]) => failed) }));
}
