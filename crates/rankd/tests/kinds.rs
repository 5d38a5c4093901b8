//! Every kind of parameter on its whole way: from an option in TypeScript over the artifact and the checks to what a task is made
//! of. The task is one that no release has.

#![expect(clippy::panic, clippy::unwrap_used, reason = "a test says what is wrong, as an assertion would")]

use dslc::Dslc;
use rankd_column::{Batch, Key, RowSet};
use rankd_engine::error::TaskError;
use rankd_engine::store::KeyedEndpoint;
use rankd_engine::task::{Compute, ComputeContext, Definition, InputRows, LinkContext, Make};
use rankd_engine::{Linked, Tasks};
use rankd_plan::plan::KeyPair;
use rankd_plan::registry::{AsWritten, Text};
use rankd_plan::signature::typed::{
    AskedVector, Columns, Count, CountPerInput, Dial, Expr, Exprs, Fills, IdList, IdsParam, Input, IntKeyPerInput,
    KeyMap, KeyPairs, Millis, ModelName, On, PlainText, Pointer, Predicate, Reserves, Rules, SortKeys, TemplateText,
    Texts, Then, Where,
};
use rankd_plan::signature::*;
use rankd_plan::source::{Compiler, Folder, Unreadable};
use rankd_plan::{Registry, Severity};
use rankd_plan::{aggregates, choices, key_choices, params};
use std::sync::Mutex;

key_choices! {
    enum How -> u8 { "sum": Numbers => 1, "first": Any => 2 }
}

aggregates! {
    enum Made -> u8 { "sum": Numbers -> Same => 1, "mean": Numbers -> Float => 2, "count": Any -> Int, alone => 3 }
}

choices! {
    enum Side -> bool { "left" => true, "right" => false }
}

params! {
    struct Params {
        /// An endpoint
        endpoint: KeyedEndpoint,
        /// An int
        #[range(-5..=5)]
        int: i64,
        /// A number of rows
        count: Count = 2,
        /// A time
        time_ms: Millis,
        /// A float
        #[range(0.0..=1.0)]
        share: f64,
        /// A float that nobody gave
        #[range(0.0..)]
        weight: f64 = 1.5,
        /// An int that follows the load
        #[range(1..=50)]
        dial: Dial,
        /// A flag
        flag: bool = true,
        /// A text
        text: PlainText,
        /// A text that nobody gave
        note: Option<PlainText>,
        /// A list of texts
        texts: Texts,
        /// A number for each input
        quota: CountPerInput,
        /// A choice
        side: Side = "left",
        /// A template
        template: TemplateText,
        /// A place in a document
        #[needed(side: "right")]
        place: Option<Pointer>,
        /// A key that is read
        key: Key,
        /// Keys that are read
        keys: Vec<Key>,
        /// Keys that are written
        fields: KeyMap,
        /// Keys that are written, by the key of the other rows
        pairs: KeyPairs,
        /// Words by key
        words: How,
        /// What is made of keys
        made: Made,
        /// What rows are sorted by
        by: SortKeys,
        /// Rules about groups
        rules: Rules,
        /// A key that is matched with the ids of the other rows
        on: On,
        /// Two keys that are matched
        sides: On,
        /// A key that is written
        out_key: Key,
        /// An expression
        #[into(out_key)]
        expr: Expr,
        /// Keys with their expressions
        exprs: Exprs,
        /// A key for each input
        ranks: IntKeyPerInput,
        /// A condition
        pred: Predicate,
        /// A vector to compare with
        vector: AskedVector,
        /// A filter that nobody gave
        only: Option<Where>,
        /// More rows
        rhs: Input,
        /// Rows to fill up from
        reserves: Reserves,
        /// What is done to them, which nobody said
        each: Option<Then>,
        /// Rows with their places
        fills: Fills,
        /// Ids of rows
        #[rows(count)]
        ids: IdList,
        /// A list of the request
        list: IdsParam,
        /// A model
        model: ModelName,
        /// Literal columns
        #[rows(count)]
        columns: Columns,
    }
}

