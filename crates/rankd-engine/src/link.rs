//! A checked plan made ready to run: tasks made, counts counted, so that a request looks nothing up.

use crate::call::panicked;
use crate::clock;
use crate::codes;
use crate::cursor::Paging;
use crate::defaults::with_defaults;
use crate::dials::{self, LinkedDial};
use crate::error::{FailedNode, RunError, TaskError};
use crate::fuse::fuse;
use crate::linked_models::LinkedModels;
use crate::live::{Live, LiveKeys};
use crate::place::Way;
use crate::recorded::{Reads, Struck};
use crate::request::Request;
use crate::seed::Seed;
use crate::steps::{StepSpec, Steps};
use crate::store::table::{TableEndpoint, TableNeed, Tables};
use crate::substitutes::{Substitutes, written};
use crate::task::{LinkContext, StoredLayout, Task};
use crate::tasks::Tasks;
use crate::why::TaskWrapper;
use rankd_column::{Id, IdDictionary, IdTexts, Key, Value};
use rankd_plan::Registry;
use rankd_plan::diagnostic::SourceSpan;
use rankd_plan::plan::{Arg, Node, NodeIx, Plan, Substitute};
use rankd_plan::registry::{Absent, EndpointSettings, EndpointsId, RegistryId};
use rankd_plan::signature::{Cost, RowEffect, Writes};
use rankd_plan::wire::{Scheduling, Sources};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A plan that can run. Shared by all requests for it; nothing in it changes but what is learned of costs.
pub struct Linked {
    pub name: String,
    /// The SHA-256 of the plan's artifact.
    pub sha256: Arc<str>,
    /// As written.
    pub nodes: Vec<LinkedNode>,
    pub outputs: Vec<NodeIx>,
    /// By output: what the answer calls it. Nothing where the plan lists its outputs without names.
    pub output_names: Option<Arc<[String]>>,
    /// The nodes that log their rows. These are kept until the run is over, as those of outputs are, and nothing is fused across them.
    pub logging: Vec<NodeIx>,
    /// Each needed node a step of its own.
    pub written: Steps,
    /// Nodes that one pass can do are one step; nothing where that is the same as written.
    pub fused: Option<Steps>,
    sources: Sources,
    registry: RegistryId,
    /// The endpoints that its positions are of; `None` where it uses none.
    endpoints: Option<EndpointsId>,
    /// Whether ids are texts.
    has_text_ids: bool,
    /// The tables that it names, each with the keys of its columns that are read by name.
    tables: Vec<(TableEndpoint, Vec<Key>)>,
    table_needs: Vec<TableNeed>,
    models: LinkedModels,
    /// The numbers that follow the load.
    pub dials: Vec<LinkedDial>,
    /// Parameters that the plan reads.
    params: Vec<u32>,
    /// Parameters that the plan reads and that a request has to give: their positions and names.
    required: Vec<(u32, String)>,
    /// Whether an expression asks for the request's time.
    reads_now: bool,
    /// Whether a node draws random numbers.
    draws: bool,
    /// How it pages, if it does.
    pub(crate) paging: Option<Paging>,
    /// Runs so far, more or less: loops count over each other.
    runs: AtomicU32,
}

/// One run in this many reads the clock for every step, to learn what steps cost.
const SAMPLE_EVERY: u32 = 32;

/// What a node is called and where it comes from. What it does is in its step.
pub struct LinkedNode {
    pub id: Arc<str>,
    pub op: &'static str,
    pub label: Option<String>,
    pub inputs: Vec<NodeIx>,
    /// How many of the last of them are read only when its task asks for them.
    pub reserves: usize,
    /// Whether some output needs it; other nodes never run.
    pub needed: bool,
    /// What its readers get when weather strikes it.
    pub fallback: Option<Substitute>,
    /// Whether it is needed in place of other nodes only.
    pub lazy: bool,
    /// Whether a condition of the plan decides if it runs.
    pub has_condition: bool,
    /// Whether it can hand over what it has when its time is up.
    pub is_anytime: bool,
    /// The keys of its rows that go into the feature log, with their names; nothing where its rows do not.
    pub log: Option<Vec<(Key, String)>>,
    at: Option<String>,
}

