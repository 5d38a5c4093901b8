// What the tests of the runtime check with.
import { irOf } from "rankd:expressions";
import { textOf } from "rankd:options";
import { REPORTED, problems } from "rankd:problems";

const { stringify } = JSON;

export function equal(found, expected) {
  const [a, b] = [found, expected].map((x) => stringify(x) ?? `${x}`);
  if (a !== b) throw new Error(`${a} instead of ${b}`);
}
// The problems that a function records, as `CODE place: message`. It may leave by REPORTED, and by nothing else.
export function reported(fn) {
  const before = problems.length;
  try {
    fn();
  } catch (error) {
    if (error !== REPORTED) throw error;
  }
  return problems.slice(before).map(({ code, at, message }) => `${code} ${at}: ${message}`);
}
// An expression as it is written down, without its places.
export const text = (x) => textOf(irOf(x)).replaceAll(/,"source":(-?\d+|"[^"]*")/g, "");
