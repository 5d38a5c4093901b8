// Numbers, times and sizes as people read them.
// @ts-check

/**
 * A time of milliseconds in a unit that suits it.
 * @param {number | null | undefined} ms
 * @returns {string}
 */
export function duration(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms < 0.1) return `${(ms * 1000).toFixed(ms < 0.01 ? 1 : 0)} µs`;
  if (ms < 1000) return `${ms.toFixed(ms < 10 ? 2 : ms < 100 ? 1 : 0)} ms`;
  return `${(ms / 1000).toFixed(ms < 10000 ? 2 : 1)} s`;
}

/**
 * @param {number} number
 * @returns {string}
 */
export function count(number) {
  if (Math.abs(number) < 10000) return Number.isInteger(number) ? String(number) : number.toFixed(number < 10 ? 1 : 0);
  for (const [size, unit] of /** @type {[number, string][]} */ ([[1e9, " G"], [1e6, " M"], [1e3, " k"]])) {
    if (Math.abs(number) >= size) return `${(number / size).toFixed(1)}${unit}`;
  }
  return String(number);
}

/**
 * @param {number} share
 * @returns {string}
 */
export function percent(share) {
  if (share === 0) return "0 %";
  const parts = share * 100;
  return parts < 0.1 ? "<0.1 %" : `${parts.toFixed(parts < 10 ? 1 : 0)} %`;
}

/**
 * @param {number} number
 * @returns {string}
 */
export function bytes(number) {
  if (number < 1024) return `${number} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let [size, unit] = [number / 1024, 0];
  while (size >= 1024 && unit < units.length - 1) [size, unit] = [size / 1024, unit + 1];
  return `${size.toFixed(size < 10 ? 1 : 0)} ${units[unit]}`;
}

/**
 * How long ago something was.
 * @param {number} seconds
 * @returns {string}
 */
export function ago(seconds) {
  if (seconds < 1) return "now";
  for (const [size, unit] of /** @type {[number, string][]} */ ([[86400, "d"], [3600, "h"], [60, "min"]])) {
    if (seconds >= 2 * size) return `${Math.floor(seconds / size)} ${unit} ago`;
  }
  return `${Math.floor(seconds)} s ago`;
}

/**
 * A value of a row.
 * @param {unknown} value
 * @returns {string}
 */
export function value(value) {
  if (value === null || value === undefined) return "null";
  if (typeof value === "number" && !Number.isInteger(value)) return String(Number(value.toPrecision(9)));
  if (typeof value === "object") return JSON.stringify(value, (_, inner) => (typeof inner === "bigint" ? String(inner) : inner));
  return String(value);
}
