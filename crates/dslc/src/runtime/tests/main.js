// Tests of what plan code finds: the guarded language, and names that cannot be changed.
import { equal, reported } from "rankd:tests/checks";
import { finish, isReported, writtenProblems } from "rankd:main";
import { REPORTED } from "rankd:problems";

const { Key } = globalThis;

export const tests = {
  "nothing that reaches out of the language is left"() {
    const gone = ["eval", "Function", "Date", "Promise", "Proxy", "console", "setTimeout", "$numbers"].filter((name) => name in globalThis);
    equal(gone, []);
    equal([Math.random, Object.prototype.__proto__, (() => {}).constructor === Object], [undefined, undefined, true]);
  },
  "nothing that plan code finds can be changed"() {
    const changed = [globalThis, Object, Array.prototype, Math, Key, globalThis.E, globalThis.$rankd, globalThis.sqrt].filter((it) => !Object.isFrozen(it));
    equal(changed.length, 0);
  },
  "a function of the language refuses an expression"() {
    const why = ", but its value is known only when the plan runs";
    equal(reported(() => parseInt(Key.age)), [`D011 -2: Key.age is given to parseInt${why}`]);
    equal(reported(() => [1].indexOf(Key.age)), [`D011 -2: Key.age is given to Array.indexOf${why}`]);
    equal(reported(() => Math.atan(Key.age)), [`D011 -2: Key.age is given to Math.atan${why}`]);
    equal(reported(() => [1].filter(() => Key.age)), [`D011 -2: Key.age is used as a JavaScript condition${why}`]);
  },
  "a function of the language that only moves values takes an expression"() {
    equal([[1].concat([Key.age]).length, Array.of(Key.age, Key.age).length], [2, 2]);
  },
  "a mistake that was reported is distinguished from every other error"() {
    equal([isReported(REPORTED), isReported(new Error("another"))], [true, false]);
  },
  "what a file exports must be a plan"() {
    equal(reported(() => finish(undefined)), ["D010 -1: the file has no default export"]);
    equal(reported(() => finish({})), ["D010 -1: the default export is not a plan"]);
    equal(JSON.parse(writtenProblems()).at(-1).code, "D010");
  },
};
