//! Plans on disk: finding them, reading them, checking them. The files of registries are in `registry_files`.

use crate::files::{self, Contents};
use crate::models::ModelFiles;
use crate::registry_files::{LoadedRegistry, Variables};
use rankd_engine::Tasks;
use rankd_plan::check::too_large;
use rankd_plan::diagnostic::{Diagnostic, SourceSpan};
use rankd_plan::digest::sha256;
use rankd_plan::json::Writer;
use rankd_plan::limits::FILE_BYTES_MAX;
use rankd_plan::model::{OnnxReader, OnnxTrial, OpenOnnx};
use rankd_plan::render::Report;
use rankd_plan::source::{Compiled, Compiler, Folder, SOURCE_BYTES_MAX, SourceText, Unreadable};
use rankd_plan::{Checked, Code, Diagnostics, Registry, Severity, check};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// How a plan's file is called: as an artifact, and as its author writes it.
pub const PLAN_SUFFIX: &str = ".plan.json";
pub use rankd_plan::source::SOURCE_SUFFIX;

/// Reads plans and registries, with the tasks that plans may use and what compiles those in TypeScript. Cheap to clone.
#[derive(Clone)]
pub struct Library {
    tasks: Tasks,
    compiler: Arc<dyn Compiler>,
    variables: Variables,
    open_onnx: Option<OpenOnnx>,
    onnx_trial: Option<OnnxTrial>,
}

impl Library {
    /// A library for these tasks and this compiler.
    pub fn new(tasks: Tasks, compiler: Arc<dyn Compiler>) -> Library {
        Library { tasks, compiler, variables: Arc::new(|_| None), open_onnx: None, onnx_trial: None }
    }

    /// The tasks that plans may use.
    pub fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    /// Gives endpoints environment variables to refer to. Without this, none is set.
    pub fn with_variables(mut self, variables: Variables) -> Library {
        self.variables = variables;
        self
    }

    /// Reads ONNX models by this, with a library that has passed the trial. Without a reader, such a model is refused.
    pub fn with_onnx(mut self, open: Option<OpenOnnx>, trial: Option<OnnxTrial>) -> Library {
        (self.open_onnx, self.onnx_trial) = (open, trial);
        self
    }

    /// Reads ONNX models with this shared library; `None` where the program was built without.
    pub fn onnx(&self, library: Option<&Path>) -> Option<Arc<dyn OnnxReader>> {
        self.open_onnx.map(|open| open(library.map(Path::to_owned), self.onnx_trial))
    }

    /// The model files of a registry; `None` where it has no model. `onnxruntime` is the shared library for ONNX models.
    pub fn model_files(&self, registry: &Registry, onnxruntime: Option<&Path>) -> Option<ModelFiles> {
        ModelFiles::new(registry, self.onnx(onnxruntime))
    }

    /// Reads the registry files of an environment.
    pub fn load_registry(&self, folder: &Path, env: &str) -> LoadedRegistry {
        LoadedRegistry::read(folder, env, &self.variables)
    }

    /// Reads and checks the plan in a file; one in TypeScript is compiled for that.
    pub fn load_plan(&self, path: &Path, registry: &Registry) -> PlanFile {
        if path.extension().is_some_and(|extension| extension == "ts") {
            return self.compile(path, registry);
        }
        let plan =
            |text, checked| PlanFile { path: path.to_owned(), text, checked, artifact: None, sources: Vec::new() };
        let refused = |diagnostic| plan(None, Checked::refused(diagnostic));
        match files::read(path, FILE_BYTES_MAX) {
            Err(error) => refused(Diagnostic::new(Code::UnreadableFile, "", format!("it cannot be read: {error}"))),
            Ok(Contents::TooLarge(bytes)) => refused(too_large(bytes)),
            Ok(Contents::Bytes(bytes)) => {
                let mut checked = check(&bytes, registry, self.tasks.signatures());
                let name = name_of(path);
                checked.must_be_named_after(is_file_of(path, PLAN_SUFFIX).then_some(name.as_str()));
                if let Some(stale) = checked.plan.as_ref().and_then(|plan| stale(path, plan)) {
                    checked.diagnostics.push(stale);
                }
                plan(String::from_utf8(bytes).ok(), checked)
            }
        }
    }

    fn compile(&self, path: &Path, registry: &Registry) -> PlanFile {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let folder = PlanFolder { root: folder_of(path) };
        let Compiled { artifact, checked, files } =
            self.compiler.compile(&name, &folder, registry, self.tasks.signatures());
        // People find a file by the path that they gave.
        let mut diagnostics = Diagnostics::default();
        for found in checked.diagnostics.list() {
            let mut found = found.clone();
            if let Some(source) = &mut found.source {
                source.path = path.with_file_name(&source.path).display().to_string();
            }
            diagnostics.push(found);
        }
        let checked = Checked { plan: checked.plan, diagnostics };
        PlanFile { path: path.to_owned(), text: None, checked, artifact, sources: files }
    }

