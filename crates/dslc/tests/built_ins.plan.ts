// Gives an expression to everything that the language brings, in every position, and says what went through without an error.
// Run by `expressions_are_no_values.rs`. What there is, is found by looking: a new function of the engine is tried as well.
const MOVES = new Set([
  // These only move what they are given, or give it back.
  "Array.of/0", "Array.of/1", "Array.of/2",
  "Array/1", "Array/2", "new Array/1", "new Array/2",
  "Array.prototype.push/0", "Array.prototype.push/1", "Array.prototype.push/2",
  "Array.prototype.unshift/0", "Array.prototype.unshift/1", "Array.prototype.unshift/2",
  "Array.prototype.concat/0", "Array.prototype.concat/1", "Array.prototype.concat/2",
  "Array.prototype.splice/2", "Array.prototype.toSpliced/2",
  "Array.prototype.fill/0", "Array.prototype.with/1",
  "Array.prototype.reduce/1", "Array.prototype.reduceRight/1", "Iterator.prototype.reduce/1",
  "Map.prototype.set/1", "Map.prototype.getOrInsert/1", "WeakMap.prototype.set/1", "WeakMap.prototype.getOrInsert/1",
  "Reflect.set/2", "Reflect.apply/1",
  "Function.prototype.call/0", "Function.prototype.call/1", "Function.prototype.call/2",
  "Function.prototype.apply/0", "Function.prototype.bind/0", "Function.prototype.bind/1", "Function.prototype.bind/2",
  "Generator.prototype.next/0", "Generator.prototype.next/1", "Generator.prototype.next/2",
  "Generator.prototype.return/0", "Generator.prototype.return/1", "Generator.prototype.return/2",
  "Object/0", "new Object/0",
  // The engine's own: what it calls by itself, with what it has.
  "Iterator.prototype.Symbol(Symbol.toStringTag)/0", "Symbol.prototype.Symbol(Symbol.toPrimitive)/0",
  // These give expressions.
  "Array.prototype.includes/0",
  ...Object.keys(E).filter((name) => name !== "round").flatMap((name) => [0, 1, 2].map((at) => `Math.${name}/${at}`)),
]);
// Arguments that JavaScript lets fall unread, and says nothing of.
const UNREAD =
  /^(new )?(Object|Set|Map|WeakMap|WeakSet|String|Number|Boolean|BigInt|Symbol|RegExp|\w*Error)\/[12]$|^Function.prototype.apply\/2$/;
const PUT_THROUGH = new Set(["Array.prototype.map", "Array.prototype.flatMap", "Array.prototype.forEach", "Array.prototype.reduce",
  "Array.prototype.reduceRight", "Iterator.prototype.map", "Iterator.prototype.flatMap", "Iterator.prototype.forEach",
  "Iterator.prototype.reduce", "Array.from", "Map.prototype.forEach", "Set.prototype.forEach", "Map.prototype.getOrInsertComputed",
  "WeakMap.prototype.getOrInsertComputed", "Function.prototype.call", "Function.prototype.apply", "Function.prototype.bind",
  "Reflect.apply", "JSON.parse"]);

const OURS = ["$rankd", "globalThis", "undefined", "NaN", "Infinity", ...Object.keys((globalThis as any).$rankd.exports)];
const expressions: any[] = [Key.country, P.weight, Key.age > 1];
const isExpression = (x: any) => {
  try {
    return typeof x === "never";
  } catch {
    return true;
  }
};

// Something that each owner's methods work on, new for every call.
function* counting() {
  yield 1;
  yield 2;
}
const receivers: Record<string, () => any> = {
  Array: () => ["US", 3, 5], String: () => "US", Number: () => 5, Boolean: () => true, BigInt: () => 5n, Symbol: () => Symbol("US"),
  RegExp: () => /US/g, Map: () => new Map<any, any>([["US", 1]]), Set: () => new Set<any>(["US"]), WeakMap: () => new WeakMap(),
  WeakSet: () => new WeakSet(), Object: () => ({ US: 1 }), Function: () => (...list: any[]) => list, Error: () => new Error("US"),
  Iterator: () => [1, 2].values(), Generator: counting, "an iterator of a list": () => [1, 2].values(),
  "an iterator of a map": () => new Map([[1, 2]]).entries(), "an iterator of a set": () => new Set([1]).entries(),
  "an iterator of a text": () => "US"[Symbol.iterator](), "an iterator of matches": () => "US".matchAll(/U/g),
  "a helper of iterators": () => [1, 2].values().map((x) => x),
};

