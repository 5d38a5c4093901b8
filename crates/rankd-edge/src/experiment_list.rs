//! The experiments of a registry for people and programs: what there is, what is free, where a unit is, and who would move.

use crate::experiments::Digits;
use crate::listing::Listing;
use crate::why::write_value;
use rankd_column::Value;
use rankd_plan::Registry;
use rankd_plan::json::Writer;
use rankd_plan::registry::{Arm, BUCKETS, BucketOwner, Experiment, Experiments, Unit, listed_ranges};
use std::collections::{BTreeMap, BTreeSet};

/// All experiments as a JSON object: layers with their free buckets, and experiments with their arms.
pub fn to_json(experiments: &Experiments, registry: &Registry) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("layers").array(|w| {
            for (at, layer) in (0..).zip(experiments.layers()) {
                w.object(|w| {
                    w.field("name").string(&layer.name).field("salt").string(&layer.salt);
                    w.field("unit").string(&unit_name(layer.unit, registry)).field("doc").string(&layer.doc);
                    w.field("free").array(|w| {
                        for free in experiments.free(at) {
                            w.object(|w| {
                                w.field("from").int(free.start.into()).field("to").int(free.end.into());
                            });
                        }
                    });
                });
            }
        });
        w.field("experiments").array(|w| {
            for one in experiments.list() {
                w.object(|w| {
                    w.field("name").string(&one.name).field("layer").string(&experiments.layer(one.layer).name);
                    w.field("from").int(one.buckets.start.into()).field("to").int(one.buckets.end.into());
                    w.field("salt").string(&one.salt).field("doc").string(&one.doc);
                    w.field("plans").array(|w| {
                        for plan in &one.plans {
                            w.string(plan);
                        }
                    });
                    w.field("arms").array(|w| {
                        for arm in &one.arms {
                            w.object(|w| {
                                w.field("name").string(&arm.name).field("weight").int(arm.weight as i64);
                                write_effect(arm, registry, w);
                            });
                        }
                    });
                });
            }
        });
    });
    writer.finish()
}

/// What an arm changes, as fields.
fn write_effect(arm: &Arm, registry: &Registry, w: &mut Writer) {
    if let Some(plan) = &arm.plan {
        w.field("plan").string(plan);
    }
    if !arm.set.is_empty() {
        w.field("set").object(|w| {
            for (param, value) in &arm.set {
                write_value(value, w.field(&registry.params.get(*param).name));
            }
        });
    }
}

/// A value as people write it.
fn shown(value: &Value) -> String {
    let mut writer = Writer::new();
    write_value(value, &mut writer);
    writer.finish()
}

fn effect(arm: &Arm, registry: &Registry) -> String {
    let set = arm.set.iter().map(|(param, value)| format!("{} = {}", registry.params.get(*param).name, shown(value)));
    let plan = arm.plan.iter().map(|plan| format!("plan {plan}"));
    let all: Vec<String> = set.chain(plan).collect();
    if all.is_empty() { "nothing".to_owned() } else { all.join(", ") }
}

fn unit_name(unit: Unit, registry: &Registry) -> String {
    match unit {
        Unit::User => "user_id".to_owned(),
        Unit::Param(param) => format!("P.{}", registry.params.get(param).name),
    }
}

/// All experiments as a table, one line for each arm.
pub fn in_words(experiments: &Experiments, registry: &Registry) -> String {
    let mut listing = Listing::new(&["experiment", "layer", "buckets", "arm", "weight", "changes", "plans"]);
    listing.align_right(4);
    for one in experiments.list() {
        for (at, arm) in one.arms.iter().enumerate() {
            let of_first = |text: String| if at == 0 { text } else { String::new() };
            let plans = if one.plans.is_empty() { "all".to_owned() } else { one.plans.join(", ") };
            listing.row(vec![
                of_first(one.name.clone()),
                of_first(experiments.layer(one.layer).name.clone()),
                of_first(buckets(one)),
                arm.name.clone(),
                arm.weight.to_string(),
                effect(arm, registry),
                of_first(plans),
            ]);
        }
    }
    listing.render()
}

fn buckets(one: &Experiment) -> String {
    if one.buckets.is_empty() { "none".to_owned() } else { listed_ranges(std::slice::from_ref(&one.buckets)) }
}

/// The free buckets of each layer, as a table.
pub fn free_in_words(experiments: &Experiments, registry: &Registry) -> String {
    let mut listing = Listing::new(&["layer", "unit", "experiments", "free", "free buckets"]);
    (2..4).for_each(|column| listing.align_right(column));
    for (at, layer) in (0..).zip(experiments.layers()) {
        let free = experiments.free(at);
        let count: u32 = free.iter().map(|range| range.end - range.start).sum();
        let own = experiments.list().iter().filter(|one| one.layer == at).count();
        listing.row(vec![
            layer.name.clone(),
            unit_name(layer.unit, registry),
            own.to_string(),
            count.to_string(),
            listed_ranges(&free),
        ]);
    }
    listing.render()
}

