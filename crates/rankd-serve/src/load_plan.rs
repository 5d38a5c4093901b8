//! One plan as its file is now: an artifact is read and checked here, TypeScript is compiled by what the server was given for it.
//!
//! What a compiler returns is checked as if a stranger had sent it. It gets the registry in use and does not read the one on disk, which
//! may have been refused.

use crate::log::Log;
use rankd_edge::library::{Library, PlanProblem};
use rankd_edge::registry_files::RegistryTexts;
use rankd_plan::{Checked, Plan, Registry, check};
use std::path::Path;

/// Compiles plans in TypeScript. Plan code must not be able to hurt the server, so this is no place to run it: start a process.
pub trait PlanCompiler: Send {
    /// Compiles the plan in a file with the registry of these texts.
    fn compile(&mut self, path: &Path, registry: &RegistryTexts) -> Compiled;
}

/// What came of compiling a plan.
pub struct Compiled {
    /// The artifact's text, or what is wrong with the plan.
    pub result: Result<String, PlanProblem>,
    /// What plan code was kept from, in words; `None` where that is not known.
    pub confinement: Option<String>,
}

/// A plan that can be linked.
pub(crate) struct LoadedPlan {
    pub(crate) plan: Plan,
    /// Of the artifact, in hexadecimal.
    pub(crate) sha256: String,
    /// The artifact.
    pub(crate) text: String,
}

/// What plans are loaded with.
pub(crate) struct Loader {
    library: Library,
    compiler: Box<dyn PlanCompiler>,
    /// What plan code was last kept from.
    confinement: String,
}

/// The registry that a plan is for.
pub(crate) struct LoadContext<'a> {
    pub(crate) registry: &'a Registry,
    /// What that registry was read from.
    pub(crate) texts: &'a RegistryTexts,
    pub(crate) log: &'a Log,
}

impl Loader {
    pub(crate) fn new(library: Library, compiler: Box<dyn PlanCompiler>) -> Loader {
        Loader { library, compiler, confinement: String::new() }
    }

    pub(crate) fn load(&mut self, path: &Path, context: &LoadContext<'_>) -> Result<LoadedPlan, PlanProblem> {
        if path.extension().is_some_and(|extension| extension == "ts") {
            let text = self.compile(path, context)?;
            let tasks = self.library.tasks().signatures();
            let Checked { plan, diagnostics } = check(text.as_bytes(), context.registry, tasks);
            let errors = diagnostics.errors();
            let plan = plan.ok_or_else(|| PlanProblem::in_words(format!("its artifact has {errors} errors")))?;
            return Ok(LoadedPlan { sha256: plan.sha256.to_string(), plan, text });
        }
        let file = self.library.load_plan(path, context.registry);
        if file.is_stale() {
            let message =
                format!("{}: its source has changed since it was built; the artifact is served", path.display());
            context.log.event("warning", &message);
        }
        let problem = PlanProblem::of(&file);
        match (file.text, file.checked.plan) {
            (Some(text), Some(plan)) => Ok(LoadedPlan { sha256: plan.sha256.to_string(), plan, text }),
            _ => Err(problem),
        }
    }

    /// Gives the artifact.
    fn compile(&mut self, path: &Path, context: &LoadContext<'_>) -> Result<String, PlanProblem> {
        let Compiled { result, confinement } = self.compiler.compile(path, context.texts);
        if let Some(confinement) = confinement.filter(|now| *now != self.confinement) {
            let message = format!("TypeScript plans are compiled in a process with: {confinement}");
            context.log.event("info", &message);
            self.confinement = confinement;
        }
        result
    }
}
