// The page around the pages: which one is shown follows from what is behind # in the address, so that any sub-path works.
// @ts-check
import { get, onState, repeat, setToken } from "./api.js";
import { empty, fill, h, say } from "./dom.js";
import { planPage } from "./plan.js";
import { plansPage } from "./plans.js";
import { requestPage } from "./request.js";
import { storesPage } from "./stores.js";

/**
 * What a page is given: where to put itself, what is behind its name in the address, what the console may show, and what says that it is over.
 * @typedef {{ place: HTMLElement, path: string[], about: any, signal: AbortSignal }} Context
 */

/** @type {Record<string, { title: (path: string[]) => string, show: (context: Context) => void }>} */
const PAGES = {
  plans: { title: () => "Plans", show: plansPage },
  plan: { title: ([name]) => name ?? "Plan", show: planPage },
  request: { title: ([name]) => (name ? `Request · ${name}` : "Request"), show: requestPage },
  stores: { title: () => "Stores", show: storesPage },
};

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const status = /** @type {HTMLElement} */ (document.getElementById("status"));
let leave = new AbortController();
let starting = new AbortController();
/** @type {any} */
let about = null;
let shown = "";

/** The token comes in the address once, and leaves it at once. */
function takeToken() {
  const given = /^#token=(.*)$/.exec(location.hash);
  if (!given) return;
  setToken(decodeURIComponent(given[1]));
  history.replaceState(null, "", "#/plans");
}

function show() {
  takeToken();
  const [name = "", ...path] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  const page = PAGES[name];
  if (!page) {
    // The link that skips to the page leads to where one is.
    if (name === "" || (name === "main" && shown === "")) location.replace("#/plans");
    else if (name !== "main") {
      leave.abort();
      shown = "";
      fill(main, empty("There is no such page", "The pages are Plans, Request and Stores."));
    }
    return;
  }
  // What is behind the plan's name is the page's own business.
  const key = `${name}/${path[0] ?? ""}`;
  if (key === shown) return;
  shown = key;
  leave.abort();
  leave = new AbortController();
  for (const link of document.querySelectorAll("nav a")) {
    const of = /** @type {HTMLElement} */ (link).dataset.page;
    const isHere = of === name || (of === "plans" && name === "plan");
    if (isHere) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `${page.title(path)} · rankd`;
  fill(main);
  main.className = `page-${name}`;
  if (about !== null) page.show({ place: main, path, about, signal: leave.signal });
}

/** Asks for the token where the server wants one. */
function askForToken() {
  if (document.getElementById("token")) return;
  leave.abort();
  leave = new AbortController();
  shown = "";
  const input = /** @type {HTMLInputElement} */ (h("input", { id: "token", type: "password", autocomplete: "off", required: true }));
  fill(main, h("form", {
    class: "card token",
    onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      setToken(input.value.trim());
      fill(main);
      begin();
    },
  }, h("h1", null, "This console wants its token"),
  h("p", null, "It is the text in the file of --console_token. An address that ends in #token=… hands it over, too. It is kept while this page is open."),
  h("label", { for: "token" }, "Token"), input, h("button", { class: "primary" }, "Open")));
  input.focus();
}

onState((state) => {
  status.className = `status ${state}`;
  if (state === "silent") say(status, "the server does not answer; trying again");
  if (state === "token") askForToken();
  if (state === "answers" && about) say(status, `${about.version}`);
});

function begin() {
  starting.abort();
  const start = new AbortController();
  starting = start;
  repeat(async () => {
    about = await get("about");
    start.abort();
    status.className = "status answers";
    say(status, about.version);
    shown = "";
    show();
  }, start.signal);
}

addEventListener("hashchange", () => {
  takeToken();
  if (about !== null) show();
});
takeToken();
begin();
