// How the nodes of a plan are doing: what the server sums up over ten seconds, kept here for a quarter of an hour.
// @ts-check
import { count, duration } from "./format.js";

/** What a sum has, in the order in which the server tells it. */
const [SLOT, RUNS, TOOK, CRITICAL, MOST, FAILED, ROWS_IN, ROWS_OUT] = [0, 1, 2, 3, 4, 5, 6, 7];
const SLOTS = 90;

/** @typedef {{ runs: number, took_us: number, critical_us: number, most_us: number, failed: number, rows_in: number, rows_out: number }} Sum */

export class Figures {
  constructor() {
    /** @type {Map<number, Map<number, number[]>>} */
    this.nodes = new Map();
    this.slot = 0;
    this.version = -1;
    this.runs = 0;
  }

  /** The first slot that is not known yet; the last one may have grown. */
  from() {
    return Math.max(0, this.slot);
  }

  /**
   * Takes in what the server tells.
   * @param {any} told
   */
  add(told) {
    if (told.version !== this.version || told.slot < this.slot) this.nodes.clear();
    [this.version, this.slot, this.runs] = [told.version, told.slot, told.runs];
    for (const [node, ...sums] of told.nodes) {
      const ring = this.nodes.get(node) ?? new Map();
      for (const sum of sums) ring.set(sum[SLOT], sum);
      this.nodes.set(node, ring);
    }
    for (const ring of this.nodes.values()) {
      for (const slot of ring.keys()) if (slot <= this.slot - SLOTS) ring.delete(slot);
    }
  }

  /**
   * What a node did in all slots, or in those of one minute that ended so many slots ago.
   * @param {number} node
   * @param {number | null} back
   * @returns {Sum | null}
   */
  of(node, back) {
    /** @type {Sum} */
    const all = { runs: 0, took_us: 0, critical_us: 0, most_us: 0, failed: 0, rows_in: 0, rows_out: 0 };
    for (const sum of this.nodes.get(node)?.values() ?? []) {
      const age = this.slot - sum[SLOT];
      if (back !== null && (age < back || age >= back + 6)) continue;
      all.runs += sum[RUNS];
      all.took_us += sum[TOOK];
      all.critical_us += sum[CRITICAL];
      all.most_us = Math.max(all.most_us, sum[MOST]);
      all.failed += sum[FAILED];
      all.rows_in += sum[ROWS_IN];
      all.rows_out += sum[ROWS_OUT];
    }
    return all.runs ? all : null;
  }

  /**
   * A line for each node that ran, and its share of what the answers waited for.
   * @param {number | null} back
   * @returns {Map<number, import("./picture.js").Figure & { sum: Sum }>}
   */
  lines(back) {
    const sums = [...this.nodes.keys()].flatMap((node) => {
      const sum = this.of(node, back);
      return sum ? [/** @type {const} */ ([node, sum])] : [];
    });
    const waited = sums.reduce((all, [, sum]) => all + sum.critical_us, 0);
    return new Map(sums.map(([node, sum]) => {
      const share = waited > 0 ? sum.critical_us / waited : 0;
      const parts = [`${count(mean(sum.rows_in, sum))} → ${count(mean(sum.rows_out, sum))}`, duration(sum.took_us / sum.runs / 1000)];
      if (share >= 0.005) parts.push(`${Math.round(share * 100)} %`);
      return [node, { text: parts.join(" · "), share, failed: sum.failed > 0, sum }];
    }));
  }
}

/**
 * @param {number} total
 * @param {Sum} sum
 * @returns {number}
 */
export function mean(total, sum) {
  const each = total / sum.runs;
  return each < 10 ? Math.round(each * 10) / 10 : Math.round(each);
}
