// Elements made by hand. Children are elements or text, and text is only ever a text node: nothing that comes from a plan, a row or an error
// becomes markup.
// @ts-check

/** @typedef {Node | string | number | null | undefined | false} Child */
/** @typedef {Record<string, unknown>} Props */

/**
 * An element. A property that is a function listens to the event of its name; `class` and other attributes are set as they are, `true` as
 * an empty one; what is null, undefined or false is left out.
 * @param {string} name
 * @param {Props | null} [props]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export function h(name, props, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(props ?? {})) {
    if (typeof value === "function") element.addEventListener(key.slice(2), /** @type {EventListener} */ (value));
    else if (value !== null && value !== undefined && value !== false) element.setAttribute(key, value === true ? "" : String(value));
  }
  append(element, children);
  return element;
}

/**
 * An element of a drawing.
 * @param {string} name
 * @param {Record<string, string | number>} attributes
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function svg(name, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, String(value));
  append(element, children);
  return element;
}

/**
 * @param {Element} element
 * @param {(Child | Child[])[]} children
 */
function append(element, children) {
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : document.createTextNode(String(child)));
  }
}

/**
 * Puts these in the place of all that an element has.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  element.replaceChildren();
  append(element, children);
}

/**
 * Sets a text where it is another one, so that what is selected stays.
 * @param {Element} element
 * @param {string} text
 */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * A table. Cells that are numbers stand at the right.
 * @param {string} caption
 * @param {{ title: string, right?: boolean, hint?: string }[]} columns
 * @param {HTMLElement[]} rows
 * @param {string} [className]
 * @returns {HTMLElement}
 */
export function table(caption, columns, rows, className = "") {
  const titles = columns.map(({ title, right, hint }) => h("th", { scope: "col", class: right ? "right" : null, title: hint }, title));
  return h("div", { class: `scroll ${className}`, tabindex: 0, role: "region", "aria-label": caption },
    h("table", null, h("caption", { class: "hidden" }, caption), h("thead", null, h("tr", null, titles)), h("tbody", null, rows)));
}

/**
 * Names with values.
 * @param {[string, Child][]} pairs
 * @returns {HTMLElement}
 */
export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.flatMap(([name, value]) => [h("dt", null, name), h("dd", null, value)]));
}

/**
 * What to show while there is nothing to show.
 * @param {string} title
 * @param {string} text
 * @returns {HTMLElement}
 */
export function empty(title, text) {
  return h("div", { class: "empty" }, h("h2", null, title), h("p", null, text));
}

/**
 * An error of the server, or of asking it.
 * @param {{ message: string, code?: string }} error
 * @returns {HTMLElement}
 */
export function problem(error) {
  return h("div", { class: "problem", role: "alert" }, error.code ? h("code", null, error.code) : null, h("span", null, error.message));
}
