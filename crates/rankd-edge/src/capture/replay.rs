//! Captured requests once more: the same plan on the same reads must give the same bytes.
//!
//! Plans, registries and experiments come from beside the captures, so that a capture can be replayed after they have changed. Models and tables do not: those
//! of today are used, and where one has changed, the request cannot be compared.

use super::{CapturedArms, CapturedRequest, read};
use crate::answer::{Answer, table_digests};
use crate::endpoints::{self, EndpointError};
use crate::experiments::put_into;
use crate::input;
use crate::library::Library;
use crate::prepare::{Prepared, Tracing};
use crate::registry_files::RegistryTexts;
use crate::tables::TableFiles;
use rankd_column::Key;
use rankd_engine::recorded::{Reads, Replay};
use rankd_engine::store::{ClosedEndpoint, Open};
use rankd_engine::{Engine, Linked, Outcome, Request, Settings, Tasks};
use rankd_plan::digest::sha256;
use rankd_plan::registry::{Endpoint, EndpointSettings, Experiments};
use rankd_plan::{Diagnostics, Plan, Registry, check};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// Why the answers to a request cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotComparable {
    /// The registry or the plan beside the captures cannot be used.
    Plan(String),
    /// The request does not fit the registry.
    Request(String),
    /// Another model is in use today.
    Model(String),
    /// Another version of a table is in use today.
    Table(String),
    /// What was stored changed while the run was reading it.
    Changed,
    /// Another version of rankd answered.
    Version(String),
    /// The answer is an Arrow stream with a trace in it.
    TracedArrow,
}

impl std::fmt::Display for NotComparable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            NotComparable::Plan(why) | NotComparable::Request(why) => f.write_str(why),
            NotComparable::Model(name) => write!(f, "the model {name:?} is not the one that was captured"),
            NotComparable::Table(name) => write!(f, "the table {name:?} is not the one that was captured"),
            NotComparable::Changed => f.write_str("a key changed while the captured run was reading it"),
            NotComparable::Version(version) => write!(f, "it was captured by rankd {version}"),
            NotComparable::TracedArrow => f.write_str("its answer is an Arrow stream with a trace"),
        }
    }
}

/// What came of comparing two answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Comparison {
    /// They have the same bytes, apart from traces.
    Same,
    /// They differ, first at this byte.
    Different {
        /// The first byte that differs.
        at: usize,
    },
    /// The replayed run read what was not recorded, and no store was asked.
    Missing,
    /// They cannot be compared.
    Not(NotComparable),
}

/// A request that was replayed.
#[derive(Debug)]
pub struct Replayed {
    /// What came of it.
    pub comparison: Comparison,
    /// The captured answer and the new one, without traces.
    pub captured: Vec<u8>,
    /// See [`Replayed::captured`].
    pub again: Vec<u8>,
    /// How many keys and calls it read that were not recorded. Where stores may be asked, they came from there.
    pub missing: u64,
}

/// Stores that are asked for what was not recorded: the endpoints of a registry of today, by name and kind.
pub struct LiveStores(Vec<(Endpoint, Arc<dyn Open>)>);

impl LiveStores {
    /// Those of a registry, but for its tables. What is only worth knowing goes to `note`.
    pub fn open(registry: &Registry, note: &mut dyn FnMut(String)) -> Result<LiveStores, EndpointError> {
        // The tables of a replay are its own; these are not read.
        let tables = TableFiles::new(registry);
        let stores = endpoints::open_beside(tables.as_ref(), registry, note)?;
        Ok(LiveStores(registry.endpoints.list().iter().cloned().zip(stores).collect()))
    }

    fn find(&self, endpoint: &Endpoint) -> Option<Arc<dyn Open>> {
        let is_same = |(live, _): &&(Endpoint, _)| live.name == endpoint.name && live.kind == endpoint.kind;
        self.0.iter().find(is_same).map(|(_, store)| store.clone())
    }
}

/// A registry, and what runs its plans.
struct ReplayEngine {
    registry: Registry,
    engine: Engine,
    plans: HashMap<Arc<str>, Result<ReplayPlan, NotComparable>>,
    experiments: ExperimentsBeside,
}

