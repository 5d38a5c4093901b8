// Problems of a plan: recorded here for the compiler, which knows the positions and finds the nearest names.
//
// A place is a number that the compiler gave to an operator or a call; the operands of an operator, or the arguments of a call,
// have the numbers after it. A place may also be "N:option": the value of an option of call N.
import { config } from "rankd:config";

export const { limits } = config;
export const problems = [];
// Thrown after a problem was recorded, to leave plan code.
export const REPORTED = new Error("the plan has a mistake that was reported");
// The place where plan code is right now, as the engine's stack shows it.
export const HERE = -2;
// The call that plan code is making: its place, and how many arguments it was written with.
export const current = { at: -1, count: 0 };

// Records a problem. `more` has help, the option that it is about, or a wrong name and the known ones.
export function record(code, at, message, more) {
  if (problems.length < limits.problems) {
    problems.push({ code, at, message, ...more, stack: at === HERE ? new Error().stack : undefined });
  }
}
export function stop(code, at, message, more) {
  record(code, at, message, more);
  throw REPORTED;
}

// The place of an argument. Those that came out of a spread list have none, and are shown at the call.
export const argument = (at, count, position) => (position < count ? at + 1 + position : at);
