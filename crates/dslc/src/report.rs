//! What is wrong with a plan, reported at the line where its author wrote it.

use crate::config::{GLOBALS, NODE_OPTIONS, camel};
use crate::emit::Artifact;
use crate::operations;
use crate::parse::Module;
use crate::places::{Places, SourceFile};
use crate::sandbox::{Failure, FailureKind};
use rankd_column::expr::operation::{Home, names_in};
use rankd_plan::diagnostic::{SourceSpan, nearest};
use rankd_plan::json::{Fault, Kind, Number, Reader};
use rankd_plan::{Code, Diagnostic, Diagnostics, Registry};

pub(crate) struct Reporter<'a> {
    pub(crate) files: &'a [SourceFile],
    pub(crate) modules: &'a [Module],
    pub(crate) places: &'a Places,
}

/// Names of the registry and of the DSL that do not exist: all of them at once, without running anything.
pub(crate) fn unknown_names(files: &[SourceFile], modules: &[Module], registry: &Registry, found: &mut Diagnostics) {
    let keys = || registry.keys.list().iter().map(|entry| entry.name.as_str());
    let params = || registry.params.list().iter().map(|entry| entry.name.as_str());
    for (file, module) in files.iter().zip(modules) {
        for named in module.named.iter().filter(|named| !module.declared.contains(&named.path[0])) {
            let Some(name) = named.path.last() else { continue };
            let endpoints = || {
                let of_kind = registry.endpoints.list().iter().filter(|endpoint| endpoint.kind == named.path[1]);
                of_kind.map(|endpoint| endpoint.name.as_str())
            };
            let (what, known): (&str, Vec<&str>) = match named.path[0].as_str() {
                "Key" => ("key", keys().collect()),
                "P" => ("parameter", params().collect()),
                "U" => ("value of the user", vec!["id"]),
                "M" => ("model", registry.models.list().iter().map(|model| model.name.as_str()).collect()),
                "E" => ("function", names_in(Home::E)),
                "Pred" => ("function", names_in(Home::Pred)),
                _ => ("endpoint", endpoints().collect()),
            };
            if !known.contains(&name.as_str()) {
                let message = format!("there is no {what} {}", named.path.join("."));
                let unknown = Diagnostic::new(Code::UnknownName, "", message).nearest(name, known.into_iter());
                found.push(unknown.source(Some(file.span(named.span.start, named.span.end))));
            }
        }
    }
}

/// A problem as the runtime writes it down.
#[derive(Default)]
struct Problem {
    code: String,
    at: Option<(i64, Option<String>)>,
    option: Option<String>,
    on_name: bool,
    message: String,
    help: Option<String>,
    wrong: Option<String>,
    known: Vec<String>,
    /// The engine's stack, for a problem that has no place of its own.
    stack: Option<String>,
}

impl Reporter<'_> {
    /// Adds what the runtime found. What was found before it ran is not reported twice.
    pub(crate) fn problems(&self, problems: &str, found: &mut Diagnostics) {
        // The runtime writes JSON that can be read; what could not be is not there.
        let problems = if problems.is_empty() { Vec::new() } else { read_problems(problems).unwrap_or_default() };
        for problem in problems {
            let known_before =
                |diagnostic: &Diagnostic| diagnostic.code == Code::UnknownName && diagnostic.message == problem.message;
            if found.list().iter().any(known_before) {
                continue;
            }
            let code = Code::ALL.iter().copied().find(|code| code.id() == problem.code).unwrap_or(Code::PlanThrew);
            let mut diagnostic = Diagnostic::new(code, "", problem.message).source(match &problem.at {
                Some((at, inner)) if problem.stack.is_none() => {
                    self.place(*at, problem.option.as_deref().or(inner.as_deref()), problem.on_name)
                }
                _ => problem.stack.as_deref().and_then(|stack| self.thrown_at(stack)),
            });
            if let Some(wrong) = &problem.wrong {
                diagnostic = diagnostic.nearest(wrong, problem.known.iter().map(String::as_str));
            }
            if let Some(help) = problem.help {
                diagnostic = diagnostic.help(help);
            }
            found.push(diagnostic);
        }
    }

    fn place(&self, at: i64, option: Option<&str>, on_name: bool) -> Option<SourceSpan> {
        let (file, span) = match option {
            Some(option) => self.places.option(at, option, on_name)?,
            None => self.places.get(at)?,
        };
        Some(self.files.get(file as usize)?.span(span.start, span.end))
    }

    /// Adds the regular expressions of JavaScript that the engine does not have.
    pub(crate) fn unmatchable(&self, artifact: &Artifact, found: &mut Diagnostics) {
        for (place, missing) in &artifact.unmatchable {
            let message = format!("the engine's regular expressions have no {missing}");
            let help = "rewrite the pattern, or give it as a string in the engine's syntax (docs/expressions.md)";
            let source = place.and_then(|(file, span)| Some(self.files.get(file as usize)?.span(span.start, span.end)));
            found.push(Diagnostic::new(Code::NoExpression, "", message).help(help).source(source));
        }
    }

    /// Adds how the plan's code failed.
    pub(crate) fn failure(&self, failure: &Failure, found: &mut Diagnostics) {
        let message = &failure.message;
        let diagnostic = match failure.kind {
            FailureKind::Reported => return,
            FailureKind::Time => Diagnostic::new(Code::OutOfTime, "", "the plan's code did not end in time")
                .help("look for an endless loop, or a regular expression that backtracks"),
            FailureKind::Memory => Diagnostic::new(Code::OutOfMemory, "", "the plan's code needs too much memory"),
            FailureKind::Stack => Diagnostic::new(Code::OutOfStack, "", "the plan's code recurses too deeply")
                .help("look for a function that calls itself endlessly"),
            FailureKind::Threw => threw(message),
        };
        found.push(diagnostic.source(self.thrown_at(&failure.stack)));
    }

    /// The innermost call that is plan code.
    fn thrown_at(&self, stack: &str) -> Option<SourceSpan> {
        stack.lines().find_map(|line| {
            let place = line.trim().rsplit(['(', ' ']).next()?.trim_end_matches(')');
            let mut parts = place.rsplitn(3, ':');
            let column: u32 = parts.next()?.parse().ok()?;
            let line: u32 = parts.next()?.parse().ok()?;
            let path = parts.next()?;
            let at = self.files.iter().position(|file| file.path == path)?;
            let (line, column) = self.modules.get(at)?.source_of(line.checked_sub(1)?, column.checked_sub(1)?)?;
            let (start, end) = self.files[at].word_at(line, column);
            Some(self.files[at].span(start, end))
        })
    }

    /// Gives what the checks found the nearest place in the sources: of the option rather than of the whole call.
    pub(crate) fn placed(&self, checked: Diagnostics, artifact: &Artifact) -> Diagnostics {
        let mut placed = Diagnostics::default();
        for diagnostic in checked.list() {
            let mut diagnostic = diagnostic.clone();
            let mut parts = diagnostic.pointer.split('/').skip(1);
            let better = match (parts.next(), parts.next(), parts.next(), parts.next()) {
                (Some("nodes"), Some(node), Some(field), param) => {
                    let node = node.parse::<usize>().ok().and_then(|node| artifact.nodes.get(node)).copied();
                    let option = match field {
                        "params" => param.map(camel),
                        field => {
                            let is_option = NODE_OPTIONS.iter().any(|(name, _)| *name == field);
                            is_option.then(|| camel(field))
                        }
                    };
                    node.zip(option).and_then(|(node, option)| self.place(node, Some(&option), false))
                }
                (Some("plan_name"), ..) => self.place(artifact.plan, Some("name"), false),
                (Some("outputs"), ..) => self.place(artifact.plan, Some("build"), false),
                _ => None,
            };
            if better.is_some() {
                diagnostic.source = better;
            }
            placed.push(diagnostic);
        }
        placed
    }
}