struct ReplayPlan {
    plan: Plan,
    linked: Arc<Linked>,
}

/// The experiments beside captures that were looked at, by their digests.
#[derive(Default)]
pub struct ExperimentsBeside(HashMap<String, Result<Arc<Experiments>, NotComparable>>);

impl ExperimentsBeside {
    /// Puts a request into the arms that it was captured in. The experiments lie in this folder; the registry is always the same one.
    pub fn put_into(
        &mut self,
        folder: &Path,
        arms: &CapturedArms,
        registry: &Registry,
        request: &mut Request,
    ) -> Result<(), NotComparable> {
        let CapturedArms { experiments_sha256: sha256, taken, is_forced } = arms;
        let of_file = self.0.entry(sha256.clone()).or_insert_with(|| read_experiments(folder, sha256, registry));
        put_into(of_file.as_ref().map_err(|why| why.clone())?, taken, *is_forced, request)
            .ok_or_else(|| NotComparable::Plan("the experiments beside the capture lack an arm".to_owned()))
    }
}

/// Replays requests, and keeps the plans and registries that they ran with.
pub struct Replays<'l> {
    library: &'l Library,
    settings: Settings,
    /// By the digest of the registry.
    engines: HashMap<Arc<str>, Result<ReplayEngine, NotComparable>>,
    /// A plan to run in place of the captured ones: its digest and its artifact.
    other: Option<(Arc<str>, String)>,
    live: Option<LiveStores>,
}

/// A captured request that can run once more, and all that it runs on.
pub struct CapturedRun<'r> {
    /// The registry that was captured.
    pub registry: &'r Registry,
    /// Runs its plans.
    pub engine: &'r Engine,
    /// The plan, as it was checked and as it runs.
    pub plan: &'r Plan,
    /// See [`CapturedRun::plan`].
    pub linked: &'r Arc<Linked>,
    /// The request, with the reads of the captured run and, where the plan is the captured one, its weather.
    pub request: Request,
    /// What answers are made with.
    pub output_keys: Option<Vec<Key>>,
    /// See [`CapturedRun::output_keys`].
    pub with_trace: bool,
    /// What is not as it was then, so that the answer may be another one.
    pub doubts: Vec<NotComparable>,
}

impl<'l> Replays<'l> {
    /// With the tasks of this library, on engines with these settings.
    pub fn new(library: &'l Library, settings: Settings) -> Replays<'l> {
        Replays { library, settings, engines: HashMap::new(), other: None, live: None }
    }

    /// Asks these stores for what was not recorded.
    pub fn with_live(self, live: LiveStores) -> Replays<'l> {
        Replays { live: Some(live), ..self }
    }

