//! Registries on disk: reading the files of an environment, and comparing environments. There may be no file of models, and none of experiments.

use crate::{files, project};
use rankd_plan::diagnostic::{Diagnostic, nearest};
use rankd_plan::json::{Reader, Writer};
use rankd_plan::limits::REGISTRY_BYTES_MAX;
use rankd_plan::registry::{AsWritten, Experiments, FileProblems, NoValue, Reference, Surroundings, Text};
use rankd_plan::{Code, Diagnostics, Registry};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The environment variables that endpoints may refer to, by name.
pub type Variables = Arc<dyn Fn(&str) -> Option<OsString> + Send + Sync>;

/// The largest file with a secret in it.
const SECRET_BYTES_MAX: usize = 64 << 10;

/// The file of models, which a registry need not have.
const MODELS_FILE: &str = "models.toml";

/// The file of experiments, which a registry need not have either.
const EXPERIMENTS_FILE: &str = "experiments.toml";

/// The registry of one environment and all that is wrong with it.
pub struct LoadedRegistry {
    /// What could be read.
    pub registry: Registry,
    /// File name, text where there is one, and what was found in it.
    pub problems: Vec<(String, Option<String>, Diagnostics)>,
    /// What the files say.
    pub texts: RegistryTexts,
    /// The name of the file of endpoints.
    pub endpoints_file: String,
    /// The name of the file of models, which need not be there.
    pub models_file: String,
    /// The experiments, which are no part of the registry: they change without it, and no plan depends on them.
    pub experiments: ExperimentsFile,
}

/// The experiments of a registry as they were read. What is wrong with them is among the problems of the registry, too.
#[derive(Clone, Debug)]
pub struct ExperimentsFile {
    /// Where the file is or would be.
    pub path: PathBuf,
    /// What it says; `None` where there is none, or it cannot be read.
    pub text: Option<String>,
    /// What could be read.
    pub experiments: Arc<Experiments>,
    /// What is wrong.
    pub found: Diagnostics,
}

impl ExperimentsFile {
    /// Reads the file of a folder with the parameters of a registry. One that is not there has no experiments.
    pub fn read(folder: &Path, registry: &Registry) -> ExperimentsFile {
        let path = folder.join(EXPERIMENTS_FILE);
        ExperimentsFile::read_from(path, registry)
    }

    /// The same for a file that may be called anything.
    pub fn read_from(path: PathBuf, registry: &Registry) -> ExperimentsFile {
        let mut found = Diagnostics::default();
        let text = match files::read_text(&path, REGISTRY_BYTES_MAX) {
            Ok(text) => Some(text),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => {
                let message = format!("it cannot be read: {error}");
                found.push(Diagnostic::new(Code::UnreadableFile, "", message));
                None
            }
        };
        let unreadable = found;
        let mut file = ExperimentsFile::parse(path, text, registry);
        unreadable.list().iter().cloned().for_each(|wrong| file.found.push(wrong));
        file
    }

    /// What a text says that stands in this file.
    pub fn parse(path: PathBuf, text: Option<String>, registry: &Registry) -> ExperimentsFile {
        let mut found = Diagnostics::default();
        let parsed = text.as_ref().map(|text| Experiments::parse(text, registry, &mut found));
        ExperimentsFile { path, text, experiments: Arc::new(parsed.unwrap_or_default()), found }
    }

    /// The path, as people read it.
    pub fn file(&self) -> String {
        self.path.display().to_string()
    }
}

/// What the files of a registry say: keys, parameters, endpoints and models. A file that cannot be read says nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RegistryTexts(pub [String; 4]);

impl RegistryTexts {
    /// The registry that they describe, with whatever in them is right.
    pub fn parse(&self) -> Registry {
        Registry::parse_files(&AsWritten, self.0.each_ref().map(|text| Text { file: "", text })).0
    }

    /// As a JSON array, for a process that is to use the same registry.
    pub fn to_json(&self) -> String {
        let mut writer = Writer::new();
        writer.array(|w| {
            for text in &self.0 {
                w.string(text);
            }
        });
        writer.finish()
    }

