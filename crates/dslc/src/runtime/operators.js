// What operators and syntax were rewritten to: plan code calls these as `$rankd.add(a, b, place)`.
//
// With plain values each does what JavaScript does; with an expression it builds a larger one, or refuses.
import { BROKEN_IR, describe, irOf, isExpression, make, now, wrap } from "rankd:expressions";
import { natives } from "rankd:natives";
import { pred, value } from "rankd:operands";
import { current, REPORTED, stop } from "rankd:problems";

const { freeze } = Object;
const json = JSON.stringify;

const typeOfBoth = (a, b) => (a.type === b.type ? a.type : "number");
// JavaScript has no sum of an exact whole number and a plain one.
function mixed(a, b, at) {
  if (typeof a === typeof b || (typeof a !== "number" && typeof b !== "number")) return;
  const help = "whole numbers of 2^53 and more are exact: write the result out, or the other number as a BigInt such as 1n";
  stop("D012", at, `${describe(a)} and ${describe(b)} cannot be computed with together`, { help });
}
const binary = (op, native) => (a, b, at) => {
  if (!isExpression(a) && !isExpression(b)) {
    current.at = at;
    if (typeof a === "bigint" || typeof b === "bigint") mixed(a, b, at);
    return native(a, b);
  }
  const left = value(a, at + 1);
  return wrap(make(op, "value", "number", at, ["a", left, "b", value(b, at + 2)]));
};
const compare = (cmp, native) => (a, b, at) => {
  if (!isExpression(a) && !isExpression(b)) {
    current.at = at;
    return native(a, b);
  }
  return wrap(comparison(cmp, a, b, at, at + 1, at + 2));
};
export function comparison(cmp, a, b, at, atA, atB) {
  if ((cmp === "==" || cmp === "!=") && (a === null || b === null)) {
    const x = a === null ? value(b, atB) : value(a, atA);
    return make(cmp === "==" ? "is_null" : "not_null", "pred", "bool", at, ["x", x]);
  }
  return make("cmp", "pred", "bool", at, ["cmp", json(cmp), "a", value(a, atA), "b", value(b, atB)]);
}
export const negate = (x, at, atX) => make("not", "pred", "bool", at, ["x", pred(x, atX)]);
export const both = (op, a, b, at) => make(op, "pred", "bool", at, ["a", a, "b", b]);
export function choose(cond, a, b, at, atA, atB) {
  if (isExpression(a) && isExpression(b) && irOf(a).sort === "pred" && irOf(b).sort === "pred") {
    const not = make("not", "pred", "bool", at, ["x", cond]);
    return both("or", both("and", cond, irOf(a), at), both("and", not, irOf(b), at), at);
  }
  const then = value(a, atA);
  const other = value(b, atB);
  return make("if", "value", typeOfBoth(then, other), at, ["cond", cond, "then", then, "else", other]);
}
const same = compare("==", (a, b) => a === b);
const differs = compare("!=", (a, b) => a !== b);
const EMPTY = freeze([]);
const LAZY = ["and", "or", "nullish"];
const ordinary = Function.prototype[Symbol.hasInstance];
function isInstance(a, b, at) {
  const own = b?.[Symbol.hasInstance];
  return own === undefined || own === null || own === ordinary ? a instanceof b : !!now(own.call(b, a), at, "as a JavaScript condition");
}
export const coalesced = (a, b, at) => make("coalesce", "value", a.type ?? b.type, at, ["a", a, "b", b]);
// JavaScript's power, but with the bits of a run: the engine's own has those of the machine's C library.
export const raised = (a, b) => {
  const [x, y] = [+a, +b];
  return (x === 1 || x === -1) && !isFinite(y) ? NaN : natives.pow(x, y);
};
export const operators = {
  add: binary("add", (a, b) => a + b),
  sub: binary("sub", (a, b) => a - b),
  mul: binary("mul", (a, b) => a * b),
  div: binary("div", (a, b) => a / b),
  mod: binary("mod", (a, b) => a % b),
  pow: binary("pow", (a, b) => (typeof a === "bigint" || typeof b === "bigint" ? a ** b : raised(a, b))),
  lt: compare("<", (a, b) => a < b),
  le: compare("<=", (a, b) => a <= b),
  gt: compare(">", (a, b) => a > b),
  ge: compare(">=", (a, b) => a >= b),
  eq: compare("==", (a, b) => a == b),
  ne: compare("!=", (a, b) => a != b),
  // Whether a variable of JavaScript has a value yet is known now: an expression is one.
  same: (a, b, at) => (a === undefined || b === undefined ? a === b : same(a, b, at)),
  differs: (a, b, at) => (a === undefined || b === undefined ? a !== b : differs(a, b, at)),
  neg(x, at) {
    current.at = at;
    return isExpression(x) ? wrap(make("neg", "value", "number", at, ["x", value(x, at + 1)])) : -x;
  },
  plus(x, at) {
    current.at = at;
    return isExpression(x) ? wrap(value(x, at + 1)) : typeof x === "bigint" ? x : +x;
  },
  not: (x, at) => (isExpression(x) ? wrap(negate(x, at, at + 1)) : !x),
  and(a, b, at) {
    if (!isExpression(a)) return a && b();
    const left = pred(a, at + 1);
    return wrap(both("and", left, pred(b(), at + 2), at));
  },
  or(a, b, at) {
    if (!isExpression(a)) return a || b();
    const left = pred(a, at + 1);
    return wrap(both("or", left, pred(b(), at + 2), at));
  },
  nullish(a, b, at) {
    if (!isExpression(a)) return a ?? b();
    return wrap(coalesced(value(a, at + 1), value(b(), at + 2), at));
  },
  pick(cond, a, b, at) {
    if (!isExpression(cond)) return cond ? a() : b();
    const test = pred(cond, at + 1);
    return wrap(choose(test, a(), b(), at, at + 2, at + 3));
  },
  // Operators that expressions do not have.
  other(op, a, b, at) {
    for (const x of [a, b]) {
      if (!isExpression(x)) continue;
      if (irOf(x) === BROKEN_IR) throw REPORTED;
      const help = op === "in" ? "write Pred.in(x, [a, b])" : undefined;
      stop("D012", at, `expressions have no operator ${op}`, { help });
    }
    current.at = at;
    switch (op) {
      case "|":
        return a | b;
      case "&":
        return a & b;
      case "^":
        return a ^ b;
      case "<<":
        return a << b;
      case ">>":
        return a >> b;
      case ">>>":
        return a >>> b;
      case "~":
        return ~a;
      case "in":
        return a in b;
      default:
        return isInstance(a, b, at);
    }
  },
  // An operator and an assignment in one: the target is read and written once.
  update(object, name, op, right, at) {
    const old = object[name];
    return (object[name] = operators[op](old, LAZY.includes(op) ? right : right(), at));
  },
  cond: (x, at) => now(x, at, "as a JavaScript condition"),
  text: (x, at) => now(x, at, "inside a text"),
  index(x, at) {
    current.at = at;
    current.count = 0;
    return now(x, at, "as an index");
  },
  switched: (x, at) => now(x, at, "in a switch"),
  cased: (x, at) => now(x, at, "in a case"),
  within: (x, at) => now(x, at, "by in"),
  kind: (x, at) => typeof now(x, at, "by typeof"),
  thrown(x, at) {
    if (!isExpression(x) && x instanceof Error) return x;
    return stop("D006", at, `the plan's code threw ${describe(x)}`, { help: "throw new Error(\"…\") says what is wrong" });
  },
  here(at, count, x) {
    current.at = at;
    current.count = count;
    return x;
  },
  none(at) {
    current.at = at;
    current.count = 0;
    return EMPTY;
  },
};
