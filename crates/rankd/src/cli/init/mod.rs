//! `rankd init`: a project that runs as it is. Its files are those of the folder `project`; what editors need is made from them.

use crate::cli::check::print_registry_problems;
use crate::cli::command_error::CommandError;
use crate::cli::{DONE, WRONG, say};
use clap::Args;
use rankd_edge::files;
use rankd_edge::library::Library;
use std::path::{Path, PathBuf};

/// The files of a new project. A test fails where a file of the folder is not in this list.
const FILES: &[(&str, &str)] = &[
    ("README.md", include_str!("project/README.md")),
    ("rankd.toml", include_str!("project/rankd.toml")),
    ("registry/keys.toml", include_str!("project/registry/keys.toml")),
    ("registry/params.toml", include_str!("project/registry/params.toml")),
    ("registry/endpoints.local.toml", include_str!("project/registry/endpoints.local.toml")),
    ("data/movies.csv", include_str!("project/data/movies.csv")),
    ("data/users.ndjson", include_str!("project/data/users.ndjson")),
    ("plans/top_movies.plan.ts", include_str!("project/plans/top_movies.plan.ts")),
];

#[derive(Args)]
pub(crate) struct InitArgs {
    /// Folder to create; . for this one
    #[arg(value_name = "NAME")]
    folder: PathBuf,
    /// Overwrite files that are there
    #[arg(long)]
    force: bool,
}

pub(crate) fn run(args: &InitArgs, library: &Library) -> u8 {
    match create(&args.folder, args.force, library) {
        Ok(written) => {
            let folder = args.folder.display();
            say::to_people(&format!("{folder}: {written} files written. To get a ranked list:"));
            if args.folder != Path::new(".") {
                say::to_people(&format!("  cd {folder}"));
            }
            say::to_people("  rankd run --plan_name top_movies --user 7");
            DONE
        }
        Err(error) => {
            error.report();
            WRONG
        }
    }
}

/// Writes the files, all or none of them, and says how many.
fn create(folder: &Path, force: bool, library: &Library) -> Result<usize, CommandError> {
    let plans = folder.join("plans");
    let made = [dslc::types::FILE, "tsconfig.json"].map(|name| plans.join(name));
    let targets = FILES.iter().map(|(name, _)| folder.join(name));
    let mut there: Vec<PathBuf> = targets.chain(made.iter().cloned()).filter(|path| path.exists()).collect();
    if !there.is_empty() && !force {
        const SHOWN: usize = 5;
        let (count, more) = (there.len(), if there.len() > SHOWN { ", …" } else { "" });
        there.truncate(SHOWN);
        let names: Vec<String> = there.iter().map(|path| path.display().to_string()).collect();
        let (are, names) = (if count == 1 { "is" } else { "are" }, names.join(", "));
        let message = format!("{names}{more} {are} there: nothing was written. --force overwrites");
        return Err(CommandError::Wrong(message));
    }
    for (name, text) in FILES {
        write(&folder.join(name), text)?;
    }
    let loaded = library.load_registry(&folder.join("registry"), "local");
    print_registry_problems(&loaded);
    let declarations = dslc::types::declarations(library.tasks().signatures(), &loaded.registry);
    for (path, text) in made.iter().zip([declarations.as_str(), dslc::types::TSCONFIG]) {
        write(path, text)?;
    }
    Ok(FILES.len() + made.len())
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    files::write_if_changed(path, text).map(drop).map_err(CommandError::with(path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_folder_is_written() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/cli/init/project");
        let (mut folders, mut names) = (vec![root.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            let (files, below) = files::list_with_folders(&folder).unwrap();
            names.extend(files.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()));
            folders.extend(below);
        }
        names.sort();
        let mut listed: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        listed.sort_unstable();
        assert_eq!(names, listed);
    }
}
