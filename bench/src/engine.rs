//! The same four nodes as a plan through the engine: checked, linked, fused, and run on one thread as an event loop runs it.
//!
//! The rows come from a source that hands them over as they are. Everything that is cheap enough for it runs inline, and here
//! that is everything; a run that has had its turn is polled again, as a loop would.

use crate::data::{C_DEFAULT, Table};
use crate::rankd;
use rankd_column::{RowSet, Value};
use rankd_engine::clock;
use rankd_engine::deadline::Limits;
use rankd_engine::error::TaskError;
use rankd_engine::loop_context::LoopContext;
use rankd_engine::pool::Pool;
use rankd_engine::request::Candidates;
use rankd_engine::run::{self, Cancel};
use rankd_engine::stats::Stats;
use rankd_engine::store::table::{OpenTable, TableData, TableIds};
use rankd_engine::store::{Open, Stores, TableEndpoint, Tables};
use rankd_engine::task::{Definition, Fetch, FetchContext, Maker};
use rankd_engine::{Linked, Policy, Request, Tasks};
use rankd_plan::Registry;
use rankd_plan::registry::{Endpoint, Text};
use rankd_plan::signature::{Contract, Cost, Inputs, RowEffect, Signature, Writes};
use std::future::Future;
use std::pin::pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

/// What the next source to be linked hands over.
static ROWS: Mutex<Option<RowSet>> = Mutex::new(None);

struct Source(RowSet);

impl Fetch for Source {
    async fn run(&self, _: &[RowSet], _: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        Ok(self.0.clone())
    }
}

const SOURCE: Definition = Definition {
    signature: Signature {
        op: "table",
        summary: "Give the bench's rows.",
        contract: &Contract {
            inputs: Inputs::None,
            rows: RowEffect::Source,
            reads: &[],
            writes: Writes::AnyKey,
            params: &[],
            cost: Cost::Trivial,
        },
    },
    maker: Maker::Fetch(|_| {
        let rows = ROWS.lock().ok().and_then(|rows| rows.clone());
        Arc::new(Source(rows.expect("the rows were put there")))
    }),
};

/// Everything runs on the thread that polls.
pub fn inline(fused: bool) -> Policy {
    Policy { chaining: fused, inline_threshold_ns: u32::MAX, ..Policy::default() }
}

/// Where the rows of the four nodes come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The source above, which hands them over as they are.
    Given,
    /// The request, which brings them along.
    Candidates,
    /// A table.
    Scan,
}

impl Origin {
    fn node(self) -> String {
        match self {
            Origin::Given => node("rows", "table", "", ""),
            Origin::Candidates => node("rows", "candidates", "", ""),
            Origin::Scan => node("rows", "scan", "", r#""endpoint":"items""#),
        }
    }
}

/// A linked plan and one loop's share of the engine.
pub struct Engine {
    plan: Arc<Linked>,
    request: Arc<Request>,
    context: Rc<LoopContext>,
}

impl Engine {
    /// `fused` is whether neighbours in the plan are done in one pass.
    pub fn new(table: &Table, fused: bool) -> Engine {
        Engine::reading(Origin::Given, &rankd::rows(table), table, fused)
    }

    /// The four nodes on these rows, whose columns are shared and not copied.
    pub fn reading(origin: Origin, rows: &RowSet, table: &Table, fused: bool) -> Engine {
        *ROWS.lock().expect("nobody panicked with it") = Some(rows.clone());
        let (registry, tables) = (registry(), Arc::new(Tables::default()));
        if origin == Origin::Scan {
            let ids = TableIds::Ints(rows.batch().ids().to_vec());
            let data = TableData { ids, columns: rows.batch().columns().to_vec(), sha256: None };
            let items = registry.endpoints.named("items").expect("the registry has it");
            tables.swap(TableEndpoint(items), data).expect("ids are numbers");
        }
        let candidates = (origin == Origin::Candidates).then(|| Candidates::new(rows.clone()));
        let params = vec![Value::Float(table.w), Value::Float(table.x)];
        let request = Request { candidates, ..request(&registry, params) };
        Engine::on(&plan(origin, table), &registry, request, &tables, inline(fused))
    }

    /// A plan of the project's tasks, and of the source above.
    pub fn of(text: &str, registry: &Registry, params: Vec<Value>, policy: Policy) -> Engine {
        Engine::on(text, registry, request(registry, params), &Arc::default(), policy)
    }