    /// From that array; `None` where it is something else.
    pub fn from_json(text: &str) -> Option<RegistryTexts> {
        let mut reader = Reader::new(text, 2);
        let mut items = reader.open_array().ok()?;
        let mut texts = Vec::new();
        while reader.item(&mut items).ok()? {
            texts.push(reader.string().ok()?.into_owned());
        }
        reader.end().ok()?;
        Some(RegistryTexts(texts.try_into().ok()?))
    }
}

impl LoadedRegistry {
    pub(crate) fn read(folder: &Path, env: &str, variables: &Variables) -> LoadedRegistry {
        let [keys, params, models] = ["keys.toml", "params.toml", MODELS_FILE].map(str::to_owned);
        let names = [keys, params, format!("endpoints.{env}.toml"), models];
        let paths = names.each_ref().map(|name| folder.join(name).display().to_string());
        let mut problems = Vec::new();
        if let Some(why) = missing(folder) {
            let mut found = Diagnostics::default();
            found.push(why);
            problems.push((folder.display().to_string(), None, found));
            let [_, _, endpoints_file, models_file] = paths;
            let texts = RegistryTexts(Default::default());
            let registry = Registry::default();
            let experiments = ExperimentsFile::read(folder, &registry);
            return LoadedRegistry { registry, problems, texts, endpoints_file, models_file, experiments };
        }
        let mut text_of = |name: &str| {
            let path = folder.join(name);
            if name == MODELS_FILE && !path.exists() {
                return String::new();
            }
            files::read_text(&path, REGISTRY_BYTES_MAX).unwrap_or_else(|error| {
                let mut found = Diagnostics::default();
                let unreadable = Diagnostic::new(Code::UnreadableFile, "", format!("it cannot be read: {error}"));
                found.push(match nearest_environment(folder, name) {
                    Some(help) => unreadable.help(help),
                    None => unreadable,
                });
                problems.push((path.display().to_string(), None, found));
                String::new()
            })
        };
        let texts = names.each_ref().map(|name| text_of(name));
        let text = |at: usize| Text { file: &paths[at], text: &texts[at] };
        let around = ProjectFiles { root: project::of_registry(folder), variables };
        let (registry, found) = Registry::parse_files(&around, [text(0), text(1), text(2), text(3)]);
        for FileProblems { file, diagnostics } in found {
            // What is wrong with an unreadable file is that it is unreadable.
            if problems.iter().all(|(path, ..)| *path != file) {
                let text = paths.iter().position(|path| *path == file).map(|at| texts[at].clone());
                problems.push((file, text, diagnostics));
            }
        }
        let experiments = ExperimentsFile::read(folder, &registry);
        // With broken parameters every arm would look wrong.
        if problems.iter().all(|(file, ..)| *file != paths[1]) && !experiments.found.list().is_empty() {
            problems.push((experiments.file(), experiments.text.clone(), experiments.found.clone()));
        }
        let [_, _, endpoints_file, models_file] = paths;
        let texts = RegistryTexts(texts);
        LoadedRegistry { registry, problems, texts, endpoints_file, models_file, experiments }
    }

    /// Adds what is wrong with the other environments of the folder, and how their endpoints differ from those of `env`. None of it
    /// keeps `env` from being used, so only those who check everything ask for it.
    pub fn check_other_environments(&mut self, folder: &Path, env: &str) {
        let mut differing = Diagnostics::default();
        let is_usable = !self.has_errors();
        for other in environments(folder).into_iter().filter(|other| other != env) {
            let path = folder.join(format!("endpoints.{other}.toml"));
            let file = path.display().to_string();
            let (text, found) = match files::read_text(&path, REGISTRY_BYTES_MAX) {
                Ok(text) => {
                    let (there, problems) = Registry::parse(nothing(), nothing(), Text { file: &file, text: &text });
                    let found = problems.into_iter().find(|problems| problems.file == file);
                    match found.map(|found| found.diagnostics) {
                        Some(found) => (Some(text), found),
                        None => {
                            let difference = self.registry.difference(env, &there, &other).filter(|_| is_usable);
                            difference.into_iter().for_each(|how| differing.push(differs(env, &other, &how)));
                            continue;
                        }
                    }
                }
                Err(error) => {
                    let mut found = Diagnostics::default();
                    let message = format!("it cannot be read: {error}");
                    found.push(Diagnostic::new(Code::UnreadableFile, "", message));
                    (None, found)
                }
            };
            self.problems.push((file, text, found));
        }
        if !differing.list().is_empty() {
            self.problems.push((self.endpoints_file.clone(), Some(self.texts.0[2].clone()), differing));
        }
    }

