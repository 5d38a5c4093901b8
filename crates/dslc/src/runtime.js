// What plan code meets: the DSL, and the functions that its operators were rewritten to.
//
// A function of the configuration and of `guards.js`; it gives `{ finish, problems, isTold }` to the compiler. Plan code sees the
// DSL's globals and `$rankd`, frozen like every built-in, and can reach nothing else of this file: what carries meaning is in
// private fields, and no class of ours can be constructed from outside.
//
// An expression is a proxy that refuses every read. Operators, conditions and the like are rewritten to calls of `$rankd` before
// the code runs, and the language's own functions refuse expressions (`guards.js`). So an expression never passes for a plain value.
//
// A place is a number that the compiler gave to an operator or call; the operands of an operator, or the arguments of a call,
// have the numbers after it. A place may also be "N:option", the value of an option of call N.
(config, guards) => {
  "use strict";
  const { create, defineProperty, freeze, getOwnPropertyNames, getPrototypeOf, hasOwn, keys, setPrototypeOf } = Object;
  const { Proxy } = globalThis; // plan code does not have it
  const { isArray } = Array;
  const { isSafeInteger, isFinite } = Number;
  const json = JSON.stringify;
  const limits = config.limits;

  // ── Problems: told to the compiler, which has the positions and finds the nearest names.
  const problems = [];
  const TOLD = new Error("the plan has a mistake that was reported");
  const HERE = -2; // the place where plan code is right now, as the engine's stack tells it
  let call = -1; // the place of the call under way
  let callArgs = 0; // and how many arguments it was written with

  function tell(code, at, message, more) {
    if (problems.length < limits.problems) {
      problems.push({ code, at, message, ...more, stack: at === HERE ? new Error().stack : undefined });
    }
    return BROKEN;
  }
  function stop(code, at, message, more) {
    tell(code, at, message, more);
    throw TOLD;
  }
  const argument = (at, count, position) => (position < count ? at + 1 + position : at);

  // ── Expressions: `ir` is {sort: "value" | "pred" | "broken", type, op, fields, at, size, depth, name}. `fields` has names and
  // values in turn; a value is an ir or JSON text. An ir never reaches plan code, so it need not be frozen: that would cost a
  // shape of its own, several hundred bytes.
  const node = (sort, type, op, fields, at, size, depth, name) => ({ sort, type, op, fields, at, size, depth, name });
  const refused = (act) => (...list) => read(list, act);
  const traps = freeze({
    get(_, name, self) {
      // `concat` asks whether what it appends is a list.
      return name === Symbol.isConcatSpreadable ? undefined : property(self, name);
    },
    set: (_, name, it, self) => property(self, name),
    has: refused("by in"),
    deleteProperty: refused("by delete"),
    ownKeys: refused("as an object"),
    getOwnPropertyDescriptor: refused("as an object"),
    defineProperty: refused("as an object"),
    getPrototypeOf: refused("as an object"),
    setPrototypeOf: refused("as an object"),
    isExtensible: refused("as an object"),
    preventExtensions: refused("as an object"),
  });
  const NOTHING = freeze(create(null));
  // A private field can be put on any object that a base class returns, so on a proxy, too.
  const Given = function (it) {
    return it;
  };
  class Part extends Given {
    #ir;
    constructor(ir) {
      super(new Proxy(NOTHING, traps));
      this.#ir = ir;
    }
    static is(x) {
      return typeof x === "object" && x !== null && #ir in x;
    }
    static ir(x) {
      return x.#ir;
    }
  }
  const isPart = Part.is;
  const irOf = Part.ir;
  const BROKEN_IR = node("broken", null, "", [], -1, 1, 1, "");
  const BROKEN = new Part(BROKEN_IR);
  const wrap = (ir) => (ir === BROKEN_IR ? BROKEN : new Part(ir));

  // A value that only a run knows, where JavaScript must know it now.
  const KEEP = "keep it in an expression: the operators + - * / % ** and the functions of E compute with it when the plan runs";
  const HELP = {
    "as a JavaScript condition":
      "to drop rows use filter({ pred }); inside an expression write cond ? a : b; join conditions by &&, || and !",
    "as a plain value": KEEP,
    "in a switch": "a switch decides when the plan is compiled; inside an expression write cond ? a : b",
    "in a case": "a switch decides when the plan is compiled; inside an expression write cond ? a : b",
    "by typeof": "its type is the one in the registry; compare its value: x == 1, x != null",
  };
  const LATER = "keys, parameters and expressions have a value only when the plan runs; use what is known when it is compiled";
  function needed(x, at, where, help = HELP[where] ?? LATER) {
    if (irOf(x) === BROKEN_IR) throw TOLD;
    return stop("D011", at, `${describe(x)} is used ${where}, but its value is known only when the plan runs`, { help });
  }
  const now = (x, at, where) => (isPart(x) ? needed(x, at, where) : x);
  function read(list, act) {
    return stop("D011", HERE, `an expression is used ${act}, but its value is known only when the plan runs`, { help: LATER });
  }
  const COERCIONS = [Symbol.toPrimitive, "toString", "valueOf", "toJSON", "toLocaleString", Symbol.toStringTag];
  const TEXTS = ["includes", "startsWith", "endsWith", "indexOf", "match", "matchAll", "search", "test", "at", "charAt", "slice"];
  function property(x, name) {
    if (!isPart(x)) return read([], "as an object");
    if (COERCIONS.includes(name)) return needed(x, HERE, "as a plain value");
    if (name === Symbol.iterator) return needed(x, HERE, "as a list");
    if (irOf(x) === BROKEN_IR) throw TOLD;
    const help = TEXTS.includes(name) ? 'to look into a text write regex(Key.title, "…"), for one of a list Pred.in(x, [a, b])' : KEEP;
    const it = typeof name === "symbol" ? "such property" : `property ${name}`;
    return stop("D011", HERE, `${describe(x)} has no ${it}: its value is known only when the plan runs`, { help });
  }

  function describe(x) {
    if (x === null) return "null";
    if (isPart(x)) {
      const ir = irOf(x);
      if (ir.op === "key_ref") return `Key.${ir.name}`;
      if (ir.op === "param_ref") return `P.${ir.name}`;
      return ir.sort === "pred" ? "a predicate" : "an expression";
    }
    if (Rows.is(x)) return "a set of rows";
    if (Endpoint.is(x)) return "an endpoint";
    if (isArray(x)) return "a list";
    if (typeof x === "string") return x.length < 40 ? json(x) : "a text";
    if (typeof x === "object") return "an object";
    if (typeof x === "function") return "a function";
    if (typeof x === "undefined") return "undefined";
    if (typeof x === "symbol") return "a symbol";
    return `${x}`;
  }

  // An operation over irs.
  function make(op, sort, type, at, fields) {
    let size = 1;
    let depth = 0;
    for (let i = 1; i < fields.length; i += 2) {
      const it = fields[i];
      if (typeof it === "string") continue;
      if (it === BROKEN_IR) return BROKEN_IR;
      size += it.size;
      if (it.depth > depth) depth = it.depth;
    }
    return bounded(node(sort, type, op, fields, at, size, depth + 1, ""));
  }
  function bounded(ir) {
    if (ir.depth > limits.depth) {
      stop("P203", ir.at, `this expression is nested deeper than the limit of ${limits.depth}`);
    }
    if (ir.size > limits.size) {
      stop("P204", ir.at, `this expression is larger than the limit of ${limits.size} operations and list items`);
    }
    return ir;
  }
  const leaf = (op, sort, type, at, fields) => node(sort, type, op, fields, at, 1, 1, "");

  function numberText(x) {
    if (isSafeInteger(x)) return Object.is(x, -0) ? "-0.0" : `${x}`;
    const text = `${x}`;
    return /[.e]/.test(text) ? text : `${text}.0`;
  }
  // The digits of a whole number that has 64 bits. Literals of 2^53 and more are written as these by the compiler.
  const intText = (x) => (x >= -(2n ** 63n) && x < 2n ** 63n ? `${x}` : null);
  function constant(x, sort, at) {
    switch (typeof x) {
      case "number":
        if (isFinite(x)) return leaf("const_number", sort, "number", at, ["value", numberText(x)]);
        tell("D012", at, `${x} cannot be part of an expression`, { help: "numbers in a plan are finite" });
        return BROKEN_IR;
      case "bigint":
        if (intText(x) !== null) return leaf("const_number", sort, "number", at, ["value", intText(x)]);
        tell("D012", at, `${x} does not fit 64 bits`, { help: "for a float write it with a point or an exponent: 1e30" });
        return BROKEN_IR;
      case "string":
        if (x.isWellFormed()) return leaf("const_string", sort, "string", at, ["value", json(x)]);
        tell("D012", at, "this text has half of a surrogate pair");
        return BROKEN_IR;
      case "boolean":
        return leaf("const_bool", sort, "bool", at, ["value", `${x}`]);
    }
    if (x === null) return leaf("const_null", sort, null, at, []);
    const help =
      x === undefined
        ? "something has no value here: a misspelt name, or a function without return; for a missing value write null"
        : "expressions are made of keys, parameters, numbers, texts, true, false and null";
    tell("D012", at, `${describe(x)} cannot be part of an expression`, { help });
    return BROKEN_IR;
  }
  function value(x, at) {
    if (!isPart(x)) return constant(x, "value", at);
    const ir = irOf(x);
    if (ir.sort === "pred") {
      tell("D012", at, "a predicate is not a value", { help: "write cond ? 1 : 0; for a range, low < x && x < high" });
      return BROKEN_IR;
    }
    return ir.at === -1 && ir !== BROKEN_IR ? node(ir.sort, ir.type, ir.op, ir.fields, at, 1, 1, ir.name) : ir;
  }
  // A bool key or parameter is a condition by itself: it holds where the value is true.
  function pred(x, at) {
    if (typeof x === "boolean") return leaf("const_bool", "pred", "bool", at, ["value", `${x}`]);
    if (isPart(x)) {
      const ir = irOf(x);
      if (ir.sort !== "value") return ir;
      if (ir.type === "bool") {
        return make("cmp", "pred", "bool", at, ["cmp", '"=="', "a", value(x, at), "b", constant(true, "value", at)]);
      }
    }
    const help = isPart(x)
      ? "compare it: > 0 or != null; for a value that stands in for null use coalesce(a, b) or a ?? b"
      : "conditions are comparisons, Pred.* and bool keys or parameters, joined by &&, || and !";
    tell("D012", at, `${describe(x)} is not a condition`, { help });
    return BROKEN_IR;
  }
  // Where a column is written, a condition is a bool.
  function written(x, at) {
    if (!isPart(x) || irOf(x).sort !== "pred") return value(x, at);
    const truth = (it) => constant(it, "value", at);
    return make("if", "value", "bool", at, ["cond", irOf(x), "then", truth(true), "else", truth(false)]);
  }

  // ── Operators.
  const typeOfBoth = (a, b) => (a.type === b.type ? a.type : "number");
  // JavaScript has no sum of an exact whole number and a plain one.
  function mixed(a, b, at) {
    if (typeof a === typeof b || (typeof a !== "number" && typeof b !== "number")) return;
    const help = "whole numbers of 2^53 and more are exact: write the result out, or the other number as a BigInt such as 1n";
    stop("D012", at, `${describe(a)} and ${describe(b)} cannot be computed with together`, { help });
  }
  const binary = (op, native) => (a, b, at) => {
    if (!isPart(a) && !isPart(b)) {
      call = at;
      if (typeof a === "bigint" || typeof b === "bigint") mixed(a, b, at);
      return native(a, b);
    }
    const left = value(a, at + 1);
    return wrap(make(op, "value", "number", at, ["a", left, "b", value(b, at + 2)]));
  };
  const compare = (cmp, native) => (a, b, at) => {
    if (!isPart(a) && !isPart(b)) {
      call = at;
      return native(a, b);
    }
    return wrap(comparison(cmp, a, b, at, at + 1, at + 2));
  };
  function comparison(cmp, a, b, at, atA, atB) {
    if ((cmp === "==" || cmp === "!=") && (a === null || b === null)) {
      const x = a === null ? value(b, atB) : value(a, atA);
      return make(cmp === "==" ? "is_null" : "not_null", "pred", "bool", at, ["x", x]);
    }
    return make("cmp", "pred", "bool", at, ["cmp", json(cmp), "a", value(a, atA), "b", value(b, atB)]);
  }
  const negate = (x, at, atX) => make("not", "pred", "bool", at, ["x", pred(x, atX)]);
  const both = (op, a, b, at) => make(op, "pred", "bool", at, ["a", a, "b", b]);
  function choose(cond, a, b, at, atA, atB) {
    if (isPart(a) && isPart(b) && irOf(a).sort === "pred" && irOf(b).sort === "pred") {
      const not = make("not", "pred", "bool", at, ["x", cond]);
      return both("or", both("and", cond, irOf(a), at), both("and", not, irOf(b), at), at);
    }
    const then = value(a, atA);
    const other = value(b, atB);
    return make("if", "value", typeOfBoth(then, other), at, ["cond", cond, "then", then, "else", other]);
  }
  const same = compare("==", (a, b) => a === b);
  const differs = compare("!=", (a, b) => a !== b);
  const EMPTY = freeze([]);
  const LAZY = ["and", "or", "nullish"];
  const ordinary = Function.prototype[Symbol.hasInstance];
  function isInstance(a, b, at) {
    const own = b?.[Symbol.hasInstance];
    return own === undefined || own === null || own === ordinary ? a instanceof b : !!now(own.call(b, a), at, "as a JavaScript condition");
  }
  const operators = {
    add: binary("add", (a, b) => a + b),
    sub: binary("sub", (a, b) => a - b),
    mul: binary("mul", (a, b) => a * b),
    div: binary("div", (a, b) => a / b),
    mod: binary("mod", (a, b) => a % b),
    pow: binary("pow", (a, b) => a ** b),
    lt: compare("<", (a, b) => a < b),
    le: compare("<=", (a, b) => a <= b),
    gt: compare(">", (a, b) => a > b),
    ge: compare(">=", (a, b) => a >= b),
    eq: compare("==", (a, b) => a == b),
    ne: compare("!=", (a, b) => a != b),
    // Whether a variable of JavaScript has a value yet is known now: an expression is one.
    same: (a, b, at) => (a === undefined || b === undefined ? a === b : same(a, b, at)),
    differs: (a, b, at) => (a === undefined || b === undefined ? a !== b : differs(a, b, at)),
    neg(x, at) {
      call = at;
      return isPart(x) ? wrap(make("neg", "value", "number", at, ["x", value(x, at + 1)])) : -x;
    },
    plus(x, at) {
      call = at;
      return isPart(x) ? wrap(value(x, at + 1)) : typeof x === "bigint" ? x : +x;
    },
    not: (x, at) => (isPart(x) ? wrap(negate(x, at, at + 1)) : !x),
    and(a, b, at) {
      if (!isPart(a)) return a && b();
      const left = pred(a, at + 1);
      return wrap(both("and", left, pred(b(), at + 2), at));
    },
    or(a, b, at) {
      if (!isPart(a)) return a || b();
      const left = pred(a, at + 1);
      return wrap(both("or", left, pred(b(), at + 2), at));
    },
    nullish(a, b, at) {
      if (!isPart(a)) return a ?? b();
      return wrap(coalesced(value(a, at + 1), value(b(), at + 2), at));
    },
    pick(cond, a, b, at) {
      if (!isPart(cond)) return cond ? a() : b();
      const test = pred(cond, at + 1);
      return wrap(choose(test, a(), b(), at, at + 2, at + 3));
    },
    // Operators that expressions do not have.
    other(op, a, b, at) {
      for (const x of [a, b]) {
        if (!isPart(x)) continue;
        if (irOf(x) === BROKEN_IR) throw TOLD;
        const help = op === "in" ? "write Pred.in(x, [a, b])" : undefined;
        stop("D012", at, `expressions have no operator ${op}`, { help });
      }
      call = at;
      switch (op) {
        case "|":
          return a | b;
        case "&":
          return a & b;
        case "^":
          return a ^ b;
        case "<<":
          return a << b;
        case ">>":
          return a >> b;
        case ">>>":
          return a >>> b;
        case "~":
          return ~a;
        case "in":
          return a in b;
        default:
          return isInstance(a, b, at);
      }
    },
    // An operator and an assignment in one: the target is read and written once.
    update(object, name, op, right, at) {
      const old = object[name];
      return (object[name] = operators[op](old, LAZY.includes(op) ? right : right(), at));
    },
    cond: (x, at) => now(x, at, "as a JavaScript condition"),
    text: (x, at) => now(x, at, "inside a text"),
    index(x, at) {
      call = at;
      callArgs = 0;
      return now(x, at, "as an index");
    },
    switched: (x, at) => now(x, at, "in a switch"),
    cased: (x, at) => now(x, at, "in a case"),
    within: (x, at) => now(x, at, "by in"),
    kind: (x, at) => typeof now(x, at, "by typeof"),
    thrown(x, at) {
      if (!isPart(x) && x instanceof Error) return x;
      return stop("D006", at, `the plan's code threw ${describe(x)}`, { help: "throw new Error(\"…\") says what is wrong" });
    },
    here(at, count, x) {
      call = at;
      callArgs = count;
      return x;
    },
    none(at) {
      call = at;
      callArgs = 0;
      return EMPTY;
    },
  };

  // ── Functions over expressions. With plain numbers they compute at once, by the same rules as a run.
  const coalesced = (a, b, at) => make("coalesce", "value", a.type ?? b.type, at, ["a", a, "b", b]);
  const named = (name, fn) => defineProperty(fn, "name", { value: name });
  const onlyNow = (list) => {
    for (let i = 0; i < list.length; i++) if (isPart(list[i]) || typeof list[i] === "bigint") return false;
    return true;
  };
  const counted = (count) => `${count} argument${count === 1 ? "" : "s"}`;
  function exactly(count, list, name, at) {
    if (list.length !== count) stop("D012", at, `${name} takes ${counted(count)}, not ${list.length}`);
  }
  function atLeast(count, list, name, at) {
    if (list.length < count) stop("D012", at, `${name} takes at least ${counted(count)}, not ${list.length}`);
  }
  // Null in, null out; what is no number is refused, where JavaScript would make one of it.
  function computed(name, native, list, at, count) {
    for (let i = 0; i < list.length; i++) {
      if (list[i] === null || typeof list[i] === "number") continue;
      return tell("D012", argument(at, count, i), `${name} takes numbers, not ${describe(list[i])}`);
    }
    return list.includes(null) ? null : native(...list);
  }
  const values = (list, at, count) => {
    const irs = [];
    for (let i = 0; i < list.length; i++) irs.push(value(list[i], argument(at, count, i)));
    return irs;
  };
  const joined = (irs, join, at) => {
    let all = irs[0];
    for (let i = 1; i < irs.length; i++) all = join(all, irs[i], at);
    return all;
  };
  const unary = (op, native) =>
    named(op, (...list) => {
      const at = call;
      const count = callArgs;
      exactly(1, list, op, at);
      if (onlyNow(list)) return computed(op, native, list, at, count);
      return wrap(make(op, "value", "number", at, ["x", value(list[0], argument(at, count, 0))]));
    });
  const pair = (op) => (a, b, at) => make(op, "value", "number", at, ["a", a, "b", b]);
  const folded = (op, native) =>
    named(op, (...list) => {
      const at = call;
      const count = callArgs;
      atLeast(2, list, op, at);
      if (onlyNow(list)) return computed(op, native, list, at, count);
      return wrap(joined(values(list, at, count), pair(op), at));
    });
  // Half away from zero, as the engine rounds.
  const round = (x) => {
    const whole = Math.trunc(x);
    return Math.abs(x - whole) >= 0.5 ? whole + Math.sign(x) : whole;
  };
  // As IEEE 754 has it; JavaScript's differs in these two places.
  const pow = (a, b) => (a === 1 || (a === -1 && Math.abs(b) === Infinity) ? 1 : Math.pow(a, b));
  const math = {
    abs: unary("abs", Math.abs),
    floor: unary("floor", Math.floor),
    ceil: unary("ceil", Math.ceil),
    round: unary("round", round),
    sqrt: unary("sqrt", Math.sqrt),
    log: unary("log", Math.log),
    log1p: unary("log1p", Math.log1p),
    exp: unary("exp", Math.exp),
    sigmoid: unary("sigmoid", (x) => 1 / (1 + Math.exp(-x))),
    min: folded("min", Math.min),
    max: folded("max", Math.max),
    pow: named("pow", (...list) => {
      const at = call;
      const count = callArgs;
      exactly(2, list, "pow", at);
      if (onlyNow(list)) return computed("pow", pow, list, at, count);
      const [a, b] = values(list, at, count);
      return wrap(pair("pow")(a, b, at));
    }),
    clamp: named("clamp", (...list) => {
      const at = call;
      const count = callArgs;
      exactly(3, list, "clamp", at);
      if (onlyNow(list)) return computed("clamp", (x, lo, hi) => Math.min(Math.max(x, lo), hi), list, at, count);
      const [x, lo, hi] = values(list, at, count);
      return wrap(make("clamp", "value", "number", at, ["x", x, "lo", lo, "hi", hi]));
    }),
    coalesce: named("coalesce", (...list) => {
      const at = call;
      const count = callArgs;
      atLeast(2, list, "coalesce", at);
      const irs = values(list, at, count);
      if (!onlyNow(list)) return wrap(joined(irs, coalesced, at));
      if (irs.includes(BROKEN_IR)) return BROKEN;
      const types = new Set(irs.map((ir) => ir.type));
      types.delete(null);
      if (types.size > 1) return tell("D012", at, `coalesce takes values of one type, not ${[...types].join(" and ")}`);
      return list.find((x) => x !== null) ?? null;
    }),
  };
  function regex(...list) {
    const at = call;
    const count = callArgs;
    if (list.length !== 2 && list.length !== 3) stop("D012", at, `regex takes 2 or 3 arguments, not ${list.length}`);
    const [key, pattern] = list;
    if (!isPart(key) || (irOf(key).op !== "key_ref" && irOf(key) !== BROKEN_IR)) {
      tell("D012", argument(at, count, 0), `regex looks at a key, not at ${describe(key)}`, { help: "regex(Key.title, \"…\")" });
      return BROKEN;
    }
    const place = argument(at, count, 1);
    const isRegExp = !isPart(pattern) && pattern instanceof RegExp;
    const flags = list.length === 3 ? list[2] : isRegExp ? pattern.flags.replace("u", "") : "";
    let text;
    // A RegExp has JavaScript's syntax, which the compiler turns into that of the engine.
    if (isRegExp) text = `{"${pattern.unicode ? "regexp_u" : "regexp"}":${json(pattern.source)}}`;
    else if (typeof pattern === "string" && pattern.isWellFormed()) text = `{"literal":${json(pattern)}}`;
    else if (isPart(pattern) && irOf(pattern).op === "param_ref") text = `{"param":${json(irOf(pattern).name)}}`;
    else if (isPart(pattern) && irOf(pattern) === BROKEN_IR) return BROKEN;
    else return tell("D012", place, `a pattern is a text or a parameter, not ${describe(pattern)}`);
    if (flags !== "" && flags !== "i") {
      return tell("D012", argument(at, count, 2), `the flags ${describe(flags)} are not known`, { help: 'flags are "" or "i"' });
    }
    if (irOf(key) === BROKEN_IR) return BROKEN;
    return new Part(leaf("regex", "pred", "bool", at, ["key", json(irOf(key).name), "pattern", text, "flags", json(flags)]));
  }

  // ── E and Pred: the same, spelt out.
  const operator = (name) =>
    named(name, (...list) => {
      const at = call;
      const count = callArgs;
      exactly(2, list, `E.${name}`, at);
      const [a, b] = values(list, at, count);
      return wrap(pair(name)(a, b, at));
    });
  const reference = (what, op) => (...list) => {
    const at = call;
    const count = callArgs;
    const place = argument(at, count, 0);
    exactly(1, list, `E.${what}`, at);
    if (isPart(list[0]) && (irOf(list[0]).op === op || irOf(list[0]) === BROKEN_IR)) return wrap(value(list[0], place));
    const help = what === "key" ? "E.key(Key.score)" : "E.param(P.weight)";
    return tell("D012", place, `E.${what} takes a ${what === "key" ? "key" : "parameter"}, not ${describe(list[0])}`, { help });
  };
  // E and Pred give expressions whatever they are given, so that E.max(1, 2) is one, too.
  const lifted = (fn) =>
    named(fn.name, (...list) => {
      const at = call;
      const count = callArgs;
      const parts = list.map((x, position) => (isPart(x) ? x : wrap(value(x, argument(at, count, position)))));
      call = at;
      callArgs = count;
      return fn(...parts);
    });
  const E = {
    key: reference("key", "key_ref"),
    param: reference("param", "param_ref"),
    const: (...list) => {
      const at = call;
      const count = callArgs;
      exactly(1, list, "E.const", at);
      return wrap(value(list[0], argument(at, count, 0)));
    },
    if: (...list) => {
      const at = call;
      const count = callArgs;
      exactly(3, list, "E.if", at);
      const place = (position) => argument(at, count, position);
      return wrap(choose(pred(list[0], place(0)), list[1], list[2], at, place(1), place(2)));
    },
    neg: (...list) => {
      const at = call;
      const count = callArgs;
      exactly(1, list, "E.neg", at);
      return wrap(make("neg", "value", "number", at, ["x", value(list[0], argument(at, count, 0))]));
    },
  };
  for (const op of ["add", "sub", "mul", "div", "mod", "pow"]) E[op] = operator(op);
  for (const [name, fn] of Object.entries(math)) if (name !== "pow") E[name] = lifted(fn);

  const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="];
  const junction = (op, whenEmpty) => (...list) => {
    const at = call;
    const count = callArgs;
    if (list.length === 0) return wrap(pred(whenEmpty, at));
    return wrap(list.map((x, position) => pred(x, argument(at, count, position))).reduce((a, b) => both(op, a, b, at)));
  };
  const nullness = (name, op) => (...list) => {
    const at = call;
    const count = callArgs;
    exactly(1, list, `Pred.${name}`, at);
    return wrap(make(op, "pred", "bool", at, ["x", value(list[0], argument(at, count, 0))]));
  };
  // Whether x is one of a list of plain values.
  function among(x, list, at, atX, place) {
    if (!isArray(list)) return tell("D012", place, `Pred.in takes a list, not ${describe(list)}`);
    const texts = [];
    for (const item of [...list]) {
      if (isPart(item)) {
        return tell("D012", place, `${describe(item)} cannot be in the list`, { help: "the list has numbers, texts or bools only" });
      }
      const ir = constant(item, "value", place);
      if (ir === BROKEN_IR) return BROKEN;
      texts.push(item === null ? "null" : ir.fields[1]);
    }
    const lhs = value(x, atX);
    if (lhs === BROKEN_IR) return BROKEN;
    const fields = ["lhs", lhs, "list", `[${texts.join(",")}]`];
    return new Part(bounded(node("pred", "bool", "in", fields, at, 1 + lhs.size + texts.length, lhs.depth + 1, "")));
  }
  const Pred = {
    cmp: (...list) => {
      const at = call;
      const count = callArgs;
      exactly(3, list, "Pred.cmp", at);
      const [cmp, a, b] = list;
      if (typeof cmp !== "string" || !COMPARISONS.includes(cmp)) {
        return tell("D012", argument(at, count, 0), `${describe(cmp)} is not a comparison`, { help: `one of ${COMPARISONS.join(" ")}` });
      }
      return wrap(comparison(cmp, a, b, at, argument(at, count, 1), argument(at, count, 2)));
    },
    and: junction("and", true),
    or: junction("or", false),
    not: (...list) => {
      const at = call;
      const count = callArgs;
      exactly(1, list, "Pred.not", at);
      return wrap(negate(list[0], at, argument(at, count, 0)));
    },
    in: (...list) => {
      const at = call;
      const count = callArgs;
      exactly(2, list, "Pred.in", at);
      return among(list[0], list[1], at, argument(at, count, 0), argument(at, count, 1));
    },
    isNull: nullness("isNull", "is_null"),
    notNull: nullness("notNull", "not_null"),
    regex,
    const: (...list) => {
      const at = call;
      const count = callArgs;
      exactly(1, list, "Pred.const", at);
      return wrap(pred(list[0], argument(at, count, 0)));
    },
  };

  // ── Names of the registry. An unknown one is told, and what comes back is accepted everywhere, so that the rest is looked at.
  const guarded = (target, missing) =>
    freeze(setPrototypeOf(target, new Proxy(freeze(create(null)), { get: (_, name) => (typeof name === "symbol" ? undefined : missing(name)) })));
  const unknown = (what, name, known, prefix) =>
    tell("D013", call, `there is no ${what} ${prefix}${name}`, { wrong: name, known });
  function entries(list, op, what, prefix) {
    const table = create(null);
    for (const { name, type } of list) {
      const field = op === "key_ref" ? "key" : "param";
      table[name] = new Part(node("value", type, op, [field, json(name)], -1, 1, 1, name));
    }
    const known = keys(table);
    return guarded(table, (name) => unknown(what, name, known, prefix));
  }
  class Endpoint {
    #name;
    constructor(name) {
      this.#name = name;
      freeze(this);
    }
    static is(x) {
      return typeof x === "object" && x !== null && #name in x;
    }
    static nameOf(x) {
      return x.#name;
    }
  }
  const Key = entries(config.keys, "key_ref", "key", "Key.");
  const P = entries(config.params, "param_ref", "parameter", "P.");
  const kinds = create(null);
  for (const { name, kind } of config.endpoints) (kinds[kind] ??= create(null))[name] = new Endpoint(name);
  const ANYTHING = guarded(create(null), () => BROKEN);
  for (const kind of keys(kinds)) {
    const known = keys(kinds[kind]);
    guarded(kinds[kind], (name) => unknown("endpoint", name, known, `EP.${kind}.`));
  }
  const kindNames = keys(kinds);
  const EP = guarded(kinds, (name) => (unknown("kind of endpoint", name, kindNames, "EP."), ANYTHING));

  // ── Tasks.
  const NO_VALUE = "a set of rows is not a value";
  const NO_VALUE_HELP = "how many rows there are, and what is in them, is known only when the plan runs; work on them by tasks";
  class Rows {
    #plan;
    #node;
    constructor(plan, node) {
      this.#plan = plan;
      this.#node = node;
      freeze(this);
    }
    static is(x) {
      return typeof x === "object" && x !== null && #plan in x;
    }
    static plan(x) {
      return x.#plan;
    }
    static node(x) {
      return x.#node;
    }
    [Symbol.toPrimitive]() {
      return stop("D012", HERE, NO_VALUE, { help: NO_VALUE_HELP });
    }
  }
  class Context {
    #plan;
    constructor(plan) {
      this.#plan = plan;
      freeze(this);
    }
    static is(x) {
      return typeof x === "object" && x !== null && #plan in x;
    }
    static plan(x) {
      return x.#plan;
    }
  }

  const wrongOption = (at, option, message, help) => (tell("D017", at, message, { option, help }), null);
  const isPlain = (x) => typeof x === "object" && x !== null && !isPart(x) && !Rows.is(x) && !Endpoint.is(x) && !isArray(x);

  // Plain data as JSON text; keys of objects are the author's.
  function plainData(x, depth) {
    if (depth > 8) return null;
    if (x === null || typeof x === "boolean") return `${x}`;
    if (typeof x === "number") return isFinite(x) ? numberText(x) : null;
    if (typeof x === "bigint") return intText(x);
    if (typeof x === "string") return x.isWellFormed() ? json(x) : null;
    if (isArray(x)) {
      const items = [...x].map((item) => plainData(item, depth + 1));
      return items.includes(null) ? null : `[${items.join(",")}]`;
    }
    if (!isPlain(x)) return null;
    const fields = [];
    for (const name of keys(x)) {
      const text = plainData(x[name], depth + 1);
      if (text === null || !name.isWellFormed()) return null;
      fields.push(`${json(name)}:${text}`);
    }
    return `{${fields.join(",")}}`;
  }

  // The JSON text of an option; null where something was told.
  const readers = {
    endpoint(x, { at, option }) {
      if (Endpoint.is(x)) return json(Endpoint.nameOf(x));
      return wrongOption(at, option, `${option} takes an endpoint, not ${describe(x)}`, "EP.redis.redis_default is one");
    },
    int(x, { at, option }) {
      if (typeof x === "number" && isSafeInteger(x)) return numberText(x + 0);
      if (typeof x === "bigint" && intText(x) !== null) return intText(x);
      const help = isPart(x) ? "it must be known when the plan is compiled: expressions belong into vm and filter" : undefined;
      return wrongOption(at, option, `${option} takes a whole number, not ${describe(x)}`, help);
    },
    bool(x, { at, option }) {
      if (typeof x === "boolean") return `${x}`;
      return wrongOption(at, option, `${option} takes true or false, not ${describe(x)}`);
    },
    text(x, { at, option, param }) {
      if (typeof x === "string" && x.isWellFormed()) return json(x);
      const help = param?.choices ? `one of ${param.choices.map((it) => json(it)).join(", ")}` : undefined;
      return wrongOption(at, option, `${option} takes a text, not ${describe(x)}`, help);
    },
    key(x, { at, option }) {
      if (isPart(x) && irOf(x).op === "key_ref") return json(irOf(x).name);
      return wrongOption(at, option, `${option} takes a key, not ${describe(x)}`, "Key.score is one");
    },
    keys(x, { at, option }) {
      if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of keys, not ${describe(x)}`, "[Key.country, Key.age]");
      const names = [];
      for (const item of [...x]) {
        if (isPart(item) && irOf(item) === BROKEN_IR) return null;
        if (!isPart(item) || irOf(item).op !== "key_ref") {
          return wrongOption(at, option, `${option} takes keys, not ${describe(item)}`, "Key.score is one");
        }
        names.push(json(irOf(item).name));
      }
      return `[${names.join(",")}]`;
    },
    expr: (x, { at, option, plan }) => entry(plan, plan.exprs, "e", written(x, `${at}:${option}`)),
    pred: (x, { at, option, plan }) => entry(plan, plan.preds, "p", pred(x, `${at}:${option}`)),
    node(x, { at, option, plan }) {
      if (!Rows.is(x)) return wrongOption(at, option, `${option} takes a set of rows, not ${describe(x)}`);
      return input(plan, x, at, option);
    },
    columns(x, { at, option }) {
      const text = isPlain(x) ? plainData(x, 0) : null;
      return text ?? wrongOption(at, option, `${option} takes an object of plain values by key name, not ${describe(x)}`);
    },
  };
  function input(plan, rows, at, option) {
    if (Rows.plan(rows) !== plan) {
      const help = "a plan is made of the rows that its own ctx gives";
      tell("D018", at, "these rows belong to another plan", { option, help });
      return null;
    }
    return Rows.node(rows) < 0 ? null : `"n${Rows.node(rows)}"`;
  }
  // The table id of an expression; the same text is kept once. An expression that nobody holds any more is let go.
  function entry(plan, table, letter, ir) {
    if (ir === BROKEN_IR) return null;
    let id = table.ids.get(ir);
    if (id === undefined) {
      const text = textOf(ir);
      id = table.texts.get(text);
      if (id === undefined) {
        plan.size += ir.size;
        if (plan.size > limits.planSize) {
          stop("P204", ir.at, `all expressions together are larger than the limit of ${limits.planSize}`);
        }
        id = `"${letter}${table.texts.size}"`;
        table.texts.set(text, id);
      }
      table.ids.set(ir, id);
    }
    return id;
  }
  const textOf = (ir) => {
    let text = `{"op":"${ir.op}"`;
    for (let i = 0; i < ir.fields.length; i += 2) {
      const it = ir.fields[i + 1];
      text += `,"${ir.fields[i]}":${typeof it === "string" ? it : textOf(it)}`;
    }
    return `${text},"source":${typeof ir.at === "number" ? ir.at : json(ir.at)}}`;
  };

  function scheduling(x, at) {
    const wrong = (message, help) => wrongOption(at, "scheduling", message, help);
    if (!isPlain(x)) return wrong(`scheduling takes an object, not ${describe(x)}`, "{ inline: false, costEstimateUs: 50 }");
    const fields = [];
    for (const name of keys(x)) {
      if (name === "inline" && typeof x.inline === "boolean") fields.push(`"inline":${x.inline}`);
      else if (name === "costEstimateUs" && isSafeInteger(x.costEstimateUs)) fields.push(`"cost_estimate_us":${x.costEstimateUs}`);
      else if (name === "inline") return wrong(`inline takes true or false, not ${describe(x.inline)}`);
      else if (name === "costEstimateUs") return wrong(`costEstimateUs takes a whole number, not ${describe(x.costEstimateUs)}`);
      else return (tell("D015", at, `scheduling has no option ${name}`, { option: "scheduling", wrong: name, known: ["inline", "costEstimateUs"] }), null);
    }
    return `{${fields.join(",")}}`;
  }

  const COMMON = { __proto__: null, trace: true, scheduling: true, timeoutMs: true };
  const isNothing = (x) => isPart(x) && irOf(x) === BROKEN_IR;
  function run(task, plan, from, list, at) {
    if (plan.closed) stop("D018", at, "this plan is built already", { help: "use ctx and its rows inside build only" });
    if (list.length > 1) tell("D017", at, `${task.method} takes one object with its options, not ${list.length} arguments`);
    const given = list.length === 0 ? {} : list[0];
    const inputs = from === null ? "" : (input(plan, from, at) ?? "");
    const texts = [];
    let more = "";
    let trace = null;
    if (!isPlain(given)) {
      tell("D017", at, `${task.method} takes an object with its options, not ${describe(given)}`);
      return new Rows(plan, -1);
    }
    const before = problems.length;
    for (const option of keys(given)) {
      const param = task.byOption[option];
      const x = given[option];
      if (param === undefined && COMMON[option] === undefined) {
        const known = [...task.params.map((it) => it.option), ...keys(COMMON)];
        tell("D015", at, `${task.method} has no option ${option}`, { option, onName: true, wrong: option, known });
      } else if (x === undefined) {
        wrongOption(at, option, `${option} is undefined`, "give it a value, or leave it out");
      } else if (isNothing(x)) {
        continue;
      } else if (option === "scheduling") {
        more = `,"scheduling":${scheduling(x, at)}${more}`;
      } else if (option === "timeoutMs") {
        more += `,"timeout_ms":${readers.int(x, { at, option })}`;
      } else if (option === "trace") {
        trace = readers.text(x, { at, option });
      } else {
        const text = readers[param.kind](x, { at, option, param, plan });
        if (text !== null) texts[param.position] = `"${param.name}":${text}`;
      }
    }
    for (const { option, required } of task.params) {
      if (required && !hasOwn(given, option)) {
        tell("D016", at, `${task.method} needs the option ${option}`, { help: task.usage });
      }
    }
    if (problems.length > before || (from !== null && Rows.node(from) < 0)) return new Rows(plan, -1);
    if (plan.nodes.length === limits.nodes) {
      stop("P201", at, `there are more nodes than the limit of ${limits.nodes}`);
    }
    let params = "";
    for (let i = 0; i < texts.length; i++) if (texts[i] !== undefined) params += `${params === "" ? "" : ","}${texts[i]}`;
    if (trace !== null) params += `${params === "" ? "" : ","}"trace":${trace}`;
    plan.nodes.push(`{"op":"${task.op}","inputs":[${inputs}],"params":{${params}}${more},"source":${at}}`);
    return new Rows(plan, plan.nodes.length - 1);
  }

  const method = (name, fn) => ({ [name](...list) { return fn(this, list); } })[name];
  // A task that was named and not called.
  const uncalled = (fn, message, help) => {
    delete fn.length;
    const get = (_, name) => {
      if (name === "call" || name === "apply" || name === "bind") return Function.prototype[name];
      return stop("D014", HERE, message(typeof name === "symbol" ? "a value" : name), { help });
    };
    return freeze(setPrototypeOf(fn, new Proxy(NOTHING, { get })));
  };
  const notCalled = (task, fn) => {
    const help = `write ${task.source ? "ctx" : "rows"}.${task.usage}`;
    return uncalled(fn, (name) => `${task.method} is a task: it is called before ${name} is taken from it`, help);
  };
  for (const task of config.tasks) {
    task.byOption = create(null);
    task.params.forEach((param, position) => (task.byOption[param.option] = { ...param, position }));
    const [home, guest] = task.source ? [Context, Rows] : [Rows, Context];
    home.prototype[task.method] = notCalled(task, method(task.method, (self, list) => {
      const at = call;
      if (!home.is(self)) stop("D012", at, `${task.method} was taken off the object that it belongs to`);
      return run(task, home.plan(self), task.source ? null : self, list, at);
    }));
    guest.prototype[task.method] = method(task.method, (self) => {
      const help = task.source ? `write ctx.${task.method}(…)` : `write ctx.viewer(…).${task.method}(…), for example`;
      const message = task.source ? `${task.method} starts from nothing, not from rows` : `${task.method} works on rows, and ctx has none`;
      tell("D014", call, message, { help });
      return new Rows(guest.is(self) ? guest.plan(self) : null, -1);
    });
  }
  const methods = config.tasks.map((task) => task.method);
  for (const [type, what] of [[Context, "task"], [Rows, "task"]]) {
    delete type.prototype.constructor;
    const missing = (name) => {
      if (name === "then") return undefined;
      if (name === "toJSON") return stop("D012", HERE, NO_VALUE, { help: NO_VALUE_HELP });
      const nameless = method(name, (self) => {
        tell("D014", call, `there is no ${what} ${name}`, { wrong: name, known: methods });
        return new Rows(type.is(self) ? type.plan(self) : null, -1);
      });
      return uncalled(nameless, () => `there is no ${what} ${name}`, NO_VALUE_HELP);
    };
    setPrototypeOf(
      type.prototype,
      new Proxy(freeze(create(null)), { get: (_, name) => (typeof name === "symbol" ? undefined : missing(name)) }),
    );
    freeze(type.prototype);
  }
  delete Endpoint.prototype.constructor;
  freeze(Endpoint.prototype);

  // ── Plans.
  class Plan {
    #text;
    constructor(text) {
      this.#text = text;
      freeze(this);
    }
    static is(x) {
      return typeof x === "object" && x !== null && #text in x;
    }
    static text(x) {
      return x.#text;
    }
  }
  delete Plan.prototype.constructor;
  freeze(Plan.prototype);
  const table = () => ({ ids: new WeakMap(), texts: new Map() });
  const usage = 'definePlan({ name: "feed", build: (ctx) => ctx.viewer({ … }) })';

  function definePlan(...list) {
    const at = call;
    const [options] = list;
    if (list.length !== 1 || !isPlain(options)) stop("D010", at, "definePlan takes an object with name and build", { help: usage });
    for (const option of keys(options)) {
      if (option !== "name" && option !== "build") {
        tell("D015", at, `definePlan has no option ${option}`, { option, onName: true, wrong: option, known: ["name", "build"] });
      }
    }
    const { name, build } = options;
    if (typeof name !== "string" || !name.isWellFormed()) {
      tell("D010", at, `name takes a text, not ${describe(name)}`, { option: "name", help: usage });
    }
    if (typeof build !== "function") stop("D010", at, `build takes a function, not ${describe(build)}`, { option: "build", help: usage });
    const plan = { nodes: [], exprs: table(), preds: table(), size: 0, closed: false };
    const result = build(new Context(plan));
    plan.closed = true;
    const outputs = [];
    for (const rows of isArray(result) ? [...result] : [result]) {
      if (Rows.is(rows)) {
        const id = input(plan, rows, at, "build");
        if (id !== null) outputs.push(id);
      } else if (!isNothing(rows)) {
        const help = "return the rows of the last task, or a list of such rows for several outputs";
        tell("D010", at, `build returned ${describe(rows)}, not rows`, { option: "build", help });
      }
    }
    const texts = (map) => [...map.texts.keys()].join(",");
    return new Plan(
      `{"name":${json(`${name}`)},"at":${at},"nodes":[${plan.nodes.join(",")}],"outputs":[${outputs.join(",")}]` +
        `,"exprs":[${texts(plan.exprs)}],"preds":[${texts(plan.preds)}]}`,
    );
  }

  // ── What plan code finds: the language without what reaches out of it, and our names; all of it frozen.
  for (const [name, functions] of [["E", E], ["Pred", Pred]]) {
    const known = keys(functions);
    guarded(functions, (it) => (unknown("function", it, known, `${name}.`), () => BROKEN));
  }
  const exported = { definePlan, Key, P, EP, E, Pred, regex, ...math };
  for (const fn of Object.values(math)) freeze(fn);
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
    if (irOf(x) === BROKEN_IR) throw TOLD;
    return stop("D011", HERE, `${describe(x)} is given to ${label}, but its value is known only when the plan runs`, { help });
  };
  const contains = (list, x) => among(x, list, call, argument(call, callArgs, 0), call);
  const tooLong = () => stop("D008", call, `a list may have ${limits.list} items`);
  guards({ isPart, given, now: (x) => now(x, HERE, "as a JavaScript condition"), contains, tooLong, listMax: limits.list, math, hidden, globals: config.globals });
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

  return {
    problems: () => json(problems),
    isTold: (error) => error === TOLD,
    finish(found) {
      if (Plan.is(found)) return Plan.text(found);
      const help = `write export default ${usage}`;
      tell("D010", -1, found === undefined ? "the file has no default export" : "the default export is not a plan", { help });
      return null;
    },
  };
}
