// Where the time of one run went: a lane for each thread, and a table with all of it as text.
// @ts-check
import { h, svg, table } from "./dom.js";
import { count, duration } from "./format.js";

/** So many nodes are drawn and listed, those that took longest. */
const NODES_MAX = 400;
const [LEFT, HIGH, GAP, WIDTH] = [64, 20, 3, 1000];

/** @typedef {{ node: string, op: string, label?: string, where: string, outcome: string, start_us: number, end_us: number, queue_us?: number, rows_in: number, rows_out: number, commands?: number, critical: boolean, fused_into?: string }} Step */

/**
 * @param {{ total_us: number, nodes: Step[] }} trace
 * @returns {HTMLElement}
 */
export function timeline(trace) {
  const longest = [...trace.nodes].sort((a, b) => b.end_us - b.start_us - (a.end_us - a.start_us)).slice(0, NODES_MAX);
  const steps = longest.sort((a, b) => a.start_us - b.start_us);
  const total = Math.max(trace.total_us, ...steps.map((step) => step.end_us), 1);
  const cut = trace.nodes.length - steps.length;
  return h("div", { class: "section" }, h("div", { class: "card lanes" }, lanes(steps, total),
    h("p", { class: "key" }, h("span", null, h("i", { class: "critical" }), "critical path"), h("span", null, h("i"), "beside it"), h("span", null, h("i", { class: "failed" }), "failed or given up"))),
  h("div", { class: "card" }, table("Nodes of the run", [{ title: "Node" }, { title: "Op" }, { title: "On" }, { title: "Rows in", right: true }, { title: "Rows out", right: true }, { title: "Began", right: true }, { title: "Took" }, { title: "" }],
    steps.map((step) => row(step, total))), cut > 0 ? h("p", { class: "pager muted" }, `${cut} nodes that took less time are not listed`) : null));
}

/**
 * @param {Step} step
 * @param {number} total
 * @returns {HTMLElement}
 */
function row(step, total) {
  const took = step.end_us - step.start_us;
  const meter = h("span", { class: "meter" });
  meter.style.width = `${Math.max(1, (took / total) * 120)}px`;
  const notes = [step.critical ? "critical" : "", step.outcome === "done" ? "" : step.outcome, step.fused_into ? `in one pass into ${step.fused_into}` : "", step.commands ? `${step.commands} command${step.commands === 1 ? "" : "s"}` : ""];
  return h("tr", null, h("td", { class: "mono" }, step.node), h("td", null, step.op, step.label ? h("span", { class: "sub" }, ` ${step.label}`) : null), h("td", null, step.where),
    h("td", { class: "right" }, count(step.rows_in)), h("td", { class: "right" }, count(step.rows_out)), h("td", { class: "right" }, duration(step.start_us / 1000)),
    h("td", null, duration(took / 1000), meter), h("td", { class: step.outcome === "failed" ? "bad" : "muted" }, notes.filter(Boolean).join(", ")));
}

/**
 * @param {Step[]} steps
 * @param {number} total
 * @returns {SVGElement}
 */
function lanes(steps, total) {
  const threads = [...new Set(steps.map((step) => step.where))].sort((a, b) => Number(b === "loop") - Number(a === "loop") || a.localeCompare(b, undefined, { numeric: true }));
  const x = (/** @type {number} */ us) => LEFT + (us / total) * (WIDTH - LEFT - 8);
  /** @type {SVGElement[]} */
  const drawn = [];
  let top = 18;
  for (const thread of threads) {
    // What happens at the same time on a thread, such as reads that it waits for, stands below each other.
    /** @type {number[]} */
    const ends = [];
    const own = steps.filter((step) => step.where === thread).map((step) => {
      const free = ends.findIndex((end) => end <= step.start_us);
      const level = free < 0 ? ends.length : free;
      ends[level] = step.end_us;
      return { step, level };
    });
    const high = ends.length * (HIGH + GAP) + GAP;
    drawn.push(svg("rect", { class: "lane", x: LEFT, y: top, width: WIDTH - LEFT, height: high, rx: 4 }), svg("text", { x: 0, y: top + 15 }, thread));
    for (const { step, level } of own) {
      const [from, wide] = [x(step.start_us), Math.max(1.5, x(step.end_us) - x(step.start_us))];
      const y = top + GAP + level * (HIGH + GAP);
      const kind = ["failed", "abandoned"].includes(step.outcome) ? " failed" : step.critical ? " critical" : "";
      drawn.push(svg("rect", { class: `node${kind}`, x: from, y, width: wide, height: HIGH, rx: 3 },
        svg("title", {}, `${step.node} ${step.op}: ${duration((step.end_us - step.start_us) / 1000)}, ${step.rows_in} → ${step.rows_out} rows`)));
      const text = `${step.node} ${step.op}`;
      if (wide > text.length * 6.4 + 8) drawn.push(svg("text", { class: kind ? "of on" : "of", x: from + 5, y: y + 14 }, text));
    }
    top += high + 6;
  }
  const ticks = [0, 0.25, 0.5, 0.75, 1].map((part) => svg("g", {}, svg("path", { class: "grid", d: `M${x(part * total)} 14V${top}` }),
    svg("text", { x: x(part * total), y: 10, "text-anchor": part === 1 ? "end" : part === 0 ? "start" : "middle" }, duration((part * total) / 1000))));
  return svg("svg", { viewBox: `0 0 ${WIDTH} ${top}`, role: "img", "aria-label": "Timeline; the table below has the same as text" }, ...ticks, ...drawn);
}
