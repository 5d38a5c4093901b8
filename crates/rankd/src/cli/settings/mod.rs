//! What sets a flag that is not on the command line: an environment variable, `rankd.toml`, or the flag's own default.
//!
//! The list of settings is the command line's: every flag of every command, but for those in [`ONE_CALL`]. A setting becomes the
//! flag's default before the command line is read, so that it is checked as a flag is. Paths of `rankd.toml` and of defaults are
//! relative to the project, those of flags and variables to the working directory. `rankd.toml` itself is read in [`mod@file`].

mod file;
pub(crate) mod list;

use crate::cli::command_error::CommandError;
use crate::cli::{Cli, DONE, WRONG, say, with_dashes};
use clap::error::{ContextKind, ContextValue};
use clap::{Arg, ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches, ValueHint};
use file::FileEntry;
use rankd_edge::project;
use rankd_plan::diagnostic::nearest;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Flags that say what one call does; they are never set elsewhere. `env` of `seed` is one: it decides what `seed` does at all.
const ONE_CALL: &[(&str, &str)] = &[
    ("", "force"),
    ("", "dry_run"),
    ("", "user"),
    ("", "item"),
    ("", "bench"),
    ("", "limits"),
    ("", "against"),
    ("", "param"),
    ("", "names"),
    ("seed", "env"),
    ("diff", "capture"),
    ("diff", "captured_plan"),
    ("why", "capture"),
    ("why", "request_id"),
];

/// What variables are called: `RANKD_` and the flag's name.
const PREFIX: &str = "RANKD_";

/// Where the value of a flag comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Origin {
    Variable(String),
    /// The line of `rankd.toml`.
    File(usize),
    Default,
}

/// What is set in the surroundings of a call.
pub(crate) struct Settings {
    /// The project's folder, as it is shortest from the working directory.
    pub(crate) project: Option<PathBuf>,
    file: Vec<FileEntry>,
    /// The variables that set a flag, by the flag's name.
    variables: Vec<(String, String)>,
    /// Variables that look like settings and are none.
    unknown: Vec<String>,
}

/// Reads the command line, and what is set elsewhere for the command of this name. Where there is nothing to do but end, it gives the
/// exit code.
pub(crate) fn parse<P: CommandFactory + FromArgMatches>(name: &str) -> Result<P, u8> {
    let args = || std::env::args_os().map(with_dashes);
    // Alone first: what is wrong with the command line, or asked of it, does not depend on the surroundings.
    let given = P::command().try_get_matches_from(args()).map_err(|error| print(&error))?;
    let called = given.subcommand_name().and_then(|name| P::command().find_subcommand(name).cloned());
    if called.is_some_and(|command| command.is_hide_set()) {
        // What the program calls itself says everything that it needs.
        return P::from_arg_matches(&given).map_err(|error| print(&error));
    }
    let settings = Settings::read().map_err(|error| {
        error.report();
        WRONG
    })?;
    settings.note_unknown();
    let dropped = excluded(&P::command(), &given);
    let mut command = settings.configure(P::command(), name, &dropped);
    let matches = command.try_get_matches_from_mut(args()).map_err(|error| settings.explain(&error))?;
    P::from_arg_matches(&matches).map_err(|error| print(&error.format(&mut command)))
}

fn print(error: &clap::Error) -> u8 {
    // clap decides whether this is an error or an answer to --help; a closed pipe is nobody's problem here.
    let _ = error.print();
    if error.use_stderr() { WRONG } else { DONE }
}

impl Settings {
    /// Everything that is set, checked to be known.
    pub(crate) fn read() -> Result<Settings, CommandError> {
        let project = project::find_here();
        let known = known(&Cli::command());
        let file = match &project {
            Some(folder) => file::read(&folder.join(project::SETTINGS_FILE), &known)?,
            None => Vec::new(),
        };
        let (mut variables, mut unknown) = (Vec::new(), Vec::new());
        for (name, value) in std::env::vars_os() {
            let Some(variable) = name.to_str().filter(|name| name.starts_with(PREFIX)) else { continue };
            let setting = variable[PREFIX.len()..].to_lowercase();
            if !known.iter().any(|(_, name)| *name == setting) || variable != variable_of(&setting) {
                unknown.push(variable.to_owned());
                continue;
            }
            let value = value.into_string();
            let value = value.map_err(|_| CommandError::Wrong(format!("{variable} is not UTF-8")))?;
            variables.push((setting, value));
        }
        unknown.sort();
        Ok(Settings { project, file, variables, unknown })
    }

