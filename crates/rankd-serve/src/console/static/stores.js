// What plans read: endpoints and how they are doing, tables and models.
// @ts-check
import { get, repeat } from "./api.js";
import { empty, fill, h, table } from "./dom.js";
import { ago, bytes, count, duration } from "./format.js";

/** @param {import("./app.js").Context} context */
export function storesPage({ place, signal }) {
  const body = h("div", { class: "section" });
  fill(place, h("h1", null, "Stores, tables and models"), body);
  let last = "";
  repeat(async () => {
    const told = await get("stores", signal);
    // What is read stays as it is while nothing changes.
    const text = JSON.stringify(told, (key, given) => (key === "age_s" ? Math.floor(given / 10) : given));
    if (text === last) return;
    last = text;
    fill(body, section("Endpoints", endpoints(told.endpoints)), section("Tables", tables(told.tables)), section("Models", models(told.models)));
  }, signal, 2000);
}

/**
 * @param {string} title
 * @param {HTMLElement} content
 * @returns {HTMLElement}
 */
function section(title, content) {
  return h("section", { class: "section" }, h("h2", null, title), h("div", { class: "card" }, content));
}

/**
 * @param {any[]} all
 * @returns {HTMLElement}
 */
function endpoints(all) {
  if (all.length === 0) return empty("No endpoints", "The registry names none in this environment.");
  const states = /** @type {Record<string, [string, string]>} */ ({ closed: ["", "answers"], half_open: ["warn", "is being tried"], open: ["bad", "does not answer"] });
  const columns = [{ title: "Endpoint" }, { title: "Kind" }, { title: "State" }, { title: "Connections", right: true }, { title: "Commands", right: true }, { title: "Pipelines", right: true }, { title: "p50", right: true }, { title: "p99", right: true }, { title: "Errors", right: true },
    { title: "Retries", right: true }, { title: "Breaker opened", right: true }];
  return table("Endpoints", columns, all.map((one) => {
    const [dot, meaning] = states[one.breaker] ?? ["off", one.backend === "memory" || one.backend === "file" ? "in this process" : "not used yet"];
    const number = (/** @type {string} */ field) => h("td", { class: `right${["errors", "opened"].includes(field) && one[field] > 0 ? " bad" : ""}` }, one[field] === undefined ? "–" : count(one[field]));
    return h("tr", null, h("td", { class: "name" }, one.name), h("td", null, `${one.kind}, ${one.backend}`, one.encrypted ? h("span", { class: "tag" }, "TLS") : null), h("td", null, h("span", { class: `dot ${dot}` }), meaning),
      number("connections"), number("commands"), number("steps"), h("td", { class: "right" }, duration(one.p50_ms)), h("td", { class: "right" }, duration(one.p99_ms)), number("errors"), number("retries"), number("opened"));
  }));
}

/**
 * @param {any[]} all
 * @returns {HTMLElement}
 */
function tables(all) {
  if (all.length === 0) return empty("No tables", "An endpoint of the kind table names a file of rows.");
  const columns = [{ title: "Table" }, { title: "Rows", right: true }, { title: "Memory", right: true }, { title: "Loaded" }, { title: "Reloads", right: true }, { title: "Refused", right: true }, { title: "Columns" }, { title: "File" }];
  return table("Tables", columns, all.map((one) => h("tr", null, h("td", { class: "name" }, one.name), h("td", { class: "right" }, one.rows === undefined ? "–" : count(one.rows)), h("td", { class: "right" }, one.bytes === undefined ? "–" : bytes(one.bytes)),
    h("td", null, one.age_s === undefined ? "not yet" : ago(one.age_s)), h("td", { class: "right" }, one.reloads), h("td", { class: `right${one.refused ? " bad" : ""}` }, one.refused),
    h("td", { class: "value", title: (one.columns ?? []).map((/** @type {string[]} */ [name, type]) => `${name} ${type}`).join(", ") }, (one.columns ?? []).map((/** @type {string[]} */ [name]) => name).join(", ")), h("td", { class: "mono" }, one.file))));
}

/**
 * @param {any[]} all
 * @returns {HTMLElement}
 */
function models(all) {
  if (all.length === 0) return empty("No models", "registry/models.toml names none.");
  const columns = [{ title: "Model" }, { title: "Format" }, { title: "Digest" }, { title: "Trees", right: true }, { title: "Features" }, { title: "Rows scored", right: true }, { title: "File" }];
  return table("Models", columns, all.map((one) => h("tr", null, h("td", { class: "name", title: one.doc }, one.name), h("td", null, one.format), h("td", { class: "mono", title: one.sha256 ?? "" }, one.sha256?.slice(0, 8) ?? "not in use"),
    h("td", { class: "right" }, one.trees ?? "–"), h("td", { class: "value", title: (one.features ?? []).map((/** @type {any} */ feature) => feature.name).join(", ") }, (one.features ?? []).map((/** @type {any} */ feature) => feature.key).join(", ")),
    h("td", { class: "right" }, one.rows === undefined ? "–" : count(one.rows)), h("td", { class: "mono" }, one.file))));
}
