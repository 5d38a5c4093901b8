//! The models of a registry for people and programs: where each comes from, and what it reads and gives.

use crate::listing::Listing;
use rankd_column::model::ModelOutput;
use rankd_plan::Registry;
use rankd_plan::json::Writer;

/// As a JSON array. What only the file says is there for models that are in use.
pub fn to_json(registry: &Registry) -> String {
    let versions = registry.models_in_use().versions();
    let mut writer = Writer::new();
    writer.array(|w| {
        for (at, entry) in (0..).zip(registry.models.list()) {
            w.object(|w| {
                w.field("name").string(&entry.name).field("format").string(entry.format.name());
                w.field("file").string(&entry.path).field("doc").string(&entry.doc);
                let Some(used) = versions.get(at) else { return };
                let model = used.model();
                w.field("sha256").string(used.sha256()).field("objective").string(model.objective());
                if let (Some(trees), Some(iterations)) = (model.trees(), model.iterations()) {
                    w.field("trees").int(trees as i64).field("iterations").int(iterations as i64);
                }
                w.field("outputs").int(model.outputs(ModelOutput::Response) as i64);
                w.field("raw_outputs").int(model.outputs(ModelOutput::Raw) as i64);
                w.field("bytes").int(model.bytes() as i64).field("rows").int(used.rows() as i64);
                w.field("features").array(|w| {
                    for (feature, key) in model.features().iter().zip(used.keys()) {
                        let Some(key) = key else { continue };
                        w.object(|w| {
                            w.field("name").string(&feature.name).field("key").string(&registry.key(*key).name);
                        });
                    }
                });
            });
        }
    });
    writer.finish()
}

/// As a table.
pub fn in_words(registry: &Registry) -> String {
    let versions = registry.models_in_use().versions();
    let mut listing = Listing::new(&["model", "format", "trees", "numbers a row", "keys", "file"]);
    for (at, entry) in (0..).zip(registry.models.list()) {
        let (trees, outputs, keys) = match versions.get(at) {
            Some(used) => {
                let names: Vec<&str> = used.reads().iter().map(|key| registry.key(*key).name.as_str()).collect();
                let outputs = used.model().outputs(ModelOutput::Response);
                let trees = used.model().trees().map_or("-".into(), |trees| trees.to_string());
                (trees, outputs.to_string(), names.join(", "))
            }
            None => ("-".into(), "-".into(), "-".into()),
        };
        listing.row(vec![entry.name.clone(), entry.format.name().into(), trees, outputs, keys, entry.path.clone()]);
    }
    listing.render()
}