    /// Mentions variables that are probably meant to be settings. One that only begins alike is somebody else's.
    fn note_unknown(&self) {
        let known: BTreeSet<String> = known(&Cli::command()).iter().map(|(_, name)| variable_of(name)).collect();
        for variable in self.unknown.iter().filter(|variable| !is_of_a_cluster(variable)) {
            if let Some(near) = nearest(variable, known.iter().map(String::as_str)) {
                say::note(format!("{variable} sets nothing; did you mean {near}?"));
            }
        }
    }

    /// The command with what is set as the defaults of its flags.
    fn configure(&self, command: Command, name: &str, dropped: &BTreeSet<String>) -> Command {
        let command = command.mut_args(|arg| match setting_name(name, &arg) {
            Some(setting) if dropped.contains(&setting) => arg,
            // A positional may be a path with a default, too.
            _ => match self.value(name, &arg) {
                (_, values) if values.is_empty() => arg,
                // clap keeps defaults for as long as the process lives, and so does this.
                (_, values) => arg.default_values(values.into_iter().map(|value| &*value.leak())),
            },
        });
        let program = command.get_name().to_owned();
        command.mut_subcommands(|sub| {
            let name = name_below(&program, name, &sub);
            self.configure(sub, &name, dropped)
        })
    }

    /// The value that a flag of a command has where the command line does not give one.
    pub(crate) fn value(&self, command: &str, arg: &Arg) -> (Origin, Vec<String>) {
        let setting = setting_name(command, arg);
        let variable = self.variables.iter().find(|(name, _)| Some(name) == setting.as_ref());
        if let Some((name, value)) = variable {
            return (Origin::Variable(variable_of(name)), values_of_variable(arg, value));
        }
        let of_command = |entry: &&FileEntry| entry.command.as_deref() == Some(command);
        let of_all = |entry: &&FileEntry| entry.command.is_none();
        let mut named = self.file.iter().filter(|entry| Some(&entry.name) == setting.as_ref());
        let all = named.clone().find(of_all);
        if let Some(entry) = named.find(of_command).or(all) {
            let values = entry.values.iter().map(|value| self.in_project(arg, value));
            return (Origin::File(entry.line), values.collect());
        }
        let defaults = arg.get_default_values().iter().map(|value| self.in_project(arg, &value.to_string_lossy()));
        (Origin::Default, defaults.collect())
    }

    /// A value of the project, relative to the working directory where it is a path.
    fn in_project(&self, arg: &Arg, value: &str) -> String {
        let is_path = matches!(arg.get_value_hint(), ValueHint::AnyPath | ValueHint::FilePath | ValueHint::DirPath)
            && value != "-";
        match &self.project {
            Some(folder) if is_path => folder.join(value).display().to_string(),
            _ => value.to_owned(),
        }
    }

    /// Prints what is wrong with a value, and where the value comes from if not from the command line.
    fn explain(&self, error: &clap::Error) -> u8 {
        let code = print(error);
        let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else { return code };
        let flag = arg.trim_start_matches('-').split([' ', '=']).next().unwrap_or_default();
        for (name, command) in commands(&Cli::command()) {
            let Some(arg) = command.get_arguments().find(|arg| arg.get_long() == Some(flag)) else { continue };
            match self.value(&name, arg).0 {
                Origin::Variable(variable) => say::note(format!("--{flag} is set by {variable}")),
                Origin::File(line) => say::note(format!("--{flag} is set in {}:{line}", self.file_name())),
                Origin::Default => continue,
            }
            break;
        }
        code
    }

    /// The name of `rankd.toml`, as people find it.
    pub(crate) fn file_name(&self) -> String {
        let folder = self.project.as_deref().unwrap_or(Path::new(""));
        folder.join(project::SETTINGS_FILE).display().to_string()
    }
}

/// Every command that users call, by the name that settings have for it.
fn commands(program: &Command) -> Vec<(String, &Command)> {
    let mut all = vec![("run".to_owned(), program)];
    let mut at = 0;
    while let Some((name, command)) = all.get(at).cloned() {
        let below = command.get_subcommands().filter(|sub| !sub.is_hide_set());
        all.extend(below.map(|sub| (name_below(command.get_name(), &name, sub), sub)));
        at += 1;
    }
    all
}

