// Asking the server. The token, where the server wants one, is kept here and nowhere else; whole numbers that a double cannot hold are bigints.
// @ts-check

/** An answer that is an error, or none at all. */
export class Refused extends Error {
  /**
   * @param {number} status
   * @param {string} message
   * @param {string} [code]
   */
  constructor(status, message, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** How often figures are asked for, and how long after a failure. */
const EVERY_MS = 1000;
const RETRY_MS = 3000;

/** @type {string | null} */
let token = null;
/** @type {string | null} */
let build = null;
/** @type {(state: "answers" | "silent" | "token") => void} */
let tell = () => {};

/**
 * Who is told whether the server answers.
 * @param {(state: "answers" | "silent" | "token") => void} listener
 */
export function onState(listener) {
  tell = listener;
}

/** @param {string} text */
export function setToken(text) {
  token = text;
}

/**
 * Reads JSON. A whole number beyond 2^53 becomes a bigint.
 * @param {string} text
 * @returns {any}
 */
export function parse(text) {
  const marked = text.replace(/"(?:[^"\\]|\\.)*"|-?\d[\d.eE+-]*/g, (part) => (/^-?\d{16,}$/.test(part) ? `"\\u0000${part}"` : part));
  return JSON.parse(marked, (_, value) => {
    if (typeof value !== "string" || value[0] !== "\0") return value;
    const number = Number(value.slice(1));
    return Number.isSafeInteger(number) ? number : BigInt(value.slice(1));
  });
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 * @returns {Promise<any>}
 */
async function ask(path, init = {}) {
  /** @type {Record<string, string>} */
  const headers = { ...(/** @type {Record<string, string>} */ (init.headers)) };
  if (token !== null) headers.authorization = `Bearer ${token}`;
  let response;
  let text;
  try {
    response = await fetch(`api/${path}`, { ...init, headers });
    text = await response.text();
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    tell("silent");
    throw new Refused(0, "The server does not answer.");
  }
  reloadIfOther(response.headers.get("rankd-build"));
  tell(response.status === 401 ? "token" : "answers");
  let answer = null;
  try {
    answer = parse(text);
  } catch {
    throw new Refused(response.status, `The server answered ${response.status} with what is not JSON.`);
  }
  if (!response.ok) throw new Refused(response.status, answer?.error?.message ?? `status ${response.status}`, answer?.error?.code);
  return answer;
}

/**
 * A page of another build does not know what this server means.
 * @param {string | null} now
 */
function reloadIfOther(now) {
  if (now === null) return;
  if (build !== null && build !== now) {
    if (token !== null) location.hash = `#token=${token}`;
    location.reload();
  }
  build = now;
}

/**
 * @param {string} path
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export function get(path, signal) {
  return ask(path, { signal });
}

/**
 * @param {string} path
 * @param {string} json
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export function post(path, json, signal) {
  return ask(path, { method: "POST", body: json, headers: { "content-type": "application/json" }, signal });
}

/**
 * Does something now and again, until the signal says to stop; not while the page is hidden.
 * @param {() => Promise<void>} turn
 * @param {AbortSignal} signal
 * @param {number} [everyMs]
 */
export function repeat(turn, signal, everyMs = EVERY_MS) {
  let timer = 0;
  let running = false;
  const next = async () => {
    clearTimeout(timer);
    if (signal.aborted || running || document.hidden) return;
    running = true;
    let wait = everyMs;
    try {
      await turn();
    } catch (error) {
      wait = RETRY_MS;
      if (!(error instanceof Refused) && !signal.aborted) console.error(error);
    }
    running = false;
    if (!signal.aborted && !document.hidden) timer = setTimeout(next, wait);
  };
  document.addEventListener("visibilitychange", next, { signal });
  signal.addEventListener("abort", () => clearTimeout(timer));
  next();
}
