//! The files that a case runs on: the repository's registry with the case's own files laid over it, in a folder of its own.

use crate::markdown::{Block, Case};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

pub(crate) struct Workspace {
    folder: PathBuf,
}

impl Workspace {
    pub(crate) fn of(case: &Case) -> Workspace {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("rankd-case-{}-{number}", std::process::id()));
        let workspace = Workspace { folder };
        for sub in ["registry", "plans", "data"] {
            std::fs::create_dir_all(workspace.path(sub)).expect("a temporary folder can be made");
        }
        workspace.write("data/demo.ndjson", b"");
        for name in ["keys.toml", "params.toml", "endpoints.local.toml"] {
            let from = crate::repository().join("registry").join(name);
            std::fs::copy(from, workspace.path("registry").join(name)).expect("the registry can be copied");
        }
        for block in &case.blocks {
            match (block.language.as_str(), block.role.as_str()) {
                ("remove", role) => std::fs::remove_file(workspace.path(role)).expect("it was there"),
                ("ts", "plan") => workspace.write("plans/case.plan.ts", &bytes(block)),
                (_, "plan") => workspace.write("plans/case.plan.json", &bytes(block)),
                (_, role) if role.contains('/') => workspace.write(role, &bytes(block)),
                _ => {}
            }
        }
        workspace
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a temporary folder can be made");
        std::fs::write(path, bytes).expect("a temporary file can be written");
    }

    /// The program, in this folder.
    pub(crate) fn rankd(&self, args: &[&str]) -> Output {
        self.rankd_with_input(args, b"")
    }

    pub(crate) fn rankd_with_input(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rankd"));
        command.current_dir(&self.folder).args(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("rankd can be started");
        // A program that refuses its arguments does not read; then the pipe is closed already.
        let _ = child.stdin.take().expect("stdin is a pipe").write_all(input);
        child.wait_with_output().expect("rankd ends")
    }
}

impl Drop for Workspace {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in the system's temporary folder.
        let _ = std::fs::remove_dir_all(Path::new(&self.folder));
    }
}

/// A block's bytes: its text, or for `bytes` blocks what its lines say: `text …`, `hex …`, `repeat N …`.
fn bytes(block: &Block) -> Vec<u8> {
    if block.language != "bytes" {
        return block.text.clone().into_bytes();
    }
    let mut bytes = Vec::new();
    for line in block.text.lines() {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        match verb {
            "text" => bytes.extend_from_slice(rest.as_bytes()),
            "hex" => bytes.extend(rest.split(' ').map(|byte| u8::from_str_radix(byte, 16).expect("hexadecimal"))),
            "repeat" => {
                let (count, text) = rest.split_once(' ').expect("repeat N TEXT");
                bytes.extend_from_slice(text.repeat(count.parse().expect("a number")).as_bytes());
            }
            _ => panic!("a bytes block has lines of text, hex or repeat, not {line:?}"),
        }
    }
    bytes
}
