//! The project folder: the nearest folder upwards that has `rankd.toml` or `registry/keys.toml`.
//!
//! Paths are given as they are shortest from the working directory, because people read them in messages.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// What sets the flags of a project; a folder that has it is a project.
pub const SETTINGS_FILE: &str = "rankd.toml";

/// The project that a folder is in.
pub fn find(from: &Path) -> Option<PathBuf> {
    let from = from.canonicalize().ok()?;
    let root = from.ancestors().find(|folder| is_project(folder))?;
    Some(seen_from_here(root))
}

/// The project that the working directory is in.
pub fn find_here() -> Option<PathBuf> {
    find(Path::new("."))
}

/// What the paths in a registry are relative to: the project that it is in; if it is in none, the one that the process runs in; if
/// there is none, the working directory.
pub fn of_registry(folder: &Path) -> PathBuf {
    find(folder).or_else(find_here).unwrap_or_default()
}

fn is_project(folder: &Path) -> bool {
    let has_files = folder.join(SETTINGS_FILE).is_file() || folder.join("registry/keys.toml").is_file();
    has_files && !is_shared(folder)
}

/// Whether everybody on the machine may put files into a folder, as into /tmp. What is there may be anybody's, so it is no project.
fn is_shared(folder: &Path) -> bool {
    const STICKY_AND_WRITABLE: u32 = 0o1002;
    folder.metadata().is_ok_and(|meta| meta.mode() & STICKY_AND_WRITABLE == STICKY_AND_WRITABLE)
}

/// The empty path for the working directory itself, `..` and so on for what is above it.
fn seen_from_here(folder: &Path) -> PathBuf {
    let Ok(here) = std::env::current_dir() else { return folder.to_owned() };
    match here.ancestors().position(|above| above == folder) {
        Some(up) => (0..up).map(|_| "..").collect(),
        None => folder.strip_prefix(&here).unwrap_or(folder).to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_nearest_folder_upwards_is_the_project() {
        let outer = std::env::temp_dir().join(format!("rankd-project-{}", std::process::id()));
        let inner = outer.join("a/inner");
        for folder in ["registry", "plain/below", "a/inner/plans/deep", "a/empty/registry"] {
            std::fs::create_dir_all(outer.join(folder)).unwrap();
        }
        crate::files::write(&outer.join("registry/keys.toml"), "").unwrap();
        crate::files::write(&inner.join(SETTINGS_FILE), "").unwrap();
        let outer = outer.canonicalize().unwrap();
        let inner = inner.canonicalize().unwrap();
        for (from, project) in [
            (outer.clone(), &outer),
            (outer.join("registry"), &outer),
            (outer.join("plain/below"), &outer),
            (outer.join("a/empty/registry"), &outer),
            (inner.clone(), &inner),
            (inner.join("plans/deep"), &inner),
        ] {
            assert_eq!(find(&from).as_ref(), Some(project), "{}", from.display());
            assert_eq!(&of_registry(&from), project);
        }
        assert_eq!(find(&outer.join("nowhere")), None);
        // Whoever may write to a folder that all share must not decide what others run.
        std::fs::set_permissions(&inner, std::fs::Permissions::from_mode(0o1777)).unwrap();
        assert_eq!(find(&inner.join("plans")), Some(outer.clone()));
        std::fs::remove_dir_all(&outer).unwrap();
    }

    #[test]
    fn what_is_above_the_working_directory_is_shown_by_dots() {
        let here = std::env::current_dir().unwrap();
        assert_eq!(seen_from_here(&here), Path::new(""));
        assert_eq!(seen_from_here(here.parent().unwrap()), Path::new(".."));
        assert_eq!(seen_from_here(&here.join("src")), Path::new("src"));
        assert_eq!(seen_from_here(Path::new("/nowhere/else")), Path::new("/nowhere/else"));
    }
}