impl LinkedNode {
    /// Where the plan's author wrote it, when the artifact knows.
    pub fn at(&self) -> Option<&str> {
        self.at.as_deref()
    }
}

impl Linked {
    /// Makes every task of the plan. The tasks and the registry are those that the plan was checked against. That a task is
    /// missing, or panics, is a bug, and the error names its node.
    pub fn link(plan: &Plan, tasks: &Tasks, registry: &Registry) -> Result<Linked, Box<RunError>> {
        Linked::link_wrapped(plan, tasks, registry, None)
    }

    /// The same for a run that is asked about: what every task is wrapped into.
    pub(crate) fn link_wrapped(
        plan: &Plan,
        tasks: &Tasks,
        registry: &Registry,
        wrapper: Option<&dyn TaskWrapper>,
    ) -> Result<Linked, Box<RunError>> {
        if plan.registry != registry.id() {
            let message = format!("the plan {:?} was checked with another registry than it is linked with", plan.name);
            return Err(Box::new(RunError::new(codes::DIFFERENT_REGISTRY, message)));
        }
        let mut nodes = Vec::with_capacity(plan.nodes.len());
        let mut parts = Vec::with_capacity(plan.nodes.len());
        let (live, table_needs, mut plan_draws) = (LiveKeys::of(plan), RefCell::default(), false);
        for (ix, node) in plan.nodes.iter().enumerate() {
            let needed = live.given[ix].keys();
            let draws = Cell::new(false);
            let context = LinkContext {
                node,
                nodes: &plan.nodes,
                registry,
                table_needs: &table_needs,
                draws: &draws,
                needed,
                follows_rows: wrapper.is_some_and(|wrapper| wrapper.follows_rows()),
            };
            let task = make(node, tasks, context)?;
            plan_draws |= draws.get() && node.needed;
            let is_anytime = task.is_anytime();
            let task = with_defaults(task, node, registry);
            parts.push(StepSpec {
                task: match wrapper {
                    Some(wrapper) => wrapper.wrap(ix as NodeIx, task),
                    None => task,
                },
                inputs: node.inputs.clone(),
                reserves: node.reserves,
                nodes: vec![ix as NodeIx],
                pass: None,
                timeout: node.timeout_ms.map(|ms| Duration::from_millis(ms.into())),
                scheduling: node.scheduling,
                cost: node.signature.contract.cost,
                patterns: node.args.iter().flat_map(Arg::pattern_params).collect(),
                live: makes_columns(node).then(|| live.taken[ix].clone()),
                runs: node.needed,
            });
            nodes.push(LinkedNode {
                id: node.id.clone(),
                op: node.signature.op,
                label: node.label.clone(),
                inputs: node.inputs.clone(),
                reserves: node.reserves,
                needed: node.needed,
                fallback: node.fallback,
                lazy: node.lazy,
                has_condition: node.condition.is_some(),
                is_anytime,
                log: node
                    .log
                    .as_ref()
                    .map(|keys| keys.iter().map(|key| (*key, registry.key(*key).name.clone())).collect()),
                at: node.source.as_ref().map(|span| span.at()),
            });
        }
        let tables = tables_named(plan, registry, &live);
        let models = LinkedModels::of(plan, registry);
        let substitutes = Substitutes::of(plan, registry);
        let logs = |ix: &NodeIx| plan.nodes[*ix as usize].needed && plan.nodes[*ix as usize].log.is_some();
        let logging: Vec<NodeIx> = plan.order.iter().copied().filter(logs).collect();
        let kept = [&plan.outputs[..], &logging[..]].concat();
        let fused = fuse(&parts, &live, &plan.order, &kept, substitutes.as_deref());
        let fused = fused.map(|parts| Steps::new(parts, &plan.order, &kept, substitutes.clone()));
        let written = Steps::new(parts, &plan.order, &kept, substitutes);
        let (name, outputs, sources) = (plan.name.clone(), plan.outputs.clone(), plan.sources.clone());
        let params = plan.params();
        let required = required(&params, registry);
        let reads_now = plan.programs().any(|program| program.reads_now());
        let uses_endpoints = plan.nodes.iter().flat_map(|node| &node.args).any(|arg| matches!(arg, Arg::Endpoint(_)));
        let endpoints = uses_endpoints.then(|| registry.endpoints_id());
        let has_text_ids = registry.has_text_ids();
        let paging = Paging::of(plan, registry);
        let (registry, runs) = (plan.registry, AtomicU32::new(0));
        let table_needs = table_needs.into_inner();
        Ok(Linked {
            name,
            sha256: plan.sha256.clone(),
            nodes,
            outputs,
            output_names: plan.output_names.clone(),
            logging,
            written,
            fused,
            sources,
            registry,
            endpoints,
            has_text_ids,
            tables,
            table_needs,
            models,
            dials: LinkedDial::all(plan),
            params,
            required,
            reads_now,
            draws: plan_draws,
            paging,
            runs,
        })
    }

