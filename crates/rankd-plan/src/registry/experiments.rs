//! Experiments: which users get which values of parameters, or which other plan. Read and checked against the parameters of a registry.
//!
//! A unit, most often a user, has a bucket in each layer, by a hash with the layer's salt, and an experiment owns a range of buckets. Whoever is in
//! it gets one of its arms, by a hash with the experiment's salt. So widening a range moves nobody who was in, and neither does a
//! neighbour that ends. What a request makes of this is in `rankd-edge/experiments`. Whether a plan exists is not looked at here.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, quoted};
use crate::digest::sha256;
use crate::limits::{EXPERIMENT_ARMS_MAX, EXPERIMENTS_MAX, LAYERS_MAX};
use crate::registry::entry::{is_identifier, typed_value};
use crate::registry::surroundings::AsWritten;
use crate::registry::table::{Table, bad, each_entry};
use crate::registry::{Registry, Status};
use rankd_column::expr::salted_unit_hash;
use rankd_column::{Type, Value};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::Arc;

/// How many buckets a layer has.
pub const BUCKETS: u32 = 10_000;
/// The unit that is the user's id.
const USER: &str = "user_id";
/// What stands before the name of a parameter that is the unit, as in plans.
const PARAM: &str = "P.";
const WEIGHT_MAX: i64 = 1_000_000;

/// All experiments of a registry. Positions of parameters are those of the registry that they were read with.
#[derive(Debug, Default)]
pub struct Experiments {
    layers: Vec<Layer>,
    list: Vec<Experiment>,
    holdouts: Vec<Holdout>,
    by_name: HashMap<String, u32>,
    /// What the file says, and its SHA-256.
    text: Arc<str>,
    sha256: Arc<str>,
}

/// A way to divide units into buckets.
#[derive(Debug)]
pub struct Layer {
    pub name: String,
    pub salt: String,
    pub unit: Unit,
    pub doc: String,
}

/// What is assigned to an arm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    User,
    /// The value of this parameter.
    Param(u32),
}

#[derive(Debug)]
pub struct Experiment {
    pub name: String,
    /// The position of its layer.
    pub layer: u32,
    /// The buckets that it owns.
    pub buckets: Range<u32>,
    pub salt: String,
    /// The plans whose requests it is for; all where there is none.
    pub plans: Vec<String>,
    /// In the order of the file, which decides who gets which.
    pub arms: Vec<Arm>,
    /// The parameters that any of the arms overrides, in their order.
    pub params: Vec<u32>,
    pub doc: String,
    /// The number of its first arm among the arms of all experiments.
    pub first_arm: u32,
    weights: u64,
    place: Range<usize>,
}

#[derive(Debug)]
pub struct Arm {
    pub name: String,
    pub weight: u64,
    /// The parameters that it overrides.
    pub set: Vec<(u32, Value)>,
    /// The plan that answers in place of the one that was asked for.
    pub plan: Option<String>,
    place: Range<usize>,
}

/// Buckets that no experiment of a layer may own.
#[derive(Debug)]
pub struct Holdout {
    pub layer: u32,
    pub buckets: Range<u32>,
}

/// Who owns a bucket of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BucketOwner {
    Nobody,
    Holdout,
    Experiment(u32),
}

impl Layer {
    /// The bucket of a unit: of an int, its decimal text.
    pub fn bucket(&self, unit: &str) -> u32 {
        // At least 0 and less than the number of buckets.
        (salted_unit_hash(&self.salt, unit) * f64::from(BUCKETS)) as u32
    }
}

impl Experiment {
    /// The arm of a unit, by its position, whether it is in the experiment or not.
    pub fn arm_of(&self, unit: &str) -> u32 {
        let point = salted_unit_hash(&self.salt, unit) * self.weights as f64;
        let mut end = 0;
        let at = self.arms.iter().position(|arm| {
            end += arm.weight;
            point < end as f64
        });
        at.unwrap_or_default() as u32
    }

    /// Whether some arm names another plan.
    pub fn switches_plans(&self) -> bool {
        self.arms.iter().any(|arm| arm.plan.is_some())
    }

    /// Whether it is for requests for this plan, as far as it says.
    pub fn is_for(&self, plan: &str) -> bool {
        self.plans.is_empty() || self.plans.iter().any(|own| own == plan)
    }

