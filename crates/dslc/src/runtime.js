// What plan code meets: the DSL, and the functions that its operators were rewritten to.
//
// A function of the configuration; it gives `{ finish, problems, isTold, exports }` to the compiler. Plan code sees the DSL's
// globals and `$rankd`, frozen like every built-in, and can reach nothing else of this file: what carries meaning is in private
// fields, and no class of ours can be constructed from outside.
//
// A place is a number that the compiler gave to an operator or call; the operands of an operator, or the arguments of a call,
// have the numbers after it. A place may also be "N:option", the value of an option of call N.
(config) => {
  "use strict";
  const { create, defineProperty, freeze, getOwnPropertyDescriptor, getOwnPropertyNames, getPrototypeOf, hasOwn, keys, setPrototypeOf } = Object;
  const { isArray } = Array;
  const { isSafeInteger, isFinite } = Number;
  const json = JSON.stringify;
  const limits = config.limits;

  // ── Problems: told to the compiler, which has the positions and finds the nearest names.
  const problems = [];
  const TOLD = new Error("the plan has a mistake that was reported");
  let call = -1; // the place of the call under way
  let callArgs = 0; // and how many arguments it was written with

  function tell(code, at, message, more) {
    if (problems.length < limits.problems) problems.push({ code, at, message, ...more });
    return BROKEN;
  }
  function stop(code, at, message, more) {
    tell(code, at, message, more);
    throw TOLD;
  }
  const argument = (at, count, position) => (position < count ? at + 1 + position : at);

  // ── Expressions: `ir` is {sort: "value" | "pred" | "broken", type, op, fields, at, size, depth}.
  class Part {
    #ir;
    constructor(ir) {
      this.#ir = ir;
      freeze(this);
    }
    static is(x) {
      return typeof x === "object" && x !== null && #ir in x;
    }
    static ir(x) {
      return x.#ir;
    }
    [Symbol.toPrimitive]() {
      return needed(this, call, "as a plain value");
    }
  }
  const isPart = Part.is;
  const irOf = Part.ir;
  const BROKEN_IR = freeze({ sort: "broken", at: -1, size: 1, depth: 1 });
  const BROKEN = new Part(BROKEN_IR);
  const wrap = (ir) => (ir === BROKEN_IR ? BROKEN : new Part(ir));

  // A value that only a run knows, where JavaScript must know it now.
  function needed(x, at, where) {
    if (irOf(x) === BROKEN_IR) throw TOLD;
    const help =
      where === "as a JavaScript condition"
        ? "to drop rows use filter({ pred }); inside an expression write cond ? a : b; join conditions by &&, || and !"
        : where === "as a plain value"
          ? "keep it in an expression: the operators + - * / % ** and the functions of E compute with it when the plan runs"
          : "keys, parameters and expressions have a value only when the plan runs; use what is known when it is compiled";
    return stop("D011", at, `${describe(x)} is used ${where}, but its value is known only when the plan runs`, { help });
  }
  const now = (x, at, where) => (isPart(x) ? needed(x, at, where) : x);

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

  // An operation over parts that are parts already. `fields` has pairs of a name and an ir, or a name and JSON text.
  function make(op, sort, type, at, fields) {
    let size = 1;
    let depth = 0;
    for (const [, value] of fields) {
      if (typeof value === "string") continue;
      if (value === BROKEN_IR) return BROKEN_IR;
      size += value.size;
      if (value.depth > depth) depth = value.depth;
    }
    return bounded({ sort, type, op, fields, at, size, depth: depth + 1 });
  }
  function bounded(ir) {
    if (ir.depth > limits.depth) {
      stop("P203", ir.at, `this expression is nested deeper than the limit of ${limits.depth}`);
    }
    if (ir.size > limits.size) {
      stop("P204", ir.at, `this expression is larger than the limit of ${limits.size} operations and list items`);
    }
    return freeze(ir);
  }
  const leaf = (op, sort, type, at, fields) => freeze({ sort, type, op, fields, at, size: 1, depth: 1 });

  function numberText(x) {
    if (isSafeInteger(x)) return Object.is(x, -0) ? "-0.0" : `${x}`;
    const text = `${x}`;
    return /[.e]/.test(text) ? text : `${text}.0`;
  }
  function constant(x, sort, at) {
    switch (typeof x) {
      case "number":
        if (isFinite(x)) return leaf("const_number", sort, "number", at, [["value", numberText(x)]]);
        tell("D012", at, `${x} cannot be part of an expression`, { help: "numbers in a plan are finite" });
        return BROKEN_IR;
      case "string":
        if (x.isWellFormed()) return leaf("const_string", sort, "string", at, [["value", json(x)]]);
        tell("D012", at, "this text has half of a surrogate pair");
        return BROKEN_IR;
      case "boolean":
        return leaf("const_bool", sort, "bool", at, [["value", `${x}`]]);
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
    return ir.at === -1 && ir !== BROKEN_IR ? freeze({ ...ir, at }) : ir;
  }
  // A bool key or parameter is a condition by itself: it holds where the value is true.
  function pred(x, at) {
    if (typeof x === "boolean") return leaf("const_bool", "pred", "bool", at, [["value", `${x}`]]);
    if (isPart(x)) {
      const ir = irOf(x);
      if (ir.sort !== "value") return ir;
      if (ir.type === "bool") {
        return make("cmp", "pred", "bool", at, [["cmp", '"=="'], ["a", value(x, at)], ["b", constant(true, "value", at)]]);
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
    return make("if", "value", "bool", at, [["cond", irOf(x)], ["then", truth(true)], ["else", truth(false)]]);
  }

  // ── Operators.
  const typeOfBoth = (a, b) => (a.type === b.type ? a.type : "number");
  const binary = (op, native) => (a, b, at) => {
    if (!isPart(a) && !isPart(b)) {
      call = at;
      return native(a, b);
    }
    const [left, right] = [value(a, at + 1), value(b, at + 2)];
    return wrap(make(op, "value", "number", at, [["a", left], ["b", right]]));
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
      return make(cmp === "==" ? "is_null" : "not_null", "pred", "bool", at, [["x", x]]);
    }
    return make("cmp", "pred", "bool", at, [["cmp", json(cmp)], ["a", value(a, atA)], ["b", value(b, atB)]]);
  }
  const negate = (x, at, atX) => make("not", "pred", "bool", at, [["x", pred(x, atX)]]);
  const both = (op, a, b, at) => make(op, "pred", "bool", at, [["a", a], ["b", b]]);
  function choose(cond, a, b, at, atA, atB) {
    if (isPart(a) && isPart(b) && irOf(a).sort === "pred" && irOf(b).sort === "pred") {
      const not = make("not", "pred", "bool", at, [["x", cond]]);
      return both("or", both("and", cond, irOf(a), at), both("and", not, irOf(b), at), at);
    }
    const [then, other] = [value(a, atA), value(b, atB)];
    return make("if", "value", typeOfBoth(then, other), at, [["cond", cond], ["then", then], ["else", other]]);
  }
  const same = compare("==", (a, b) => a === b);
  const differs = compare("!=", (a, b) => a !== b);
  const EMPTY = freeze([]);
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
      return isPart(x) ? wrap(make("neg", "value", "number", at, [["x", value(x, at + 1)]])) : -x;
    },
    plus(x, at) {
      call = at;
      return isPart(x) ? wrap(value(x, at + 1)) : +x;
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
        default:
          return a in b;
      }
    },
    cond: (x, at) => now(x, at, "as a JavaScript condition"),
    text: (x, at) => now(x, at, "inside a text"),
    index(x, at) {
      call = at;
      callArgs = 0;
      return now(x, at, "as an index");
    },
    switched: (x, at) => now(x, at, "in a switch"),
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

  // ── Functions over expressions. With plain numbers they compute at once.
  const coalesced = (a, b, at) => make("coalesce", "value", a.type ?? b.type, at, [["a", a], ["b", b]]);
  const named = (name, fn) => defineProperty(fn, "name", { value: name });
  const anyPart = (list) => list.some(isPart);
  function exactly(count, list, name, at) {
    if (list.length !== count) {
      const s = count === 1 ? "" : "s";
      stop("D012", at, `${name} takes ${count} argument${s}, not ${list.length}`);
    }
  }
  function atLeast(count, list, name, at) {
    if (list.length < count) stop("D012", at, `${name} takes at least ${count} arguments, not ${list.length}`);
  }
  const unary = (op, native) =>
    named(op, (...list) => {
      const [at, count] = [call, callArgs];
      exactly(1, list, op, at);
      if (!anyPart(list)) return native(list[0]);
      return wrap(make(op, "value", "number", at, [["x", value(list[0], argument(at, count, 0))]]));
    });
  const folded = (op, native, join) =>
    named(op, (...list) => {
      const [at, count] = [call, callArgs];
      atLeast(2, list, op, at);
      if (!anyPart(list)) return native(...list);
      return wrap(list.map((x, position) => value(x, argument(at, count, position))).reduce((a, b) => join(a, b, at)));
    });
  const pair = (op) => (a, b, at) => make(op, "value", "number", at, [["a", a], ["b", b]]);
  const math = {
    abs: unary("abs", Math.abs),
    floor: unary("floor", Math.floor),
    ceil: unary("ceil", Math.ceil),
    round: unary("round", Math.round),
    sqrt: unary("sqrt", Math.sqrt),
    log: unary("log", Math.log),
    log1p: unary("log1p", Math.log1p),
    exp: unary("exp", Math.exp),
    sigmoid: unary("sigmoid", (x) => 1 / (1 + Math.exp(-x))),
    min: folded("min", Math.min, pair("min")),
    max: folded("max", Math.max, pair("max")),
    pow: folded("pow", Math.pow, pair("pow")),
    clamp: named("clamp", (...list) => {
      const [at, count] = [call, callArgs];
      exactly(3, list, "clamp", at);
      if (!anyPart(list)) return Math.min(Math.max(list[0], list[1]), list[2]);
      const [x, lo, hi] = list.map((it, position) => value(it, argument(at, count, position)));
      return wrap(make("clamp", "value", "number", at, [["x", x], ["lo", lo], ["hi", hi]]));
    }),
    coalesce: folded(
      "coalesce",
      (...list) => list.find((x) => x !== null && x !== undefined) ?? null,
      coalesced,
    ),
  };
  function regex(...list) {
    const [at, count] = [call, callArgs];
    const [key, pattern, flags = pattern instanceof RegExp ? pattern.flags : ""] = list;
    if (!isPart(key) || (irOf(key).op !== "key_ref" && irOf(key) !== BROKEN_IR)) {
      tell("D012", argument(at, count, 0), `regex looks at a key, not at ${describe(key)}`, { help: "regex(Key.title, \"…\")" });
      return BROKEN;
    }
    const place = argument(at, count, 1);
    let text;
    if (pattern instanceof RegExp) text = `{"literal":${json(pattern.source)}}`;
    else if (typeof pattern === "string" && pattern.isWellFormed()) text = `{"literal":${json(pattern)}}`;
    else if (isPart(pattern) && irOf(pattern).op === "param_ref") text = `{"param":${json(irOf(pattern).name)}}`;
    else if (isPart(pattern) && irOf(pattern) === BROKEN_IR) return BROKEN;
    else return tell("D012", place, `a pattern is a text or a parameter, not ${describe(pattern)}`);
    if (flags !== "" && flags !== "i") {
      return tell("D012", argument(at, count, 2), `the flags ${describe(flags)} are not known`, { help: 'flags are "" or "i"' });
    }
    if (irOf(key) === BROKEN_IR) return BROKEN;
    return new Part(leaf("regex", "pred", "bool", at, [["key", json(irOf(key).name)], ["pattern", text], ["flags", json(flags)]]));
  }

  // ── E and Pred: the same, spelt out.
  const operator = (name) =>
    named(name, (...list) => {
      const [at, count] = [call, callArgs];
      exactly(2, list, `E.${name}`, at);
      const [a, b] = list.map((x, position) => value(x, argument(at, count, position)));
      return wrap(pair(name)(a, b, at));
    });
  const reference = (what, op) => (...list) => {
    const [at, count] = [call, callArgs];
    const place = argument(at, count, 0);
    exactly(1, list, `E.${what}`, at);
    if (isPart(list[0]) && (irOf(list[0]).op === op || irOf(list[0]) === BROKEN_IR)) return wrap(value(list[0], place));
    const help = what === "key" ? "E.key(Key.score)" : "E.param(P.weight)";
    return tell("D012", place, `E.${what} takes a ${what === "key" ? "key" : "parameter"}, not ${describe(list[0])}`, { help });
  };
  // E and Pred give expressions whatever they are given, so that E.max(1, 2) is one, too.
  const lifted = (fn, arity) =>
    named(fn.name, (...list) => {
      const [at, count] = [call, callArgs];
      const parts = list.map((x, position) => (isPart(x) ? x : wrap(value(x, argument(at, count, position)))));
      [call, callArgs] = [at, count];
      return fn(...parts);
    });
  const E = {
    key: reference("key", "key_ref"),
    param: reference("param", "param_ref"),
    const: (...list) => {
      const [at, count] = [call, callArgs];
      exactly(1, list, "E.const", at);
      return wrap(value(list[0], argument(at, count, 0)));
    },
    if: (...list) => {
      const [at, count] = [call, callArgs];
      exactly(3, list, "E.if", at);
      const place = (position) => argument(at, count, position);
      return wrap(choose(pred(list[0], place(0)), list[1], list[2], at, place(1), place(2)));
    },
    neg: (...list) => {
      const [at, count] = [call, callArgs];
      exactly(1, list, "E.neg", at);
      return wrap(make("neg", "value", "number", at, [["x", value(list[0], argument(at, count, 0))]]));
    },
  };
  for (const op of ["add", "sub", "mul", "div", "mod", "pow"]) E[op] = operator(op);
  for (const [name, fn] of Object.entries(math)) if (name !== "pow") E[name] = lifted(fn);

  const COMPARISONS = ["==", "!=", "<", "<=", ">", ">="];
  const junction = (op, whenEmpty) => (...list) => {
    const [at, count] = [call, callArgs];
    if (list.length === 0) return wrap(pred(whenEmpty, at));
    return wrap(list.map((x, position) => pred(x, argument(at, count, position))).reduce((a, b) => both(op, a, b, at)));
  };
  const nullness = (name, op) => (...list) => {
    const [at, count] = [call, callArgs];
    exactly(1, list, `Pred.${name}`, at);
    return wrap(make(op, "pred", "bool", at, [["x", value(list[0], argument(at, count, 0))]]));
  };
  const Pred = {
    cmp: (...list) => {
      const [at, count] = [call, callArgs];
      exactly(3, list, "Pred.cmp", at);
      const [cmp, a, b] = list;
      if (!COMPARISONS.includes(cmp)) {
        return tell("D012", argument(at, count, 0), `${describe(cmp)} is not a comparison`, { help: `one of ${COMPARISONS.join(" ")}` });
      }
      return wrap(comparison(cmp, a, b, at, argument(at, count, 1), argument(at, count, 2)));
    },
    and: junction("and", true),
    or: junction("or", false),
    not: (...list) => {
      const [at, count] = [call, callArgs];
      exactly(1, list, "Pred.not", at);
      return wrap(negate(list[0], at, argument(at, count, 0)));
    },
    in: (...list) => {
      const [at, count] = [call, callArgs];
      exactly(2, list, "Pred.in", at);
      const place = argument(at, count, 1);
      if (!isArray(list[1])) return tell("D012", place, `Pred.in takes a list, not ${describe(list[1])}`);
      const texts = [];
      for (const item of [...list[1]]) {
        if (isPart(item)) {
          return tell("D012", place, `${describe(item)} cannot be in the list`, { help: "the list has numbers, texts or bools only" });
        }
        const ir = constant(item, "value", place);
        if (ir === BROKEN_IR) return BROKEN;
        texts.push(item === null ? "null" : ir.fields[0][1]);
      }
      const lhs = value(list[0], argument(at, count, 0));
      if (lhs === BROKEN_IR) return BROKEN;
      const fields = [["lhs", lhs], ["list", `[${texts.join(",")}]`]];
      const size = 1 + lhs.size + texts.length;
      return new Part(bounded({ sort: "pred", type: "bool", op: "in", fields, at, size, depth: lhs.depth + 1 }));
    },
    isNull: nullness("isNull", "is_null"),
    notNull: nullness("notNull", "not_null"),
    regex,
    const: (...list) => {
      const [at, count] = [call, callArgs];
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
      table[name] = new Part(freeze({ ...leaf(op, "value", type, -1, [[field, json(name)]]), name }));
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
      return stop("D012", call, "a set of rows is not a value", { help: "work on its columns by the tasks vm and filter" });
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
  // The table id of an expression; the same text is kept once.
  function entry(plan, table, letter, ir) {
    if (ir === BROKEN_IR) return null;
    let id = table.ids.get(ir);
    if (id === undefined) {
      plan.size += ir.size;
      if (plan.size > limits.planSize) {
        stop("P204", ir.at, `all expressions together are larger than the limit of ${limits.planSize}`);
      }
      const text = textOf(ir);
      id = table.texts.get(text);
      if (id === undefined) {
        id = `"${letter}${table.texts.size}"`;
        table.texts.set(text, id);
      }
      table.ids.set(ir, id);
    }
    return id;
  }
  const place = (at) => (typeof at === "number" ? `${at}` : json(at));
  const textOf = (ir) => {
    const fields = ir.fields.map(([name, it]) => `,"${name}":${typeof it === "string" ? it : textOf(it)}`);
    return `{"op":"${ir.op}"${fields.join("")},"source":${place(ir.at)}}`;
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

  const COMMON = ["trace", "scheduling", "timeoutMs"];
  const isNothing = (x) => isPart(x) && irOf(x) === BROKEN_IR;
  function run(task, plan, from, list, at) {
    if (plan.closed) stop("D018", at, "this plan is built already", { help: "use ctx and its rows inside build only" });
    if (list.length > 1) tell("D017", at, `${task.method} takes one object with its options, not ${list.length} arguments`);
    const given = list.length === 0 ? {} : list[0];
    const node = { op: task.op, inputs: from === null ? "" : (input(plan, from, at) ?? ""), params: [], at };
    if (!isPlain(given)) {
      tell("D017", at, `${task.method} takes an object with its options, not ${describe(given)}`);
      return new Rows(plan, -1);
    }
    const before = problems.length;
    for (const option of keys(given)) {
      const param = task.params.find((it) => it.option === option);
      const x = given[option];
      if (param === undefined && !COMMON.includes(option)) {
        const known = [...task.params.map((it) => it.option), ...COMMON];
        tell("D015", at, `${task.method} has no option ${option}`, { option, onName: true, wrong: option, known });
      } else if (x === undefined) {
        wrongOption(at, option, `${option} is undefined`, "give it a value, or leave it out");
      } else if (isNothing(x)) {
        continue;
      } else if (option === "scheduling") {
        node.scheduling = scheduling(x, at);
      } else if (option === "timeoutMs") {
        node.timeout = readers.int(x, { at, option });
      } else if (option === "trace") {
        node.trace = readers.text(x, { at, option });
      } else {
        const text = readers[param.kind](x, { at, option, param, plan });
        if (text !== null) node.params[task.params.indexOf(param)] = `"${param.name}":${text}`;
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
    const fields = node.params.filter((it) => it !== undefined);
    if (node.trace) fields.push(`"trace":${node.trace}`);
    plan.nodes.push(
      `{"op":${json(node.op)},"inputs":[${node.inputs}],"params":{${fields.join(",")}}` +
        (node.scheduling ? `,"scheduling":${node.scheduling}` : "") +
        (node.timeout ? `,"timeout_ms":${node.timeout}` : "") +
        `,"source":${at}}`,
    );
    return new Rows(plan, plan.nodes.length - 1);
  }

  const method = (name, fn) => ({ [name](...list) { return fn(this, list); } })[name];
  for (const task of config.tasks) {
    const [home, guest] = task.source ? [Context, Rows] : [Rows, Context];
    home.prototype[task.method] = method(task.method, (self, list) => {
      const at = call;
      if (!home.is(self)) stop("D012", at, `${task.method} was taken off the object that it belongs to`);
      return run(task, home.plan(self), task.source ? null : self, list, at);
    });
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
    const missing = (name) =>
      name === "then" || name === "toJSON"
        ? undefined
        : method(name, (self) => {
            tell("D014", call, `there is no ${what} ${name}`, { wrong: name, known: methods });
            return new Rows(type.is(self) ? type.plan(self) : null, -1);
          });
    setPrototypeOf(
      type.prototype,
      new Proxy(freeze(create(null)), { get: (_, name) => (typeof name === "symbol" ? undefined : missing(name)) }),
    );
    freeze(type.prototype);
  }
  for (const type of [Part, Endpoint]) {
    delete type.prototype.constructor;
    freeze(type.prototype);
  }

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
  const table = () => ({ ids: new Map(), texts: new Map() });
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
  for (const name of ["abs", "floor", "ceil", "round", "sqrt", "log", "log1p", "exp", "min", "max", "pow"]) {
    const native = Math[name];
    Math[name] = method(name, (_, list) => (anyPart(list) ? math[name](...list) : native(...list)));
  }
  delete Math.random;
  const prototype = Array.prototype;
  // The engine's own loops cannot be interrupted, so they do not get lists that are long without having items.
  const looping = (
    "concat copyWithin every fill filter find findIndex findLast findLastIndex flat flatMap forEach includes indexOf join " +
    "lastIndexOf map reduce reduceRight reverse shift slice some sort splice toLocaleString toReversed toSorted toSpliced " +
    "toString unshift with"
  ).split(" ");
  const tooLong = (x) => {
    const length = getOwnPropertyDescriptor(Object(x), "length");
    return length === undefined || !(length.value <= limits.list);
  };
  for (const name of looping) {
    const native = prototype[name];
    if (native === undefined) continue;
    const guardedMethod = method(name, (self, list) => {
      if (tooLong(self) || (name === "concat" && list.some((it) => isArray(it) && tooLong(it)))) {
        stop("D008", call, `a list may have ${limits.list} items`);
      }
      return native.apply(self, list);
    });
    defineProperty(prototype, name, { value: guardedMethod, writable: true, configurable: true, enumerable: false });
  }
  for (const name of ["filter", "some", "every", "find", "findIndex", "findLast", "findLastIndex"]) {
    const native = prototype[name];
    const checked = method(name, (self, [fn, receiver]) => {
      const at = call;
      const test = typeof fn === "function" ? (...list) => now(fn.apply(receiver, list), at, "as a JavaScript condition") : fn;
      return native.call(self, test);
    });
    defineProperty(prototype, name, { value: checked, writable: true, configurable: true, enumerable: false });
  }
  const Truth = globalThis.Boolean;
  const Checked = function Boolean(x) {
    return Truth(now(x, call, "as a JavaScript condition"));
  };
  Checked.prototype = Truth.prototype;
  defineProperty(Truth.prototype, "constructor", { value: Checked });
  globalThis.Boolean = Checked;

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
  ];
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