    /// One task that reads, as a plan by itself: it belongs to this plan, and its requests are requests for this one.
    pub(crate) fn of_one(&self, name: &'static str, task: Task) -> Linked {
        let node = LinkedNode {
            id: name.into(),
            op: name,
            label: None,
            inputs: Vec::new(),
            reserves: 0,
            needed: true,
            fallback: None,
            lazy: false,
            has_condition: false,
            is_anytime: false,
            log: None,
            at: None,
        };
        let spec = StepSpec {
            task,
            inputs: Vec::new(),
            reserves: 0,
            nodes: vec![0],
            pass: None,
            timeout: None,
            scheduling: Scheduling::default(),
            cost: Cost::Unknown,
            patterns: Vec::new(),
            live: None,
            runs: true,
        };
        Linked {
            name: self.name.clone(),
            sha256: self.sha256.clone(),
            nodes: vec![node],
            outputs: vec![0],
            output_names: None,
            logging: Vec::new(),
            written: Steps::new(vec![spec], &[0], &[0], None),
            fused: None,
            sources: Sources::default(),
            registry: self.registry,
            endpoints: self.endpoints,
            has_text_ids: self.has_text_ids,
            tables: Vec::new(),
            table_needs: Default::default(),
            models: LinkedModels::default(),
            dials: Vec::new(),
            params: Default::default(),
            required: Vec::new(),
            reads_now: false,
            draws: false,
            paging: None,
            runs: AtomicU32::new(0),
        }
    }

    /// Gives a request what its run needs besides: the versions of tables and of models, where the plan names one, and where ids are texts, the texts
    /// of the ids that the run will meet; where the plan asks for the time and the request does not say it, the present; and a seed where the plan
    /// draws random numbers.
    pub fn begin(&self, mut request: Request, tables: Option<&Tables>) -> Arc<Request> {
        request.tables = tables.filter(|_| !self.tables.is_empty()).map(Tables::versions);
        request.models = self.models.versions();
        if self.has_text_ids {
            let known = request.tables.as_ref().map_or_else(IdDictionary::empty, |tables| tables.ids().clone());
            request.id_texts = Some(Arc::new(IdTexts::new(known)));
            // An int is the id that its digits are.
            if let Id::Int(id) = request.user_id {
                request.user_id = Id::from(&*id.to_string());
            }
        }
        if !self.dials.is_empty() {
            request.dials = dials::values(&self.dials, &request.asked_dials, request.pressure);
        }
        if self.reads_now {
            request.now_ms.get_or_insert_with(clock::since_1970_ms);
        }
        request.cursor = self.paging.as_ref().map(|paging| paging.read(&self.name, &request));
        let own = request.seed.take();
        request.seed = self.draws.then(|| own.unwrap_or_else(|| Seed::of_request(&request.request_id)));
        match &request.reads {
            Reads::Live => {}
            Reads::Recorded(recorder) => recorder.begin(&request),
            Reads::Replayed(replay) => request.struck = Some(Arc::new(Struck::of(replay.weather(), self))),
        }
        Arc::new(request)
    }

    /// The tables that the plan names, each with the keys of its columns that the plan reads by name.
    pub fn tables(&self) -> &[(TableEndpoint, Vec<Key>)] {
        &self.tables
    }

    /// The parameters that the plan reads, in their order.
    pub fn params(&self) -> &[u32] {
        &self.params
    }