/// What settings call a command below one that they call `name`. What is below a command counts as that command; `rankd` itself, without
/// a command, counts as `run`.
fn name_below(program: &str, name: &str, sub: &Command) -> String {
    if program == "rankd" { sub.get_name().to_owned() } else { name.to_owned() }
}

/// Every setting with its command.
fn known(program: &Command) -> BTreeSet<(String, String)> {
    let mut known = BTreeSet::new();
    for (name, command) in commands(program) {
        let settings = command.get_arguments().filter_map(|arg| setting_name(&name, arg));
        known.extend(settings.map(|setting| (name.clone(), setting)));
    }
    known
}

/// What settings call a flag, if it is one that can be set.
fn setting_name(command: &str, arg: &Arg) -> Option<String> {
    let name = arg.get_long()?.replace('-', "_");
    let is_one_call = ONE_CALL.iter().any(|(of, flag)| *flag == name && (of.is_empty() || *of == command));
    (!is_one_call && !arg.is_hide_set()).then_some(name)
}

fn variable_of(setting: &str) -> String {
    format!("{PREFIX}{}", setting.to_uppercase())
}

fn values_of_variable(arg: &Arg, value: &str) -> Vec<String> {
    match arg.get_action() {
        ArgAction::Append => value.split(',').map(str::to_owned).collect(),
        ArgAction::SetTrue => vec![match value {
            "1" => "true".to_owned(),
            "0" | "" => "false".to_owned(),
            other => other.to_owned(),
        }],
        _ => vec![value.to_owned()],
    }
}

/// Whether a variable is what Kubernetes sets for a service that is called rankd.
fn is_of_a_cluster(variable: &str) -> bool {
    variable.ends_with("_SERVICE_HOST") || variable.contains("_SERVICE_PORT") || variable.contains("_PORT")
}

/// The settings that what is on the command line rules out: a flag that excludes another beats what is set for the other.
fn excluded(command: &Command, given: &ArgMatches) -> BTreeSet<String> {
    let (mut command, mut given) = (command, given);
    while let Some((name, below)) = given.subcommand() {
        let Some(sub) = command.find_subcommand(name) else { break };
        (command, given) = (sub, below);
    }
    let is_given =
        |arg: &Arg| given.value_source(arg.get_id().as_str()) == Some(clap::parser::ValueSource::CommandLine);
    let mut excluded = BTreeSet::new();
    for arg in command.get_arguments() {
        for other in command.get_arg_conflicts_with(arg) {
            for (one, two) in [(arg, other), (other, arg)] {
                if is_given(one) {
                    excluded.extend(setting_name(command.get_name(), two));
                }
            }
        }
    }
    excluded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flag_of_every_command_is_a_setting_unless_it_says_what_one_call_does() {
        let known = known(&Cli::command());
        let has = |command: &str, setting: &str| known.contains(&(command.to_owned(), setting.to_owned()));
        assert!(has("run", "plan_name") && has("serve", "listen") && has("dslc", "registry"));
        assert!(has("check", "env") && !has("seed", "env") && !has("seed", "force") && !has("run", "bench"));
        assert!(!known.iter().any(|(command, _)| command == "compile-confined"));
        for (command, setting) in ONE_CALL {
            let (program, flag) = (Cli::command(), setting.replace('_', "-"));
            let is_flag = commands(&program).iter().any(|(name, of)| {
                (command.is_empty() || command == name) && of.get_arguments().any(|arg| arg.get_long() == Some(&flag))
            });
            assert!(is_flag, "{setting} is no flag");
        }
    }

    #[test]
    fn a_flag_rules_out_what_is_set_for_flags_that_it_excludes() {
        let given = |args: &[&str]| excluded(&Cli::command(), &Cli::command().try_get_matches_from(args).unwrap());
        assert!(given(&["rankd", "run", "--plan", "x"]).contains("plan_name"));
        assert!(given(&["rankd", "run", "--plan-name", "x"]).contains("plan"));
        assert!(given(&["rankd", "explain", "x", "--dot"]).contains("json"));
        assert!(given(&["rankd", "explain", "x"]).iter().eq(["plan", "plan_name"]));
        assert!(given(&["rankd", "explain", "--plan-name", "x"]).iter().eq(["plan"]));
    }
}
