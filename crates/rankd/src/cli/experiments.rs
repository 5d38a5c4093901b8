//! `rankd experiments`: what experiments there are, which buckets are free, where a user is, and who would move.

use crate::cli::check::print_registry_problems;
use crate::cli::command_error::{BadArgument, CommandError};
use crate::cli::{DONE, Places, WRONG, say};
use clap::{Args, Subcommand};
use rankd_edge::experiment_list;
use rankd_edge::library::Library;
use rankd_edge::registry_files::{ExperimentsFile, LoadedRegistry};
use rankd_plan::json::Writer;
use rankd_plan::render::Report;
use std::path::PathBuf;

#[derive(Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct ExperimentsArgs {
    #[command(subcommand)]
    command: Option<ExperimentsCommand>,
    #[command(flatten)]
    list: ListArgs,
}

#[derive(Subcommand)]
enum ExperimentsCommand {
    /// Check the experiments, and show the free buckets of each layer
    #[command(
        after_help = "Example: git show HEAD:registry/experiments.toml > old.toml; rankd experiments check --against old.toml"
    )]
    Check(CheckExperimentsArgs),
    /// Show which arms a user is in
    #[command(after_help = "Example: rankd experiments assign --user 7 --json")]
    Assign(AssignArgs),
}

#[derive(Args)]
struct ListArgs {
    #[command(flatten)]
    places: Places,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct CheckExperimentsArgs {
    #[command(flatten)]
    list: ListArgs,
    /// Count who would move if these were the experiments before
    #[arg(long, value_name = "FILE")]
    against: Option<PathBuf>,
}

#[derive(Args)]
struct AssignArgs {
    #[command(flatten)]
    list: ListArgs,
    /// The user
    #[arg(long, value_name = "ID")]
    user: String,
    /// The value of a parameter that is the unit of a layer; can be repeated
    #[arg(long, value_name = "NAME=VALUE", value_parser = param)]
    param: Vec<(String, String)>,
}

fn param(text: &str) -> Result<(String, String), BadArgument> {
    let (name, value) = text.split_once('=').ok_or(BadArgument::from("write it as NAME=VALUE"))?;
    Ok((name.to_owned(), value.to_owned()))
}

pub(crate) fn run(args: &ExperimentsArgs, library: &Library) -> u8 {
    let result = match &args.command {
        None => list(&args.list, library),
        Some(ExperimentsCommand::Check(args)) => check(args, library),
        Some(ExperimentsCommand::Assign(args)) => assign(args, library),
    };
    match result {
        Ok(()) => DONE,
        Err(error) => {
            error.report();
            WRONG
        }
    }
}

/// The registry, if its experiments can be used.
fn load(args: &ListArgs, library: &Library) -> Result<LoadedRegistry, CommandError> {
    let loaded = library.load_registry(&args.places.registry, &args.places.env);
    print_registry_problems(&loaded);
    if loaded.has_errors() { Err(CommandError::Reported) } else { Ok(loaded) }
}

fn list(args: &ListArgs, library: &Library) -> Result<(), CommandError> {
    let LoadedRegistry { registry, experiments, .. } = load(args, library)?;
    let all = &experiments.experiments;
    match args.json {
        true => say::to_programs(&experiment_list::to_json(all, &registry)),
        false if all.list().is_empty() => {
            say::to_people("there are no experiments: they are [[experiment]] entries of registry/experiments.toml");
        }
        false => say::to_people(experiment_list::in_words(all, &registry).trim_end()),
    }
    Ok(())
}

fn check(args: &CheckExperimentsArgs, library: &Library) -> Result<(), CommandError> {
    let LoadedRegistry { registry, experiments, .. } = load(&args.list, library)?;
    let all = &experiments.experiments;
    let movement = match &args.against {
        None => None,
        Some(path) => {
            let before = ExperimentsFile::read_from(path.clone(), &registry);
            if before.text.is_none() && !before.found.has_errors() {
                return Err(CommandError::Wrong(format!("{}: there is no such file", path.display())));
            }
            // A parameter that only the earlier experiments had does not change who is in them.
            let report = Report { file: &before.file(), text: before.text.as_deref(), found: &before.found };
            if before.found.has_errors() {
                say::to_people(&report.for_people(say::in_colour(), &|_| None));
                return Err(CommandError::Reported);
            }
            Some(experiment_list::movement(&before.experiments, all))
        }
    };
    if args.list.json {
        let mut writer = Writer::new();
        writer.object(|w| {
            w.field("ok").bool(true).field("experiments").raw(&experiment_list::to_json(all, &registry));
            if let Some(movement) = &movement {
                w.field("against").object(|w| movement.write(w));
            }
        });
        say::to_programs(&writer.finish());
        return Ok(());
    }
    say::to_people(experiment_list::free_in_words(all, &registry).trim_end());
    if let Some(movement) = &movement {
        say::to_people(&format!("\n{}", movement.in_words().trim_end()));
    }
    Ok(())
}

fn assign(args: &AssignArgs, library: &Library) -> Result<(), CommandError> {
    let LoadedRegistry { registry, experiments, .. } = load(&args.list, library)?;
    let params = args.param.iter().cloned().collect();
    let places = experiment_list::places(&experiments.experiments, &registry, &args.user, &params);
    match args.list.json {
        true => say::to_programs(&experiment_list::places_to_json(&places, &registry)),
        false => say::to_people(experiment_list::places_in_words(&places, &registry).trim_end()),
    }
    Ok(())
}
