// What an author wrote, as a part of an expression: constants, values and conditions.
import { BROKEN_IR, describe, irOf, isExpression, leaf, make, node, report } from "rankd:expressions";

const { isSafeInteger, isFinite } = Number;
const json = JSON.stringify;

export function numberText(x) {
  if (isSafeInteger(x)) return Object.is(x, -0) ? "-0.0" : `${x}`;
  const text = `${x}`;
  return /[.e]/.test(text) ? text : `${text}.0`;
}
// The digits of a whole number that has 64 bits. Literals of 2^53 and more are written as these by the compiler.
export const intText = (x) => (x >= -(2n ** 63n) && x < 2n ** 63n ? `${x}` : null);
export function constant(x, sort, at) {
  switch (typeof x) {
    case "number":
      if (isFinite(x)) return leaf("const_number", sort, "number", at, ["value", numberText(x)]);
      report("D012", at, `${x} cannot be part of an expression`, { help: "numbers in a plan are finite" });
      return BROKEN_IR;
    case "bigint":
      if (intText(x) !== null) return leaf("const_number", sort, "number", at, ["value", intText(x)]);
      report("D012", at, `${x} does not fit 64 bits`, { help: "for a float write it with a point or an exponent: 1e30" });
      return BROKEN_IR;
    case "string":
      if (x.isWellFormed()) return leaf("const_string", sort, "string", at, ["value", json(x)]);
      report("D012", at, "this text has half of a surrogate pair");
      return BROKEN_IR;
    case "boolean":
      return leaf("const_bool", sort, "bool", at, ["value", `${x}`]);
  }
  if (x === null) return leaf("const_null", sort, null, at, []);
  const help =
    x === undefined
      ? "something has no value here: a misspelt name, or a function without return; for a missing value write null"
      : "expressions are made of keys, parameters, numbers, texts, true, false and null";
  report("D012", at, `${describe(x)} cannot be part of an expression`, { help });
  return BROKEN_IR;
}
export function value(x, at) {
  if (!isExpression(x)) return constant(x, "value", at);
  const ir = irOf(x);
  if (ir.sort === "pred") {
    report("D012", at, "a predicate is not a value", { help: "write cond ? 1 : 0; for a range, low < x && x < high" });
    return BROKEN_IR;
  }
  return ir.at === -1 && ir !== BROKEN_IR ? node(ir.sort, ir.type, ir.op, ir.fields, at, 1, 1, ir.name) : ir;
}
// A bool key or parameter is a condition by itself: it holds where the value is true.
export function pred(x, at) {
  if (typeof x === "boolean") return leaf("const_bool", "pred", "bool", at, ["value", `${x}`]);
  if (isExpression(x)) {
    const ir = irOf(x);
    if (ir.sort !== "value") return ir;
    if (ir.type === "bool") {
      return make("cmp", "pred", "bool", at, ["cmp", '"=="', "a", value(x, at), "b", constant(true, "value", at)]);
    }
  }
  const help = isExpression(x)
    ? "compare it: > 0 or != null; for a value that stands in for null use coalesce(a, b) or a ?? b"
    : "conditions are comparisons, Pred.* and bool keys or parameters, joined by &&, || and !";
  report("D012", at, `${describe(x)} is not a condition`, { help });
  return BROKEN_IR;
}
// Where a column is written, a condition is a bool.
export function written(x, at) {
  if (!isExpression(x) || irOf(x).sort !== "pred") return value(x, at);
  const truth = (it) => constant(it, "value", at);
  return make("if", "value", "bool", at, ["cond", irOf(x), "then", truth(true), "else", truth(false)]);
}
