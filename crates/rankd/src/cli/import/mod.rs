//! `rankd import`: a table file becomes a part of the project: keys for its columns, an endpoint, and a first plan.
//!
//! What is to be written is decided in [`proposal`], from what is in the file and what the registry has; only then something is written.

mod proposal;

use crate::cli::check::print_registry_problems;
use crate::cli::command_error::CommandError;
use crate::cli::{DONE, Places, WRONG, say};
use clap::Args;
use proposal::{ColumnPlace, Proposal};
use rankd_edge::library::{Library, SOURCE_SUFFIX};
use rankd_edge::listing::Listing;
use rankd_edge::{files, project, registry_files, table_file};
use rankd_plan::Registry;
use rankd_plan::registry::{EndpointIds, Fixed, fix_keys};
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct ImportArgs {
    /// Table file: .csv, .tsv, .ndjson, .parquet or .arrow
    file: PathBuf,
    /// What plans call the table, and the name of its first plan
    #[arg(long, value_name = "NAME")]
    name: String,
    /// The column that becomes id [default: the most likely one]
    #[arg(long, value_name = "COLUMN")]
    id: Option<String>,
    /// Leave the file where it is, instead of copying it to the folder data of the project
    #[arg(long)]
    in_place: bool,
    /// Overwrite the data file and the plan if they are there
    #[arg(long)]
    force: bool,
    /// Say what would be written, and write nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    places: Places,
}

pub(crate) fn run(args: &ImportArgs, library: &Library) -> u8 {
    match import(args, library) {
        Ok(()) => DONE,
        Err(error) => {
            error.report();
            WRONG
        }
    }
}

fn import(args: &ImportArgs, library: &Library) -> Result<(), CommandError> {
    let Places { plan_dir, registry: folder, env } = &args.places;
    let loaded = library.load_registry(folder, env);
    print_registry_problems(&loaded);
    if loaded.has_errors() {
        return Err(CommandError::Reported);
    }
    let mut bar = say::Progress::new("read", 100);
    let inspection =
        table_file::inspect(&args.file, &mut |progress| bar.at((progress.bytes * 100 / progress.of.max(1)) as usize))
            .map_err(|error| CommandError::Caused(Box::new(error)))?;
    let data = DataFile::of(args, &project::of_registry(folder))?;
    let proposal = Proposal::new(&args.name, args.id.as_deref(), &data.url, &inspection, &loaded.registry)?;
    let plan = plan_dir.join(format!("{}{SOURCE_SUFFIX}", args.name));
    let mut there: Vec<&Path> = Vec::new();
    there.extend(data.copy.as_deref().filter(|copy| copy.exists()));
    there.extend(plan.exists().then_some(plan.as_path()));
    if let (Some(path), false) = (there.first(), args.force) {
        let message = format!("{} is there: nothing was written. --force overwrites it", path.display());
        return Err(CommandError::Wrong(message));
    }
    say::to_people(&describe(&proposal, inspection.rows, &args.file));
    if args.dry_run {
        say::to_people("nothing was written, because of --dry_run");
        return Ok(());
    }
    if let Some(copy) = &data.copy {
        files::copy(&args.file, copy).map_err(CommandError::with(copy.display()))?;
        say::to_people(&format!("{}: a copy of {}", copy.display(), args.file.display()));
    } else {
        say::to_people(&format!("{}: read where it is", args.file.display()));
    }
    write_registry(&proposal, &loaded.registry, folder, env)?;
    files::write_if_changed(&plan, &proposal.plan).map_err(CommandError::with(plan.display()))?;
    say::to_people(&format!("{}: a first plan", plan.display()));
    let loaded = library.load_registry(folder, env);
    print_registry_problems(&loaded);
    // Only where an editor has them already; `dslc types` writes them otherwise.
    let types = plan_dir.join(dslc::types::FILE);
    if types.exists() {
        let declarations = dslc::types::declarations(library.tasks().signatures(), &loaded.registry);
        files::write_if_changed(&types, &declarations).map_err(CommandError::with(types.display()))?;
    }
    for other in registry_files::environments(folder).iter().filter(|other| *other != env) {
        say::note(format!("endpoints.{other}.toml has no endpoint {:?} yet", args.name));
    }
    say::to_people(&format!("To get a ranked list:\n  rankd run --plan_name {} --user 1", args.name));
    Ok(())
}

