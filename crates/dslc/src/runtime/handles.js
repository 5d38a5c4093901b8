// What plan code holds and cannot look into: rows, the context that starts them, endpoints, models, dials and plans.
//
// The meaning is in private fields, and no class can be constructed from outside. `tasks.js` gives rows and contexts their methods.
import { HERE, stop } from "rankd:problems";

const { freeze } = Object;

export const NO_VALUE = "a set of rows is not a value";
export const NO_VALUE_HELP = "how many rows there are, and what is in them, is known only when the plan runs; work on them by tasks";
export class Rows {
  #plan;
  #node;
  constructor(plan, node) {
    this.#plan = plan;
    this.#node = node;
    freeze(this);
  }
  static is(x) {
    return typeof x === "object" && x !== null && #plan in x;
  }
  static plan(x) {
    return x.#plan;
  }
  static node(x) {
    return x.#node;
  }
  [Symbol.toPrimitive]() {
    return stop("D012", HERE, NO_VALUE, { help: NO_VALUE_HELP });
  }
}
export class Context {
  #plan;
  constructor(plan) {
    this.#plan = plan;
    freeze(this);
  }
  static is(x) {
    return typeof x === "object" && x !== null && #plan in x;
  }
  static plan(x) {
    return x.#plan;
  }
}

export class Endpoint {
  #name;
  constructor(name) {
    this.#name = name;
    freeze(this);
  }
  static is(x) {
    return typeof x === "object" && x !== null && #name in x;
  }
  static nameOf(x) {
    return x.#name;
  }
}

export class Model {
  #name;
  constructor(name) {
    this.#name = name;
    freeze(this);
  }
  static is(x) {
    return typeof x === "object" && x !== null && #name in x;
  }
  static nameOf(x) {
    return x.#name;
  }
}

// A number that follows the load. The texts are those of whole numbers.
export class Dial {
  #first;
  #min;
  constructor(first, min) {
    this.#first = first;
    this.#min = min;
    freeze(this);
  }
  static is(x) {
    return typeof x === "object" && x !== null && #first in x;
  }
  static text(x) {
    return `{"dial":${x.#first},"min":${x.#min}}`;
  }
}

export class Plan {
  #text;
  constructor(text) {
    this.#text = text;
    freeze(this);
  }
  static is(x) {
    return typeof x === "object" && x !== null && #text in x;
  }
  static text(x) {
    return x.#text;
  }
}
for (const type of [Endpoint, Model, Dial, Plan]) {
  delete type.prototype.constructor;
  freeze(type.prototype);
}
