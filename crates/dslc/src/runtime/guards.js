// Keeps expressions out of the language's own functions.
//
// Every function that the language brings is found by looking, not by a list, and refuses an expression as its receiver or argument:
// it would take the expression for an ordinary object, and a key would silently be unequal to everything. The exceptions are
// listed: functions that only move a value from one place to another, and those that mean something for expressions.
// What reads a property of an expression, or makes a text or number of it, is stopped by the expression itself (`expressions.js`).
export function guardLanguage(runtime) {
  const { isExpression, given, now, contains, tooLong, listMax, math, mathNatives, hidden, globals } = runtime;
  const { defineProperties, defineProperty, getOwnPropertyDescriptor, getOwnPropertyDescriptors, getOwnPropertyNames, hasOwn, keys } = Object;
  const { isArray } = Array;
  const { apply, construct } = Reflect;

  const { startsWith, replace: replaced } = String.prototype;
  const set = (text) => {
    const names = { __proto__: null };
    for (const name of text.split(" ")) names[name] = true;
    return names;
  };

  // Which arguments a function only moves: from a position on, or one position.
  const from = (position) => (at) => at >= position;
  const only = (position) => (at) => at === position;
  const ALL = from(0);
  const MOVES = {
    __proto__: null,
    "Array.of": ALL,
    "Array.prototype.push": ALL,
    "Array.prototype.unshift": ALL,
    "Array.prototype.concat": ALL,
    "Array.prototype.splice": from(2),
    "Array.prototype.toSpliced": from(2),
    "Array.prototype.fill": only(0),
    "Array.prototype.with": only(1),
    "Array.prototype.reduce": only(1),
    "Array.prototype.reduceRight": only(1),
    "Iterator.prototype.reduce": only(1),
    "Map.prototype.set": only(1),
    "Map.prototype.getOrInsert": only(1),
    "WeakMap.prototype.set": only(1),
    "WeakMap.prototype.getOrInsert": only(1),
    "Reflect.apply": ALL,
    "Reflect.set": only(2),
    "Function.prototype.call": ALL,
    "Function.prototype.apply": ALL,
    "Function.prototype.bind": ALL,
    "Generator.prototype.next": ALL,
    "Generator.prototype.return": ALL,
    "Generator.prototype.throw": ALL,
  };
  const never = () => false;

  // Functions whose callback answers a question.
  const ASKING = set("filter some every find findIndex findLast findLastIndex groupBy");
  const checked = (fn) => (typeof fn === "function" ? function (...list) { return now(apply(fn, this, list)); } : fn);
  // Functions that compare the items of a list with one value.
  const SEARCHING = set("includes indexOf lastIndexOf");
  // The engine's own loops cannot be interrupted, so they do not get lists that are long without having items.
  const LOOPING = set(
    "concat copyWithin every fill filter find findIndex findLast findLastIndex flat flatMap forEach includes indexOf join " +
      "lastIndexOf map reduce reduceRight reverse shift slice some sort splice toLocaleString toReversed toSorted toSpliced " +
      "toString unshift with",
  );
  const isTooLong = (x) => {
    const length = getOwnPropertyDescriptor(Object(x), "length");
    return length === undefined || !(length.value <= listMax);
  };
  // Functions that take descriptions of properties, whose flags JavaScript uses as conditions.
  const FLAGS = ["enumerable", "configurable", "writable"];
  const checkDescriptor = (it) => {
    if (typeof it === "object" && it !== null) for (const flag of FLAGS) if (isExpression(it[flag])) now(it[flag]);
  };
  const checkAll = (all) => {
    if (typeof all === "object" && all !== null) for (const name of getOwnPropertyNames(all)) checkDescriptor(all[name]);
  };
  const DESCRIBING = {
    __proto__: null,
    "Object.defineProperty": (list) => checkDescriptor(list[2]),
    "Reflect.defineProperty": (list) => checkDescriptor(list[2]),
    "Object.defineProperties": (list) => checkAll(list[1]),
    "Object.create": (list) => checkAll(list[1]),
  };

  function help(label) {
    const isOf = (...starts) => starts.some((start) => apply(startsWith, label, [start]));
    if (isOf("Math.")) return `expressions have ${Object.keys(math).sort().join(", ")}; write round(x) for Math.round`;
    if (isOf("RegExp.", "String.prototype")) return 'to look into a text write regex(Key.title, "…")';
    if (isOf("Array.prototype", "Set", "Map", "Weak")) return "to ask whether a value is one of a list write Pred.in(x, [a, b])";
    if (isOf("Number.is", "is")) return "compare its value: x > 0, x != null";
    if (label === "Object.is") return "compare by == or !=";
    return "the language's own functions work when the plan is compiled; compute by operators and the functions of E";
  }
  const refuse = (x, label) => given(x, apply(replaced, label, [".prototype", ""]), help(label));

  // Most functions refuse every expression.
  const labelOf = (owner, name) => (owner === "" ? name : `${owner}.${name}`);
  const closed = (name, native, owner) =>
    ({
      guarded(...list) {
        if (isExpression(this)) refuse(this, labelOf(owner, name));
        for (let i = 0; i < list.length; i++) if (isExpression(list[i])) refuse(list[i], labelOf(owner, name));
        return apply(native, this, list);
      },
    }).guarded;

  function guarded(name, engines, owner) {
    const native = (owner === "Math" ? mathNatives[name] : undefined) ?? engines;
    const label = labelOf(owner, name);
    const inArray = owner === "Array.prototype";
    const loops = inArray && LOOPING[name];
    const asks = ASKING[name];
    const describes = DESCRIBING[label];
    const moves = MOVES[label] ?? never;
    const ours = owner === "Math" && name !== "round" && hasOwn(math, name) ? math[name] : undefined;
    // What moves everything needs no guard.
    if (moves === ALL && !loops) return native;
    if (moves === never && !loops && !asks && describes === undefined && ours === undefined) return closed(name, native, owner);
    const searches = inArray && SEARCHING[name];
    return {
      [name](...list) {
        if (isExpression(this)) refuse(this, label);
        for (let i = 0; i < list.length; i++) {
          if (!isExpression(list[i]) || moves(i)) continue;
          if (ours !== undefined) return ours(...list);
          // `["US", "DE"].includes(Key.country)` says what `in` does.
          if (searches && name === "includes" && isArray(this) && list.length === 1) return contains(this, list[0]);
          refuse(list[i], label);
        }
        if (loops) {
          if (isTooLong(this)) tooLong();
          if (name === "concat") for (let i = 0; i < list.length; i++) if (isArray(list[i]) && isTooLong(list[i])) tooLong();
        }
        if (searches) for (let i = 0; i < this.length; i++) if (isExpression(this[i])) refuse(this[i], label);
        if (asks) for (let i = 0; i < list.length; i++) list[i] = checked(list[i]);
        if (describes !== undefined) describes(list);
        return apply(native, this, list);
      },
    }[name];
  }

  const seen = [];
  const includes = Array.prototype.includes;
  function guard(owner, label) {
    if (owner === null || owner === undefined || apply(includes, seen, [owner])) return;
    seen.push(owner);
    const all = getOwnPropertyDescriptors(owner);
    for (const name of keys(all)) {
      const found = all[name];
      if (typeof found.value !== "function" || !found.configurable || name === "constructor") continue;
      found.value = guarded(name, found.value, label);
    }
    defineProperties(owner, all);
  }
  const parent = Object.getPrototypeOf;
  guard(parent(() => {}), "Function.prototype");
  guard(parent(parent([].values())), "Iterator.prototype");
  guard(parent(parent((function* () {})())), "Generator.prototype");
  for (const thing of hidden) guard(thing, "an iterator");
  for (const name of globals) {
    const thing = globalThis[name];
    if (thing === globalThis || thing === null || (typeof thing !== "object" && typeof thing !== "function")) continue;
    if (typeof thing === "function" && thing.prototype === undefined) {
      globalThis[name] = closed(name, thing, "");
      continue;
    }
    guard(thing, name);
    guard(thing.prototype, `${name}.prototype`);
  }

  // Constructors make texts and numbers of what they get, and an expression refuses that by itself. These two are the exceptions.
  function replace(native, replacement) {
    for (const name of Reflect.ownKeys(native)) {
      if (name === "length" || name === "name") continue;
      defineProperty(replacement, name, getOwnPropertyDescriptor(native, name));
    }
    defineProperty(native.prototype, "constructor", { value: replacement, writable: true, configurable: true, enumerable: false });
    defineProperty(globalThis, native.name, { value: replacement, writable: true, configurable: true, enumerable: false });
  }
  const NativeArray = Array;
  const List = {
    Array: function (...list) {
      if (list.length === 1 && isExpression(list[0])) refuse(list[0], "Array");
      return construct(NativeArray, list, new.target === undefined || new.target === List ? NativeArray : new.target);
    },
  }.Array;
  replace(NativeArray, List);
  // Lists that the engine makes by itself are made at full speed.
  defineProperty(List, Symbol.species, { get: () => NativeArray });
  const NativeBoolean = Boolean;
  const Truth = {
    Boolean: function (x) {
      const truth = NativeBoolean(now(x));
      return new.target === undefined ? truth : construct(NativeBoolean, [truth], new.target === Truth ? NativeBoolean : new.target);
    },
  }.Boolean;
  replace(NativeBoolean, Truth);
}