const owners: [string, any, (() => any) | undefined][] = [];
const parent = (x: any): any => Object.getPrototypeOf(x);
for (const name of Object.getOwnPropertyNames(globalThis)) {
  const thing = (globalThis as any)[name];
  if (OURS.includes(name) || thing === null || (typeof thing !== "object" && typeof thing !== "function")) continue;
  owners.push([name, thing, () => thing]);
  if (thing.prototype !== undefined) owners.push([`${name}.prototype`, thing.prototype, receivers[name] ?? receivers["Error"]]);
}
owners.push(["Function.prototype", parent(() => 1), receivers["Function"]]);
owners.push(["Iterator.prototype", parent(parent([].values())), receivers["Iterator"]]);
owners.push(["Generator.prototype", parent(parent(counting())), receivers["Generator"]]);
for (const name of Object.keys(receivers).filter((name) => name.startsWith("a"))) owners.push([name, parent(receivers[name]!()), receivers[name]]);

const through: string[] = [];
let tried = 0;
// Runs it; `pass` says whether it may go through, and what then comes of it is an expression, or only moved.
function attempt(label: string, may: boolean, run: () => unknown) {
  tried += 1;
  try {
    run();
  } catch {
    return;
  }
  if (!may) through.push(label);
}
const fillers: any[] = ["US", ["US", 3], 0, (x: any) => x];
const apply = Reflect.apply;
// Plan code may not run for long, so the test asks for one part after the other.
const [PART, PARTS] = [0, 1];
for (const [number, [owner, thing, make]] of owners.entries()) {
  if (number % PARTS !== PART) continue;
  // Its label, the function, what it works on, and how many positions are tried: a getter has none, and what JavaScript calls by
  // itself has those that it declares.
  const seen: [string, any, () => any, number][] = [];
  if (typeof thing === "function" && !owner.endsWith("prototype")) seen.push([owner, thing, () => undefined, 3]);
  for (const name of Reflect.ownKeys(thing)) {
    const found = Object.getOwnPropertyDescriptor(thing, name)!;
    if (name === "constructor") continue;
    for (const fn of [found.value, found.get, found.set]) {
      if (typeof fn !== "function") continue;
      const positions = fn !== found.value || typeof name === "symbol" ? fn.length : 3;
      seen.push([`${owner}.${String(name)}`, fn, make!, positions]);
    }
  }
  for (const [label, fn, receiver, positions] of seen) {
    for (const expression of expressions) {
      for (const filler of fillers) {
        for (let at = 0; at < positions; at++) {
          const list = [filler, filler, filler].slice(0, at);
          list.push(expression);
          const name = `${label}/${at}`;
          attempt(name, MOVES.has(name) || UNREAD.test(name), () => apply(fn, receiver(), list));
          if (fn.prototype !== undefined) {
            attempt(`new ${name}`, MOVES.has(`new ${name}`) || UNREAD.test(`new ${name}`), () => Reflect.construct(fn, list));
          }
        }
        // A callback that answers with an expression, where the answer is used.
        const called = { it: false };
        const callback = () => ((called.it = true), expression);
        attempt(`${label}(callback)`, PUT_THROUGH.has(label), () => {
          apply(fn, receiver(), [callback, filler]);
          apply(fn, receiver(), [filler, callback]);
          if (!called.it) throw new Error("not called");
        });
      }
      const asReceiver = `${label} on an expression`;
      attempt(asReceiver, /^Function\.prototype|Symbol\.toStringTag|Error\.prototype\.stack/.test(label), () => {
        const result = apply(fn, expression, []);
        if (isExpression(result) || receiver() === undefined || !label.includes("prototype")) throw new Error("not read");
        // An iterator that has not begun has not read anything.
        if (typeof result === "object" && result !== null && "next" in result) for (const x of result as any) void x;
      });
    }
  }
}
const texts = [...new Set(through)];
throw new Error(`${tried} tried, ${texts.length} went through: ${texts.join(" ")}`);
