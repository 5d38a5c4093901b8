// Tasks: the methods of contexts and rows, each of which adds a node to the plan.
import { config } from "rankd:config";
import { describe, isBroken, NOTHING, report } from "rankd:expressions";
import { Context, NO_VALUE, NO_VALUE_HELP, Rows } from "rankd:handles";
import { input, isPlain, readers, wrongOption } from "rankd:options";
import { HERE, current, limits, problems, stop } from "rankd:problems";

const { create, freeze, hasOwn, keys, setPrototypeOf } = Object;
const { Proxy } = globalThis;

// What every task takes: the label, and the fields of a node beside its parameters.
const fields = create(null);
config.nodeOptions.forEach((field, position) => (fields[field.option] = { ...field, position }));
const common = ["trace", ...keys(fields)];
function run(task, plan, from, list, at) {
  if (plan.closed) stop("D018", at, "this plan is built already", { help: "use ctx and its rows inside build only" });
  if (list.length > 1) report("D017", at, `${task.method} takes one object with its options, not ${list.length} arguments`);
  const given = list.length === 0 ? {} : list[0];
  let inputs = from === null ? "" : (input(plan, from, at) ?? "");
  const texts = [];
  const more = [];
  let trace = null;
  // A predicate that becomes a filter after the task.
  let filter = null;
  if (!isPlain(given)) {
    report("D017", at, `${task.method} takes an object with its options, not ${describe(given)}`);
    return new Rows(plan, -1);
  }
  const before = problems.length;
  for (const option of keys(given)) {
    const param = task.byOption[option];
    const x = given[option];
    const field = fields[option];
    if (task.several && option === "inputs") {
      inputs = isBroken(x) ? null : readers.inputs(x, { at, option, plan });
    } else if (param === undefined && !common.includes(option)) {
      const known = [...(task.several ? ["inputs"] : []), ...task.params.map((it) => it.option), ...common];
      report("D015", at, `${task.method} has no option ${option}`, { option, onName: true, wrong: option, known });
    } else if (x === undefined) {
      wrongOption(at, option, `${option} is undefined`, "give it a value, or leave it out");
    } else if (isBroken(x)) {
      continue;
    } else if (field !== undefined) {
      const text = readers[field.kind](x, { at, option, plan });
      if (text !== null) more[field.position] = `,"${field.name}":${text}`;
    } else if (option === "trace") {
      trace = readers.text(x, { at, option });
    } else if (param.kind === "then") {
      readers.then(x, { at, option });
    } else if (param.kind === "where") {
      filter = readers.where(x, { at, option, plan });
    } else {
      const text = readers[param.kind](x, { at, option, param, plan, then: given.then });
      if (text !== null) texts[param.position] = `"${param.name}":${text}`;
    }
  }
  if (task.several && !hasOwn(given, "inputs")) report("D016", at, `${task.method} needs the option inputs`, { help: task.usage });
  for (const { option, required } of task.params) {
    if (required && !hasOwn(given, option)) {
      report("D016", at, `${task.method} needs the option ${option}`, { help: task.usage });
    }
  }
  if (problems.length > before || inputs === null || (from !== null && Rows.node(from) < 0)) return new Rows(plan, -1);
  let params = "";
  for (let i = 0; i < texts.length; i++) if (texts[i] !== undefined) params += `${params === "" ? "" : ","}${texts[i]}`;
  if (trace !== null) params += `${params === "" ? "" : ","}"trace":${trace}`;
  const rows = add(plan, task.op, inputs, params, more.join(""), at);
  return filter === null ? rows : add(plan, "filter", input(plan, rows, at), `"pred":${filter}`, "", at);
}
// Adds a node.
function add(plan, op, inputs, params, more, at) {
  if (plan.nodes.length === limits.nodes) {
    stop("P201", at, `there are more nodes than the limit of ${limits.nodes}`);
  }
  plan.nodes.push(`{"op":"${op}","inputs":[${inputs}],"params":{${params}}${more},"source":${at}}`);
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
  const help = `write ${task.starts ? "ctx" : "rows"}.${task.usage}`;
  return uncalled(fn, (name) => `${task.method} is a task: it is called before ${name} is taken from it`, help);
};
const callable = (task, type) => method(task.method, (self, list) => {
  const { at } = current;
  if (!type.is(self)) stop("D012", at, `${task.method} was taken off the object that it belongs to`);
  return run(task, type.plan(self), type === Rows ? self : null, list, at);
});
const misplaced = (task, type) => method(task.method, (self) => {
  const help = task.starts ? `write ctx.${task.method}(…)` : `write ctx.viewer(…).${task.method}(…), for example`;
  const starts = task.several ? `${task.method} takes all of its rows as inputs` : `${task.method} starts from nothing, not from rows`;
  const message = task.starts ? starts : `${task.method} works on rows, and ctx has none`;
  report("D014", current.at, message, { help });
  return new Rows(type.is(self) ? type.plan(self) : null, -1);
});
for (const task of config.tasks) {
  task.byOption = create(null);
  task.params.forEach((param, position) => (task.byOption[param.option] = { ...param, position }));
  for (const [type, fits] of [[Context, task.starts], [Rows, task.follows]]) {
    type.prototype[task.method] = fits ? notCalled(task, callable(task, type)) : misplaced(task, type);
  }
}
const methods = config.tasks.map((task) => task.method);
for (const type of [Context, Rows]) {
  delete type.prototype.constructor;
  const missing = (name) => {
    if (name === "then") return undefined;
    if (name === "toJSON") return stop("D012", HERE, NO_VALUE, { help: NO_VALUE_HELP });
    const nameless = method(name, (self) => {
      report("D014", current.at, `there is no task ${name}`, { wrong: name, known: methods });
      return new Rows(type.is(self) ? type.plan(self) : null, -1);
    });
    return uncalled(nameless, () => `there is no task ${name}`, NO_VALUE_HELP);
  };
  setPrototypeOf(
    type.prototype,
    new Proxy(freeze(create(null)), { get: (_, name) => (typeof name === "symbol" ? undefined : missing(name)) }),
  );
  freeze(type.prototype);
}