/// An error that plan code threw, or that the engine threw for it.
fn threw(message: &str) -> Diagnostic {
    let undefined = message.strip_prefix("ReferenceError: ").and_then(|rest| rest.strip_suffix(" is not defined"));
    let Some(name) = undefined.map(|name| name.trim_matches('\'')) else {
        return Diagnostic::new(Code::PlanThrew, "", format!("the plan's code failed: {message}"));
    };
    let diagnostic = Diagnostic::new(Code::PlanThrew, "", format!("{name} is not defined"));
    let help = match name {
        "Date" | "performance" => Some("a plan has no clock: it must mean the same whenever it is compiled"),
        "eval" | "Function" => Some("a plan cannot make code from text"),
        "console" | "process" | "require" | "fetch" | "setTimeout" | "setInterval" | "Deno" | "Bun" => {
            Some("a plan can use the language and the DSL, and nothing outside them")
        }
        "Promise" => Some("a plan has nothing to wait for"),
        _ => None,
    };
    match help {
        Some(help) => diagnostic.help(help),
        None if name == "definePlan" => diagnostic.help("import { definePlan } from \"@ranking-dsl/runtime\""),
        None => match nearest(name, operations::exports().into_iter().chain(GLOBALS.iter().copied())) {
            Some(near) => diagnostic.help(format!("did you mean {near:?}?")),
            None => diagnostic,
        },
    }
}

fn read_problems(text: &str) -> Result<Vec<Problem>, Fault> {
    let mut reader = Reader::new(text, 16);
    let mut items = reader.open_array()?;
    let mut problems = Vec::new();
    while reader.item(&mut items)? {
        let mut problem = Problem::default();
        let mut fields = reader.open_object()?;
        while let Some((name, _)) = reader.field(&mut fields)? {
            match (&*name, reader.peek()?) {
                ("code", Kind::String) => problem.code = reader.string()?.into_owned(),
                ("message", Kind::String) => problem.message = reader.string()?.into_owned(),
                ("help", Kind::String) => problem.help = Some(reader.string()?.into_owned()),
                ("wrong", Kind::String) => problem.wrong = Some(reader.string()?.into_owned()),
                ("stack", Kind::String) => problem.stack = Some(reader.string()?.into_owned()),
                ("option", Kind::String) => problem.option = Some(reader.string()?.into_owned()),
                ("onName", Kind::Bool) => problem.on_name = reader.bool()?,
                ("at", Kind::Number) => {
                    if let Number::Int(at) = reader.number()? {
                        problem.at = Some((at, None));
                    }
                }
                // The place of an option: the call's number, a colon and the option's name.
                ("at", Kind::String) => {
                    let at = reader.string()?;
                    let (call, option) = at.split_once(':').unwrap_or((&at, ""));
                    problem.at = call.parse().ok().map(|call| (call, Some(option.to_owned())));
                }
                ("known", Kind::Array) => {
                    let mut names = reader.open_array()?;
                    while reader.item(&mut names)? {
                        problem.known.push(reader.string()?.into_owned());
                    }
                }
                _ => reader.skip()?,
            }
        }
        problems.push(problem);
    }
    Ok(problems)
}
