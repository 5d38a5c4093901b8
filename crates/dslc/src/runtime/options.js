// The options of a task, read by their kind into the JSON text of a parameter.
import { BROKEN, BROKEN_IR, describe, irOf, isBroken, isExpression, report } from "rankd:expressions";
import { Dial, Endpoint, Model, Rows } from "rankd:handles";
import { intText, numberText, pred, written } from "rankd:operands";
import { argument, current, limits, record, stop } from "rankd:problems";

const { keys } = Object;
const { isArray } = Array;
const { isSafeInteger, isFinite } = Number;
const json = JSON.stringify;

export const wrongOption = (at, option, message, help) => (record("D017", at, message, { option, help }), null);
// An object that is neither an expression nor one of the handles.
export const isPlain = (x) => typeof x === "object" && x !== null && !isExpression(x) && !Rows.is(x) && !Endpoint.is(x) && !Model.is(x) && !Dial.is(x) && !isArray(x);

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

// The digits of a whole number.
function whole(x) {
  if (typeof x === "number" && isSafeInteger(x)) return numberText(x + 0);
  return typeof x === "bigint" ? intText(x) : null;
}
// A number of a task that follows the load.
export function dial(...list) {
  const { at, count } = current;
  const help = "dial(100, { min: 20 }) is 100 at rest, and 20 under full load";
  const wrong = (message, position) => report("D017", argument(at, count, position), message, { help });
  const [first, more] = list;
  if (list.length !== 2) return wrong(`dial takes a number and its min, not ${list.length} argument${list.length === 1 ? "" : "s"}`, -1);
  if (isBroken(first) || isBroken(more)) return BROKEN;
  if (whole(first) === null) return wrong(`dial takes a whole number, not ${describe(first)}`, 0);
  if (!isPlain(more)) return wrong(`dial takes its min as an object, not ${describe(more)}`, 1);
  for (const name of keys(more)) if (name !== "min") return wrong(`dial has min, and no option ${name}`, 1);
  if (isBroken(more.min)) return BROKEN;
  if (whole(more.min) === null) return wrong(`min takes a whole number, not ${describe(more.min)}`, 1);
  return new Dial(whole(first), whole(more.min));
}

