//! The plan folder, checked periodically: which files are new, have changed and stopped changing, or are gone.
//!
//! Files are compared by their time, size and inode, not by notifications: that works on every file system and through the links
//! that a mounted configuration swaps. A look takes time for every plan, so the more of them there are the less often the whole folder
//! is looked at ([`WatchedFolder::interval`]).

use rankd_edge::files::{self, Stamp};
use rankd_edge::library;
use rankd_edge::process;
use rankd_engine::clock;
use std::collections::{HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Looking may take half a hundredth of a core.
const SHARE: u32 = 200;

/// Why the plans are checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LookReason {
    /// It is time to look: what has changed is taken once it has stopped changing.
    Watch,
    /// Everything is to be read again, now.
    Asked,
}

pub(crate) struct WatchedFolder {
    path: PathBuf,
    /// What each plan's files looked like when it was last loaded.
    seen: HashMap<PathBuf, Look>,
    /// What has changed since, and may still be changing.
    changing: HashMap<PathBuf, Look>,
    /// Plans whose file was missing at the last check.
    missing: HashSet<String>,
    /// What plans in TypeScript may import.
    shared: Arc<[Stamp]>,
    interval: Duration,
}

/// What a plan's file, and what it may be made of, look like from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Look {
    own: Option<Stamp>,
    shared: Option<Arc<[Stamp]>>,
}

/// What is to be done about the folder.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Changes {
    /// Every plan's file.
    pub(crate) all: Vec<PathBuf>,
    /// Those to be read now.
    pub(crate) due: Vec<PathBuf>,
    /// Plans that are served and have no file any more.
    pub(crate) gone: Vec<String>,
}

impl WatchedFolder {
    pub(crate) fn new(path: &Path) -> WatchedFolder {
        WatchedFolder {
            path: path.to_owned(),
            seen: HashMap::new(),
            changing: HashMap::new(),
            missing: HashSet::new(),
            shared: Arc::default(),
            interval: Duration::ZERO,
        }
    }

    /// How long to wait between two looks at the whole folder, so that they take no more than their share of a core.
    pub(crate) fn interval(&self) -> Duration {
        self.interval
    }

    /// Whether something has changed that may still be changing.
    pub(crate) fn is_changing(&self) -> bool {
        !self.changing.is_empty()
    }

    /// Looks at the whole folder. `served` are the names of the plans that are served now.
    pub(crate) fn look<'n>(
        &mut self,
        served: impl Iterator<Item = &'n str>,
        reason: LookReason,
    ) -> io::Result<Changes> {
        let (began, cpu_began) = (clock::now(), process::thread_cpu());
        let all = library::list(&self.path)?;
        // An emptied folder says nothing about what its plans are like.
        if all.is_empty() {
            return Ok(Changes::default());
        }
        if all.iter().any(|path| is_source(path)) {
            let shared = shared_sources(&self.path);
            if *self.shared != *shared {
                self.shared = shared.into();
            }
        }
        let known = all.iter().filter(|path| self.seen.contains_key(*path)).count();
        let same_files = known == all.len() && known == self.seen.len() && self.missing.is_empty();
        let due = all.iter().filter(|path| self.is_due(path, reason)).cloned().collect();
        let gone = if same_files { Vec::new() } else { self.gone(&all, served, reason) };
        let cpu = process::thread_cpu().saturating_sub(cpu_began);
        // On a file system that is slow to answer, at most every other moment is spent waiting for it.
        self.interval = (cpu * SHARE).max(clock::now().saturating_duration_since(began));
        Ok(Changes { all, due, gone })
    }

    /// Looks at what was changing: those to be read now.
    pub(crate) fn look_at_changing(&mut self) -> Vec<PathBuf> {
        let paths: Vec<PathBuf> = self.changing.keys().cloned().collect();
        paths.into_iter().filter(|path| self.is_due(path, LookReason::Watch)).collect()
    }

    /// These were not read after all: the next look finds them due.
    pub(crate) fn forget(&mut self, paths: &[PathBuf]) {
        paths.iter().for_each(|path| drop(self.seen.remove(path)));
    }

    /// Whether a plan should be read now. One that should counts as read.
    fn is_due(&mut self, path: &Path, reason: LookReason) -> bool {
        let look = Look { own: files::stamp(path), shared: is_source(path).then(|| self.shared.clone()) };
        let known = self.seen.get(path);
        if reason == LookReason::Watch && known == Some(&look) {
            self.changing.remove(path);
            return false;
        }
        // It may still be being written: wait until two checks see the same.
        if reason == LookReason::Watch && known.is_some() && self.changing.get(path) != Some(&look) {
            self.changing.insert(path.to_owned(), look);
            return false;
        }
        self.changing.remove(path);
        self.seen.insert(path.to_owned(), look);
        true
    }

    /// Plans whose files are gone, and were gone at the last check: a file that is being replaced may be missing for a moment.
    fn gone<'n>(&mut self, all: &[PathBuf], served: impl Iterator<Item = &'n str>, reason: LookReason) -> Vec<String> {
        let names: HashSet<String> = all.iter().map(|path| library::name_of(path)).collect();
        let missing: HashSet<String> = served.filter(|name| !names.contains(*name)).map(str::to_owned).collect();
        let mut gone: Vec<String> = missing
            .iter()
            .filter(|name| reason == LookReason::Asked || self.missing.contains(*name))
            .cloned()
            .collect();
        gone.sort();
        self.missing = missing.into_iter().filter(|name| gone.binary_search(name).is_err()).collect();
        let paths: HashSet<&PathBuf> = all.iter().collect();
        self.seen.retain(|path, _| paths.contains(path));
        self.changing.retain(|path, _| paths.contains(path));
        gone
    }
}

