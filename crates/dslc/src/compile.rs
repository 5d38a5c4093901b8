//! One plan from end to end: its files gathered and rewritten, run, written down and checked.

use crate::current::is_current;
use crate::emit::{Artifact, emit};
use crate::parse::{self, Module};
use crate::places::{Places, SourceFile};
use crate::report::Reporter;
use crate::resolve::{Import, resolve};
use crate::{config, report, sandbox};
use rankd_plan::source::{Compiled, Compiler, Folder, SOURCE_BYTES_MAX, SOURCE_SUFFIX, SourceText, Unreadable};
use rankd_plan::{Checked, Code, Diagnostic, Diagnostics, Registry, Signatures, check};
use std::collections::HashMap;

/// The largest sum of files that one plan may consist of, and their largest number.
const PLAN_BYTES_MAX: usize = 2 << 20;
const FILES_MAX: usize = 256;
/// The parser recurses as deeply as [`crate::nesting`] lets code nest; only what is used of this counts as memory.
const STACK_BYTES: usize = 256 << 20;

/// The compiler of plans in TypeScript.
pub struct Dslc;

impl Compiler for Dslc {
    fn compile(&self, entry: &str, folder: &dyn Folder, registry: &Registry, tasks: &Signatures) -> Compiled {
        on_large_stack(|| Compiling::new(folder, registry, tasks).run(entry))
    }

    fn is_current(&self, artifact: &str, entry: &str, folder: &dyn Folder, registry: &Registry) -> bool {
        is_current(artifact, entry, folder, registry)
    }
}

/// The parser's depth must not depend on the stack that the caller happens to have left.
pub(crate) fn on_large_stack<R: Send>(work: impl FnOnce() -> R + Send) -> R {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("dslc".to_owned()).stack_size(STACK_BYTES);
        match thread.spawn_scoped(scope, work).map(|handle| handle.join()) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => std::panic::resume_unwind(Box::new(format!("cannot start a thread to compile on: {error}"))),
        }
    })
}

struct Compiling<'a> {
    folder: &'a dyn Folder,
    registry: &'a Registry,
    tasks: &'a Signatures,
    files: Vec<SourceFile>,
    modules: Vec<Module>,
    places: Places,
    found: Diagnostics,
}

impl<'a> Compiling<'a> {
    fn new(folder: &'a dyn Folder, registry: &'a Registry, tasks: &'a Signatures) -> Compiling<'a> {
        let (files, modules, places, found) = Default::default();
        Compiling { folder, registry, tasks, files, modules, places, found }
    }

    fn run(mut self, entry: &str) -> Compiled {
        self.gather(entry);
        let can_run = !self.found.has_errors();
        report::unknown_names(&self.files, &self.modules, self.registry, &mut self.found);
        if !can_run {
            return self.finish(None);
        }
        let codes = self.files.iter().zip(&self.modules).map(|(file, module)| (file.path.clone(), module.code.clone()));
        let codes: HashMap<String, String> = codes.collect();
        let outcome = sandbox::run(entry.to_owned(), codes, config::config(self.tasks, self.registry));
        let reporter = Reporter { files: &self.files, modules: &self.modules, places: &self.places };
        reporter.problems(&outcome.problems, &mut self.found);
        if let Some(failure) = &outcome.failure {
            reporter.failure(failure, &mut self.found);
        }
        if self.found.has_errors() {
            return self.finish(None);
        }
        let artifact = match outcome.plan.map(|plan| emit(&plan, &self.files, &self.places, self.registry)) {
            Some(Ok(artifact)) => {
                reporter.unmatchable(&artifact, &mut self.found);
                Some(artifact)
            }
            // The runtime writes JSON that can be read, so this is a bug, which is reported rather than worked around.
            Some(Err(fault)) => {
                self.found.push(Diagnostic::new(Code::PlanThrew, "", format!("the plan was lost: {}", fault.message)));
                None
            }
            None => None,
        };
        self.finish(artifact)
    }

    /// Reads and rewrites the plan's file and all that it imports, each once, in order.
    fn gather(&mut self, entry: &str) {
        let mut wanted = vec![(entry.to_owned(), None)];
        let mut at = 0;
        let mut bytes = 0;
        while let Some((path, import)) = wanted.get(at).cloned() {
            at += 1;
            let text = match self.folder.read(&path) {
                Ok(text) => text,
                Err(unreadable) => {
                    self.unreadable(&path, import, &unreadable);
                    continue;
                }
            };
            bytes += text.len();
            if bytes > PLAN_BYTES_MAX || at > FILES_MAX {
                let message = format!("a plan is at most {PLAN_BYTES_MAX} bytes in {FILES_MAX} files");
                self.found.push(Diagnostic::new(Code::SourceTooLarge, "", message).source(import));
                self.files.push(SourceFile::new(path, text));
                return;
            }
            let (number, file) = (self.files.len() as u32, SourceFile::new(path, text));
            let module = parse::module(&file, number, &mut self.places, &mut self.found);
            for (specifier, span) in module.iter().flat_map(|module| &module.imports) {
                let source = file.span(span.start, span.end);
                match resolve(&file.path, specifier) {
                    Ok(Import::Runtime) => {}
                    Ok(Import::File(path)) => {
                        if wanted.iter().all(|(known, _)| *known != path) {
                            wanted.push((path, Some(source)));
                        }
                    }
                    Err(refused) => {
                        let wrong = Diagnostic::new(Code::BadImport, "", refused.message).help(refused.help);
                        self.found.push(wrong.source(Some(source)));
                    }
                }
            }
            self.files.push(file);
            // What is imported is of no interest where the file itself cannot run.
            let Some(module) = module else { return };
            self.modules.push(module);
        }
    }

    fn unreadable(&mut self, path: &str, import: Option<rankd_plan::diagnostic::SourceSpan>, why: &Unreadable) {
        let diagnostic = match (why, &import) {
            (Unreadable::TooLarge(bytes), _) => {
                let message = format!("{path} has {bytes} bytes, and {SOURCE_BYTES_MAX} are the limit");
                Diagnostic::new(Code::SourceTooLarge, "", message)
            }
            (Unreadable::Because(why), Some(_)) => {
                Diagnostic::new(Code::BadImport, "", format!("{path} cannot be imported: {why}"))
            }
            (Unreadable::Because(why), None) => {
                Diagnostic::new(Code::UnreadableFile, "", format!("it cannot be read: {why}"))
            }
        };
        self.found.push(diagnostic.source(import));
    }

    fn finish(self, artifact: Option<Artifact>) -> Compiled {
        let Some(artifact) = artifact.filter(|_| !self.found.has_errors()) else {
            return Compiled {
                artifact: None,
                checked: Checked { plan: None, diagnostics: self.found },
                files: texts(self.files),
            };
        };
        let mut checked = check(artifact.text.as_bytes(), self.registry, self.tasks);
        let entry = self.files.first().map_or("", |file| file.path.as_str());
        checked.must_be_named_after(entry.strip_suffix(SOURCE_SUFFIX));
        let reporter = Reporter { files: &self.files, modules: &self.modules, places: &self.places };
        let diagnostics = reporter.placed(checked.diagnostics, &artifact);
        Compiled {
            artifact: Some(artifact.text),
            checked: Checked { plan: checked.plan, diagnostics },
            files: texts(self.files),
        }
    }
}

fn texts(files: Vec<SourceFile>) -> Vec<SourceText> {
    files.into_iter().map(|file| SourceText { path: file.path, text: file.text }).collect()
}