// By kind of parameter: the JSON text of an option; null where a problem was reported.
export const readers = {
  endpoint(x, { at, option }) {
    if (Endpoint.is(x)) return json(Endpoint.nameOf(x));
    return wrongOption(at, option, `${option} takes an endpoint, not ${describe(x)}`, "EP.redis.redis_default is one");
  },
  model(x, { at, option }) {
    if (Model.is(x)) return json(Model.nameOf(x));
    return wrongOption(at, option, `${option} takes a model, not ${describe(x)}`, "models are in registry/models.toml, and M.name is one");
  },
  int(x, { at, option }) {
    if (whole(x) !== null) return whole(x);
    if (Dial.is(x)) return wrongOption(at, option, `${option} takes a whole number, and no dial`);
    const help = isExpression(x) ? "it must be known when the plan is compiled: expressions belong into vm and filter" : undefined;
    return wrongOption(at, option, `${option} takes a whole number, not ${describe(x)}`, help);
  },
  dial: (x, context) => (Dial.is(x) ? Dial.text(x) : readers.int(x, context)),
  float(x, { at, option }) {
    if (typeof x === "number" && isFinite(x)) return numberText(x);
    if (typeof x === "bigint" && intText(x) !== null) return intText(x);
    const help = isExpression(x) ? "it must be known when the plan is compiled: expressions belong into vm and filter" : undefined;
    return wrongOption(at, option, `${option} takes a number, not ${describe(x)}`, help);
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
  texts(x, { at, option }) {
    if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of texts, not ${describe(x)}`, '["new", "popular"]');
    const texts = [];
    for (const item of [...x]) {
      if (isBroken(item)) return null;
      if (typeof item !== "string" || !item.isWellFormed()) return wrongOption(at, option, `${option} takes texts, not ${describe(item)}`);
      texts.push(json(item));
    }
    return `[${texts.join(",")}]`;
  },
  numbers(x, { at, option }) {
    if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of numbers, not ${describe(x)}`, "[2, 1]");
    const numbers = [];
    for (const item of [...x]) {
      if (isBroken(item)) return null;
      const text = readers.float(item, { at, option });
      if (text === null) return null;
      numbers.push(text);
    }
    return `[${numbers.join(",")}]`;
  },
  key(x, { at, option }) {
    if (isExpression(x) && irOf(x).op === "key_ref") return json(irOf(x).name);
    return wrongOption(at, option, `${option} takes a key, not ${describe(x)}`, "Key.score is one");
  },
  keys(x, { at, option }) {
    if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of keys, not ${describe(x)}`, "[Key.country, Key.age]");
    const names = [];
    for (const item of [...x]) {
      if (isBroken(item)) return null;
      if (!isExpression(item) || irOf(item).op !== "key_ref") {
        return wrongOption(at, option, `${option} takes keys, not ${describe(item)}`, "Key.score is one");
      }
      names.push(json(irOf(item).name));
    }
    return `[${names.join(",")}]`;
  },
  key_map(x, { at, option }) {
    const help = "{ country: Key.viewer_country }";
    if (!isPlain(x)) return wrongOption(at, option, `${option} takes an object of keys by name, not ${describe(x)}`, help);
    const fields = [];
    for (const name of keys(x)) {
      const item = x[name];
      if (isBroken(item)) return null;
      if (!isExpression(item) || irOf(item).op !== "key_ref" || !name.isWellFormed()) {
        return wrongOption(at, option, `${option} takes keys by name, not ${describe(item)}`, help);
      }
      fields.push(`${json(name)}:${json(irOf(item).name)}`);
    }
    return `{${fields.join(",")}}`;
  },
  key_choices(x, { at, option }) {
    const help = '{ likes: "sum" }';
    if (!isPlain(x)) return wrongOption(at, option, `${option} takes an object of words by key name, not ${describe(x)}`, help);
    const fields = [];
    for (const name of keys(x)) {
      const word = x[name];
      if (isBroken(word)) return null;
      if (typeof word !== "string" || !word.isWellFormed() || !name.isWellFormed()) {
        return wrongOption(at, option, `${option} takes words by key name, not ${describe(word)}`, help);
      }
      fields.push(`${json(name)}:${json(word)}`);
    }
    return `{${fields.join(",")}}`;
  },
  aggregates(x, { at, option }) {
    const help = '{ likes: ["sum", Key.likes], views: ["count"] }';
    if (!isPlain(x)) return wrongOption(at, option, `${option} takes an object of words and keys by key name, not ${describe(x)}`, help);
    const fields = [];
    for (const name of keys(x)) {
      const made = x[name];
      if (isBroken(made)) return null;
      if (!isArray(made) || !name.isWellFormed()) return wrongOption(at, option, `${option} takes lists of a word and a key, not ${describe(made)}`, help);
      const parts = [];
      for (const item of [...made]) {
        if (isBroken(item)) return null;
        const isKey = isExpression(item) && irOf(item).op === "key_ref";
        if (parts.length === 0 ? typeof item !== "string" || !item.isWellFormed() : !isKey) {
          return wrongOption(at, option, `${option} takes a word and a key, not ${describe(item)}`, help);
        }
        parts.push(json(isKey ? irOf(item).name : item));
      }
      fields.push(`${json(name)}:[${parts.join(",")}]`);
    }
    return `{${fields.join(",")}}`;
  },
  sort_keys(x, { at, option }) {
    const help = '[{ key: Key.pinned, order: "desc" }, { key: Key.score, order: "desc", nulls: "first" }]';
    if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of keys with their order, not ${describe(x)}`, help);
    const list = [];
    for (const by of [...x]) {
      if (isBroken(by)) return null;
      if (!isPlain(by)) return wrongOption(at, option, `${option} takes objects with a key, not ${describe(by)}`, help);
      const fields = [];
      for (const name of keys(by)) {
        const value = by[name];
        if (isBroken(value)) return null;
        if (!["key", "order", "nulls"].includes(name)) return wrongOption(at, option, `${option} has key, order and nulls, not ${name}`, help);
        const isKey = isExpression(value) && irOf(value).op === "key_ref";
        if (name === "key" ? !isKey : typeof value !== "string" || !value.isWellFormed()) {
          return wrongOption(at, option, `${name} takes a ${name === "key" ? "key" : "text"}, not ${describe(value)}`, help);
        }
        fields.push(`"${name}":${json(name === "key" ? irOf(value).name : value)}`);
      }
      list.push(`{${fields.join(",")}}`);
    }
    return `[${list.join(",")}]`;
  },
  rules(x, { at, option }) {
    const help = "[{ by: Key.author, max: 2, window: 10 }, { by: Key.topic, gap: 1 }]";
    if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of rules, not ${describe(x)}`, help);
    const rules = [];
    for (const rule of [...x]) {
      if (isBroken(rule)) return null;
      if (!isPlain(rule)) return wrongOption(at, option, `a rule is an object, not ${describe(rule)}`, help);
      const fields = [];
      for (const name of keys(rule)) {
        const value = rule[name];
        if (isBroken(value)) return null;
        const text = name === "by" ? (isExpression(value) && irOf(value).op === "key_ref" ? json(irOf(value).name) : null) : whole(value);
        if (!["by", "max", "window", "gap"].includes(name)) return wrongOption(at, option, `a rule has by, max, window and gap, not ${name}`, help);
        if (text === null) return wrongOption(at, option, `${name} takes a ${name === "by" ? "key" : "whole number"}, not ${describe(value)}`, help);
        fields.push(`"${name}":${text}`);
      }
      rules.push(`{${fields.join(",")}}`);
    }
    return `[${rules.join(",")}]`;
  },
  on(x, { at, option }) {
    const help = "Key.parent_id, or { left: Key.author, right: Key.id }";
    const name = (it) => (isExpression(it) && irOf(it).op === "key_ref" ? json(irOf(it).name) : null);
    if (name(x) !== null) return name(x);
    if (!isPlain(x)) return wrongOption(at, option, `${option} takes a key, or a left and a right key, not ${describe(x)}`, help);
    for (const side of keys(x)) {
      if (isBroken(x[side])) return null;
      if (side !== "left" && side !== "right") return wrongOption(at, option, `${option} has left and right, not ${side}`, help);
      if (name(x[side]) === null) return wrongOption(at, option, `${side} takes a key, not ${describe(x[side])}`, help);
    }
    if (x.left === undefined || x.right === undefined) return wrongOption(at, option, `${option} needs left and right`, help);
    return `{"left":${name(x.left)},"right":${name(x.right)}}`;
  },
  expr: (x, { at, option, plan }) => entry(plan, plan.exprs, "e", written(x, `${at}:${option}`)),
  exprs(x, { at, option, plan }) {
    const help = "{ score: Key.likes * 2, final_score: Key.score + 1 }";
    if (!isPlain(x)) return wrongOption(at, option, `${option} takes an object of expressions by key name, not ${describe(x)}`, help);
    const fields = [];
    for (const name of keys(x)) {
      if (!name.isWellFormed()) return wrongOption(at, option, `${option} takes expressions by key name`, help);
      const id = readers.expr(x[name], { at, option, plan });
      if (id === null) return null;
      fields.push(`${json(name)}:${id}`);
    }
    return `{${fields.join(",")}}`;
  },
  pred: (x, { at, option, plan }) => entry(plan, plan.preds, "p", pred(x, `${at}:${option}`)),
  // The condition of a filter that follows the task: a node of its own, so it is no text of a parameter.
  where: (x, context) => readers.pred(x, context),
  node(x, { at, option, plan }) {
    if (!Rows.is(x)) return wrongOption(at, option, `${option} takes a set of rows, not ${describe(x)}`);
    return input(plan, x, at, option);
  },
  // The nodes that a task may ask for. `then` is what is done to the rows of each.
  reserves(x, { at, option, plan, then }) {
    if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of rows, not ${describe(x)}`, "[trending, popular]");
    const nodes = [];
    for (const item of [...x]) {
      if (isBroken(item)) return null;
      let rows = item;
      if (typeof then === "function" && Rows.is(item)) {
        rows = then(item);
        if (isBroken(rows)) return null;
        if (!Rows.is(rows)) return wrongOption(at, "then", `then gives back a set of rows, not ${describe(rows)}`);
      }
      const node = readers.node(rows, { at, option, plan });
      if (node === null) return null;
      nodes.push(node);
    }
    return `[${nodes.join(",")}]`;
  },
  // A function, which the reserves call: it is no text of a parameter.
  then(x, { at, option }) {
    if (typeof x === "function") return "";
    return wrongOption(at, option, `${option} takes a function of rows, not ${describe(x)}`, "(rows) => rows.take({ count: 10 })");
  },
  // Rows that get places.
  fills(x, { at, option, plan }) {
    const help = "[{ rows: ads, at: [3, 10] }, { rows: banners, every: 5, max: 2 }]";
    if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of rows with their places, not ${describe(x)}`, help);
    const fills = [];
    for (const fill of [...x]) {
      if (isBroken(fill)) return null;
      if (!isPlain(fill)) return wrongOption(at, option, `a fill is an object, not ${describe(fill)}`, help);
      const fields = [];
      for (const name of keys(fill)) {
        const value = fill[name];
        if (isBroken(value)) return null;
        if (!["rows", "at", "every", "max"].includes(name)) return wrongOption(at, option, `a fill has rows, at, every and max, not ${name}`, help);
        let text;
        if (name === "rows") text = readers.node(value, { at, option, plan });
        else if (name === "at") text = readers.numbers(value, { at, option });
        else text = whole(value) ?? wrongOption(at, option, `${name} takes a whole number, not ${describe(value)}`, help);
        if (text === null) return null;
        fields.push(`"${name}":${text}`);
      }
      fills.push(`{${fields.join(",")}}`);
    }
    return `[${fills.join(",")}]`;
  },
  // The rows that flow into a task that takes several.
  inputs(x, { at, option, plan }) {
    if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of rows, not ${describe(x)}`, "[popular, followed]");
    const nodes = [];
    for (const item of [...x]) {
      if (isBroken(item)) return null;
      const node = readers.node(item, { at, option, plan });
      if (node === null) return null;
      nodes.push(node);
    }
    return nodes.join(",");
  },
  ids(x, { at, option }) {
    if (!isArray(x)) return wrongOption(at, option, `${option} takes a list of ids, not ${describe(x)}`, '["tt0000001", "tt0000002"]');
    const ids = [];
    for (const item of [...x]) {
      if (isBroken(item)) return null;
      const text = typeof item === "string" || typeof item === "bigint" || isSafeInteger(item) ? plainData(item, 0) : null;
      if (text === null) return wrongOption(at, option, `${option} takes strings and whole numbers, not ${describe(item)}`);
      ids.push(text);
    }
    return `[${ids.join(",")}]`;
  },
  param(x, { at, option }) {
    if (isExpression(x) && irOf(x).op === "param_ref") return `{"param":${json(irOf(x).name)}}`;
    return wrongOption(at, option, `${option} takes a parameter, not ${describe(x)}`, "P.NAME is one");
  },
  vector(x, { at, option }) {
    if (isExpression(x) && irOf(x).op === "key_ref") return readers.key(x, { at, option });
    if (isExpression(x) && irOf(x).op === "param_ref") return readers.param(x, { at, option });
    return wrongOption(at, option, `${option} takes a key or a parameter, not ${describe(x)}`, "Key.NAME or P.NAME is one");
  },
  columns(x, { at, option }) {
    const text = isPlain(x) ? plainData(x, 0) : null;
    return text ?? wrongOption(at, option, `${option} takes an object of plain values by key name, not ${describe(x)}`);
  },
  // What readers of a node get in place of its rows.
  substitute(x, { at, option, plan }) {
    if (x === "none" || x === "input") return json(x);
    if (Rows.is(x)) {
      const node = input(plan, x, at, option);
      return node === null ? null : `{"node":${node}}`;
    }
    const message = `${option} takes "none", "input" or a set of rows, not ${describe(x)}`;
    if (typeof x === "string") return (record("D017", at, message, { option, wrong: x, known: ["none", "input"] }), null);
    return wrongOption(at, option, message);
  },
  scheduling(x, { at }) {
    const wrong = (message, help) => wrongOption(at, "scheduling", message, help);
    if (!isPlain(x)) return wrong(`scheduling takes an object, not ${describe(x)}`, "{ inline: false, costEstimateUs: 50 }");
    const fields = [];
    for (const name of keys(x)) {
      if (name === "inline" && typeof x.inline === "boolean") fields.push(`"inline":${x.inline}`);
      else if (name === "costEstimateUs" && isSafeInteger(x.costEstimateUs)) fields.push(`"cost_estimate_us":${x.costEstimateUs}`);
      else if (name === "inline") return wrong(`inline takes true or false, not ${describe(x.inline)}`);
      else if (name === "costEstimateUs") return wrong(`costEstimateUs takes a whole number, not ${describe(x.costEstimateUs)}`);
      else return (report("D015", at, `scheduling has no option ${name}`, { option: "scheduling", wrong: name, known: ["inline", "costEstimateUs"] }), null);
    }
    return `{${fields.join(",")}}`;
  },
};
// The id of the node that gives these rows.
export function input(plan, rows, at, option) {
  if (Rows.plan(rows) !== plan) {
    const help = "a plan is made of the rows that its own ctx gives";
    report("D018", at, "these rows belong to another plan", { option, help });
    return null;
  }
  return Rows.node(rows) < 0 ? null : `"n${Rows.node(rows)}"`;
}
// The table id of an expression; the same text is kept once. The map is weak, so expressions that are no longer in use are freed.
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
export const textOf = (ir) => {
  let text = `{"op":"${ir.op}"`;
  for (let i = 0; i < ir.fields.length; i += 2) {
    const it = ir.fields[i + 1];
    text += `,"${ir.fields[i]}":${typeof it === "string" ? it : textOf(it)}`;
  }
  return `${text},"source":${typeof ir.at === "number" ? ir.at : json(ir.at)}}`;
};
