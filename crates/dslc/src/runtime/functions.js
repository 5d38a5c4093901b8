// Functions over expressions. With plain numbers they compute at once, by the same rules as a run.
import { config } from "rankd:config";
import { BROKEN, BROKEN_IR, describe, Expression, irOf, isExpression, leaf, make, report, wrap } from "rankd:expressions";
import { natives } from "rankd:natives";
import { value } from "rankd:operands";
import { coalesced } from "rankd:operators";
import { argument, current, stop } from "rankd:problems";

const { defineProperty } = Object;
const json = JSON.stringify;

export const named = (name, fn) => defineProperty(fn, "name", { value: name });
const onlyNow = (list) => {
  for (let i = 0; i < list.length; i++) if (isExpression(list[i]) || typeof list[i] === "bigint") return false;
  return true;
};
const counted = (count) => `${count} argument${count === 1 ? "" : "s"}`;
export function exactly(count, list, name, at) {
  if (list.length !== count) stop("D012", at, `${name} takes ${counted(count)}, not ${list.length}`);
}
function atLeast(count, list, name, at) {
  if (list.length < count) stop("D012", at, `${name} takes at least ${counted(count)}, not ${list.length}`);
}
// Null in, null out; what is no number is refused, where JavaScript would make one of it.
function computed(name, native, list, at, count) {
  for (let i = 0; i < list.length; i++) {
    if (list[i] === null || typeof list[i] === "number") continue;
    return report("D012", argument(at, count, i), `${name} takes numbers, not ${describe(list[i])}`);
  }
  return list.includes(null) ? null : native(...list);
}
export const values = (list, at, count) => {
  const irs = [];
  for (let i = 0; i < list.length; i++) irs.push(value(list[i], argument(at, count, i)));
  return irs;
};
const joined = (irs, join, at) => {
  let all = irs[0];
  for (let i = 1; i < irs.length; i++) all = join(all, irs[i], at);
  return all;
};
// An operation of numbers over irs, one for each of its fields.
export function build({ name, fields }, irs, at) {
  const list = [];
  for (let i = 0; i < fields.length; i++) list.push(fields[i], irs[i]);
  return make(name, "value", "number", at, list);
}
const exact = (operation) =>
  named(operation.name, (...list) => {
    const { at, count } = current;
    exactly(operation.fields.length, list, operation.name, at);
    if (onlyNow(list)) return computed(operation.name, natives[operation.name], list, at, count);
    return wrap(build(operation, values(list, at, count), at));
  });
const folded = (operation) =>
  named(operation.name, (...list) => {
    const { at, count } = current;
    atLeast(2, list, operation.name, at);
    if (onlyNow(list)) return computed(operation.name, natives[operation.name], list, at, count);
    return wrap(joined(values(list, at, count), (a, b) => build(operation, [a, b], at), at));
  });

// By name: the functions of the table of operations, and those that are written by hand.
export const math = {
  coalesce: named("coalesce", (...list) => {
    const { at, count } = current;
    atLeast(2, list, "coalesce", at);
    const irs = values(list, at, count);
    if (!onlyNow(list)) return wrap(joined(irs, coalesced, at));
    if (irs.includes(BROKEN_IR)) return BROKEN;
    const types = new Set(irs.map((ir) => ir.type));
    types.delete(null);
    if (types.size > 1) return report("D012", at, `coalesce takes values of one type, not ${[...types].join(" and ")}`);
    return list.find((x) => x !== null) ?? null;
  }),
};
for (const operation of config.operations) {
  if (operation.takes === "exact") math[operation.name] = exact(operation);
  if (operation.takes === "folded") math[operation.name] = folded(operation);
}

// A text that the plan itself has: it decides what the operation is, so no expression can stand in its place.
function literal(x, name, field, at) {
  if (typeof x === "string" && x.isWellFormed()) return json(x);
  if (isExpression(x) && irOf(x) === BROKEN_IR) return BROKEN_IR;
  report("D012", at, `the ${field} of ${name} is a text in the plan, not ${describe(x)}`, { help: `${name}(Key.id, "home")` });
  return BROKEN_IR;
}
const elementOf = (list) => (list.type === "list<string>" ? "string" : "number");
const built = ({ name, call, fields, literals, gives }) =>
  named(call, (...list) => {
    const { at, count } = current;
    exactly(fields.length, list, call, at);
    const parts = [];
    for (let i = 0; i < fields.length; i++) {
      const place = argument(at, count, i);
      const it = literals.includes(fields[i]) ? literal(list[i], call, fields[i], place) : value(list[i], place);
      parts.push(fields[i], it);
    }
    const [sort, type] = gives === "truth" ? ["pred", "bool"] : ["value", gives === "element" ? elementOf(parts[1]) : gives];
    return wrap(make(name, sort, type, at, parts));
  });
const nowMs = named("nowMs", (...list) => {
  const { at } = current;
  exactly(0, list, "nowMs", at);
  return new Expression(leaf("now_ms", "value", "number", at, []));
});
// Those that give values, and those that are conditions.
export const calls = { nowMs };
export const tests = {};
for (const operation of config.operations) {
  if (operation.takes === "built") (operation.gives === "truth" ? tests : calls)[operation.call] = built(operation);
}

export function regex(...list) {
  const { at, count } = current;
  if (list.length !== 2 && list.length !== 3) stop("D012", at, `regex takes 2 or 3 arguments, not ${list.length}`);
  const [key, pattern] = list;
  if (!isExpression(key) || (irOf(key).op !== "key_ref" && irOf(key) !== BROKEN_IR)) {
    report("D012", argument(at, count, 0), `regex looks at a key, not at ${describe(key)}`, { help: "regex(Key.title, \"…\")" });
    return BROKEN;
  }
  const place = argument(at, count, 1);
  const isRegExp = !isExpression(pattern) && pattern instanceof RegExp;
  const flags = list.length === 3 ? list[2] : isRegExp ? pattern.flags.replace("u", "") : "";
  let text;
  // A RegExp has JavaScript's syntax, which the compiler turns into that of the engine.
  if (isRegExp) text = `{"${pattern.unicode ? "regexp_u" : "regexp"}":${json(pattern.source)}}`;
  else if (typeof pattern === "string" && pattern.isWellFormed()) text = `{"literal":${json(pattern)}}`;
  else if (isExpression(pattern) && irOf(pattern).op === "param_ref") text = `{"param":${json(irOf(pattern).name)}}`;
  else if (isExpression(pattern) && irOf(pattern) === BROKEN_IR) return BROKEN;
  else return report("D012", place, `a pattern is a text or a parameter, not ${describe(pattern)}`);
  if (flags !== "" && flags !== "i") {
    return report("D012", argument(at, count, 2), `the flags ${describe(flags)} are not known`, { help: 'flags are "" or "i"' });
  }
  if (irOf(key) === BROKEN_IR) return BROKEN;
  return new Expression(leaf("regex", "pred", "bool", at, ["key", json(irOf(key).name), "pattern", text, "flags", json(flags)]));
}