/// What the task was made of, but for what can only be looked at here.
static MADE: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Every;

impl Make for Every {
    type Params = Params;

    fn make(p: Params, cx: &LinkContext<'_>) -> Every {
        let name = |key: &Key| cx.field(*key).name;
        let pair = |pair: &KeyPair| format!("{} from {}", name(&pair.left), name(&pair.right));
        let fields: Vec<_> = p.fields.iter().map(|(field, key)| (field, name(key))).collect();
        let columns: Vec<_> = p.columns.iter().map(|(key, data)| (name(key), data)).collect();
        *MADE.lock().unwrap() = vec![
            format!("{:?} {} {} {:?} {} {}", p.endpoint, p.int, p.count, p.time_ms, p.dial.at(&[]), p.dial.at(&[7])),
            format!("{} {} {} {} {:?} {:?} {}", p.share, p.weight, p.flag, p.text, p.note, p.texts, p.side),
            format!(
                "{} {:?} {fields:?} {}",
                name(&p.key),
                p.keys.iter().map(name).collect::<Vec<_>>(),
                name(&p.out_key)
            ),
            format!("{:?} {:?} {} {} {}", p.expr.keys(), p.pred.keys(), p.rhs, p.reserves, p.fills.len()),
            format!(
                "{:?} {} {columns:?} {}",
                p.ids,
                cx.registry.params.get(p.list).name,
                cx.registry.models.get(p.model).name
            ),
            format!("{:?} {:?} {:?}", p.pairs.iter().map(pair).collect::<Vec<_>>(), pair(&p.on), pair(&p.sides)),
            format!("{:?} {:?}", p.template.parts(), p.place),
            format!("{:?}", p.quota),
            p.by.iter().map(|by| format!("{} {:?} {:?};", name(&by.key), by.order, by.nulls)).collect(),
            p.rules.iter().map(|rule| format!("{} {} {};", name(&rule.by), rule.max, rule.window)).collect(),
            format!("{:?}", p.words.iter().map(|(key, how)| (name(key), how)).collect::<Vec<_>>()),
            format!(
                "{:?} {:?}",
                p.exprs.iter().map(|(key, program)| (name(key), program.keys().len())).collect::<Vec<_>>(),
                p.ranks.iter().map(name).collect::<Vec<_>>()
            ),
            p.made
                .iter()
                .map(|made| format!("{} {} {:?};", name(&made.into), made.how, made.of.as_ref().map(name)))
                .collect(),
            match p.vector {
                AskedVector::Param(at) => cx.registry.params.get(at).name.clone(),
                AskedVector::Key(key) => name(&key).to_string(),
            },
        ];
        Every
    }
}

impl Compute for Every {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(inputs.take(0))
    }
}

const EVERY: Contract = Contract {
    inputs: Inputs::One,
    rows: RowEffect::Same,
    reads: &[Params::key, Params::keys, Params::words, Params::by, Params::rules, Params::on, Params::sides],
    writes: Writes::Params(&[
        Params::fields,
        Params::pairs,
        Params::made,
        Params::out_key,
        Params::exprs,
        Params::ranks,
        Params::columns,
    ]),
    params: Params::PARAMS,
    cost: Cost::Unknown,
};

params! {
    struct First {}
}

impl Compute for First {
    fn run(&self, _: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        Ok(RowSet::new(Batch::new(vec![1, 2])))
    }
}

const FIRST: Contract = Contract {
    inputs: Inputs::None,
    rows: RowEffect::Source,
    reads: &[],
    writes: Writes::AnyKey,
    params: First::PARAMS,
    cost: Cost::Trivial,
};

fn tasks() -> Tasks {
    let every = Definition::of::<Every, _>("every_kind", "Take a parameter of every kind.", &EVERY);
    Tasks::new([every, Definition::of::<First, _>("first", "Give two rows.", &FIRST)]).unwrap()
}

