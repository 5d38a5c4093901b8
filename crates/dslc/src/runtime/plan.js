// definePlan: runs the author's `build` and writes the plan down as JSON text.
import { describe, isBroken, report } from "rankd:expressions";
import { Context, Plan, Rows } from "rankd:handles";
import { input, isPlain } from "rankd:options";
import { current, stop } from "rankd:problems";

const { keys } = Object;
const { isArray } = Array;
const json = JSON.stringify;

const table = () => ({ ids: new WeakMap(), texts: new Map() });
export const usage = 'definePlan({ name: "feed", build: (ctx) => ctx.viewer({ … }) })';

export function definePlan(...list) {
  const { at } = current;
  const [options] = list;
  if (list.length !== 1 || !isPlain(options)) stop("D010", at, "definePlan takes an object with name and build", { help: usage });
  for (const option of keys(options)) {
    if (option !== "name" && option !== "build") {
      report("D015", at, `definePlan has no option ${option}`, { option, onName: true, wrong: option, known: ["name", "build"] });
    }
  }
  const { name, build } = options;
  if (typeof name !== "string" || !name.isWellFormed()) {
    report("D010", at, `name takes a text, not ${describe(name)}`, { option: "name", help: usage });
  }
  if (typeof build !== "function") stop("D010", at, `build takes a function, not ${describe(build)}`, { option: "build", help: usage });
  const plan = { nodes: [], exprs: table(), preds: table(), size: 0, closed: false };
  const result = build(new Context(plan));
  plan.closed = true;
  const output = (rows) => {
    if (Rows.is(rows)) return input(plan, rows, at, "build");
    if (!isBroken(rows)) {
      const help = "return the rows of the last task; a list of such rows, or rows by name, for several outputs";
      report("D010", at, `build returned ${describe(rows)}, not rows`, { option: "build", help });
    }
    return null;
  };
  const isFound = (text) => text !== null;
  let outputs;
  if (isPlain(result) && !Context.is(result) && !Plan.is(result)) {
    const named = keys(result).map((name) => {
      if (!name.isWellFormed()) stop("D010", at, "the name of an output is a text", { option: "build" });
      const id = output(result[name]);
      return id === null ? null : `${json(name)}:${id}`;
    });
    outputs = `{${named.filter(isFound).join(",")}}`;
  } else {
    outputs = `[${(isArray(result) ? [...result] : [result]).map(output).filter(isFound).join(",")}]`;
  }
  const texts = (map) => [...map.texts.keys()].join(",");
  return new Plan(
    `{"name":${json(`${name}`)},"at":${at},"nodes":[${plan.nodes.join(",")}],"outputs":${outputs}` +
      `,"exprs":[${texts(plan.exprs)}],"preds":[${texts(plan.preds)}]}`,
  );
}
