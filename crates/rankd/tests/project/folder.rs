//! A folder of a test's own, and the real program in any folder below it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Folder(pub(crate) PathBuf);

/// What a call of the program gave.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn empty() -> Folder {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rankd-project-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder can be made");
        Folder(path.canonicalize().expect("it is there"))
    }

    /// A project with one plan, `people`, which gives a user's follows, ranked.
    pub(crate) fn project() -> Folder {
        let folder = Folder::empty();
        folder.write(
            "registry/keys.toml",
            r#"
[[key]]
name = "id"
type = "int"
nullable = false
allow_write = false

[[key]]
name = "parent_id"
type = "int"
nullable = true

[[key]]
name = "score"
type = "float"
nullable = true
"#,
        );
        folder.write("registry/params.toml", "");
        folder.write("registry/endpoints.local.toml", &memory("data/people.ndjson"));
        folder.write(
            "data/people.ndjson",
            "{\"key\":\"follow:7\",\"list\":[3,5,4]}\n{\"key\":\"user:7\",\"hash\":{\"score\":1}}\n",
        );
        folder.write(
            "plans/people.plan.ts",
            r#"import { definePlan } from "@ranking-dsl/runtime";

export default definePlan({
  name: "people",
  build: (ctx) =>
    ctx.viewer({ endpoint: EP.redis.store })
      .follow({ endpoint: EP.redis.store })
      .vm({ outKey: Key.score, expr: Key.id * 0.5 })
      .sort({ key: Key.score, order: "desc" }),
});
"#,
        );
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "a test writes its own files")]
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder can be made");
        std::fs::write(path, text).expect("a file can be written");
    }

    #[expect(clippy::disallowed_methods, reason = "a test reads what the program wrote")]
    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| unreachable!("{name}: {error}"))
    }

    /// Runs the program here.
    pub(crate) fn rankd(&self, args: &[&str]) -> Ran {
        self.rankd_in("", args, &[], "")
    }

    /// Runs the program in a folder below, with variables and input.
    pub(crate) fn rankd_in(&self, below: &str, args: &[&str], variables: &[(&str, &str)], input: &str) -> Ran {
        run(Command::new(env!("CARGO_BIN_EXE_rankd")), &self.path(below), args, variables, input)
    }

    /// The same with the program `dslc`.
    pub(crate) fn dslc_in(&self, below: &str, args: &[&str]) -> Ran {
        run(Command::new(env!("CARGO_BIN_EXE_dslc")), &self.path(below), args, &[], "")
    }
}

fn run(mut program: Command, folder: &Path, args: &[&str], variables: &[(&str, &str)], input: &str) -> Ran {
    std::fs::create_dir_all(folder).expect("a folder can be made");
    program.current_dir(folder).args(args).envs(variables.iter().copied());
    program.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = program.spawn().expect("the program can be started");
    // A program that refuses its arguments does not read; then the pipe is closed already.
    let _ = child.stdin.take().expect("stdin is a pipe").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("the program ends");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("its output is text");
    let ran = Ran {
        code: output.status.code().expect("no signal ended it"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    };
    assert!(!ran.stderr.contains("panicked"), "{}", ran.stderr);
    ran
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// An endpoint on the embedded store.
pub(crate) fn memory(path: &str) -> String {
    format!("[[endpoint]]\nname = \"store\"\nkind = \"redis\"\nurl = \"memory:{path}\"\n")
}