    /// The same with a whole request, and tables as they are now. Every endpoint is one of the tables.
    pub fn on(text: &str, registry: &Registry, request: Request, tables: &Arc<Tables>, policy: Policy) -> Engine {
        let tasks = Tasks::new(rankd_tasks::definitions().into_iter().chain([SOURCE])).expect("each op is there once");
        let checked = rankd_plan::check(text.as_bytes(), registry, tasks.signatures());
        let plan = checked.plan.unwrap_or_else(|| panic!("{:?}", checked.diagnostics.list()));
        let plan = Linked::link(&plan, &tasks, registry).expect("a checked plan can be linked");
        tables.prepare(&plan);
        let request = plan.begin(request, Some(tables));
        let pool = Pool::start(1).expect("a thread can be started");
        let open = |endpoint: &Endpoint| -> Arc<dyn Open> { Arc::new(OpenTable::new(&endpoint.name, tables.clone())) };
        let stores = Stores::open(&registry.endpoints.list().iter().map(open).collect::<Vec<_>>());
        let context = LoopContext::new(stores, Arc::new(pool), Arc::new(Stats::default()), policy);
        Engine { plan: Arc::new(plan), request, context: Rc::new(context) }
    }

    /// Another request for the same plan, with the tables of the first.
    pub fn request(&self, candidates: RowSet) -> Arc<Request> {
        let candidates = Some(Candidates::new(candidates));
        Arc::new(Request { candidates, ..Request::clone(&self.request) })
    }

    pub fn run(&self) -> RowSet {
        self.answer(&self.request)
    }

    pub fn answer(&self, request: &Arc<Request>) -> RowSet {
        let limits = Limits::from_start(clock::now(), None, None);
        let (plan, request, context) = (self.plan.clone(), request.clone(), self.context.clone());
        let mut run = pin!(run::run(plan, request, context, limits, Arc::new(Cancel::default())));
        let mut cx = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(outcome) = run.as_mut().poll(&mut cx) {
                let mut outputs = outcome.result.expect("the plan runs");
                return outputs.pop().expect("there is one output");
            }
        }
    }
}

fn request(registry: &Registry, params: Vec<Value>) -> Request {
    Request { user_id: 1.into(), params, registry: Some(registry.id()), ..Request::default() }
}

/// A table that is loaded from nowhere: what is in it is put there.
pub const ITEMS: &str =
    "[[endpoint]]\nendpoint_id = \"ep_0001\"\nname = \"items\"\nkind = \"table\"\nurl = \"file:items.csv\"\n";

fn registry() -> Registry {
    let mut keys = String::from(
        "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"The id\"\n",
    );
    for (id, name) in (2..).zip(["a", "b", "c", "score"]) {
        keys += &format!(
            "[[key]]\nkey_id = {id}\nname = \"{name}\"\ntype = \"float\"\nnullable = true\ndoc = \"A number\"\n"
        );
    }
    let mut params = String::new();
    for (id, name) in (1..).zip(["w", "x"]) {
        params += &format!(
            "[[param]]\nparam_id = {id}\nname = \"{name}\"\ntype = \"float\"\nnullable = true\ndoc = \"A number\"\n"
        );
    }
    let text = |file, text| Text { file, text };
    let (registry, problems) = Registry::parse(text("keys", &keys), text("params", &params), text("endpoints", ITEMS));
    assert!(problems.is_empty(), "{:?}", problems[0].diagnostics);
    registry
}

fn node(id: &str, op: &str, input: &str, params: &str) -> String {
    format!(r#"{{"node_id":"{id}","op":"{op}","inputs":[{input}],"params":{{{params}}}}}"#)
}

fn plan(origin: Origin, table: &Table) -> String {
    let nodes = [
        origin.node(),
        node("score", "vm", "\"rows\"", r#""out_key":"score","expr":"e""#),
        node("good", "filter", "\"score\"", r#""pred":"p""#),
        node("sorted", "sort", "\"good\"", r#""key":"score","order":"desc""#),
        node("best", "take", "\"sorted\"", &format!(r#""count":{}"#, table.take)),
    ];
    let key = |key: &str| format!(r#"{{"op":"key_ref","key":"{key}"}}"#);
    let param = |param: &str| format!(r#"{{"op":"param_ref","param":"{param}"}}"#);
    let two = |op: &str, a: &str, b: &str| format!(r#"{{"op":"{op}","a":{a},"b":{b}}}"#);
    let default = format!(r#"{{"op":"const_number","value":{C_DEFAULT}}}"#);
    let c = two("mul", &two("coalesce", &key("c"), &default), &param("w"));
    let score = two("add", &two("mul", &key("a"), &key("b")), &c);
    let good = format!(r#"{{"op":"cmp","cmp":">=","a":{},"b":{}}}"#, key("score"), param("x"));
    format!(
        r#"{{"schema_version":1,"plan_name":"rows","nodes":[{}],"outputs":["best"],"expr_table":{{"e":{score}}},"pred_table":{{"p":{good}}}}}"#,
        nodes.join(",")
    )
}
