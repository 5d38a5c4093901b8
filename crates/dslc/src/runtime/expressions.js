// Expressions: what they are for plan code, and what they are inside.
//
// For plan code an expression is a proxy that refuses every read. Operators, conditions and the like are rewritten to calls of
// `operators.js` before the code runs, and the language's own functions refuse expressions (`guards.js`). So an expression never
// passes for a plain value.
import { Dial, Endpoint, Model, Rows } from "rankd:handles";
import { HERE, REPORTED, limits, record, stop } from "rankd:problems";

const { create, freeze } = Object;
const { Proxy } = globalThis; // plan code does not have it
const { isArray } = Array;
const json = JSON.stringify;

// Inside, it is an `ir`: {sort: "value" | "pred" | "broken", type, op, fields, at, size, depth, name}. `fields` has
// names and values in turn; a value is an ir or JSON text. An ir never reaches plan code, so it need not be frozen, which would cost
// several hundred bytes each.
export const node = (sort, type, op, fields, at, size, depth, name) => ({ sort, type, op, fields, at, size, depth, name });
const refused = (act) => (...list) => read(list, act);
const traps = freeze({
  get(_, name, self) {
    // `concat` asks whether what it appends is a list.
    return name === Symbol.isConcatSpreadable ? undefined : property(self, name);
  },
  set: (_, name, it, self) => property(self, name),
  has: refused("by in"),
  deleteProperty: refused("by delete"),
  ownKeys: refused("as an object"),
  getOwnPropertyDescriptor: refused("as an object"),
  defineProperty: refused("as an object"),
  getPrototypeOf: refused("as an object"),
  setPrototypeOf: refused("as an object"),
  isExtensible: refused("as an object"),
  preventExtensions: refused("as an object"),
});
export const NOTHING = freeze(create(null));
// A private field can be put on any object that a base class returns, so on a proxy, too.
const Given = function (it) {
  return it;
};
export class Expression extends Given {
  #ir;
  constructor(ir) {
    super(new Proxy(NOTHING, traps));
    this.#ir = ir;
  }
  static is(x) {
    return typeof x === "object" && x !== null && #ir in x;
  }
  static ir(x) {
    return x.#ir;
  }
}
export const isExpression = Expression.is;
export const irOf = Expression.ir;
// Stands for what is wrong and was reported. It is accepted everywhere, so that the rest of the plan is looked at.
export const BROKEN_IR = node("broken", null, "", [], -1, 1, 1, "");
export const BROKEN = new Expression(BROKEN_IR);
export const wrap = (ir) => (ir === BROKEN_IR ? BROKEN : new Expression(ir));

export const isBroken = (x) => isExpression(x) && irOf(x) === BROKEN_IR;
export function report(code, at, message, more) {
  record(code, at, message, more);
  return BROKEN;
}

// A value that only a run knows, where JavaScript must know it now.
const KEEP = "keep it in an expression: the operators + - * / % ** and the functions of E compute with it when the plan runs";
const HELP = {
  "as a JavaScript condition":
    "to drop rows use filter({ pred }); inside an expression write cond ? a : b; join conditions by &&, || and !",
  "as a plain value": KEEP,
  "in a switch": "a switch decides when the plan is compiled; inside an expression write cond ? a : b",
  "in a case": "a switch decides when the plan is compiled; inside an expression write cond ? a : b",
  "by typeof": "its type is the one in the registry; compare its value: x == 1, x != null",
};
const LATER = "keys, parameters and expressions have a value only when the plan runs; use what is known when it is compiled";
export function needed(x, at, where, help = HELP[where] ?? LATER) {
  if (irOf(x) === BROKEN_IR) throw REPORTED;
  return stop("D011", at, `${describe(x)} is used ${where}, but its value is known only when the plan runs`, { help });
}
export const now = (x, at, where) => (isExpression(x) ? needed(x, at, where) : x);
function read(list, act) {
  return stop("D011", HERE, `an expression is used ${act}, but its value is known only when the plan runs`, { help: LATER });
}
const COERCIONS = [Symbol.toPrimitive, "toString", "valueOf", "toJSON", "toLocaleString", Symbol.toStringTag];
const TEXTS = ["includes", "startsWith", "endsWith", "indexOf", "match", "matchAll", "search", "test", "at", "charAt", "slice"];
function property(x, name) {
  if (!isExpression(x)) return read([], "as an object");
  if (COERCIONS.includes(name)) return needed(x, HERE, "as a plain value");
  if (name === Symbol.iterator) return needed(x, HERE, "as a list");
  if (irOf(x) === BROKEN_IR) throw REPORTED;
  const help = TEXTS.includes(name) ? 'to look into a text write contains(x, "…"), startsWith(x, "…"), endsWith(x, "…") or regex(Key.title, "…"), for one of a list Pred.in(x, [a, b])' : KEEP;
  const it = typeof name === "symbol" ? "such property" : `property ${name}`;
  return stop("D011", HERE, `${describe(x)} has no ${it}: its value is known only when the plan runs`, { help });
}

// How a message names a value.
export function describe(x) {
  if (x === null) return "null";
  if (isExpression(x)) {
    const ir = irOf(x);
    if (ir.op === "key_ref") return `Key.${ir.name}`;
    if (ir.op === "param_ref") return `P.${ir.name}`;
    if (ir.op === "user_id") return `U.${ir.name}`;
    return ir.sort === "pred" ? "a predicate" : "an expression";
  }
  if (Rows.is(x)) return "a set of rows";
  if (Endpoint.is(x)) return "an endpoint";
  if (Model.is(x)) return "a model";
  if (Dial.is(x)) return "a dial";
  if (isArray(x)) return "a list";
  if (typeof x === "string") return x.length < 40 ? json(x) : "a text";
  if (typeof x === "object") return "an object";
  if (typeof x === "function") return "a function";
  if (typeof x === "undefined") return "undefined";
  if (typeof x === "symbol") return "a symbol";
  return `${x}`;
}

// An operation over irs.
export function make(op, sort, type, at, fields) {
  let size = 1;
  let depth = 0;
  for (let i = 1; i < fields.length; i += 2) {
    const it = fields[i];
    if (typeof it === "string") continue;
    if (it === BROKEN_IR) return BROKEN_IR;
    size += it.size;
    if (it.depth > depth) depth = it.depth;
  }
  return bounded(node(sort, type, op, fields, at, size, depth + 1, ""));
}
export function bounded(ir) {
  if (ir.depth > limits.depth) {
    stop("P203", ir.at, `this expression is nested deeper than the limit of ${limits.depth}`);
  }
  if (ir.size > limits.size) {
    stop("P204", ir.at, `this expression is larger than the limit of ${limits.size} operations and list items`);
  }
  return ir;
}
export const leaf = (op, sort, type, at, fields) => node(sort, type, op, fields, at, 1, 1, "");
