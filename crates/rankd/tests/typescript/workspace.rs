//! A folder with the repository's registry and plans of a test's own, and the programs run in it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Workspace {
    pub(crate) folder: PathBuf,
}

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

pub(crate) fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

impl Workspace {
    pub(crate) fn new() -> Workspace {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("rankd-typescript-{}-{number}", std::process::id()));
        let workspace = Workspace { folder };
        for name in ["registry/keys.toml", "registry/params.toml", "registry/endpoints.local.toml", "data/demo.ndjson"]
        {
            workspace.write(name, &read(repository().join(name)));
        }
        workspace
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a temporary folder can be made");
        std::fs::write(path, text).expect("a temporary file can be written");
    }

    pub(crate) fn dslc(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dslc"));
        command.current_dir(&self.folder).args(args).output().expect("dslc can be started")
    }

    /// Builds `plans/case.plan.ts` and gives the artifact.
    pub(crate) fn build(&self, plan: &str) -> String {
        self.write("plans/case.plan.ts", plan);
        let output = self.dslc(&["build", "plans/case.plan.ts"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        read(self.path("plans/case.plan.json"))
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