fn registry() -> Registry {
    let text = |text| Text { file: "", text };
    let texts = [
        text(include_str!("../../../registry/keys.toml")),
        text(concat!(
            include_str!("../../../registry/params.toml"),
            "[[param]]\nparam_id = 9000\nname = \"taste\"\ntype = \"vector<2>\"\nnullable = true\n"
        )),
        text(include_str!("../../../registry/endpoints.local.toml")),
        text("[[model]]\nname = \"ctr\"\nfile = \"ctr.txt\"\nformat = \"lightgbm\"\ndoc = \"Clicks\"\n"),
    ];
    let (registry, problems) = Registry::parse_files(&AsWritten, texts);
    assert!(problems.is_empty(), "the registry is good");
    registry
}

struct OnePlan(String);

impl Folder for OnePlan {
    fn read(&self, _: &str) -> Result<String, Unreadable> {
        Ok(self.0.clone())
    }
}

const OPTIONS: &str = r#"
    endpoint: EP.redis.redis_default, int: -3, timeMs: 250, share: 0.25, dial: dial(40, { min: 5 }), text: "user:1", texts: ["new", "popular"], quota: [7], side: "right",
    template: "a:{id}{{", place: "/a/b",
    key: Key.age, keys: [Key.country, Key.age], fields: { title: Key.title, "/meta/likes": Key.likes },
    pairs: { likes: Key.views }, words: { likes: "sum", title: "first" }, made: { final_score: ["mean", Key.age], likes: ["count"] }, by: [{ key: Key.age, order: "desc" }, { key: Key.title, nulls: "first" }], rules: [{ by: Key.country, max: 2, window: 10 }, { by: Key.age, gap: 1 }], on: Key.parent_id, sides: { left: Key.country, right: Key.title }, outKey: Key.score,
    expr: Key.likes * 2, exprs: { quality: Key.likes * Key.age + 1, title: "x" }, ranks: [Key.views], pred: Key.age > 18, vector: P.taste, rhs: ctx.first(), reserves: [ctx.first()], fills: [{ rows: ctx.first(), at: [3] }], ids: [5, 6n], list: P.hidden_ids, model: M.ctr, columns: { views: [1, 2] },"#;

/// Compiles a plan with these options and gives what the task was made of, or what is wrong.
fn made(options: &str) -> Result<Vec<String>, Vec<String>> {
    let (tasks, registry) = (tasks(), registry());
    let code = format!(
        "import {{ definePlan }} from \"@ranking-dsl/runtime\";\n\
         export default definePlan({{ name: \"every\", build: (ctx) => ctx.first().everyKind({{ {options} }}) }});\n"
    );
    let compiled = Dslc.compile("every.plan.ts", &OnePlan(code), &registry, tasks.signatures());
    let Some(plan) = compiled.checked.plan else {
        let found = compiled.checked.diagnostics.list().iter();
        let found = found.filter(|found| found.code.severity() == Severity::Error);
        return Err(found.map(|found| format!("{} {}", found.code, found.message)).collect());
    };
    Linked::link(&plan, &tasks, &registry).unwrap_or_else(|error| panic!("{error}"));
    Ok(MADE.lock().unwrap().clone())
}

#[test]
fn a_parameter_of_every_kind_comes_from_typescript_to_the_task() {
    let made = made(OPTIONS).unwrap();
    assert_eq!(made[0], "KeyedEndpoint(0) -3 2 250ms 40 7");
    assert_eq!(made[1], "0.25 1.5 true user:1 None [\"new\", \"popular\"] false");
    assert_eq!(made[2], "age [\"country\", \"age\"] [(\"title\", \"title\"), (\"/meta/likes\", \"likes\")] score");
    let registry = registry();
    let key = |name| Key(registry.keys.named(name).unwrap());
    assert_eq!(made[3], format!("{:?} {:?} 1 1 1", [key("likes")], [key("age")]));
    assert_eq!(made[4], "[Int(5), Int(6)] hidden_ids [(\"views\", Values([Int(1), Int(2)]))] ctr");
    assert_eq!(made[5], "[\"views from likes\"] \"parent_id from id\" \"country from title\"");
    assert_eq!(made[6], "[Text(\"a:\"), Id, Text(\"{\")] Some(\"/a/b\")");
    assert_eq!(made[7], "[7]");
    assert_eq!(made[8], "age Desc Last;title Asc First;");
    assert_eq!(made[9], "country 2 10;age 1 2;");
    assert_eq!(made[10], "[(\"likes\", 1), (\"title\", 2)]");
    assert_eq!(made[11], "[(\"quality\", 2), (\"title\", 0)] [\"views\"]");
    assert_eq!(made[12], "final_score 2 Some(\"age\");likes 3 None;");
    assert_eq!(made[13], "taste");
    // Every kind there is was looked at.
    let names: Vec<&str> = Params::PARAMS.iter().map(|param| param.kind.row().reader).collect();
    assert!(ParamKind::EACH.iter().all(|kind| names.contains(&kind.row().reader)), "{names:?}");
}