    /// Runs this artifact in place of the captured plans.
    pub fn with_plan(self, artifact: String) -> Replays<'l> {
        Replays { other: Some((sha256(&artifact).into(), artifact)), ..self }
    }

    /// Replays a request whose plan and registry lie in this folder.
    pub fn replay(&mut self, folder: &Path, captured: CapturedRequest) -> Replayed {
        let answer = without_trace(&captured.answer).to_vec();
        match self.answer(folder, captured) {
            Err(why) => Replayed { comparison: Comparison::Not(why), captured: answer, again: Vec::new(), missing: 0 },
            Ok((again, missing)) => {
                let comparison = if again == answer {
                    Comparison::Same
                } else if missing > 0 && self.live.is_none() {
                    Comparison::Missing
                } else {
                    let at = again.iter().zip(&answer).take_while(|(again, before)| again == before).count();
                    Comparison::Different { at }
                };
                Replayed { comparison, captured: answer, again, missing }
            }
        }
    }

    /// The answer of the replayed run, and how many of its reads were not recorded.
    fn answer(&mut self, folder: &Path, captured: CapturedRequest) -> Result<(Vec<u8>, u64), NotComparable> {
        let is_arrow = captured.answer.first() == Some(&0xff);
        let CapturedRun { registry, engine, linked, request, output_keys, with_trace, doubts, .. } =
            self.open(folder, captured)?;
        if let Some(doubt) = doubts.into_iter().next() {
            return Err(doubt);
        }
        if is_arrow && with_trace {
            return Err(NotComparable::TracedArrow);
        }
        let (request_id, reads) = (request.request_id.clone(), request.reads.clone());
        let outcome: Outcome = engine.run(linked, request);
        let answer = Answer {
            request_id: &request_id,
            plan: linked,
            registry,
            output_keys: output_keys.as_deref(),
            with_trace: false,
        };
        let again = match &outcome.result {
            Ok(outputs) if is_arrow => {
                answer.arrow(outputs, &outcome).map_err(|error| NotComparable::Request(error.to_string()))?
            }
            Ok(_) | Err(_) => answer.render(&outcome),
        };
        let missing = match &reads {
            Reads::Replayed(replay) => replay.missing(),
            Reads::Live | Reads::Recorded(_) => 0,
        };
        Ok((again, missing))
    }

    /// Makes a captured request ready to run once more. Its plan and registry lie in this folder.
    pub fn open(&mut self, folder: &Path, captured: CapturedRequest) -> Result<CapturedRun<'_>, NotComparable> {
        let (library, settings, live) = (self.library, &self.settings, self.live.as_ref());
        let open = || open_engine(folder, &captured.registry_sha256, settings, library, live);
        let engine = self.engines.entry(captured.registry_sha256.clone()).or_insert_with(open);
        let ReplayEngine { registry, engine, plans, experiments } = engine.as_mut().map_err(|why| why.clone())?;
        let sha256 = self.other.as_ref().map_or(&captured.plan_sha256, |(sha256, _)| sha256);
        let artifact = || match &self.other {
            Some((_, artifact)) => Ok(artifact.clone()),
            None => read::plan(folder, &captured.plan_sha256).map_err(|error| {
                NotComparable::Plan(format!("the plan {:?} beside the capture: {error}", captured.plan))
            }),
        };
        let is_captured = *sha256 == captured.plan_sha256;
        let plan = plans.entry(sha256.clone()).or_insert_with(|| link(&artifact()?, registry, library.tasks(), engine));
        let ReplayPlan { plan, linked } = plan.as_ref().map_err(|why| why.clone())?;
        let mut doubts = Vec::new();
        if captured.engine_version != crate::VERSION {
            doubts.push(NotComparable::Version(captured.engine_version));
        }
        let replay = Replay::of(captured.record.reads, captured.record.calls);
        let replay = match is_captured {
            true => replay.with_weather(captured.record.weather),
            // Its nodes are others, whatever they are called.
            false => replay,
        };
        if replay.conflicts() > 0 {
            doubts.push(NotComparable::Changed);
        }
        let versions = linked.models().versions();
        for (name, sha256) in captured.run.models {
            let used = linked.models().uses().iter().find(|of| of.name == name);
            let today = used.and_then(|of| versions.as_ref()?.get(of.model));
            if today.is_some_and(|today| today.sha256() != sha256) {
                doubts.push(NotComparable::Model(name));
            }
        }
        if let Some(versions) = engine.tables().map(|tables| tables.versions()) {
            for (name, sha256) in captured.run.tables {
                let today = table_digests(linked, registry, &versions).find(|(of, _)| *of == name);
                if today.is_some_and(|(_, today)| today != sha256) {
                    doubts.push(NotComparable::Table(name));
                }
            }
        }
        let input = input::read(&captured.request, registry);
        let input = input.map_err(|refused| NotComparable::Request(refused.error.to_string()))?;
        let Prepared { mut request, output_keys, with_trace } = Prepared::new(input, Tracing::AsAsked);
        if let Some(arms) = &captured.run.arms {
            experiments.put_into(folder, arms, registry, &mut request)?;
        }
        let replay = Arc::new(if live.is_some() { replay.or_live() } else { replay });
        let request = Request {
            request_id: captured.request_id,
            now_ms: captured.run.now_ms.or(request.now_ms),
            seed: captured.run.seed.or(request.seed),
            pressure: captured.run.pressure,
            trace: false,
            reads: Reads::Replayed(replay),
            ..request
        };
        Ok(CapturedRun { registry, engine, plan, linked, request, output_keys, with_trace, doubts })
    }
}

