//! Which arms of experiments a request is in, and what follows: values of parameters, or another plan that answers.
//!
//! What can matter to a plan is found once, when the plan or the experiments change ([`PlanExperiments::bind`]). A request then takes one SHA-256 for
//! each layer that the plan is in, and one for each experiment that owns its bucket there. Nothing is kept of any user. A plan that
//! no experiment changes has no [`PlanExperiments`], so its requests compute nothing.

use crate::input::Input;
use rankd_column::{Id, Value};
use rankd_engine::arms::Arms;
use rankd_engine::{Request, RunError, codes};
use rankd_plan::diagnostic::{nearest, quoted};
use rankd_plan::registry::{Experiment, Experiments, Unit};
use std::io::Write;
use std::sync::Arc;

/// The experiments that can change the answers to requests for one plan.
#[derive(Debug)]
pub struct PlanExperiments {
    experiments: Arc<Experiments>,
    /// Those that may let another plan answer. They are in one layer.
    switch: Option<BoundLayer>,
    /// Those that override parameters that the plan reads.
    own: Vec<BoundLayer>,
    /// The same for each plan that may answer in its place.
    others: Vec<OtherPlan>,
}

/// A layer, and those of its experiments that matter.
#[derive(Debug)]
struct BoundLayer {
    layer: u32,
    /// Buckets in order, and the experiment that owns them.
    ranges: Vec<(u32, u32, u32)>,
    /// All experiments, those without buckets as well.
    members: Vec<u32>,
}

#[derive(Debug)]
struct OtherPlan {
    name: String,
    layers: Vec<BoundLayer>,
}

/// An experiment that is left out, because an arm of it names a plan that cannot run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct UnappliedExperiment {
    /// Its name.
    pub experiment: String,
    /// The plan that is missing.
    pub plan: String,
}

impl PlanExperiments {
    /// What matters to requests for a plan. `reads` gives the parameters that a plan reads, where it can run. An experiment with an arm whose plan
    /// cannot run is left out as a whole, so that its arms stay comparable. `None` where nothing matters.
    pub fn bind<'r>(
        experiments: &Arc<Experiments>,
        plan: &str,
        reads: impl Fn(&str) -> Option<&'r [u32]>,
        left_out: &mut Vec<UnappliedExperiment>,
    ) -> Option<PlanExperiments> {
        let own = reads(plan)?;
        let mut switches = Vec::new();
        for (at, one) in (0..).zip(experiments.list()) {
            if !one.switches_plans() || !one.is_for(plan) {
                continue;
            }
            let mut named = one.arms.iter().filter_map(|arm| arm.plan.as_deref());
            match named.find(|named| reads(named).is_none()) {
                None => switches.push(at),
                Some(missing) => {
                    left_out.push(UnappliedExperiment { experiment: one.name.clone(), plan: missing.to_owned() });
                }
            }
        }
        let layers = |read: &[u32]| {
            let matters = |one: &Experiment| !one.switches_plans() && one.is_for(plan) && reads_any(one, read);
            let members = (0..).zip(experiments.list()).filter(|(_, one)| matters(one)).map(|(at, _)| at);
            bind_layers(experiments, members)
        };
        let mut others: Vec<OtherPlan> = Vec::new();
        for name in switches.iter().flat_map(|at| &experiments.get(*at).arms).filter_map(|arm| arm.plan.as_ref()) {
            if others.iter().all(|other| other.name != *name) {
                others.push(OtherPlan { name: name.clone(), layers: layers(reads(name).unwrap_or_default()) });
            }
        }
        let own = layers(own);
        if own.is_empty() && switches.is_empty() {
            return None;
        }
        let switch = bind_layers(experiments, switches.into_iter()).pop();
        Some(PlanExperiments { experiments: experiments.clone(), switch, own, others })
    }

    /// The experiments that matter, in the order of the file: those that override parameters which the plan reads, or plans that may answer in its
    /// place read, and those that let such a plan answer.
    pub fn list(&self) -> Vec<&Experiment> {
        let layers = self.switch.iter().chain(&self.own).chain(self.others.iter().flat_map(|other| &other.layers));
        let mut members: Vec<u32> = layers.flat_map(|layer| layer.members.iter().copied()).collect();
        members.sort_unstable();
        members.dedup();
        members.into_iter().map(|at| self.experiments.get(at)).collect()
    }

    /// What the layer of an experiment is called.
    pub fn layer_name(&self, experiment: &Experiment) -> &str {
        &self.experiments.layer(experiment.layer).name
    }

    /// Puts a request into its arms: sets the parameters that they override, and says which plan answers where that is another one. `set` are
    /// the parameters that the request set itself, `forced` the arms that it chose.
    pub fn assign(&self, request: &mut Request, set: &[u32], forced: &[(u32, u32)]) -> Option<&str> {
        let (mut taken, mut digits) = (Vec::new(), Digits::default());
        let user = digits.unit(&request.user_id);
        let taking = Taking { experiments: &self.experiments, user, params: &request.params, set, forced };
        let mut known = None;
        let switched = self.switch.as_ref().and_then(|layer| taking.take(layer, &mut known));
        taken.extend(switched);
        let arm = switched.and_then(|(at, arm)| self.experiments.get(at).arms.get(arm as usize));
        let other = arm.and_then(|arm| arm.plan.as_ref());
        let other = other.and_then(|name| self.others.iter().find(|other| other.name == *name));
        let layers = other.map_or(&self.own, |other| &other.layers);
        // Where one experiment of a layer has the request, no other does.
        let free =
            layers.iter().filter(|one| switched.is_none_or(|(at, _)| self.experiments.get(at).layer != one.layer));
        taken.extend(free.filter_map(|layer| taking.take(layer, &mut known)));
        set_params(&self.experiments, &taken, request);
        if !taken.is_empty() || !forced.is_empty() {
            request.arms = Some(Arc::new(Arms::new(&self.experiments, taken, !forced.is_empty())));
        }
        other.map(|other| other.name.as_str())
    }
}