#[test]
fn an_option_outside_its_kind_is_refused() {
    let wrong = |from: &str, to: &str| made(&OPTIONS.replace(from, to)).unwrap_err();
    assert_eq!(wrong("share: 0.25", "share: 1.5"), ["P405 share takes float 0..=1"]);
    assert_eq!(wrong("share: 0.25", "share: \"a\""), ["D017 share takes a number, not \"a\""]);
    assert_eq!(wrong("share: 0.25", "share: 0.25, weight: -1"), ["P405 weight takes float ≥ 0"]);
    assert_eq!(wrong("dial(40, { min: 5 })", "dial(51, { min: 5 })"), ["P405 dial takes int 1..=50"]);
    assert_eq!(wrong("int: -3", "int: -6"), ["P405 int takes int -5..=5"]);
    assert_eq!(wrong("[\"new\", \"popular\"]", "[]"), ["P405 texts needs at least one text"]);
    assert_eq!(wrong("\"popular\"", "\"po pular\""), ["P405 each text is 1 to 64 letters, digits, _, : or -"]);
    assert_eq!(wrong("title: Key.title, \"/meta/likes\": Key.likes", ""), ["P405 fields needs at least one key"]);
    assert_eq!(wrong("\"/meta/likes\": Key.likes", "other: Key.title"), ["P405 this key has a name already"]);
    assert_eq!(wrong("title: Key.title", "id: Key.id"), ["P311 the key \"id\" cannot be written"]);
    assert_eq!(wrong("{ likes: Key.views }", "{}"), ["P405 pairs needs at least one key"]);
    assert_eq!(wrong("likes: Key.views", "country: Key.views"), ["P404 \"country\" is string, but \"views\" is int"]);
    assert_eq!(wrong("likes: Key.views", "lieks: Key.views"), ["P303 there is no key \"lieks\""]);
    assert_eq!(
        wrong("on: Key.parent_id", "on: Key.country"),
        ["P404 \"country\" is string, but \"id\" is int: nothing would match"]
    );
    assert_eq!(
        wrong("left: Key.country, right: Key.title", "left: Key.score, right: Key.score"),
        ["P404 rows are matched by keys of type int or string, and \"score\" is float"]
    );
    assert_eq!(wrong("[7]", "[7, 8]"), ["P405 quota has a number for each input, of which there are 1"]);
    assert_eq!(wrong("[7]", "[0.5]"), ["P404 quota takes int 0..=1000000, not the float 0.5"]);
    assert_eq!(
        wrong("[Key.views]", "[Key.views, Key.age]"),
        ["P405 ranks has a key for each input, of which there are 1"]
    );
    assert_eq!(
        wrong("[Key.views]", "[Key.score]"),
        ["P404 ranks takes a key of type int here, and \"score\" is float"]
    );
    assert_eq!(wrong("quality: Key.likes * Key.age + 1, title: \"x\"", ""), ["P405 exprs takes 1 to 32 keys"]);
    assert_eq!(wrong("title: \"x\"", "titel: \"x\""), ["P303 there is no key \"titel\""]);
    assert_eq!(wrong("title: \"x\"", "id: 1"), ["P311 the key \"id\" cannot be written"]);
    assert_eq!(
        wrong("exprs: { quality: Key.likes * Key.age + 1, title: \"x\" }", "exprs: Key.likes"),
        ["D017 exprs takes an object of expressions by key name, not Key.likes"]
    );
    assert_eq!(wrong("nulls: \"first\"", "nulls: \"never\""), ["P405 nulls is one of first, last"]);
    assert_eq!(wrong("key: Key.title, nulls", "key: Key.age, nulls"), ["P405 this key is in the list already"]);
    assert_eq!(wrong("P.taste", "Key.age + 1"), ["D017 vector takes a key or a parameter, not an expression"]);
    assert_eq!(wrong("P.taste", "Key.age"), ["P404 vector takes a key of type vector here, and \"age\" is int"]);
    assert_eq!(
        wrong("P.taste", "P.hidden_ids"),
        ["P404 vector takes a parameter of type vector, and \"hidden_ids\" is list<int>"]
    );
    assert_eq!(wrong("gap: 1", "max: 0"), ["P405 rules takes int 1..=1000000"]);
    assert_eq!(wrong("gap: 1", "gap: 1, max: 2"), ["P103 a rule has by and max, and perhaps window; or by and gap"]);
    assert_eq!(wrong("gap: 1", "gab: 1"), ["D017 a rule has by, max, window and gap, not gab"]);
    assert_eq!(
        wrong("title: \"first\"", "title: \"sum\""),
        ["P404 \"sum\" takes a key of type int or float, and \"title\" is string"]
    );
    assert_eq!(wrong("likes: \"sum\"", "likes: \"som\""), ["P405 words is one of sum, first, not \"som\""]);
    assert_eq!(wrong("likes: \"sum\"", "lieks: \"sum\""), ["P303 there is no key \"lieks\""]);
    assert_eq!(wrong("{ likes: \"sum\", title: \"first\" }", "{}"), ["P405 words needs at least one key"]);
    assert_eq!(wrong("likes: \"sum\"", "likes: 1"), ["D017 words takes words by key name, not 1"]);
    assert_eq!(
        wrong("[\"mean\", Key.age]", "[\"meen\", Key.age]"),
        ["P405 made is one of sum, mean, count, not \"meen\""]
    );
    assert_eq!(
        wrong("[\"mean\", Key.age]", "[\"mean\", Key.title]"),
        ["P404 \"mean\" takes a key of type int or float, and \"title\" is string"]
    );
    assert_eq!(
        wrong("[\"mean\", Key.age]", "[\"sum\", Key.age]"),
        ["P404 \"sum\" of \"age\" is int, but \"final_score\" is float"]
    );
    assert_eq!(
        wrong("final_score: [\"mean\", Key.age]", "title: [\"count\"]"),
        ["P404 \"count\" is int, but \"title\" is string"]
    );
    assert_eq!(
        wrong("[\"mean\", Key.age]", "[\"mean\"]"),
        ["P405 \"mean\" takes one key, such as [\"mean\", \"score\"]"]
    );
    assert_eq!(
        wrong("[\"count\"]", "[\"count\", Key.age, Key.age]"),
        ["P405 \"count\" takes at most one key, such as [\"count\", \"score\"]"]
    );
    assert_eq!(wrong("[\"count\"]", "[]"), ["P405 made takes a word and a key"]);
    assert_eq!(wrong("final_score: [\"mean\", Key.age], likes: [\"count\"]", ""), ["P405 made needs at least one key"]);
    assert_eq!(wrong("final_score: [\"mean\"", "id: [\"mean\""), ["P311 the key \"id\" cannot be written"]);
    assert_eq!(wrong("[\"count\"]", "\"count\""), ["D017 made takes lists of a word and a key, not \"count\""]);
    assert_eq!(wrong("[\"count\"]", "[Key.age]"), ["D017 made takes a word and a key, not Key.age"]);
    assert_eq!(wrong("left: Key.country, ", ""), ["D017 sides needs left and right"]);
    assert_eq!(wrong("left: Key.country", "lefd: Key.country"), ["D017 sides has left and right, not lefd"]);
    assert_eq!(wrong("{id}", "{country}"), ["P407 {country} is not id, user_id, param.NAME or key.NAME"]);
    assert_eq!(
        wrong("place: \"/a/b\",", ""),
        ["P403 every_kind needs the parameter \"place\" (member or JSON pointer) where side is \"right\""]
    );
    assert_eq!(
        wrong("side: \"right\"", "side: \"left\""),
        ["P406 every_kind takes the parameter \"place\" only where side is \"right\""]
    );
    assert_eq!(wrong("views: [1, 2]", "views: [1]"), ["P405 1 values for 2 rows"]);
    assert_eq!(wrong("[5, 6n]", "[5, 6, 7]"), ["P405 2 values for 3 rows"]);
    assert_eq!(
        wrong("[5, 6n]", "[5, 6], count: 3"),
        ["P405 2 ids for 3 rows: leave out count", "P405 2 values for 3 rows"]
    );
    assert_eq!(wrong("[5, 6n]", "[5, \"6\"]"), ["P404 \"6\" is not an id of type int"]);
    assert_eq!(wrong("[5, 6n]", "[5, null]"), ["D017 ids takes strings and whole numbers, not null"]);
    assert_eq!(wrong("[5, 6n]", "[5, 0.5]"), ["D017 ids takes strings and whole numbers, not 0.5"]);
    assert_eq!(
        wrong("list: P.hidden_ids", "list: P.weight"),
        ["P404 list takes a parameter of type list<int>, and \"weight\" is float"]
    );
    assert_eq!(wrong("list: P.hidden_ids", "list: [1]"), ["D017 list takes a parameter, not a list"]);
    assert_eq!(wrong("M.ctr", "\"ctr\""), ["D017 model takes a model, not \"ctr\""]);
    assert_eq!(wrong("M.ctr", "EP.redis.redis_default"), ["D017 model takes a model, not an endpoint"]);
    assert_eq!(wrong("M.ctr", "M.crt"), ["D013 there is no model M.crt"]);
    assert_eq!(wrong("[5, 6n]", "7"), ["D017 ids takes a list of ids, not 7"]);
}