    /// The parameters that a request has to give: their positions and names.
    pub fn required_params(&self) -> &[(u32, String)] {
        &self.required
    }

    /// The models that the plan names.
    pub fn models(&self) -> &LinkedModels {
        &self.models
    }

    /// What its nodes read of stores by key. The registry is the one that it was linked with.
    pub fn layouts(&self, registry: &Registry) -> Vec<StoredLayout<'_>> {
        let steps = self.written.order.iter().map(|ix| self.written.step(*ix));
        let layouts = steps.filter_map(|step| match &step.task {
            Task::Fetch(task) => task.layout(registry),
            Task::Compute(_) => None,
        });
        layouts.collect()
    }

    /// Whether the node of this id waits for something outside of the process, such as a store.
    pub fn is_fetch(&self, id: &str) -> bool {
        let ix = self.nodes.iter().position(|node| &*node.id == id);
        ix.is_some_and(|ix| matches!(self.written.step(ix as NodeIx).task, Task::Fetch(_)))
    }

    /// The indexes of tables that its nodes look rows up in, and the copies of vectors that they search.
    pub fn table_needs(&self) -> &[TableNeed] {
        &self.table_needs
    }

    /// The registry that requests for this plan must be made with.
    pub fn registry(&self) -> RegistryId {
        self.registry
    }

    /// Refuses an engine or a request whose positions are of another registry, and a request that leaves out a parameter which the plan cannot do without.
    pub(crate) fn accept(&self, request: &Request, endpoints: EndpointsId) -> Result<(), RunError> {
        if self.endpoints.is_some_and(|own| own != endpoints) {
            let message =
                format!("the engine was started with other endpoints than the plan {:?} was linked with", self.name);
            return Err(RunError::new(codes::DIFFERENT_REGISTRY, message));
        }
        let has_positions = !request.params.is_empty() || request.candidates.is_some();
        if request.registry.map_or(has_positions, |registry| registry != self.registry) {
            let message = format!("the request was made with another registry than the plan {:?}", self.name);
            return Err(RunError::new(codes::DIFFERENT_REGISTRY, message));
        }
        if matches!(request.user_id, Id::Text(_)) && !self.has_text_ids {
            let message = format!("the user's id is a text, but ids of the plan {:?} are ints", self.name);
            return Err(RunError::new(codes::DIFFERENT_REGISTRY, message));
        }
        dials::check(&self.dials, &request.asked_dials)?;
        if let (Some(paging), Some(Err(fault))) = (&self.paging, &request.cursor) {
            return Err(paging.error(*fault));
        }
        let missing = |(at, _): &&(u32, String)| request.params.get(*at as usize).is_none_or(|v| *v == Value::Null);
        match self.required.iter().find(missing) {
            None => Ok(()),
            Some((_, name)) => {
                let message = format!(
                    "the plan {:?} needs the parameter {name:?}: it is not nullable and has no default",
                    self.name
                );
                Err(RunError::new(codes::MISSING_PARAM, message))
            }
        }
    }

    pub fn steps(&self, way: Way) -> &Steps {
        match way {
            Way::Fused => self.fused.as_ref().unwrap_or(&self.written),
            Way::Written => &self.written,
        }
    }

    /// Counts a run that begins. True for one whose steps are to be measured one by one.
    pub(crate) fn count_run(&self) -> bool {
        let count = self.runs.load(Ordering::Relaxed);
        self.runs.store(count.wrapping_add(1), Ordering::Relaxed);
        count.is_multiple_of(SAMPLE_EVERY)
    }

    pub fn node(&self, ix: NodeIx) -> &LinkedNode {
        &self.nodes[ix as usize]
    }

    /// A task's error as the run's: with the name of the node at fault and its place in the author's file.
    pub(crate) fn blame(&self, ix: NodeIx, error: TaskError) -> RunError {
        let ix = error.node.unwrap_or(ix);
        let at = error.source.and_then(|source| self.sources.span(source));
        let TaskError { code, message, detail, .. } = error;
        self.failed(ix, RunError { detail, ..RunError::new(code, message) }, at)
    }

    /// Names the node in an error that came to it from outside.
    pub(crate) fn at_node(&self, ix: NodeIx, error: RunError) -> RunError {
        self.failed(ix, error, None)
    }

    fn failed(&self, ix: NodeIx, error: RunError, source: Option<SourceSpan>) -> RunError {
        let node = self.node(ix);
        let at = source.as_ref().map(SourceSpan::at).or_else(|| node.at.clone());
        RunError {
            node: Some(Box::new(FailedNode { id: node.id.to_string(), op: node.op, at, source: source.map(Box::new) })),
            ..error
        }
    }
}