/// Where a unit is in one layer.
pub struct LayerPlace<'e> {
    layer: &'e str,
    unit: String,
    /// Its bucket, and who owns that; `None` where the layer's unit is not known.
    bucket: Option<(u32, BucketOwner)>,
    arm: Option<(&'e Experiment, &'e Arm)>,
}

/// Where a user is in every layer, given the parameters that layers have as units, by name.
pub fn places<'e>(
    experiments: &'e Experiments,
    registry: &Registry,
    user: &str,
    params: &BTreeMap<String, String>,
) -> Vec<LayerPlace<'e>> {
    let place = |(at, layer): (u32, &'e rankd_plan::registry::Layer)| {
        let unit = match layer.unit {
            Unit::User => Some(user),
            Unit::Param(param) => params.get(&registry.params.get(param).name).map(String::as_str),
        };
        let owners = experiments.owners(at);
        let owner = |bucket: u32| owners.get(bucket as usize).copied().unwrap_or(BucketOwner::Nobody);
        let bucket = unit.map(|unit| layer.bucket(unit)).map(|bucket| (bucket, owner(bucket)));
        let arm = match (unit, bucket) {
            (Some(unit), Some((_, BucketOwner::Experiment(at)))) => {
                let one = experiments.get(at);
                one.arms.get(one.arm_of(unit) as usize).map(|arm| (one, arm))
            }
            _ => None,
        };
        LayerPlace { layer: &layer.name, unit: unit_name(layer.unit, registry), bucket, arm }
    };
    (0..).zip(experiments.layers()).map(place).collect()
}

/// As a table.
pub fn places_in_words(places: &[LayerPlace<'_>], registry: &Registry) -> String {
    let mut listing = Listing::new(&["layer", "bucket", "experiment", "arm", "changes"]);
    listing.align_right(1);
    for LayerPlace { layer, unit, bucket, arm } in places {
        let (bucket, owner) = match bucket {
            None => ("-".to_owned(), format!("no value for {unit}")),
            Some((bucket, BucketOwner::Nobody)) => (bucket.to_string(), "none".to_owned()),
            Some((bucket, BucketOwner::Holdout)) => (bucket.to_string(), "holdout".to_owned()),
            Some((bucket, BucketOwner::Experiment(_))) => {
                (bucket.to_string(), arm.map(|(one, _)| one.name.clone()).unwrap_or_default())
            }
        };
        let (arm, changes) =
            arm.map_or(("-".to_owned(), "-".to_owned()), |(_, arm)| (arm.name.clone(), effect(arm, registry)));
        listing.row(vec![layer.to_string(), bucket, owner, arm, changes]);
    }
    listing.render()
}

/// As a JSON array.
pub fn places_to_json(places: &[LayerPlace<'_>], registry: &Registry) -> String {
    let mut writer = Writer::new();
    writer.array(|w| {
        for LayerPlace { layer, unit, bucket, arm } in places {
            w.object(|w| {
                w.field("layer").string(layer).field("unit").string(unit);
                let Some((bucket, owner)) = bucket else { return };
                w.field("bucket").int((*bucket).into());
                if *owner == BucketOwner::Holdout {
                    w.field("holdout").bool(true);
                }
                if let Some((one, arm)) = arm {
                    w.field("experiment").string(&one.name).field("arm").string(&arm.name);
                    write_effect(arm, registry, w);
                }
            });
        }
    });
    writer.finish()
}

/// How many units a change of the experiments moves, out of those that were looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// In no arm of the experiment before, and in one now.
    pub joined: u32,
    /// The other way round.
    pub left: u32,
    /// In another arm of the same experiment.
    pub changed: u32,
}

/// What a change of the experiments does.
pub struct Movement {
    /// By layer: how many of the buckets have another owner than before.
    pub buckets: BTreeMap<String, u32>,
    /// By experiment, of those that move anybody.
    pub experiments: BTreeMap<String, Moved>,
    /// How many units were looked at, and how many of them are in another arm of anything.
    pub units: (u32, u32),
}

/// How many units are looked at where a change is judged: those named 1, 2 and so on.
pub const SAMPLED_UNITS: u32 = 10_000;

/// Compares experiments with earlier ones.
pub fn movement(before: &Experiments, now: &Experiments) -> Movement {
    let (before, now) = (Owned::new(before), Owned::new(now));
    let mut movement = Movement { buckets: owners_changed(&before, &now), experiments: BTreeMap::new(), units: (0, 0) };
    for unit in 1..=SAMPLED_UNITS {
        let mut digits = Digits::default();
        let unit = digits.int(unit.into());
        let (was, is) = (before.arms_of(unit), now.arms_of(unit));
        let names: BTreeSet<&str> = was.keys().chain(is.keys()).copied().collect();
        let mut has_moved = false;
        for name in names.into_iter().filter(|name| was.get(name) != is.get(name)) {
            has_moved = true;
            let counts = movement.experiments.entry(name.to_owned()).or_default();
            match (was.get(name), is.get(name)) {
                (None, _) => counts.joined += 1,
                (Some(_), None) => counts.left += 1,
                (Some(_), Some(_)) => counts.changed += 1,
            }
        }
        movement.units = (movement.units.0 + 1, movement.units.1 + u32::from(has_moved));
    }
    movement
}

/// Experiments with the owners of all buckets, by layer.
struct Owned<'e> {
    experiments: &'e Experiments,
    owners: Vec<Vec<BucketOwner>>,
}

