// E and Pred: operators, functions and predicates, spelt out. They give expressions whatever they are given.
import { config } from "rankd:config";
import { BROKEN, BROKEN_IR, bounded, describe, Expression, irOf, isExpression, make, node, report, wrap } from "rankd:expressions";
import { build, calls, exactly, math, named, regex, tests, values } from "rankd:functions";
import { guarded, unknown } from "rankd:names";
import { constant, pred, value } from "rankd:operands";
import { both, choose, comparison, negate } from "rankd:operators";
import { argument, current } from "rankd:problems";

const { keys } = Object;
const { isArray } = Array;
const json = JSON.stringify;

const speltOut = (operation) =>
  named(operation.name, (...list) => {
    const { at, count } = current;
    exactly(operation.fields.length, list, `E.${operation.name}`, at);
    return wrap(build(operation, values(list, at, count), at));
  });
const reference = (what, op) => (...list) => {
  const { at, count } = current;
  const place = argument(at, count, 0);
  exactly(1, list, `E.${what}`, at);
  if (isExpression(list[0]) && (irOf(list[0]).op === op || irOf(list[0]) === BROKEN_IR)) return wrap(value(list[0], place));
  const help = what === "key" ? "E.key(Key.score)" : "E.param(P.weight)";
  return report("D012", place, `E.${what} takes a ${what === "key" ? "key" : "parameter"}, not ${describe(list[0])}`, { help });
};
// E and Pred give expressions whatever they are given, so that E.max(1, 2) is one, too.
const lifted = (fn) =>
  named(fn.name, (...list) => {
    const { at, count } = current;
    const parts = list.map((x, position) => (isExpression(x) ? x : wrap(value(x, argument(at, count, position)))));
    current.at = at;
    current.count = count;
    return fn(...parts);
  });
export const E = {
  key: reference("key", "key_ref"),
  param: reference("param", "param_ref"),
  const: (...list) => {
    const { at, count } = current;
    exactly(1, list, "E.const", at);
    return wrap(value(list[0], argument(at, count, 0)));
  },
  if: (...list) => {
    const { at, count } = current;
    exactly(3, list, "E.if", at);
    const place = (position) => argument(at, count, position);
    return wrap(choose(pred(list[0], place(0)), list[1], list[2], at, place(1), place(2)));
  },
};
for (const operation of config.operations) if (operation.takes === "spelt_out") E[operation.name] = speltOut(operation);
for (const [name, fn] of Object.entries(math)) E[name] = lifted(fn);
for (const [name, fn] of Object.entries(calls)) E[name] = fn;

const COMPARISONS = config.comparisons;
const junction = (op, whenEmpty) => (...list) => {
  const { at, count } = current;
  if (list.length === 0) return wrap(pred(whenEmpty, at));
  return wrap(list.map((x, position) => pred(x, argument(at, count, position))).reduce((a, b) => both(op, a, b, at)));
};
const nullness = (name, op) => (...list) => {
  const { at, count } = current;
  exactly(1, list, `Pred.${name}`, at);
  return wrap(make(op, "pred", "bool", at, ["x", value(list[0], argument(at, count, 0))]));
};
// Whether x is one of a list that a row or a request has.
function amongThose(x, list, at, atX, place) {
  if (list === BROKEN_IR) return BROKEN;
  const field = { key_ref: "key", param_ref: "param" }[list.op];
  if (field === undefined || !`${list.type}`.startsWith("list<")) {
    return report("D012", place, `Pred.in takes a list, a list key or a list parameter, not ${describe(wrap(list))}`, { help: "contains(list, x) takes any list" });
  }
  const fields = ["lhs", value(x, atX), "list", `{${json(field)}:${json(list.name)}}`];
  return wrap(make("in", "pred", "bool", at, fields));
}
// Whether x is one of a list of plain values.
export function among(x, list, at, atX, place) {
  if (isExpression(list)) return amongThose(x, irOf(list), at, atX, place);
  if (!isArray(list)) return report("D012", place, `Pred.in takes a list, not ${describe(list)}`);
  const texts = [];
  for (const item of [...list]) {
    if (isExpression(item)) {
      return report("D012", place, `${describe(item)} cannot be in the list`, { help: "the list has numbers, texts or bools only" });
    }
    const ir = constant(item, "value", place);
    if (ir === BROKEN_IR) return BROKEN;
    texts.push(item === null ? "null" : ir.fields[1]);
  }
  const lhs = value(x, atX);
  if (lhs === BROKEN_IR) return BROKEN;
  const fields = ["lhs", lhs, "list", `[${texts.join(",")}]`];
  return new Expression(bounded(node("pred", "bool", "in", fields, at, 1 + lhs.size + texts.length, lhs.depth + 1, "")));
}
export const Pred = {
  cmp: (...list) => {
    const { at, count } = current;
    exactly(3, list, "Pred.cmp", at);
    const [cmp, a, b] = list;
    if (typeof cmp !== "string" || !COMPARISONS.includes(cmp)) {
      return report("D012", argument(at, count, 0), `${describe(cmp)} is not a comparison`, { help: `one of ${COMPARISONS.join(" ")}` });
    }
    return wrap(comparison(cmp, a, b, at, argument(at, count, 1), argument(at, count, 2)));
  },
  and: junction("and", true),
  or: junction("or", false),
  not: (...list) => {
    const { at, count } = current;
    exactly(1, list, "Pred.not", at);
    return wrap(negate(list[0], at, argument(at, count, 0)));
  },
  in: (...list) => {
    const { at, count } = current;
    exactly(2, list, "Pred.in", at);
    return among(list[0], list[1], at, argument(at, count, 0), argument(at, count, 1));
  },
  isNull: nullness("isNull", "is_null"),
  notNull: nullness("notNull", "not_null"),
  regex,
  const: (...list) => {
    const { at, count } = current;
    exactly(1, list, "Pred.const", at);
    return wrap(pred(list[0], argument(at, count, 0)));
  },
  ...tests,
};

for (const [name, functions] of [["E", E], ["Pred", Pred]]) {
  const known = keys(functions);
  guarded(functions, (it) => (unknown("function", it, known, `${name}.`), () => BROKEN));
}
