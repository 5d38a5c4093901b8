//! Models: files of trained models that plans score rows with, and which keys their features are.
//!
//! What a file really holds is not looked at here: no file is read in this crate. How features and keys go together once it was read is in
//! [`crate::model`].

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics, nearest, quoted};
use crate::model::Format;
use crate::registry::entry::is_identifier;
use crate::registry::surroundings::Surroundings;
use crate::registry::table::{Table, bad, each_entry};
use crate::registry::{Entry, Named, Status};
use rankd_column::Key;
use std::ops::Range;

/// One model of the registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelEntry {
    pub name: String,
    /// Where the file is.
    pub path: String,
    pub format: Format,
    /// What the file must be, in hexadecimal.
    pub sha256: Option<String>,
    pub features: FeatureKeys,
    pub doc: String,
}

/// Which keys a model's features are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FeatureKeys {
    /// Those of these features, by name. Any other is the key of its own name.
    ByName(Vec<(String, Key)>),
    /// Those of all features, in the model's order.
    InOrder(Vec<Key>),
}

const FIELDS: &[&str] = &["name", "file", "format", "sha256", "features", "doc"];
const REQUIRED: &[&str] = &["name", "file", "format"];

/// `keys` are those that features can be; where there are none, because their file is broken, names are not compared.
pub(super) fn parse(
    text: &str,
    keys: &Named<Entry>,
    around: &dyn Surroundings,
    found: &mut Diagnostics,
) -> Named<ModelEntry> {
    let mut read: Vec<(ModelEntry, Range<usize>, Range<usize>)> = Vec::new();
    each_entry(
        text,
        &["model"],
        around,
        |_| FIELDS.to_vec(),
        found,
        |table, found| {
            read.extend(model(&table, keys, found).map(|model| (model, table.place("file"), table.span())));
        },
    );
    let mut named = Named::default();
    for (model, place, span) in read {
        // A model has no number: its name is what artifacts have.
        if let Err(taken) = named.add(model.name.clone(), model.name.clone(), model, place) {
            found.push(Diagnostic::new(Code::DuplicateEntry, "", taken.to_string()).bytes(span));
        }
    }
    named
}

fn model(table: &Table<'_, '_>, keys: &Named<Entry>, found: &mut Diagnostics) -> Option<ModelEntry> {
    table.require(REQUIRED, FIELDS, found);
    let name = table.text("name", found).filter(|name| {
        let good = is_identifier(name);
        if !good {
            found.push(bad(table.place("name"), "a name is made of letters, digits and _, and starts with a letter"));
        }
        good
    });
    let path = table.path("file", found);
    let format = table.text("format", found).and_then(|name| {
        let format = Format::named(name);
        if format.is_none() {
            let names = Format::ALL.map(Format::name);
            let near = nearest(name, names.into_iter()).map(|near| format!("did you mean {near:?}? "));
            let help = format!("{}known formats: {}", near.unwrap_or_default(), names.join(", "));
            let message = format!("there is no format of models {}", quoted(name));
            found.push(Diagnostic::new(Code::UnknownFormat, "", message).bytes(table.place("format")).help(help));
        }
        format
    });
    let sha256 = table.text("sha256", found).map(str::to_ascii_lowercase);
    if sha256.as_ref().is_some_and(|sha256| sha256.len() != 64 || !sha256.bytes().all(|b| b.is_ascii_hexdigit())) {
        found.push(bad(table.place("sha256"), "sha256 is 64 hexadecimal digits, as sha256sum prints them"));
    }
    let features = features(table, keys, found);
    let doc = table.text("doc", found).unwrap_or_default().to_owned();
    Some(ModelEntry { name: name?.to_owned(), path: path?, format: format?, sha256, features, doc })
}

fn features(table: &Table<'_, '_>, keys: &Named<Entry>, found: &mut Diagnostics) -> FeatureKeys {
    if table.is_list("features") {
        let names = table.texts("features", found).unwrap_or_default();
        let place = table.place("features");
        // One that is wrong was reported, and then no model is used.
        let listed = names.into_iter().filter_map(|name| usable(name, keys, place.clone(), found));
        return FeatureKeys::InOrder(listed.collect());
    }
    let named = table.text_map("features", found).into_iter();
    let named = named.filter_map(|(feature, key, place)| Some((feature.to_owned(), usable(key, keys, place, found)?)));
    FeatureKeys::ByName(named.collect())
}

/// The key of this name, if a model may read it.
fn usable(name: &str, keys: &Named<Entry>, place: Range<usize>, found: &mut Diagnostics) -> Option<Key> {
    let at = keys.named(name);
    let Some(entry) = at.map(|at| keys.get(at)) else {
        if !keys.list().is_empty() {
            let unknown = bad(place, format!("there is no key {}", quoted(name)));
            found.push(unknown.nearest(name, keys.list().iter().map(|entry| entry.name.as_str())));
        }
        return None;
    };
    if let Some(why) = why_not(entry) {
        found.push(bad(place, format!("the key {name:?} {why}")));
        return None;
    }
    at.map(Key)
}

/// What keeps a key from being a feature, if anything does.
pub(crate) fn why_not(entry: &Entry) -> Option<&'static str> {
    match entry {
        Entry { name, .. } if name == "id" => Some("says which row it is, and is no feature"),
        Entry { status: Status::Blocked, .. } => Some("is blocked"),
        Entry { allow_read: false, .. } => Some("has allow_read = false"),
        Entry { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Registry, Text};

    const KEYS: &str = "[[key]]\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n\
                        [[key]]\nname = \"age\"\ntype = \"float\"\nnullable = true\n";

    fn read(model: &str) -> (Vec<ModelEntry>, Vec<String>) {
        let text = format!("[[model]]\nname = \"ctr\"\nfile = \"models/ctr.txt\"\nformat = \"lightgbm\"\n{model}");
        let texts = [KEYS, "", "", &text].map(|text| Text { file: "", text });
        let (registry, problems) = Registry::parse_files(&crate::registry::AsWritten, texts);
        let found = problems.iter().flat_map(|file| file.diagnostics.list()).map(|found| found.message.clone());
        (registry.models.list().to_vec(), found.collect())
    }

    #[test]
    fn features_are_keys_by_name_or_in_order() {
        let (models, found) = read("features = { age_hours = \"age\" }\ndoc = \"Clicks\"\n");
        assert_eq!(found, [""; 0]);
        assert_eq!(models[0].features, FeatureKeys::ByName(vec![("age_hours".to_owned(), Key(1))]));
        assert_eq!((models[0].format, models[0].doc.as_str()), (Format::LightGbm, "Clicks"));
        assert_eq!(read("features = [\"age\"]\n").0[0].features, FeatureKeys::InOrder(vec![Key(1)]));
        assert_eq!(read("").0[0].features, FeatureKeys::ByName(Vec::new()));
    }

    #[test]
    fn what_is_wrong_is_said_at_once() {
        for (model, message) in [
            ("features = { age_hours = \"agee\" }\n", "there is no key \"agee\""),
            ("features = [\"id\"]\n", "the key \"id\" says which row it is, and is no feature"),
            ("features = 3\n", "features must be a table of strings, such as { name = \"value\" }"),
            ("sha256 = \"12\"\n", "sha256 is 64 hexadecimal digits, as sha256sum prints them"),
            ("feature = []\n", "a [[model]] has no field \"feature\""),
        ] {
            assert_eq!(read(model).1, [message]);
        }
    }
}
