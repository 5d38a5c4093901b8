// Tests of operators, functions, E and Pred.
import { equal, reported, text } from "rankd:tests/checks";
import { BROKEN, isBroken } from "rankd:expressions";
import { math, regex } from "rankd:functions";
import { Key, P } from "rankd:names";
import { operators as $ } from "rankd:operators";
import { current } from "rankd:problems";
import { E, Pred } from "rankd:spelled_out";

const AGE = '{"op":"key_ref","key":"age"}';
const ONE = '{"op":"const_number","value":1}';
// Makes a call as plan code does, at place 10.
const call = (fn, ...list) => {
  current.at = 10;
  current.count = list.length;
  return fn(...list);
};

export const tests = {
  "an operator on plain values does what JavaScript does"() {
    equal([$.add(1, 2, 1), $.add("a", 1, 1), $.mod(-5, 3, 1), $.pow(2, 10, 1), $.lt(1, 2, 1)], [3, "a1", -2, 1024, true]);
    equal([$.neg(3, 1), $.not(0, 1), $.and(0, () => 5, 1), $.or(0, () => 5, 1), $.nullish(null, () => 5, 1)], [-3, true, 0, 5, 5]);
    equal([$.pick(1, () => "then", () => "else", 1), $.other("<<", 1, 4, 1), $.other("in", "x", { x: 1 }, 1)], ["then", 16, true]);
  },
  "an operator on an expression builds a larger one"() {
    equal(text($.add(Key.age, 1, 1)), `{"op":"add","a":${AGE},"b":${ONE}}`);
    equal(text($.neg(Key.age, 1)), `{"op":"neg","x":${AGE}}`);
    equal(text($.lt(1, Key.age, 1)), `{"op":"cmp","cmp":"<","a":${ONE},"b":${AGE}}`);
    equal(text($.eq(null, Key.age, 1)), `{"op":"is_null","x":${AGE}}`);
    equal(text($.nullish(Key.age, () => 1, 1)), `{"op":"coalesce","a":${AGE},"b":${ONE}}`);
    equal(text($.pick($.eq(Key.age, null, 1), () => 1, () => Key.age, 1)), `{"op":"if","cond":{"op":"is_null","x":${AGE}},"then":${ONE},"else":${AGE}}`);
  },
  "a choice between conditions is a condition"() {
    const [a, b] = [$.eq(Key.age, null, 1), $.ne(Key.age, null, 1)];
    const [isNull, notNull] = [`{"op":"is_null","x":${AGE}}`, `{"op":"not_null","x":${AGE}}`];
    const chosen = `{"op":"or","a":{"op":"and","a":${isNull},"b":${notNull}},"b":{"op":"and","a":{"op":"not","x":${isNull}},"b":${isNull}}}`;
    equal(text($.pick(a, () => b, () => a, 1)), chosen);
  },
  "an assignment with an operator reads and writes its target once"() {
    const target = { x: 2 };
    equal([$.update(target, "x", "add", () => 3, 1), target.x], [5, 5]);
    equal([$.update(target, "x", "or", () => { throw new Error("it is lazy"); }, 1), target.x], [5, 5]);
  },
  "an operator that expressions do not have is refused"() {
    equal(reported(() => $.other("<<", Key.age, 1, 6)), ["D012 6: expressions have no operator <<"]);
    equal(reported(() => $.cond(Key.age, 6)), ["D011 6: Key.age is used as a JavaScript condition, but its value is known only when the plan runs"]);
    equal(reported(() => $.add(1n, 1, 6)), ["D012 6: 1 and 1 cannot be computed with together"]);
  },
  "a function of plain numbers computes at once, by the rules of a run"() {
    const { abs, floor, ceil, round, sqrt, log, log1p, exp, sigmoid, min, max, pow, clamp, coalesce } = math;
    equal([call(abs, -2), call(floor, 1.5), call(ceil, 1.5), call(sqrt, 9), call(log, 1), call(log1p, 0), call(exp, 0)], [2, 1, 2, 3, 0, 0, 1]);
    equal([call(round, 2.5), call(round, -2.5), call(round, 0.49999999999999994)], [3, -3, 0]);
    equal([call(sigmoid, 0), call(min, 3, 1, 2), call(max, 3, 1, 2), call(pow, 2, 3), call(clamp, 9, 0, 5), call(clamp, 1, 5, 2)], [0.5, 1, 3, 8, 5, 2]);
    equal([call(pow, 1, NaN), call(pow, -1, Infinity)], [1, 1]);
    equal([call(abs, null), call(min, 1, null), call(coalesce, null, 2, 3)], [null, null, 2]);
  },
  "a function of an expression builds a larger one"() {
    equal(text(call(math.sqrt, Key.age)), `{"op":"sqrt","x":${AGE}}`);
    equal(text(call(math.min, Key.age, 1, Key.age)), `{"op":"min","a":{"op":"min","a":${AGE},"b":${ONE}},"b":${AGE}}`);
    equal(text(call(math.clamp, Key.age, 1, 1)), `{"op":"clamp","x":${AGE},"lo":${ONE},"hi":${ONE}}`);
    equal(text(call(math.coalesce, Key.age, 1)), `{"op":"coalesce","a":${AGE},"b":${ONE}}`);
  },
  "a function says what it takes"() {
    equal(reported(() => call(math.abs)), ["D012 10: abs takes 1 argument, not 0"]);
    equal(reported(() => call(math.pow, 1)), ["D012 10: pow takes 2 arguments, not 1"]);
    equal(reported(() => call(math.min, 1)), ["D012 10: min takes at least 2 arguments, not 1"]);
    equal(reported(() => call(math.min, 1, "2")), ['D012 12: min takes numbers, not "2"']);
    equal(reported(() => call(math.coalesce, 1, "2")), ["D012 10: coalesce takes values of one type, not number and string"]);
  },
  "a regular expression looks at a key"() {
    equal(text(call(regex, Key.title, "^a", "i")), '{"op":"regex","key":"title","pattern":{"literal":"^a"},"flags":"i"}');
    equal(text(call(regex, Key.title, /^a/i)), '{"op":"regex","key":"title","pattern":{"regexp":"^a"},"flags":"i"}');
    equal(reported(() => call(regex, "text", "^a")), ['D012 11: regex looks at a key, not at "text"']);
    equal(reported(() => call(regex, Key.title, 3)), ["D012 12: a pattern is a text or a parameter, not 3"]);
    equal(reported(() => call(regex, Key.title, "a", "g")), ['D012 13: the flags "g" are not known']);
    equal(isBroken(call(regex, BROKEN, "a")), true);
  },
  "E gives expressions whatever it is given"() {
    equal(text(call(E.max, 1, 1)), `{"op":"max","a":${ONE},"b":${ONE}}`);
    equal(text(call(E.add, 1, 1)), `{"op":"add","a":${ONE},"b":${ONE}}`);
    equal(text(call(E.neg, 1)), `{"op":"neg","x":${ONE}}`);
    equal(text(call(E.key, Key.age)), AGE);
    equal(text(call(E.param, P.weight)), '{"op":"param_ref","param":"weight"}');
    equal(reported(() => call(E.key, P.weight)), ["D012 11: E.key takes a key, not P.weight"]);
    equal(reported(() => call(E.wrong, 1)), ["D013 10: there is no function E.wrong"]);
  },
  "Pred joins conditions, and none is true for all, false for any"() {
    equal(text(call(Pred.and)), '{"op":"const_bool","value":true}');
    equal(text(call(Pred.or)), '{"op":"const_bool","value":false}');
    equal(text(call(Pred.not, true)), '{"op":"not","x":{"op":"const_bool","value":true}}');
    equal(text(call(Pred.in, Key.age, [1, 2n])), `{"op":"in","lhs":${AGE},"list":[1,2]}`);
    equal(text(call(Pred.cmp, ">=", Key.age, 1)), `{"op":"cmp","cmp":">=","a":${AGE},"b":${ONE}}`);
    equal(reported(() => call(Pred.cmp, "=", Key.age, 1)), ['D012 11: "=" is not a comparison']);
    equal(reported(() => call(Pred.in, Key.age, [Key.age])), ["D012 12: Key.age cannot be in the list"]);
  },
};
