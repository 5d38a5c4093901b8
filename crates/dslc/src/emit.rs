//! Writes the artifact: the same bytes for the same sources and registry, wherever and whenever it is compiled.
//!
//! The runtime's text has nodes and tables in order of their making; here places become the `sources` table, numbered in order of
//! their first use, and the rest is copied.

use crate::pattern::{self, Missing};
use crate::places::{Places, SourceFile, hex};
use oxc::span::Span;
use rankd_plan::Registry;
use rankd_plan::json::{Fault, Kind, Number, Reader, Writer};
use rankd_plan::registry::Entry;
use rankd_plan::wire::SCHEMA_VERSION;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::fmt::Write;

/// How the last line of an artifact begins. What is above it is what `content` is the digest of.
pub(crate) const BUILT_BY: &str = "\"built_by\":";

/// More than the deepest expression in its table.
const DEPTH_MAX: usize = 1024;

/// An artifact, and where in the sources its parts were written.
pub(crate) struct Artifact {
    pub(crate) text: String,
    /// The place of each node.
    pub(crate) nodes: Vec<i64>,
    /// The place of `definePlan`.
    pub(crate) plan: i64,
    /// Regular expressions that the engine cannot match, each at its place.
    pub(crate) unmatchable: Vec<(Option<(u32, Span)>, Missing)>,
}

/// Writes down a plan as the runtime gave it.
pub(crate) fn emit(plan: &str, files: &[SourceFile], places: &Places, registry: &Registry) -> Result<Artifact, Fault> {
    let mut emitter =
        Emitter { places, numbers: HashMap::new(), spans: Vec::new(), nodes: Vec::new(), unmatchable: Vec::new() };
    let mut reader = Reader::new(plan, DEPTH_MAX);
    let mut fields = reader.open_object()?;
    let mut parts: HashMap<String, Vec<String>> = HashMap::new();
    let (mut name, mut at) = (String::new(), -1);
    while let Some((field, _)) = reader.field(&mut fields)? {
        match &*field {
            "name" => name = reader.string()?.into_owned(),
            "at" => at = int(&mut reader)?,
            "outputs" => {
                parts.insert("outputs".to_owned(), vec![reader.raw()?.to_owned()]);
            }
            "nodes" => {
                let nodes = emitter.nodes(&mut reader)?;
                parts.insert("nodes".to_owned(), nodes);
            }
            table => {
                let mut items = reader.open_array()?;
                let mut entries = Vec::new();
                while reader.item(&mut items)? {
                    let mut writer = Writer::new();
                    emitter.copy(&mut reader, &mut writer)?;
                    entries.push(format!("\"{}{}\":{}", &table[..1], entries.len(), writer.finish()));
                }
                parts.insert(table.to_owned(), entries);
            }
        }
    }
    let part = |name: &str| parts.get(name).map(Vec::as_slice).unwrap_or_default();
    let mut text = String::from("{\n");
    let mut quoted = Writer::new();
    quoted.string(&name);
    // Writing to a string cannot fail.
    let _ = writeln!(text, "\"schema_version\":{SCHEMA_VERSION},\n\"plan_name\":{},", quoted.finish());
    lines(&mut text, "nodes", ['[', ']'], part("nodes"));
    let _ = writeln!(text, "\"outputs\":{},", part("outputs").concat());
    lines(&mut text, "expr_table", ['{', '}'], part("exprs"));
    lines(&mut text, "pred_table", ['{', '}'], part("preds"));
    let _ = writeln!(text, "\"sources\":{},", sources(files, &emitter.spans));
    let mut built_by = Writer::new();
    built_by.object(|w| {
        w.field("tool").string("dslc");
        w.field("version").string(env!("CARGO_PKG_VERSION"));
        w.field("registry").string(&registry_digest(registry));
        w.field("content").string(&hex(&Sha256::digest(text.as_bytes())));
    });
    let _ = writeln!(text, "{BUILT_BY}{}\n}}", built_by.finish());
    Ok(Artifact { text, nodes: emitter.nodes, plan: at, unmatchable: emitter.unmatchable })
}

/// One entry a line, so that a change of a plan is a change of few lines.
fn lines(text: &mut String, name: &str, [open, close]: [char; 2], entries: &[String]) {
    let separator = if entries.is_empty() { "" } else { "\n" };
    let _ = writeln!(text, "\"{name}\":{open}{separator}{}{separator}{close},", entries.join(",\n"));
}

fn int(reader: &mut Reader<'_>) -> Result<i64, Fault> {
    Ok(match reader.number()? {
        Number::Int(value) => value,
        _ => -1,
    })
}

struct Emitter<'p> {
    places: &'p Places,
    numbers: HashMap<(u32, Span), usize>,
    spans: Vec<(u32, Span)>,
    nodes: Vec<i64>,
    unmatchable: Vec<(Option<(u32, Span)>, Missing)>,
}