/// Puts a request into these arms, by the names of experiments and arms, whoever its user is: it was in them before. `None` where there is no such experiment
/// or arm.
pub fn put_into(
    experiments: &Arc<Experiments>,
    named: &[(String, String)],
    is_forced: bool,
    request: &mut Request,
) -> Option<()> {
    let position = |(name, arm): &(String, String)| {
        let at = experiments.named(name)?;
        Some((at, experiments.get(at).arm_named(arm)?))
    };
    let taken = named.iter().map(position).collect::<Option<Vec<_>>>()?;
    set_params(experiments, &taken, request);
    request.arms = Some(Arc::new(Arms::new(experiments, taken, is_forced)));
    Some(())
}

/// Sets the parameters that arms override.
fn set_params(experiments: &Experiments, taken: &[(u32, u32)], request: &mut Request) {
    for (at, arm) in taken {
        let arm = experiments.get(*at).arms.get(*arm as usize);
        for (param, value) in arm.into_iter().flat_map(|arm| &arm.set) {
            if let Some(slot) = request.params.get_mut(*param as usize) {
                slot.clone_from(value);
            }
        }
    }
}

fn reads_any(experiment: &Experiment, read: &[u32]) -> bool {
    experiment.params.iter().any(|param| read.binary_search(param).is_ok())
}

/// Sorts experiments by their layers.
fn bind_layers(experiments: &Experiments, members: impl Iterator<Item = u32>) -> Vec<BoundLayer> {
    let mut layers: Vec<BoundLayer> = Vec::new();
    for at in members {
        let one = experiments.get(at);
        let layer = match layers.iter().position(|known| known.layer == one.layer) {
            Some(known) => &mut layers[known],
            None => {
                layers.push(BoundLayer { layer: one.layer, ranges: Vec::new(), members: Vec::new() });
                let last = layers.len() - 1;
                &mut layers[last]
            }
        };
        layer.members.push(at);
        if !one.buckets.is_empty() {
            layer.ranges.push((one.buckets.start, one.buckets.end, at));
        }
    }
    for layer in &mut layers {
        layer.ranges.sort_unstable();
        layer.members.sort_unstable();
    }
    layers
}

/// One request that is being assigned.
struct Taking<'a> {
    experiments: &'a Experiments,
    user: &'a str,
    params: &'a [Value],
    set: &'a [u32],
    forced: &'a [(u32, u32)],
}