/// Where the table's file is.
struct DataFile {
    /// What the endpoint's url says.
    url: String,
    /// Where a copy goes; none where the file stays where it is.
    copy: Option<PathBuf>,
}

impl DataFile {
    fn of(args: &ImportArgs, root: &Path) -> Result<DataFile, CommandError> {
        let whole = |path: &Path| path.canonicalize().map_err(CommandError::with(path.display()));
        let (file, inside) = (whole(&args.file)?, whole(&Path::new(".").join(root))?);
        if let Ok(path) = file.strip_prefix(&inside) {
            return Ok(DataFile { url: format!("file:{}", path.display()), copy: None });
        }
        if args.in_place {
            return Ok(DataFile { url: format!("file:{}", file.display()), copy: None });
        }
        let extension = file.extension().map(|extension| extension.to_string_lossy().into_owned()).unwrap_or_default();
        let path = format!("data/{}.{extension}", args.name);
        Ok(DataFile { url: format!("file:{path}"), copy: Some(root.join(&path)) })
    }
}

/// Adds what is new to the registry's files. Ids are written where the file has them already.
fn write_registry(proposal: &Proposal, registry: &Registry, folder: &Path, env: &str) -> Result<(), CommandError> {
    let read = |path: &Path| registry_files::read_text(path).map_err(CommandError::with(path.display()));
    let write = |path: &Path, before: &str, added: &str, fix: &mut dyn FnMut(&str) -> Fixed, entries: usize| {
        let text = joined(before, added);
        // In a new file all entries lack an id, and one more may.
        let is_new = fix(before).assigned.len() == entries;
        let text = if is_new { text } else { fix(&text).text };
        registry_files::write(path, &text).map_err(CommandError::with(path.display()))
    };
    if !proposal.keys.is_empty() {
        let path = folder.join("keys.toml");
        write(&path, &read(&path)?, &proposal.keys, &mut fix_keys, registry.keys.list().len())?;
        let (count, keys) = (proposal.new_keys(), if proposal.new_keys() == 1 { "key" } else { "keys" });
        say::to_people(&format!("{}: {count} {keys} added", path.display()));
    }
    let path = folder.join(format!("endpoints.{env}.toml"));
    let texts = registry_files::environments(folder);
    let texts = texts.iter().map(|env| read(&folder.join(format!("endpoints.{env}.toml"))));
    let texts = texts.collect::<Result<Vec<_>, _>>()?;
    let mut fix = |text: &str| {
        let mut ids = EndpointIds::default();
        texts.iter().for_each(|text| ids.note(text));
        ids.fix(text)
    };
    write(&path, &read(&path)?, &proposal.endpoint, &mut fix, registry.endpoints.list().len())?;
    say::to_people(&format!("{}: the endpoint {:?} added", path.display(), proposal.name));
    Ok(())
}

fn joined(before: &str, after: &str) -> String {
    match before.trim_end() {
        "" => after.trim_start().to_owned(),
        before => format!("{before}\n{after}"),
    }
}

/// What is in the file, and what becomes of it, for people.
fn describe(proposal: &Proposal, rows: usize, file: &Path) -> String {
    let mut listing = Listing::new(&["column", "type", "becomes", "examples"]);
    for column in &proposal.columns {
        let becomes = match &column.place {
            ColumnPlace::Id => "id".to_owned(),
            ColumnPlace::NewKey(key) => format!("{key} (new)"),
            ColumnPlace::Key(key) => key.clone(),
            ColumnPlace::LeftOut(why) => format!("left out: {why}"),
        };
        listing.row(vec![column.name.clone(), column.type_of.clone(), becomes, column.examples.join(", ")]);
    }
    let notes: Vec<String> = proposal.notes.iter().map(|note| format!("note: {note}")).collect();
    format!("{}: {rows} rows\n\n{}\n{}", file.display(), listing.render(), notes.join("\n"))
}