    /// Whether a problem keeps the registry from being used.
    pub fn has_errors(&self) -> bool {
        self.problems.iter().any(|(.., found)| found.has_errors())
    }
}

/// A file that is not read.
fn nothing() -> Text<'static> {
    Text { file: "", text: "" }
}

fn differs(env: &str, other: &str, difference: &str) -> Diagnostic {
    let message = format!("endpoints.{env}.toml and endpoints.{other}.toml differ: {difference}");
    let help = "every environment has the same endpoint names, ids and kinds";
    Diagnostic::new(Code::EnvironmentsDiffer, "", message).help(help)
}

/// What endpoints refer to: files of the project, and environment variables.
struct ProjectFiles<'v> {
    root: PathBuf,
    variables: &'v Variables,
}

impl Surroundings for ProjectFiles<'_> {
    fn path(&self, path: &str) -> String {
        self.root.join(path).display().to_string()
    }

    fn value_of(&self, reference: Reference<'_>) -> Result<Option<String>, NoValue> {
        let text = match reference {
            Reference::Variable(name) => {
                let value = (self.variables)(name).ok_or(NoValue::NotSet)?;
                value.into_string().map_err(|_| NoValue::NotText)?
            }
            Reference::File(path) => files::read_text(&self.root.join(path), SECRET_BYTES_MAX)
                .map(|text| text.trim_end_matches(['\n', '\r']).to_owned())
                .map_err(|error| NoValue::Unreadable(error.to_string()))?,
        };
        if text.is_empty() { Err(NoValue::NotText) } else { Ok(Some(text)) }
    }
}

/// Why there is no registry in a folder, where that is because there is no project.
pub fn missing(folder: &Path) -> Option<Diagnostic> {
    let is_missing = !folder.join("keys.toml").exists() && project::find_here().is_none();
    is_missing.then(|| {
        let message =
            format!("there is no registry in {:?}, and the working directory is in no project", folder.display());
        let help = "`rankd init NAME` makes a project; inside of one, commands work in every folder";
        Diagnostic::new(Code::NoProject, "", message).help(help)
    })
}

/// Reads a registry file.
pub fn read_text(path: &Path) -> io::Result<String> {
    files::read_text(path, REGISTRY_BYTES_MAX)
}

/// Writes a registry file in one step, so that nobody reads half of it.
pub fn write(path: &Path, text: &str) -> io::Result<()> {
    let aside = path.with_extension("toml.new");
    files::write(&aside, text)?;
    std::fs::rename(&aside, path)
}

/// The names of the environments that a folder has endpoints for.
pub fn environments(folder: &Path) -> Vec<String> {
    let paths = files::list(folder).unwrap_or_default();
    let names = paths.iter().filter_map(|path| {
        let name = path.file_name()?.to_str()?;
        Some(name.strip_prefix("endpoints.")?.strip_suffix(".toml")?.to_owned())
    });
    names.collect()
}

fn nearest_environment(folder: &Path, file: &str) -> Option<String> {
    let wanted = file.strip_prefix("endpoints.")?.strip_suffix(".toml")?;
    let known = environments(folder);
    match nearest(wanted, known.iter().map(String::as_str)) {
        Some(name) => Some(format!("did you mean --env {name}?")),
        None if known.is_empty() => None,
        None => Some(format!("environments here: {}", known.join(", "))),
    }
}
