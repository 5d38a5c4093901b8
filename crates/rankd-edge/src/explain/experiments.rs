//! The experiments that can change a plan's answers: which parameters they override, and which plans may answer in its place.

use crate::explain::Explanation;
use crate::listing::Listing;
use crate::why::write_value;
use rankd_plan::json::Writer;
use rankd_plan::registry::Arm;

impl Explanation<'_> {
    /// A table for people; nothing where there are none.
    pub(super) fn experiments_table(&self) -> String {
        let Some((experiments, registry)) = self.experiments else { return String::new() };
        let mut listing = Listing::new(&["experiment", "layer", "buckets", "arm", "sets"]);
        for experiment in experiments.list() {
            let buckets = format!("{} to {}", experiment.buckets.start, experiment.buckets.end);
            let mut first = [experiment.name.clone(), experiments.layer_name(experiment).to_owned(), buckets];
            for arm in &experiment.arms {
                let set = arm.set.iter().map(|(param, value)| {
                    let name = &registry.params.get(*param).name;
                    match self.plan.params().binary_search(param) {
                        Ok(_) => format!("{name} = {value}"),
                        Err(_) => format!("{name} = {value} (not read)"),
                    }
                });
                let plan = arm.plan.iter().map(|plan| format!("plan {plan}"));
                let sets: Vec<String> = set.chain(plan).collect();
                let mut row = std::mem::take(&mut first).to_vec();
                row.extend([arm.name.clone(), sets.join(", ")]);
                listing.row(row);
            }
        }
        format!("\nexperiments\n{}", listing.render())
    }

    /// A field for programs; none where there are none.
    pub(super) fn write_experiments(&self, w: &mut Writer) {
        let Some((experiments, registry)) = self.experiments else { return };
        w.field("experiments").array(|w| {
            for experiment in experiments.list() {
                w.object(|w| {
                    w.field("experiment").string(&experiment.name);
                    w.field("layer").string(experiments.layer_name(experiment));
                    w.field("from").int(experiment.buckets.start.into()).field("to").int(experiment.buckets.end.into());
                    let read = experiment.params.iter().filter(|param| self.plan.params().binary_search(param).is_ok());
                    w.field("overrides").array(|w| {
                        read.for_each(|param| _ = w.string(&registry.params.get(*param).name));
                    });
                    w.field("arms").array(|w| {
                        for Arm { name, set, plan, .. } in &experiment.arms {
                            w.object(|w| {
                                w.field("arm").string(name);
                                w.field("set").object(|w| {
                                    for (param, value) in set {
                                        write_value(value, w.field(&registry.params.get(*param).name));
                                    }
                                });
                                if let Some(plan) = plan {
                                    w.field("plan").string(plan);
                                }
                            });
                        }
                    });
                });
            }
        });
    }
}