    pub fn arm_named(&self, name: &str) -> Option<u32> {
        self.arms.iter().position(|arm| arm.name == name).map(|at| at as u32)
    }

    /// Where it is in its file, in bytes.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }
}

impl Arm {
    /// Where it is in its file, in bytes.
    pub fn place(&self) -> Range<usize> {
        self.place.clone()
    }
}

impl Experiments {
    /// Reads the file. What could be read is there even where there are problems; it must not be used then.
    pub fn parse(text: &str, registry: &Registry, found: &mut Diagnostics) -> Experiments {
        let mut reading = ExperimentsReader { registry, all: Experiments::default(), layers: HashMap::new() };
        let fields = |table: &Table<'_, '_>| match table.name() {
            "layer" => LAYER_FIELDS.to_vec(),
            "holdout" => HOLDOUT_FIELDS.to_vec(),
            _ => EXPERIMENT_FIELDS.to_vec(),
        };
        // Layers first, because the others name them.
        each_entry(text, &["layer", "holdout", "experiment"], &AsWritten, fields, found, |table, found| {
            match table.name() {
                "layer" => reading.layer(&table, found),
                "holdout" => reading.holdout(&table, found),
                _ => reading.experiment(&table, found),
            }
        });
        let all = Experiments { text: text.into(), sha256: sha256(text).into(), ..reading.all };
        all.check_overlaps(found);
        all.check_layers_of_effects(registry, found);
        all
    }

    /// What the file says.
    pub fn text(&self) -> &Arc<str> {
        &self.text
    }

    /// The SHA-256 of that.
    pub fn sha256(&self) -> &Arc<str> {
        &self.sha256
    }

    /// In the order of the file.
    pub fn list(&self) -> &[Experiment] {
        &self.list
    }

    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    pub fn holdouts(&self) -> &[Holdout] {
        &self.holdouts
    }

    pub fn get(&self, at: u32) -> &Experiment {
        &self.list[at as usize]
    }

    pub fn layer(&self, at: u32) -> &Layer {
        &self.layers[at as usize]
    }

    pub fn named(&self, name: &str) -> Option<u32> {
        self.by_name.get(name).copied()
    }

    /// How many arms all experiments have.
    pub fn arms(&self) -> u32 {
        self.list.last().map_or(0, |last| last.first_arm + last.arms.len() as u32)
    }

    /// By bucket of a layer: who owns it.
    pub fn owners(&self, layer: u32) -> Vec<BucketOwner> {
        let mut owners = vec![BucketOwner::Nobody; BUCKETS as usize];
        let mut own = |buckets: &Range<u32>, owner| {
            if let Some(range) = owners.get_mut(buckets.start as usize..buckets.end as usize) {
                range.fill(owner);
            }
        };
        self.holdouts
            .iter()
            .filter(|held| held.layer == layer)
            .for_each(|held| own(&held.buckets, BucketOwner::Holdout));
        let experiments = (0..).zip(&self.list).filter(|(_, one)| one.layer == layer);
        experiments.for_each(|(at, one)| own(&one.buckets, BucketOwner::Experiment(at)));
        owners
    }

    /// The ranges of a layer that nobody owns.
    pub fn free(&self, layer: u32) -> Vec<Range<u32>> {
        let (mut free, mut at) = (Vec::new(), 0);
        for (buckets, ..) in self.ranges(layer) {
            if buckets.start > at {
                free.push(at..buckets.start);
            }
            at = at.max(buckets.end);
        }
        if at < BUCKETS {
            free.push(at..BUCKETS);
        }
        free
    }

    /// The ranges of a layer that are owned, in order, each with what owns it and where that is.
    fn ranges(&self, layer: u32) -> Vec<(Range<u32>, String, Range<usize>)> {
        let owned = self.list.iter().filter(|one| one.layer == layer);
        let owned = owned.map(|one| (one.buckets.clone(), format!("the experiment {:?}", one.name), one.place()));
        let held = self.holdouts.iter().filter(|held| held.layer == layer);
        let held = held.map(|held| (held.buckets.clone(), "a holdout".to_owned(), 0..0));
        let mut ranges: Vec<_> = owned.chain(held).filter(|(buckets, ..)| !buckets.is_empty()).collect();
        ranges.sort_by_key(|(buckets, ..)| (buckets.start, buckets.end));
        ranges
    }

