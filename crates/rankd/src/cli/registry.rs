//! `rankd registry fix`: writes the ids that entries of a registry lack, and leaves everything else in the files as it is.

use crate::cli::command_error::CommandError;
use crate::cli::{DONE, WRONG, say};
use clap::{Args, Subcommand};
use rankd_edge::registry_files;
use rankd_plan::registry::{EndpointIds, Fixed, fix_keys, fix_params};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct RegistryArgs {
    #[command(subcommand)]
    command: RegistryCommand,
}

#[derive(Subcommand)]
enum RegistryCommand {
    /// Give an id to every entry that has none, in all environments; comments and layout stay
    #[command(after_help = "Example: rankd registry fix --dry_run")]
    Fix(FixArgs),
}

#[derive(Args)]
struct FixArgs {
    /// Folder with the registry files
    #[arg(long, value_name = "DIR", default_value = "registry")]
    registry: PathBuf,
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
}

pub(crate) fn run(args: &RegistryArgs) -> u8 {
    let RegistryCommand::Fix(args) = &args.command;
    match fix(args) {
        Ok(()) => DONE,
        Err(error) => {
            error.report();
            WRONG
        }
    }
}

fn fix(args: &FixArgs) -> Result<(), CommandError> {
    let folder = &args.registry;
    if let Some(problem) = registry_files::missing(folder) {
        return Err(CommandError::Caused(Box::new(problem)));
    }
    let mut fixed = Vec::new();
    for (name, field, fix) in
        [("keys.toml", "key_id", fix_keys as fn(&str) -> Fixed), ("params.toml", "param_id", fix_params)]
    {
        let path = folder.join(name);
        if path.exists() {
            fixed.push((path.clone(), field, fix(&read(&path)?)));
        }
    }
    let environments: Vec<PathBuf> =
        registry_files::environments(folder).iter().map(|env| folder.join(format!("endpoints.{env}.toml"))).collect();
    let texts = environments.iter().map(|path| read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut ids = EndpointIds::default();
    texts.iter().for_each(|text| ids.note(text));
    for (path, text) in environments.into_iter().zip(&texts) {
        fixed.push((path, "endpoint_id", ids.fix(text)));
    }
    for (path, field, Fixed { text, assigned }) in fixed {
        let shown = path.display();
        if assigned.is_empty() {
            say::to_people(&format!("{shown}: nothing is missing"));
            continue;
        }
        if !args.dry_run {
            registry_files::write(&path, &text).map_err(CommandError::with(&shown))?;
        }
        let verb = if args.dry_run { "would be" } else { "is" };
        for (name, id) in assigned {
            say::to_people(&format!("{shown}: {field} of {name} {verb} {id}"));
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, CommandError> {
    registry_files::read_text(path).map_err(CommandError::with(path.display()))
}
