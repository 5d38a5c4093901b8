//! An engine with a few lists, and questions for it.

use crate::rig;
use rankd_column::Id;
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::why::{AskedItem, AskedPlan};
use rankd_engine::{Engine, Request, Scheduler, Settings};
use rankd_plan::registry::Endpoint;
use rankd_plan::{Code, Plan, Registry, Severity, check};
use rankd_tasks::tasks;
use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

pub(crate) struct Asker {
    pub(crate) engine: Engine,
    pub(crate) registry: Registry,
    pub(crate) follows: HashMap<i64, Vec<i64>>,
}

impl Asker {
    pub(crate) fn new(scheduler: Scheduler) -> Asker {
        let registry = rig::registry_with(|keys| keys);
        let follows: HashMap<i64, Vec<i64>> =
            (1..=15).step_by(2).map(|id| (id, (0..id % 4).map(|nth| 1 + (id * 7 + nth * 3) % 20).collect())).collect();
        let mut data = String::new();
        for (id, list) in &follows {
            let _ = writeln!(data, r#"{{"key":"follow:{id}","list":{list:?}}}"#);
        }
        let data = Arc::new(Data::parse(&data).expect("good data"));
        let open = |endpoint: &Endpoint| {
            Arc::new(MemoryEndpoint::new(&endpoint.name, data.clone(), Vec::new())) as Arc<dyn Open>
        };
        let endpoints = registry.endpoints.list().iter().map(open).collect();
        let settings = Settings { scheduler, loops: 1, cpu_threads: 1, ..Settings::default() };
        Asker { engine: Engine::start(settings, endpoints).expect("threads can be started"), registry, follows }
    }

    /// Nothing for a plan that must not be: it reads what groups and new rows do not have, or by rows that may be left out.
    pub(crate) fn check(&self, json: &str) -> Option<Plan> {
        let checked = check(json.as_bytes(), &self.registry, tasks().signatures());
        let errors = checked.diagnostics.list().iter().filter(|found| found.code.severity() == Severity::Error);
        let unforeseen =
            errors.filter(|found| !matches!(found.code, Code::OpensFilter | Code::NeverWritten)).collect::<Vec<_>>();
        assert!(unforeseen.is_empty(), "{json}\n{unforeseen:?}");
        checked.plan
    }

    /// Nothing where weather has left no row, which is a failure.
    pub(crate) fn ask(&self, plan: &Plan, ids: &[i64]) -> Option<Vec<AskedItem>> {
        let asked = AskedPlan::link(plan, &tasks(), &self.registry).expect("a checked plan can be linked");
        let request = asked.request(Request { user_id: 1.into(), ..Request::new(&self.registry) });
        let outcome = self.engine.run(asked.linked(), request.clone());
        if let Err(error) = &outcome.result {
            assert_eq!(error.code.id, "E302", "{error}");
        }
        let ids: Vec<Id> = ids.iter().copied().map(Id::Int).collect();
        let (items, _) = asked.items(plan, &self.registry, &request, &outcome, &ids);
        outcome.result.is_ok().then_some(items)
    }
}