impl Taking<'_> {
    /// The experiment of a layer that the request is in, and its arm. `known` is the last bucket that was computed, and its layer.
    fn take(&self, bound: &BoundLayer, known: &mut Option<(u32, u32)>) -> Option<(u32, u32)> {
        let in_layer = |forced: &&(u32, u32)| self.experiments.get(forced.0).layer == bound.layer;
        if let Some(forced) = self.forced.iter().find(in_layer) {
            return bound.members.binary_search(&forced.0).is_ok().then_some(*forced);
        }
        let layer = self.experiments.layer(bound.layer);
        let mut digits = Digits::default();
        let unit = match layer.unit {
            Unit::User => self.user,
            Unit::Param(param) => match self.params.get(param as usize)? {
                Value::Int(int) => digits.int(*int),
                Value::Str(text) => text,
                // A unit is of no other type.
                Value::Null | Value::Float(_) | Value::Bool(_) | Value::List(_) | Value::Vector(_) => return None,
            },
        };
        let bucket = match *known {
            Some((of, bucket)) if of == bound.layer => bucket,
            _ => layer.bucket(unit),
        };
        *known = Some((bound.layer, bucket));
        let at = bound.ranges.partition_point(|(_, end, _)| *end <= bucket);
        let (from, _, at) = *bound.ranges.get(at)?;
        if bucket < from {
            return None;
        }
        let experiment = self.experiments.get(at);
        // A request that decides for itself what an arm would decide says nothing about the arm.
        if self.set.iter().any(|param| experiment.params.binary_search(param).is_ok()) {
            return None;
        }
        Some((at, experiment.arm_of(unit)))
    }
}

/// The decimal digits of an int, without an allocation.
#[derive(Default)]
pub(crate) struct Digits([u8; 20]);

impl Digits {
    pub(crate) fn int(&mut self, int: i64) -> &str {
        let mut rest = &mut self.0[..];
        // An int of 64 bits has at most 20 characters.
        let _ = write!(rest, "{int}");
        let left = rest.len();
        let written = self.0.len() - left;
        std::str::from_utf8(&self.0[..written]).unwrap_or_default()
    }

    fn unit<'d>(&'d mut self, id: &'d Id) -> &'d str {
        match id {
            Id::Int(id) => self.int(*id),
            Id::Text(text) => text,
        }
    }
}

/// What a caller knows of experiments when it makes a request ready to run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arming<'a> {
    /// All that there are; nothing where requests are in none.
    pub experiments: Option<&'a Experiments>,
    /// Those that matter to the plan that the request is for.
    pub of_plan: Option<&'a PlanExperiments>,
    /// Whether requests may choose arms.
    pub may_force: bool,
}

impl<'a> Arming<'a> {
    /// Puts a request into its arms. Gives the plan that answers where it is another one.
    pub fn assign_input(&self, input: &mut Input) -> Result<Option<&'a str>, RunError> {
        let Input { request, set, asked_arms, .. } = input;
        let forced = if asked_arms.is_empty() { Vec::new() } else { self.forced(asked_arms, set)? };
        Ok(self.of_plan.and_then(|of_plan| of_plan.assign(request, set, &forced)))
    }

    fn forced(&self, asked: &[(String, String)], set: &[u32]) -> Result<Vec<(u32, u32)>, RunError> {
        if !self.may_force {
            let message = "a request may not choose its arms here; --force_arms allows it";
            return Err(RunError::new(codes::ARMS_NOT_ALLOWED, message));
        }
        let none = Experiments::default();
        let experiments = self.experiments.unwrap_or(&none);
        let mut forced: Vec<(u32, u32)> = Vec::new();
        for (name, arm) in asked {
            let Some(at) = experiments.named(name) else {
                let names = experiments.list().iter().map(|one| one.name.as_str());
                return Err(unknown("experiment", name, names));
            };
            let experiment = experiments.get(at);
            let Some(arm) = experiment.arm_named(arm) else {
                let names = experiment.arms.iter().map(|arm| arm.name.as_str());
                return Err(unknown(&format!("arm of the experiment {name:?} named"), arm, names));
            };
            let conflict = |why: String| RunError::new(codes::CONFLICTING_ARMS, why);
            if let Some((other, _)) = forced.iter().find(|(other, _)| experiments.get(*other).layer == experiment.layer)
            {
                let (other, layer) = (&experiments.get(*other).name, &experiments.layer(experiment.layer).name);
                return Err(conflict(format!("{other:?} and {name:?} are both in layer {layer:?}: nobody is in both")));
            }
            if set.iter().any(|param| experiment.params.binary_search(param).is_ok()) {
                let message =
                    format!("the request sets a parameter that the experiment {name:?} overrides: drop one of them");
                return Err(conflict(message));
            }
            forced.push((at, arm));
        }
        Ok(forced)
    }
}

fn unknown<'n>(what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> RunError {
    let hint = nearest(name, known).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
    RunError::new(codes::UNKNOWN_ARM, format!("there is no {what} {}{hint}", quoted(name)))
}