    /// The artifact in `target`, if it is what compiling the plan in `source` would give. Nothing is compiled to know that.
    pub fn up_to_date(&self, source: &Path, target: &Path, registry: &Registry) -> Option<PlanFile> {
        let name = source.file_name()?.to_str()?;
        let text = files::read_text(target, FILE_BYTES_MAX).ok()?;
        if !self.compiler.is_current(&text, name, &PlanFolder { root: folder_of(source) }, registry) {
            return None;
        }
        let file = self.load_plan(target, registry);
        file.checked.plan.is_some().then_some(file)
    }

    /// Reads and checks plans, in the order of their paths, on all the machine's cores.
    pub fn load_all(&self, paths: &[PathBuf], registry: &Registry) -> Vec<PlanFile> {
        on_all_cores(paths, |path| self.load_plan(path, registry))
    }
}

/// A plan file that was looked at.
pub struct PlanFile {
    /// The file.
    pub path: PathBuf,
    /// The artifact's text. `None` where it could not be read, is too large or is not text, and for a plan in TypeScript.
    pub text: Option<String>,
    /// The plan, if nothing is wrong with it, and what there is to say about it.
    pub checked: Checked,
    /// What a plan in TypeScript was compiled to, if it could be.
    pub artifact: Option<String>,
    /// The sources of a plan in TypeScript.
    sources: Vec<SourceText>,
}

impl PlanFile {
    /// Whether the artifact's sources have changed since it was built.
    pub fn is_stale(&self) -> bool {
        self.checked.diagnostics.list().iter().any(|found| found.code == Code::StaleArtifact)
    }

    /// The artifact's text, as it was read or as the plan was compiled to.
    pub fn artifact_text(&self) -> Option<&str> {
        self.artifact.as_deref().or(self.text.as_deref())
    }

    /// The path, as people read it.
    pub fn file(&self) -> String {
        self.path.display().to_string()
    }

    /// Calls `with` with the report of what was found.
    pub fn report<R>(&self, with: impl FnOnce(&Report<'_>) -> R) -> R {
        with(&Report { file: &self.file(), text: self.text.as_deref(), found: &self.checked.diagnostics })
    }

    /// The text of a source that the artifact names, if it is still what was compiled.
    pub fn source_text(&self, span: &SourceSpan) -> Option<String> {
        let is_meant = |source: &&SourceText| {
            source.path == span.path || self.path.with_file_name(&source.path) == Path::new(&span.path)
        };
        if let Some(source) = self.sources.iter().find(is_meant) {
            return Some(source.text.clone());
        }
        source_beside(&self.path, span)
    }
}

/// The text of a source that the artifact in this file names, if it is still what was compiled: any other file has another digest.
pub fn source_beside(artifact: &Path, span: &SourceSpan) -> Option<String> {
    let path = artifact.parent().unwrap_or(Path::new("")).join(&span.path);
    let text = files::read_text(&path, FILE_BYTES_MAX).ok()?;
    (sha256(&text) == span.sha256).then_some(text)
}

/// What keeps a plan from being used.
#[derive(Clone, Debug)]
pub struct PlanProblem {
    /// In a sentence.
    pub message: String,
    /// All of it for programs: a JSON array.
    pub diagnostics: String,
}

impl std::error::Error for PlanProblem {}

impl std::fmt::Display for PlanProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl PlanProblem {
    /// A problem that no diagnostic describes.
    pub fn in_words(message: String) -> PlanProblem {
        PlanProblem { message, diagnostics: "[]".to_owned() }
    }

    /// What is wrong with a plan: its first error in a sentence, and all of them for programs.
    pub fn of(file: &PlanFile) -> PlanProblem {
        file.report(PlanProblem::in_report)
    }

    /// The same for an artifact that is not in a file.
    pub fn of_artifact(name: &str, text: &str, found: &Diagnostics) -> PlanProblem {
        PlanProblem::in_report(&Report { file: name, text: Some(text), found })
    }

