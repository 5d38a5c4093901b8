//! The real program with a Redis endpoint, in a folder of the test's own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

/// The text of an endpoints file with one endpoint, at a url or, with spaces between, the nodes of a cluster; `policy` is more
/// lines for it.
pub(crate) fn endpoint(at: &str, policy: &str) -> String {
    let urls: Vec<String> = at.split(' ').map(|url| format!("{url:?}")).collect();
    let at = match &urls[..] {
        [url] => format!("url = {url}"),
        nodes => format!("cluster = [{}]", nodes.join(", ")),
    };
    format!("[[endpoint]]\nendpoint_id = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\n{at}\n{policy}\n")
}

/// A folder with the repository's registry, plans and data, and an environment `test`.
pub(crate) struct Workspace(PathBuf);

/// What the program did.
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Workspace {
    pub(crate) fn new(at: &str) -> Workspace {
        Workspace::with_policy(at, "")
    }

    pub(crate) fn with_policy(at: &str, policy: &str) -> Workspace {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("rankd-redis-run-{}-{number}", std::process::id()));
        for sub in ["registry", "plans", "data"] {
            std::fs::create_dir_all(folder.join(sub)).expect("a temporary folder can be made");
        }
        let registry = ["registry/keys.toml", "registry/params.toml", "registry/endpoints.local.toml"];
        for name in registry.into_iter().chain(["plans/complex_dag.plan.json", "data/demo.ndjson"]) {
            std::fs::copy(repository().join(name), folder.join(name)).expect("the file can be copied");
        }
        let workspace = Workspace(folder);
        workspace.write("registry/endpoints.test.toml", &endpoint(at, policy));
        workspace
    }

    pub(crate) fn folder(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.0.join(name), text).expect("a temporary file can be written");
    }

    /// The program in the environment `test`.
    pub(crate) fn rankd(&self, args: &[&str], input: &str) -> Ran {
        self.rankd_in(&[args, &["--env", "test"]].concat(), input)
    }

    /// The program in the environment that the arguments say.
    pub(crate) fn rankd_in(&self, args: &[&str], input: &str) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rankd"));
        command.current_dir(&self.0).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("rankd can be started");
        // A command that does not read closes the pipe.
        let _ = child.stdin.take().expect("stdin is a pipe").write_all(input.as_bytes());
        let output = child.wait_with_output().expect("rankd ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it is UTF-8");
        Ran { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