#[test]
fn editors_know_the_type_of_every_kind() {
    let declared = dslc::types::declarations(tasks().signatures(), &registry());
    for line in [
        "endpoint: Endpoint<\"redis\">;",
        "int: number | bigint;",
        "count?: number | bigint;",
        "share: number;",
        "/** A float that nobody gave (default 1.5) */",
        "note?: string;",
        "texts: readonly string[];",
        "side?: \"left\" | \"right\";",
        "template: string;",
        "place?: string;",
        "key: KeyArg<Key>;",
        "keys: readonly KeyArg<Keys>[];",
        "fields: { readonly [name: string]: OutKeyArg<Fields> };",
        "pairs: { readonly [name in keyof typeof Key]?: OutKeyArg<Pairs> };",
        "sides: KeyArg<Sides> | { readonly left: KeyArg<Sides>; readonly right: KeyArg<Sides> };",
        "made: { readonly [name in keyof typeof Key]?: readonly [\"sum\" | \"mean\" | \"count\", AnyKey] | readonly [\"count\"] };",
        "outKey: OutKeyArg<OutKey>;",
        "expr: ValueOf<OutKey> | null;",
        "pred: boolean;",
        "rhs: Rows;",
        "ids: readonly (number | bigint | string)[];",
        "list: ParamOf<List<number>> | ParamOf<List<string>>;",
        "exprs: { readonly [name in keyof typeof Key]?: ValueOf<(typeof Key)[name]> | null };",
        "ranks: readonly OutKeyArg<Ranks>[];",
        "columns: Columns;",
        "model: Model;",
        "/** Clicks */\n    readonly ctr: Model;",
    ] {
        assert!(declared.contains(line), "{line}\n{declared}");
    }
}