    fn in_report(report: &Report<'_>) -> PlanProblem {
        let diagnostics = report.found;
        let errors = diagnostics.errors();
        let first = diagnostics.list().iter().find(|found| found.code.severity() == Severity::Error);
        let first = first.map(|found| format!("{} {}", found.code.id(), found.message)).unwrap_or_default();
        let message = if errors > 1 { format!("{first}, and {} more errors", errors - 1) } else { first };
        let mut writer = Writer::new();
        writer.array(|w| report.for_programs(w));
        PlanProblem { message, diagnostics: writer.finish() }
    }
}

/// What to say of an artifact whose source lies next to it and has changed since. One that was delivered alone is not stale.
fn stale(path: &Path, plan: &rankd_plan::Plan) -> Option<Diagnostic> {
    let files = plan.sources.files();
    let source = path.with_file_name(&files.first()?.0);
    if !source.is_file() {
        return None;
    }
    let folder = PlanFolder { root: folder_of(path) };
    let is_same = |(path, digest): &&(String, String)| folder.read(path).is_ok_and(|text| sha256(&text) == *digest);
    let (changed, _) = files.iter().find(|file| !is_same(file))?;
    let message = format!("{changed} has changed since this artifact was built");
    Some(Diagnostic::new(Code::StaleArtifact, "", message).help(format!("dslc build {}", source.display())))
}

/// The source of a stale artifact, as it is now: what a run by name means.
pub fn source_of(path: &Path) -> PathBuf {
    path.with_file_name(name_of(path) + SOURCE_SUFFIX)
}

/// Does the same for every path, on all the machine's cores; the results are in the order of the paths.
pub fn on_all_cores<R: Send>(paths: &[PathBuf], work: impl Fn(&Path) -> R + Sync) -> Vec<R> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(paths.len());
    // Whoever is done takes the next: plans differ in size.
    let next = AtomicUsize::new(0);
    let share = || {
        let mut own = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(path) = paths.get(at) else { return own };
            own.push((at, work(path)));
        }
    };
    let mut loaded = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(share)).collect();
        let mut loaded = share();
        for other in others {
            loaded.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        loaded
    });
    loaded.sort_by_key(|(at, _)| *at);
    loaded.into_iter().map(|(_, result)| result).collect()
}

/// The folder that a plan's imports stay in: that of its file.
fn folder_of(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    }
}

/// The files of a plan in TypeScript. A link that leads out of the folder leads nowhere.
struct PlanFolder {
    root: PathBuf,
}

impl Folder for PlanFolder {
    fn read(&self, path: &str) -> Result<String, Unreadable> {
        let because = |why: String| Unreadable::Because(why);
        let root = self.root.canonicalize().map_err(|error| because(error.to_string()))?;
        let path = root.join(path).canonicalize().map_err(|error| because(error.to_string()))?;
        if !path.starts_with(&root) {
            return Err(because("a link leads out of the plan's folder".to_owned()));
        }
        match files::read(&path, SOURCE_BYTES_MAX).map_err(|error| because(error.to_string()))? {
            Contents::TooLarge(bytes) => Err(Unreadable::TooLarge(bytes)),
            Contents::Bytes(bytes) => String::from_utf8(bytes).map_err(|_| because("it is not UTF-8".to_owned())),
        }
    }
}

/// The file that `plan` means: a path, or a name in the plan folder, where an artifact comes before its source.
pub fn find(plan: &str, plan_dir: &Path) -> PathBuf {
    if !is_name(plan) {
        return PathBuf::from(plan);
    }
    let (artifact, source) =
        (plan_dir.join(format!("{plan}{PLAN_SUFFIX}")), plan_dir.join(format!("{plan}{SOURCE_SUFFIX}")));
    if !artifact.is_file() && source.is_file() { source } else { artifact }
}

/// Whether this is a plan's name rather than a path.
pub fn is_name(plan: &str) -> bool {
    !plan.is_empty() && plan.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// The name of the plan in a file.
pub fn name_of(path: &Path) -> String {
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    file.strip_suffix(PLAN_SUFFIX).or_else(|| file.strip_suffix(SOURCE_SUFFIX)).unwrap_or(&file).to_owned()
}

/// The plan files of a folder, by name; a plan that is there in both forms is meant by its artifact.
pub fn list(plan_dir: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = files::list(plan_dir)?;
    paths.retain(|path| is_file_of(path, PLAN_SUFFIX) || is_file_of(path, SOURCE_SUFFIX));
    // `.plan.json` comes before `.plan.ts`.
    paths.dedup_by_key(|path| name_of(path));
    Ok(paths)
}

/// The plans in TypeScript of a folder, by name.
pub fn list_sources(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut paths = files::list(folder)?;
    paths.retain(|path| is_file_of(path, SOURCE_SUFFIX));
    Ok(paths)
}

fn is_file_of(path: &Path, suffix: &str) -> bool {
    path.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.ends_with(suffix))
}
