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
  const outputs = [];
  for (const rows of isArray(result) ? [...result] : [result]) {
    if (Rows.is(rows)) {
      const id = input(plan, rows, at, "build");
      if (id !== null) outputs.push(id);
    } else if (!isBroken(rows)) {
      const help = "return the rows of the last task, or a list of such rows for several outputs";
      report("D010", at, `build returned ${describe(rows)}, not rows`, { option: "build", help });
    }
  }
  const texts = (map) => [...map.texts.keys()].join(",");
  return new Plan(
    `{"name":${json(`${name}`)},"at":${at},"nodes":[${plan.nodes.join(",")}],"outputs":[${outputs.join(",")}]` +
      `,"exprs":[${texts(plan.exprs)}],"preds":[${texts(plan.preds)}]}`,
  );
}