/// Makes the task of a node. Its code is called for the first time here, so a panic in it goes no further.
fn make(node: &Node, tasks: &Tasks, cx: LinkContext<'_>) -> Result<Task, Box<RunError>> {
    let bug = |what: String| {
        let at = node.source.as_ref().map(SourceSpan::at);
        let failed = FailedNode { id: node.id.to_string(), op: node.signature.op, at, source: None };
        Box::new(RunError { node: Some(Box::new(failed)), ..RunError::bug(what) })
    };
    let Some(definition) = tasks.get(node.signature.op) else {
        return Err(bug(format!("the task {} was declared but is not here", node.signature.op)));
    };
    // The arguments are in the order of the contract that the plan was checked with.
    if !std::ptr::eq(definition.signature.contract, node.signature.contract) {
        return Err(bug(format!("the plan was checked with another task {}", node.signature.op)));
    }
    catch_unwind(AssertUnwindSafe(|| definition.make(&cx))).map_err(|panic| bug(panicked(&*panic).message))
}

/// Whether a node adds columns to the rows of its input.
fn makes_columns(node: &Node) -> bool {
    let contract = node.signature.contract;
    !node.inputs.is_empty()
        && matches!(node.rows(), RowEffect::Same | RowEffect::Fewer | RowEffect::Reordered)
        && contract.writes != Writes::Nothing
}

/// The columns that a node reads by name of the table that it looks rows up in.
fn table_keys(node: &Node, given: &Live, registry: &Registry) -> Vec<Key> {
    let fields: Vec<_> =
        node.args.iter().filter_map(|arg| if let Arg::KeyMap(keys) = arg { Some(keys) } else { None }).collect();
    let named = fields.iter().copied().flatten().filter_map(|(name, _)| registry.keys.named(name)).map(Key);
    let on = node.args.iter().flat_map(Arg::right_keys);
    let mut keys: Vec<Key> = named.chain(on).filter(|key| *key != Key::ID).collect();
    // New rows have all columns of the table where the node does not say which, but for those that it writes itself.
    if node.signature.contract.rows == RowEffect::FanOut && fields.is_empty() {
        let written = written(node, registry);
        keys.extend(given.named.iter().filter(|key| !written.contains(key)));
    }
    keys
}

/// The tables that needed nodes name, each once.
fn tables_named(plan: &Plan, registry: &Registry, live: &LiveKeys) -> Vec<(TableEndpoint, Vec<Key>)> {
    let mut tables: Vec<(TableEndpoint, Vec<Key>)> = Vec::new();
    for (ix, node) in plan.nodes.iter().enumerate().filter(|(_, node)| node.needed) {
        for at in node.args.iter().filter_map(Arg::endpoint) {
            let EndpointSettings::Table(_) = &registry.endpoints.get(at).settings else { continue };
            let keys = match node.signature.contract.rows {
                // All columns of the table are given, so what is read of them is what is read later.
                RowEffect::Source => live.given[ix].named.iter().copied().collect(),
                _ => table_keys(node, &live.given[ix], registry),
            };
            match tables.iter_mut().find(|(table, _)| table.0 == at) {
                Some((_, known)) => known.extend(keys),
                None => tables.push((TableEndpoint(at), keys)),
            }
        }
    }
    for (_, keys) in &mut tables {
        keys.sort_unstable();
        keys.dedup();
    }
    tables
}

/// Of the parameters that a plan reads, those that have neither a default nor null to fall back on.
fn required(read: &[u32], registry: &Registry) -> Vec<(u32, String)> {
    let refused = read.iter().filter(|at| registry.params.get(**at).absent() == Absent::Refused);
    refused.map(|at| (*at, registry.params.get(*at).name.clone())).collect()
}