    fn check_overlaps(&self, found: &mut Diagnostics) {
        for (at, layer) in (0..).zip(&self.layers) {
            let mut before: Option<(Range<u32>, String, Range<usize>)> = None;
            for (buckets, owner, place) in self.ranges(at) {
                if let Some((earlier, other, other_place)) = before.as_ref().filter(|one| one.0.end > buckets.start) {
                    let end = earlier.end.min(buckets.end) - 1;
                    let both = format!("buckets {} to {end} of layer {:?}", buckets.start, layer.name);
                    // A holdout has no place of its own here: what can be moved is the experiment.
                    let place = if place.is_empty() { other_place } else { &place };
                    let message = format!("{owner} and {other} both have {both}");
                    let free = listed_ranges(&self.free(at));
                    let help = format!("free in this layer: {free}");
                    found.push(Diagnostic::new(Code::OverlappingBuckets, "", message).bytes(place.clone()).help(help));
                }
                if before.as_ref().is_none_or(|one| one.0.end < buckets.end) {
                    before = Some((buckets, owner, place));
                }
            }
        }
    }

    /// Refuses a parameter that experiments of two layers override, and a plan that they switch: one user could be in both.
    fn check_layers_of_effects(&self, registry: &Registry, found: &mut Diagnostics) {
        let mut first: BTreeMap<String, &Experiment> = BTreeMap::new();
        for one in &self.list {
            let params = one.params.iter().map(|at| format!("the parameter {:?}", registry.params.get(*at).name));
            let plans = one.plans.iter().filter(|_| one.switches_plans()).map(|plan| format!("the plan {plan:?}"));
            for what in params.chain(plans) {
                let other = *first.entry(what.clone()).or_insert(one);
                if other.layer != one.layer {
                    let layer = &self.layer(other.layer).name;
                    let message = format!("{what} is changed by {:?} too, which is in layer {layer:?}", other.name);
                    let help =
                        "experiments that change the same thing belong in one layer, where no user is in two of them";
                    found.push(Diagnostic::new(Code::InTwoLayers, "", message).bytes(one.place()).help(help));
                }
            }
        }
    }
}

/// Ranges of buckets as people read them, the ends included.
pub fn listed_ranges(ranges: &[Range<u32>]) -> String {
    const SHOWN: usize = 12;
    let one = |range: &Range<u32>| format!("{} to {}", range.start, range.end - 1);
    let shown: Vec<String> = ranges.iter().take(SHOWN).map(one).collect();
    match ranges.len() {
        0 => "none".to_owned(),
        many if many > SHOWN => format!("{} and {} more", shown.join(", "), many - SHOWN),
        _ => shown.join(", "),
    }
}

const LAYER_FIELDS: &[&str] = &["name", "salt", "unit", "doc"];
const HOLDOUT_FIELDS: &[&str] = &["layer", "from", "to", "doc"];
const EXPERIMENT_FIELDS: &[&str] = &["name", "layer", "from", "to", "arm", "salt", "plans", "doc"];
const ARM_FIELDS: &[&str] = &["name", "weight", "set", "plan"];

/// What was read so far.
struct ExperimentsReader<'r> {
    registry: &'r Registry,
    all: Experiments,
    layers: HashMap<String, u32>,
}