fn open_engine(
    folder: &Path,
    sha256: &str,
    settings: &Settings,
    library: &Library,
    live: Option<&LiveStores>,
) -> Result<ReplayEngine, NotComparable> {
    let failed = |what: &str, why: String| NotComparable::Plan(format!("{what}: {why}"));
    let texts: RegistryTexts =
        read::registry(folder, sha256).map_err(|error| failed("the registry beside the capture", error.to_string()))?;
    let registry = texts.parse();
    let tables = TableFiles::new(&registry);
    if let Some(tables) = &tables {
        tables.load_all(&registry, &mut |_| {}).map_err(|error| failed("a table", error.to_string()))?;
    }
    if let Some(models) = library.model_files(&registry, None) {
        models.load_all(&registry).map_err(|error| failed("a model", error.to_string()))?;
    }
    let open = |endpoint: &Endpoint| {
        let open = match &endpoint.settings {
            EndpointSettings::Table(_) => tables.as_ref().map(|tables| tables.endpoint(&endpoint.name)),
            EndpointSettings::Redis(_) | EndpointSettings::Http(_) => live.and_then(|live| live.find(endpoint)),
        };
        open.unwrap_or_else(|| Arc::new(ClosedEndpoint(endpoint.name.clone())))
    };
    let endpoints = registry.endpoints.list().iter().map(open).collect();
    let engine = Engine::start(settings.clone(), endpoints);
    let engine = engine.map_err(|error| failed("cannot start threads", error.to_string()))?;
    Ok(ReplayEngine { registry, engine, plans: HashMap::new(), experiments: ExperimentsBeside::default() })
}

fn read_experiments(folder: &Path, sha256: &str, registry: &Registry) -> Result<Arc<Experiments>, NotComparable> {
    let text = read::experiments(folder, sha256)
        .map_err(|error| NotComparable::Plan(format!("the experiments beside the capture: {error}")))?;
    // They were in use, so nothing is wrong with them, or an arm will be missing.
    Ok(Arc::new(Experiments::parse(&text, registry, &mut Diagnostics::default())))
}

fn link(artifact: &str, registry: &Registry, tasks: &Tasks, engine: &Engine) -> Result<ReplayPlan, NotComparable> {
    let checked = check(artifact.as_bytes(), registry, tasks.signatures());
    let Some(plan) = checked.plan else {
        let first = checked.diagnostics.list().first().map(|found| found.message.clone()).unwrap_or_default();
        return Err(NotComparable::Plan(format!("the plan does not fit the registry that was captured: {first}")));
    };
    let linked = Linked::link(&plan, tasks, registry).map_err(|error| NotComparable::Plan(error.to_string()))?;
    let linked = Arc::new(linked);
    if let Some(tables) = engine.tables() {
        tables.prepare(&linked);
    }
    Ok(ReplayPlan { plan, linked })
}

/// An answer without its trace, which is the last of its fields. No other field has objects under this name.
fn without_trace(answer: &[u8]) -> std::borrow::Cow<'_, [u8]> {
    const TRACE: &[u8] = br#","trace":{"total_us":"#;
    match answer.windows(TRACE.len()).rposition(|window| window == TRACE) {
        Some(at) if answer.first() == Some(&b'{') => [&answer[..at], b"}"].concat().into(),
        Some(_) | None => answer.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_loses_its_trace_and_nothing_else() {
        let plain = br#"{"request_id":"r","candidates":[{"id":1,"name":",\"trace\":{\"total_us\":"}]}"#;
        assert_eq!(&*without_trace(plain), plain);
        let traced = [&plain[..plain.len() - 1], br#","trace":{"total_us":1.5,"nodes":[]}}"#].concat();
        assert_eq!(&*without_trace(&traced), plain);
    }
}