impl Emitter<'_> {
    fn nodes(&mut self, reader: &mut Reader<'_>) -> Result<Vec<String>, Fault> {
        let mut written = Vec::new();
        let mut items = reader.open_array()?;
        while reader.item(&mut items)? {
            let mut writer = Writer::new();
            let mut place = -1;
            let mut fields = reader.open_object()?;
            let mut result = Ok(());
            writer.object(|w| {
                w.field("node_id").string(&format!("n{}", written.len()));
                result = (|| {
                    while let Some((name, _)) = reader.field(&mut fields)? {
                        if name == "source" {
                            place = int(reader)?;
                            self.source(self.places.get(place), w);
                        } else {
                            w.field(&name).raw(reader.raw()?);
                        }
                    }
                    Ok(())
                })();
            });
            result?;
            written.push(writer.finish());
            self.nodes.push(place);
        }
        Ok(written)
    }

    /// Copies an expression, with numbers of the `sources` table for places. As deep as expressions may be, which is not deep.
    fn copy(&mut self, reader: &mut Reader<'_>, writer: &mut Writer) -> Result<(), Fault> {
        if reader.peek()? != Kind::Object {
            writer.raw(reader.raw()?);
            return Ok(());
        }
        let mut fields = reader.open_object()?;
        let mut result = Ok(());
        writer.object(|w| {
            result = (|| {
                while let Some((name, _)) = reader.field(&mut fields)? {
                    if name == "source" {
                        let place = match reader.peek()? {
                            Kind::String => self.option(&reader.string()?),
                            _ => self.places.get(int(reader)?),
                        };
                        // A pattern has no place of its own, but for that of the operation around it.
                        self.unmatchable.iter_mut().filter(|(at, _)| at.is_none()).for_each(|(at, _)| *at = place);
                        self.source(place, w);
                    } else if name == "regexp" || name == "regexp_u" {
                        let pattern = pattern::translated(&reader.string()?, name == "regexp_u");
                        w.field("literal").string(pattern.as_deref().unwrap_or_default());
                        self.unmatchable.extend(pattern.err().map(|missing| (None, missing)));
                    } else {
                        w.field(&name);
                        self.copy(reader, w)?;
                    }
                }
                Ok(())
            })();
        });
        result
    }

    /// The place `N:option`.
    fn option(&self, text: &str) -> Option<(u32, Span)> {
        let (call, option) = text.split_once(':')?;
        self.places.option(call.parse().ok()?, option, false)
    }

    fn source(&mut self, place: Option<(u32, Span)>, writer: &mut Writer) {
        let Some(place) = place else { return };
        let next = self.spans.len();
        let number = *self.numbers.entry(place).or_insert(next);
        if number == next {
            self.spans.push(place);
        }
        writer.field("source").int(number as i64);
    }
}

fn sources(files: &[SourceFile], spans: &[(u32, Span)]) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("files").array(|w| {
            for file in files {
                w.object(|w| {
                    w.field("path").string(&file.path);
                    w.field("sha256").string(&file.sha256);
                });
            }
        });
        w.field("spans").array(|w| {
            for (file, span) in spans {
                let Some(source) = files.get(*file as usize) else { continue };
                let place = source.span(span.start, span.end);
                w.array(|w| {
                    w.int(i64::from(*file)).int(place.line.into()).int(place.column.into());
                    w.int(place.end_line.into()).int(place.end_column.into());
                });
            }
        });
    });
    writer.finish()
}

/// The digest of what a plan's meaning and its reports depend on in the registry. Addresses of endpoints do not count: they differ
/// between environments. Neither do descriptions.
pub(crate) fn registry_digest(registry: &Registry) -> String {
    let mut text = String::new();
    for (what, entries) in [("key", &registry.keys), ("param", &registry.params)] {
        for entry in entries.list() {
            // What is only said to people, and what is done with values outside of plans, is no part of it.
            let Entry {
                id,
                name,
                type_of,
                nullable,
                doc: _,
                default,
                status,
                replaced_by,
                allow_read,
                allow_write,
                pii: _,
            } = entry;
            let _ = writeln!(
                text,
                "{what} {id} {name} {type_of} {nullable} {default:?} {status:?} {replaced_by:?} {allow_read} {allow_write}"
            );
        }
    }
    for endpoint in registry.endpoints.list() {
        let _ = writeln!(text, "endpoint {} {} {}", endpoint.endpoint_id, endpoint.name, endpoint.kind);
    }
    for model in registry.models.list() {
        let _ = writeln!(text, "model {}", model.name);
    }
    hex(&Sha256::digest(text.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_plan::registry::Text;

    #[test]
    fn the_digest_of_a_registry_tells_defaults_apart() {
        let digest_with = |more: &str| {
            let key = format!(
                "[[key]]\nkey_id = 2\nname = \"score\"\ntype = \"float\"\nnullable = true\ndoc = \"x\"\n{more}"
            );
            let text = |text| Text { file: "", text };
            registry_digest(&Registry::parse(text(&key), text(""), text("")).0)
        };
        let digests = ["", "default = 0.0\n", "default = 1.0\n"].map(digest_with);
        assert!(digests[0] != digests[1] && digests[1] != digests[2] && digests[0] != digests[2], "{digests:?}");
        assert_eq!(digests[0], digest_with("allow_read = true\n"));
    }
}
