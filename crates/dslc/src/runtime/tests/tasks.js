// Tests of registry names, options, tasks and plans.
import { equal, reported } from "rankd:tests/checks";
import { Context, Plan, Rows } from "rankd:handles";
import { EP, Key, P } from "rankd:names";
import { dial, readers } from "rankd:options";
import { definePlan } from "rankd:plan";
import { current } from "rankd:problems";
import "rankd:tasks";

const blank = () => ({ nodes: [], exprs: { ids: new WeakMap(), texts: new Map() }, preds: { ids: new WeakMap(), texts: new Map() }, size: 0, closed: false });
const read = (kind, x, plan) => readers[kind](x, { at: 5, option: "it", plan });
const built = (build) => {
  current.at = 3;
  return JSON.parse(Plan.text(definePlan({ name: "feed", build })));
};

export const tests = {
  "a name that the registry does not have is reported"() {
    current.at = 4;
    equal(reported(() => Key.agee), ["D013 4: there is no key Key.agee"]);
    equal(reported(() => P.weigth), ["D013 4: there is no parameter P.weigth"]);
    equal(reported(() => EP.redis.nowhere), ["D013 4: there is no endpoint EP.redis.nowhere"]);
    equal(reported(() => EP.ftp.nowhere), ["D013 4: there is no kind of endpoint EP.ftp"]);
  },
  "an option is read by its kind"() {
    const [endpoint] = Object.values(EP.redis);
    equal(read("endpoint", endpoint), JSON.stringify(Object.keys(EP.redis)[0]));
    equal([read("int", 5), read("int", -0), read("int", 2n ** 60n)], ["5", "0", "1152921504606846976"]);
    equal([read("bool", true), read("text", "a\n"), read("key", Key.age), read("keys", [Key.age, Key.title])], ["true", '"a\\n"', '"age"', '["age","title"]']);
    equal([read("float", 0.5), read("float", 2), read("float", 2n), read("texts", ["a", "b"])], ["0.5", "2", "2", '["a","b"]']);
    equal(read("key_map", { title: Key.title, "/meta/age": Key.age }), '{"title":"title","/meta/age":"age"}');
    equal(read("columns", { age: [1, null], title: { cycle: ["a"] } }), '{"age":[1,null],"title":{"cycle":["a"]}}');
  },
  "a dial is a number and its min"() {
    current.at = 4;
    equal([read("dial", dial(100, { min: 20 })), read("dial", 7)], ['{"dial":100,"min":20}', "7"]);
    equal(reported(() => read("int", dial(1, { min: 1 }))), ["D017 5: it takes a whole number, and no dial"]);
    equal(reported(() => dial(1)), ["D017 4: dial takes a number and its min, not 1 argument"]);
    equal(reported(() => dial(1.5, { min: 1 })), ["D017 4: dial takes a whole number, not 1.5"]);
    equal(reported(() => dial(1, 1)), ["D017 4: dial takes its min as an object, not 1"]);
    equal(reported(() => dial(1, { mni: 1 })), ["D017 4: dial has min, and no option mni"]);
    equal(reported(() => dial(1, {})), ["D017 4: min takes a whole number, not undefined"]);
    equal(reported(() => read("dial", "x")), ['D017 5: it takes a whole number, not "x"']);
  },
  "an option of another kind is refused"() {
    equal(reported(() => read("endpoint", "redis")), ['D017 5: it takes an endpoint, not "redis"']);
    equal(reported(() => read("int", 1.5)), ["D017 5: it takes a whole number, not 1.5"]);
    equal(reported(() => read("bool", 1)), ["D017 5: it takes true or false, not 1"]);
    equal(reported(() => read("text", 1)), ["D017 5: it takes a text, not 1"]);
    equal(reported(() => read("key", "age")), ['D017 5: it takes a key, not "age"']);
    equal(reported(() => read("keys", ["age"])), ['D017 5: it takes keys, not "age"']);
    equal(reported(() => read("float", Infinity)), ["D017 5: it takes a number, not Infinity"]);
    equal(reported(() => read("texts", "a")), ['D017 5: it takes a list of texts, not "a"']);
    equal(reported(() => read("texts", [1])), ["D017 5: it takes texts, not 1"]);
    equal(reported(() => read("key_map", [Key.age])), ["D017 5: it takes an object of keys by name, not a list"]);
    equal(reported(() => read("key_map", { age: "age" })), ['D017 5: it takes keys by name, not "age"']);
    equal(reported(() => read("node", 1, blank())), ["D017 5: it takes a set of rows, not 1"]);
    equal(reported(() => read("columns", { age: [Key.age] })), ["D017 5: it takes an object of plain values by key name, not an object"]);
  },
  "equal expressions share an entry of the table"() {
    const plan = blank();
    equal([read("expr", Key.age, plan), read("expr", Key.age, plan), read("expr", Key.title, plan)], ['"e0"', '"e0"', '"e1"']);
    equal([read("pred", true, plan), read("pred", false, plan)], ['"p0"', '"p1"']);
  },
  "rows belong to one plan"() {
    equal(reported(() => read("node", new Rows(blank(), 0), blank())), ["D018 5: these rows belong to another plan"]);
  },
  "a task adds a node"() {
    const plan = built((ctx) => ctx.begin({ count: 3, trace: "first" }).keepSome({ count: 2, timeoutMs: 7, scheduling: { inline: false } }));
    equal(plan.name, "feed");
    equal(plan.outputs, ["n1"]);
    equal(plan.nodes, [
      { op: "begin", inputs: [], params: { count: 3, trace: "first" }, source: 3 },
      { op: "keep_some", inputs: ["n0"], params: { count: 2 }, scheduling: { inline: false }, timeout_ms: 7, source: 3 },
    ]);
  },
  "a node says what stands in for its rows, in the artifact's order"() {
    const plan = built((ctx) => {
      const other = ctx.begin({ count: 1 });
      return ctx
        .begin({ count: 3, otherwise: "none", when: true, failOpen: "demo", log: [Key.age], fallback: other, timeoutMs: 7 })
        .keepSome({ count: 2, fallback: "input", failOpen: "why" });
    });
    equal(JSON.stringify(plan.nodes[1]), '{"op":"begin","inputs":[],"params":{"count":3},"timeout_ms":7,"fallback":{"node":"n0"},"fail_open":"demo","when":"p0","otherwise":"none","log":["age"],"source":3}');
    equal(JSON.stringify(plan.nodes[2]), '{"op":"keep_some","inputs":["n1"],"params":{"count":2},"fallback":"input","fail_open":"why","source":3}');
  },
  "several outputs are a list"() {
    equal(built((ctx) => [ctx.begin({ count: 1 }), ctx.begin({ count: 2 })]).outputs, ["n0", "n1"]);
  },
  "a task says what is wrong with its options"() {
    const of = (use) => reported(() => built((ctx) => use(ctx)));
    equal(of((ctx) => ctx.begin()), ["D016 3: begin needs the option count"]);
    equal(of((ctx) => ctx.begin({ count: 1, cuont: 2 })), ["D015 3: begin has no option cuont"]);
    equal(of((ctx) => ctx.begin({ count: undefined })), ["D017 3: count is undefined"]);
    equal(of((ctx) => ctx.begin({ count: 1 }, 2)), ["D017 3: begin takes one object with its options, not 2 arguments"]);
    equal(of((ctx) => ctx.begin({ count: 1, scheduling: { inlined: true } })), ["D015 3: scheduling has no option inlined"]);
    equal(of((ctx) => ctx.begin({ count: 1, fallback: "nothing" })), ['D017 3: fallback takes "none", "input" or a set of rows, not "nothing"']);
    equal(of((ctx) => ctx.begin({ count: 1, fallback: null })), ['D017 3: fallback takes "none", "input" or a set of rows, not null']);
    equal(of((ctx) => ctx.begin({ count: 1, otherwise: 1 })), ['D017 3: otherwise takes "none", "input" or a set of rows, not 1']);
    equal(of((ctx) => ctx.begin({ count: 1, failOpen: 1 })), ["D017 3: failOpen takes a text, not 1"]);
    equal(of((ctx) => ctx.begin({ count: 1, when: 1 })), ["D012 3:when: 1 is not a condition"]);
  },
  "a task is called on what it belongs to"() {
    const of = (use) => reported(() => built((ctx) => use(ctx)));
    equal(of((ctx) => ctx.keepSome({ count: 1 })), ["D014 3: keepSome works on rows, and ctx has none"]);
    equal(of((ctx) => ctx.begin({ count: 1 }).begin({ count: 1 })), ["D014 3: begin starts from nothing, not from rows"]);
    equal(of((ctx) => ctx.beginn({ count: 1 })), ["D014 3: there is no task beginn"]);
    equal(of((ctx) => ctx.begin.keepSome()), ["D014 -2: begin is a task: it is called before keepSome is taken from it"]);
  },
  "rows are no value, and a plan that is built takes no more nodes"() {
    let kept;
    built((ctx) => (kept = ctx.begin({ count: 1 })));
    equal(reported(() => `${kept}`), ["D012 -2: a set of rows is not a value"]);
    equal(reported(() => kept.keepSome({ count: 1 })), ["D018 3: this plan is built already"]);
    equal([Rows.is(kept), Context.is(kept)], [true, false]);
  },
  "a plan has a name and a function"() {
    current.at = 3;
    equal(reported(() => definePlan()), ["D010 3: definePlan takes an object with name and build"]);
    equal(reported(() => definePlan({ name: "x", build: 3 })), ["D010 3: build takes a function, not 3"]);
    equal(reported(() => definePlan({ name: "x", build: () => 3 })), ["D010 3: build returned 3, not rows"]);
  },
};
