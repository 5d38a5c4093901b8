enum Kind { A = 1 << 2, B = A | 1, C = "c".length } const enum D { X = -1 }
namespace N { export const v = 1 + 2; export function f<T extends string>(this: unknown, ...xs: T[]): asserts xs is T[] {} }
abstract class Base<T> { static #p = 1 + 1; declare q: number; readonly r?: T; constructor(private s: number, public t = s + 1) {} get u() { return this.s ** 2; } static { Base.#p += 1; } abstract w(): void; has(o: object) { return #p in o; } }
class Sub extends Base<number> { [`k${1 + 1}`] = 2; w() { return super.has(this), super["u"] && super.t; } static async *gen() { yield* [1, 2]; } }
function* g() { const a = yield 1; if (yield a) return (yield) ?? 2; }
type M<T> = { readonly [K in keyof T as `x${string & K}`]?: T[K] extends infer U ? U : never }; declare module "x" { const y: -1; }
import type { A } from "./a"; import d, * as ns from "./b.ts"; export * from "./c.js"; export { default as e } from "@ranking-dsl/runtime"; export default <T,>(x: T) => x;
const { a = 1 + 1, ...rest } = ns as any, [b, , c = a && b] = rest; ({ a: rest[a + b], ...rest.q } = ns as any);