impl ExperimentsReader<'_> {
    fn layer(&mut self, table: &Table<'_, '_>, found: &mut Diagnostics) {
        table.require(&["name"], LAYER_FIELDS, found);
        let unit = self.unit(table, found);
        let Some(name) = name(table, found) else { return };
        if !has_room(self.all.layers.len(), LAYERS_MAX, "layers", table, found) {
            return;
        }
        let at = self.all.layers.len() as u32;
        if self.layers.insert(name.clone(), at).is_some() {
            found.push(taken(&name, table));
            return;
        }
        let salt = table.text("salt", found).unwrap_or(&name).to_owned();
        let doc = table.text("doc", found).unwrap_or_default().to_owned();
        self.all.layers.push(Layer { name, salt, unit, doc });
    }

    fn unit(&self, table: &Table<'_, '_>, found: &mut Diagnostics) -> Unit {
        let text = table.text("unit", found).unwrap_or(USER);
        let Some(name) = text.strip_prefix(PARAM) else {
            if text != USER {
                let wrong = bad(table.place("unit"), format!("{} is not a unit", quoted(text)));
                found.push(wrong.help("a unit is \"user_id\", or a parameter such as \"P.device\""));
            }
            return Unit::User;
        };
        let params = &self.registry.params;
        let Some(at) = params.named(name) else {
            let unknown = bad(table.place("unit"), format!("there is no parameter {}", quoted(name)));
            found.push(unknown.nearest(name, params.list().iter().map(|entry| entry.name.as_str())));
            return Unit::User;
        };
        let entry = params.get(at);
        if !matches!(entry.type_of, Type::Int | Type::Str) {
            let message =
                format!("a unit is an int or a string, but the parameter {name:?} is of type {}", entry.type_of);
            found.push(bad(table.place("unit"), message));
        }
        Unit::Param(at)
    }

    fn holdout(&mut self, table: &Table<'_, '_>, found: &mut Diagnostics) {
        table.require(&["layer", "from", "to"], HOLDOUT_FIELDS, found);
        let (layer, buckets) = (self.layer_of(table, found), buckets(table, found));
        // It is read for what it must be and for nobody else.
        let _ = table.text("doc", found);
        if let (Some(layer), Some(buckets)) = (layer, buckets)
            && has_room(self.all.holdouts.len(), EXPERIMENTS_MAX, "holdouts", table, found)
        {
            self.all.holdouts.push(Holdout { layer, buckets });
        }
    }

    fn experiment(&mut self, table: &Table<'_, '_>, found: &mut Diagnostics) {
        table.require(&["name", "layer", "from", "to", "arm"], EXPERIMENT_FIELDS, found);
        let (name, layer, buckets) = (name(table, found), self.layer_of(table, found), buckets(table, found));
        let plans: Vec<String> =
            table.texts("plans", found).unwrap_or_default().into_iter().map(str::to_owned).collect();
        let arms = self.arms(table, &plans, found);
        let salt = table.text("salt", found);
        let doc = table.text("doc", found).unwrap_or_default().to_owned();
        let (Some(name), Some(layer), Some(buckets)) = (name, layer, buckets) else { return };
        if !has_room(self.all.list.len(), EXPERIMENTS_MAX, "experiments", table, found) {
            return;
        }
        let at = self.all.list.len() as u32;
        if self.all.by_name.insert(name.clone(), at).is_some() {
            found.push(taken(&name, table));
            return;
        }
        let mut params: Vec<u32> = arms.iter().flat_map(|arm| &arm.set).map(|(param, _)| *param).collect();
        params.sort_unstable();
        params.dedup();
        let salt = salt.unwrap_or(&name).to_owned();
        let (first_arm, weights) = (self.all.arms(), arms.iter().map(|arm| arm.weight).sum());
        let place = table.place("name");
        self.all.list.push(Experiment {
            name,
            layer,
            buckets,
            salt,
            plans,
            arms,
            params,
            doc,
            first_arm,
            weights,
            place,
        });
    }

    fn layer_of(&self, table: &Table<'_, '_>, found: &mut Diagnostics) -> Option<u32> {
        let name = table.text("layer", found)?;
        let at = self.layers.get(name).copied();
        if at.is_none() {
            let message = format!("there is no layer {}", quoted(name));
            let unknown = Diagnostic::new(Code::UnknownLayer, "", message).bytes(table.place("layer"));
            found.push(unknown.nearest(name, self.all.layers.iter().map(|layer| layer.name.as_str())));
        }
        at
    }

    fn arms(&self, table: &Table<'_, '_>, plans: &[String], found: &mut Diagnostics) -> Vec<Arm> {
        let wrong = |message: String| Diagnostic::new(Code::BadArms, "", message).bytes(table.place("name"));
        let (mut arms, errors): (Vec<Arm>, _) = (Vec::new(), found.errors());
        for arm in table.tables("arm", "experiment.arm", found) {
            arm.refuse_unknown(ARM_FIELDS, found);
            arm.require(&["name"], ARM_FIELDS, found);
            if arms.len() == EXPERIMENT_ARMS_MAX {
                let message = format!("an experiment has at most {EXPERIMENT_ARMS_MAX} arms");
                found.push(Diagnostic::new(Code::TooManyExperiments, "", message).bytes(arm.span()));
                break;
            }
            let weight = if arm.has("weight") { arm.int("weight", 0..WEIGHT_MAX + 1, found) } else { Some(1) };
            let (set, plan) = (self.set(&arm, found), arm_plan(&arm, plans, found));
            let Some(name) = name(&arm, found) else { continue };
            if arms.iter().any(|other| other.name == name) {
                found.push(wrong(format!("two arms are named {name:?}")).bytes(arm.place("name")));
            }
            let place = if plan.is_some() { arm.place("plan") } else { arm.place("name") };
            arms.push(Arm { name, weight: weight.unwrap_or(0).unsigned_abs(), set, plan, place });
        }
        let weights: u64 = arms.iter().map(|arm| arm.weight).sum();
        if table.has("arm") && weights == 0 && found.errors() == errors {
            found.push(wrong("the weights of its arms add up to 0".to_owned()));
        }
        arms
    }

    /// The parameters that an arm overrides.
    fn set(&self, arm: &Table<'_, '_>, found: &mut Diagnostics) -> Vec<(u32, Value)> {
        let Some(set) = arm.table("set", found) else { return Vec::new() };
        let params = &self.registry.params;
        let mut values = Vec::new();
        for (name, place) in set.names() {
            let refused = |message: String| Diagnostic::new(Code::BadOverride, "", message).bytes(place.clone());
            let Some(at) = params.named(name) else {
                let unknown = refused(format!("there is no parameter {}", quoted(name)));
                found.push(unknown.nearest(name, params.list().iter().map(|entry| entry.name.as_str())));
                continue;
            };
            let entry = params.get(at);
            if entry.status == Status::Blocked || !entry.allow_read {
                found.push(refused(format!("the parameter {name:?} cannot be used")));
                continue;
            }
            match typed_value(&set, name, entry.type_of) {
                Some(value) => values.push((at, value)),
                None => {
                    let message = format!("the parameter {name:?} is of type {}", entry.type_of);
                    found.push(Diagnostic::new(Code::IllTypedOverride, "", message).bytes(set.place(name)));
                }
            }
        }
        values
    }
}