impl<'e> Owned<'e> {
    fn new(experiments: &'e Experiments) -> Owned<'e> {
        let owners = (0..).zip(experiments.layers()).map(|(at, _)| experiments.owners(at)).collect();
        Owned { experiments, owners }
    }

    /// By experiment: the arm that a unit is in, in whichever layer.
    fn arms_of(&self, unit: &str) -> BTreeMap<&'e str, &'e str> {
        let mut arms = BTreeMap::new();
        for (layer, owners) in self.experiments.layers().iter().zip(&self.owners) {
            if let Some(BucketOwner::Experiment(at)) = owners.get(layer.bucket(unit) as usize) {
                let one = self.experiments.get(*at);
                arms.extend(one.arms.get(one.arm_of(unit) as usize).map(|arm| (&*one.name, &*arm.name)));
            }
        }
        arms
    }

    /// Who owns a bucket of the layer of this name, as it is called.
    fn owner(&self, layer: &str, bucket: usize) -> Option<(BucketOwner, &'e str)> {
        let at = self.experiments.layers().iter().position(|known| known.name == layer)?;
        Some(match self.owners.get(at)?.get(bucket)? {
            // Positions change when experiments do; names do not.
            BucketOwner::Experiment(at) => (BucketOwner::Experiment(0), &*self.experiments.get(*at).name),
            owner @ (BucketOwner::Nobody | BucketOwner::Holdout) => (*owner, ""),
        })
    }
}

fn owners_changed(before: &Owned<'_>, now: &Owned<'_>) -> BTreeMap<String, u32> {
    let names = before.experiments.layers().iter().chain(now.experiments.layers()).map(|layer| layer.name.clone());
    let mut changed: BTreeMap<String, u32> = names.map(|name| (name, 0)).collect();
    for (layer, count) in &mut changed {
        let differs = |bucket: &usize| before.owner(layer, *bucket) != now.owner(layer, *bucket);
        *count = (0..BUCKETS as usize).filter(differs).count() as u32;
    }
    changed
}

impl Movement {
    /// As lines of text.
    pub fn in_words(&self) -> String {
        let mut listing = Listing::new(&["layer", "buckets with another owner"]);
        listing.align_right(1);
        self.buckets
            .iter()
            .for_each(|(layer, count)| listing.row(vec![layer.clone(), format!("{count} of {BUCKETS}")]));
        let mut words = listing.render();
        let (looked_at, moved) = self.units;
        words += &format!("\n{moved} of {looked_at} sampled units are in another arm than before\n");
        if !self.experiments.is_empty() {
            let mut listing = Listing::new(&["experiment", "joined", "left", "changed arm"]);
            (1..4).for_each(|column| listing.align_right(column));
            for (name, Moved { joined, left, changed }) in &self.experiments {
                let counts = [joined, left, changed].map(u32::to_string);
                listing.row(std::iter::once(name.clone()).chain(counts).collect());
            }
            words += &listing.render();
        }
        words
    }

    /// As fields of an object.
    pub fn write(&self, w: &mut Writer) {
        w.field("buckets").object(|w| {
            for (layer, count) in &self.buckets {
                w.field(layer).int((*count).into());
            }
        });
        w.field("units").int(self.units.0.into()).field("moved").int(self.units.1.into());
        w.field("experiments").object(|w| {
            for (name, Moved { joined, left, changed }) in &self.experiments {
                w.field(name).object(|w| {
                    for (name, count) in [("joined", joined), ("left", left), ("changed", changed)] {
                        w.field(name).int((*count).into());
                    }
                });
            }
        });
    }
}
