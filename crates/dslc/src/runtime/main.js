// What plan code finds: the language without what reaches out of it, and the DSL's names; all of it frozen.
//
// Plan code sees the DSL's globals and `$rankd`, and can reach nothing else of the runtime. The compiler gets `writtenProblems`,
// `isReported` and `finish`. Evaluated last, when every other file has what it needs of the language.
import { config } from "rankd:config";
import { BROKEN_IR, describe, irOf, isExpression, now, report } from "rankd:expressions";
import { calls, math, regex, tests } from "rankd:functions";
import { guardLanguage } from "rankd:guards";
import { Plan } from "rankd:handles";
import { EP, Key, M, P, U } from "rankd:names";
import { computed, natives } from "rankd:natives";
import { operators, raised } from "rankd:operators";
import { dial } from "rankd:options";
import { definePlan, usage } from "rankd:plan";
import { HERE, REPORTED, argument, current, limits, problems, stop } from "rankd:problems";
import { E, Pred, among } from "rankd:spelled_out";
import "rankd:tasks";

const { defineProperty, freeze, getOwnPropertyNames, getPrototypeOf, keys } = Object;
const json = JSON.stringify;

const exported = { definePlan, Key, P, U, EP, M, E, Pred, dial, regex, ...math, ...calls, ...tests };
for (const fn of Object.values({ ...math, ...calls, ...tests })) freeze(fn);
const functions = [() => {}, async () => {}, function* () {}, async function* () {}];
for (const fn of functions) delete getPrototypeOf(fn).constructor;
const hidden = [
  ...functions.map(getPrototypeOf),
  ...functions.map((fn) => fn.prototype && getPrototypeOf(fn.prototype)),
  getPrototypeOf([][Symbol.iterator]()),
  getPrototypeOf(getPrototypeOf([][Symbol.iterator]())),
  getPrototypeOf(new Map().entries()),
  getPrototypeOf(new Set().entries()),
  getPrototypeOf(""[Symbol.iterator]()),
  getPrototypeOf("".matchAll(/x/g)),
  getPrototypeOf([].values().map((x) => x)),
];
delete Math.random;
// The engine's own ways to look at the stack, which is how places of mistakes are found.
for (const name of ["captureStackTrace", "prepareStackTrace", "stackTraceLimit"]) delete Error[name];
delete Object.prototype.__proto__;
const given = (x, label, help) => {
  if (irOf(x) === BROKEN_IR) throw REPORTED;
  return stop("D011", HERE, `${describe(x)} is given to ${label}, but its value is known only when the plan runs`, { help });
};
// Functions of `Math` that the engine would leave to the machine's C library.
const mathNatives = { __proto__: null, pow: raised };
for (const name of computed) mathNatives[name] ??= (x) => natives[name](+x);
const contains = (list, x) => among(x, list, current.at, argument(current.at, current.count, 0), current.at);
const tooLong = () => stop("D008", current.at, `a list may have ${limits.list} items`);
guardLanguage({ isExpression, given, now: (x) => now(x, HERE, "as a JavaScript condition"), contains, tooLong, listMax: limits.list, math, mathNatives, hidden, globals: config.globals });
for (const name of getOwnPropertyNames(globalThis)) {
  if (!config.globals.includes(name)) delete globalThis[name];
}
for (const name of getOwnPropertyNames(globalThis)) {
  const thing = globalThis[name];
  if (thing !== globalThis && (typeof thing === "object" || typeof thing === "function") && thing !== null) {
    freeze(thing);
    if (thing.prototype) freeze(thing.prototype);
  }
}
for (const thing of hidden) if (thing) freeze(thing);
freeze(Array[Symbol.species]);
for (const name of keys(exported)) {
  if (name !== "definePlan") defineProperty(globalThis, name, { value: exported[name] });
}
defineProperty(globalThis, "$rankd", { value: freeze({ ...operators, exports: freeze(exported) }) });
freeze(globalThis);

export const writtenProblems = () => json(problems);
export const isReported = (error) => error === REPORTED;
// The text of the plan that the file exports.
export function finish(found) {
  if (Plan.is(found)) return Plan.text(found);
  const help = `write export default ${usage}`;
  report("D010", -1, found === undefined ? "the file has no default export" : "the default export is not a plan", { help });
  return null;
}