/// The plan that an arm names.
fn arm_plan(arm: &Table<'_, '_>, plans: &[String], found: &mut Diagnostics) -> Option<String> {
    let plan = arm.text("plan", found)?;
    let mut wrong = |message: &str, help: &str| {
        found.push(Diagnostic::new(Code::BadArmPlan, "", message).bytes(arm.place("plan")).help(help));
    };
    if plans.is_empty() {
        let help = "write plans = [\"NAME\"] in the [[experiment]]: the plans that this one answers for";
        wrong("an arm names a plan, but its experiment does not say for which plans", help);
    }
    if plans.iter().any(|asked| asked == plan) {
        wrong("an arm names the plan that was asked for", "leave out `plan`: then the plan that was asked for answers");
    }
    if arm.has("set") {
        wrong("an arm has a plan and overrides parameters", "give it one of them: what differs can be in the plan");
    }
    Some(plan.to_owned())
}

fn name(table: &Table<'_, '_>, found: &mut Diagnostics) -> Option<String> {
    let name = table.text("name", found)?;
    if !is_identifier(name) {
        found.push(bad(table.place("name"), "a name is made of letters, digits and _, and starts with a letter"));
        return None;
    }
    Some(name.to_owned())
}

fn taken(name: &str, table: &Table<'_, '_>) -> Diagnostic {
    let message = format!("the name {name:?} is used twice");
    Diagnostic::new(Code::DuplicateEntry, "", message).bytes(table.place("name"))
}

fn has_room(len: usize, max: usize, what: &str, table: &Table<'_, '_>, found: &mut Diagnostics) -> bool {
    if len == max {
        let message = format!("there are more than {max} {what}");
        found.push(Diagnostic::new(Code::TooManyExperiments, "", message).bytes(table.span()));
    }
    len < max
}

fn buckets(table: &Table<'_, '_>, found: &mut Diagnostics) -> Option<Range<u32>> {
    let range = 0..i64::from(BUCKETS) + 1;
    let (from, to) = (table.int("from", range.clone(), found), table.int("to", range, found));
    let (from, to) = (from? as u32, to? as u32);
    if from > to {
        let message = format!("the buckets end at {to}, before they begin at {from}");
        let help =
            "an experiment has the buckets from `from` up to, but without, `to`; where both are the same it has none";
        found.push(Diagnostic::new(Code::BadBuckets, "", message).bytes(table.place("to")).help(help));
        return None;
    }
    Some(from..to)
}
