// Tests of problems, expressions and operands.
import { equal, reported, text } from "rankd:tests/checks";
import { BROKEN, describe, isBroken, isExpression, make, now, wrap } from "rankd:expressions";
import { Key, P } from "rankd:names";
import { constant, intText, numberText, pred, value, written } from "rankd:operands";
import { argument, limits } from "rankd:problems";

export const tests = {
  "an argument of a spread list is shown at the call"() {
    equal([argument(7, 2, 0), argument(7, 2, 1), argument(7, 2, 2)], [8, 9, 7]);
  },
  "an expression is distinguished from every other value"() {
    equal([Key.age, P.weight, BROKEN, {}, null, 1, "x"].map(isExpression), [true, true, true, false, false, false, false]);
    equal([BROKEN, Key.age, null].map(isBroken), [true, false, false]);
  },
  "every read of an expression is refused"() {
    const reads = [
      [() => Key.age.length, "Key.age has no property length: its value is known only when the plan runs"],
      [() => `${Key.age}`, "Key.age is used as a plain value, but its value is known only when the plan runs"],
      [() => [...Key.age], "Key.age is used as a list, but its value is known only when the plan runs"],
      [() => "x" in Key.age, "an expression is used by in, but its value is known only when the plan runs"],
      [() => Object.keys(Key.age), "an expression is used as an object, but its value is known only when the plan runs"],
      [() => delete Key.age.x, "an expression is used by delete, but its value is known only when the plan runs"],
    ];
    for (const [read, message] of reads) equal(reported(read), [`D011 -2: ${message}`]);
  },
  "a plain value passes where JavaScript needs one, an expression does not"() {
    equal(now(3, 5, "as an index"), 3);
    equal(reported(() => now(Key.age, 5, "as an index")), [
      "D011 5: Key.age is used as an index, but its value is known only when the plan runs",
    ]);
  },
  "what is broken is not reported again"() {
    equal(reported(() => now(BROKEN, 5, "as an index")), []);
    equal(isBroken(wrap(make("neg", "value", "number", 1, ["x", value(BROKEN, 2)]))), true);
  },
  "an expression is bounded in depth and in size"() {
    const deep = () => {
      let x = value(Key.age, 1);
      for (let i = 0; i < limits.depth; i++) x = make("neg", "value", "number", 9, ["x", x]);
    };
    equal(reported(deep), [`P203 9: this expression is nested deeper than the limit of ${limits.depth}`]);
    const large = () => {
      let x = value(Key.age, 1);
      for (let i = 0; i < 40; i++) x = make("add", "value", "number", 9, ["a", x, "b", x]);
    };
    equal(reported(large), [`P204 9: this expression is larger than the limit of ${limits.size} operations and list items`]);
  },
  "a value is described by what it is"() {
    const named = [Key.age, P.weight, null, undefined, [1], {}, "short", "x".repeat(50), 1.5, () => 1].map(describe);
    equal(named, ["Key.age", "P.weight", "null", "undefined", "a list", "an object", '"short"', "a text", "1.5", "a function"]);
  },
  "a whole number is an int, and anything else a float"() {
    equal([0, -3, 2 ** 53 - 1].map(numberText), ["0", "-3", "9007199254740991"]);
    equal([-0, 0.5, 2 ** 53, 1e300].map(numberText), ["-0.0", "0.5", "9007199254740992.0", "1e+300"]);
    equal([2n ** 63n - 1n, -(2n ** 63n), 2n ** 63n].map(intText), ["9223372036854775807", "-9223372036854775808", null]);
  },
  "a constant is a number, a text, a bool or null"() {
    const all = [1, 2n ** 60n, "x", true, null].map((x) => text(wrap(constant(x, "value", 1))));
    equal(all, [
      '{"op":"const_number","value":1}',
      '{"op":"const_number","value":1152921504606846976}',
      '{"op":"const_string","value":"x"}',
      '{"op":"const_bool","value":true}',
      '{"op":"const_null"}',
    ]);
    for (const x of [NaN, Infinity, 2n ** 63n, "\ud800", undefined, {}, []]) {
      equal(reported(() => constant(x, "value", 3)).length, 1);
    }
  },
  "a bool is a condition, and no other value is"() {
    equal(text(wrap(pred(Key.verified, 1))), '{"op":"cmp","cmp":"==","a":{"op":"key_ref","key":"verified"},"b":{"op":"const_bool","value":true}}');
    equal(reported(() => pred(Key.age, 4)), ["D012 4: Key.age is not a condition"]);
    equal(reported(() => pred(1, 4)), ["D012 4: 1 is not a condition"]);
  },
  "a condition is written as a bool, and is no value elsewhere"() {
    const truth = wrap(pred(true, 1));
    equal(text(wrap(written(truth, 1))), '{"op":"if","cond":{"op":"const_bool","value":true},"then":{"op":"const_bool","value":true},"else":{"op":"const_bool","value":false}}');
    equal(reported(() => value(truth, 4)), ["D012 4: a predicate is not a value"]);
  },
};