fn is_source(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "ts")
}

/// The files that plans in TypeScript may import: those of the folder and one level below that are no plans themselves.
fn shared_sources(folder: &Path) -> Vec<Stamp> {
    let (mut here, folders) = files::list_with_folders(folder).unwrap_or_default();
    here.extend(folders.iter().flat_map(|folder| files::list(folder).unwrap_or_default()));
    let fragments = here.iter().filter(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.ends_with(".ts") && !name.ends_with(library::SOURCE_SUFFIX)
    });
    fragments.filter_map(|path| files::stamp(path)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = std::env::temp_dir().join(format!("rankd-folder-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&path).unwrap();
            Folder(path)
        }

        fn write(&self, name: &str, text: &str) {
            files::write(&self.0.join(name), text).unwrap();
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn names(paths: &[PathBuf]) -> Vec<String> {
        paths.iter().map(|path| library::name_of(path)).collect()
    }

    #[test]
    fn a_change_is_taken_when_it_has_settled_and_a_file_is_gone_when_it_was_missed_twice() {
        let folder = Folder::new("changes");
        folder.write("a.plan.json", "1");
        folder.write("b.plan.json", "1");
        let mut plans = WatchedFolder::new(&folder.0);
        let served = || ["a", "b"].into_iter();
        assert_eq!(
            names(&plans.look(served(), LookReason::Watch).unwrap().due),
            ["a", "b"],
            "new ones are due at once"
        );
        assert!(plans.look(served(), LookReason::Watch).unwrap().due.is_empty());
        folder.write("b.plan.json", "22");
        assert!(plans.look(served(), LookReason::Watch).unwrap().due.is_empty(), "it may still be changing");
        folder.write("b.plan.json", "333");
        assert!(plans.is_changing() && plans.look_at_changing().is_empty(), "it has changed again");
        assert_eq!(names(&plans.look_at_changing()), ["b"]);
        assert!(!plans.is_changing() && plans.look(served(), LookReason::Watch).unwrap().due.is_empty());
        std::fs::remove_file(folder.0.join("a.plan.json")).unwrap();
        assert!(plans.look(served(), LookReason::Watch).unwrap().gone.is_empty());
        assert_eq!(plans.look(served(), LookReason::Watch).unwrap().gone, ["a"]);
        assert_eq!(
            plans.look(["b"].into_iter(), LookReason::Watch).unwrap(),
            Changes { all: vec![folder.0.join("b.plan.json")], ..Changes::default() }
        );
    }

    #[test]
    fn what_plans_import_makes_them_due_and_an_emptied_folder_makes_nothing_gone() {
        let folder = Folder::new("imports");
        std::fs::create_dir_all(folder.0.join("parts")).unwrap();
        folder.write("parts/part.ts", "1");
        folder.write("a.plan.ts", "");
        folder.write("b.plan.json", "");
        let mut plans = WatchedFolder::new(&folder.0);
        let served = || ["a", "b"].into_iter();
        plans.look(served(), LookReason::Watch).unwrap();
        folder.write("parts/part.ts", "22");
        plans.look(served(), LookReason::Watch).unwrap();
        assert_eq!(names(&plans.look_at_changing()), ["a"]);
        for file in ["a.plan.ts", "b.plan.json"] {
            std::fs::rename(folder.0.join(file), folder.0.join(format!("{file}.aside"))).unwrap();
        }
        for _ in 0..3 {
            assert_eq!(plans.look(served(), LookReason::Asked).unwrap(), Changes::default());
        }
        for file in ["a.plan.ts", "b.plan.json"] {
            std::fs::rename(folder.0.join(format!("{file}.aside")), folder.0.join(file)).unwrap();
        }
        let back = plans.look(served(), LookReason::Watch).unwrap();
        assert!(back.due.is_empty() && back.gone.is_empty(), "{back:?}");
    }
}
