//! One plan as its file is now: an artifact read and checked here, TypeScript compiled in a process of its own.
//!
//! Plan code cannot hurt the server: the child has limits on memory and time that the system keeps, it cannot talk to anybody
//! (`confinement`), it is stopped when it takes too long, and what it gives is checked here as if a stranger had sent it. It is told
//! what the registry in use says, and does not read the one on disk, which may have been refused.

use crate::library::{PlanFile, RegistryTexts};
use crate::serve::log::Log;
use rankd_plan::json::{Reader, Writer};
use rankd_plan::limits::FILE_BYTES_MAX;
use rankd_plan::{Checked, Plan, Registry, check};
use sha2::{Digest, Sha256};
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// How long a plan may take to compile.
const WALL: Duration = Duration::from_secs(2);

pub(crate) struct Fresh {
    pub(crate) plan: Plan,
    /// Of the artifact, in hexadecimal.
    pub(crate) sha256: String,
}

/// A sentence, and diagnostics as a JSON array.
pub(crate) type Wrong = (String, String);

pub(crate) struct Source<'a> {
    pub(crate) registry: &'a Registry,
    /// What that registry was read from.
    pub(crate) texts: &'a RegistryTexts,
    pub(crate) log: &'a Log,
}

pub(crate) fn fresh(path: &Path, source: &Source<'_>, compiler: &mut Compiler) -> Result<Fresh, Wrong> {
    if path.extension().is_some_and(|extension| extension == "ts") {
        let text = compiler.compile(path, source)?;
        let Checked { plan, diagnostics } = check(text.as_bytes(), source.registry, rankd_tasks::SIGNATURES);
        return match plan {
            Some(plan) => Ok(Fresh { plan, sha256: sha256(text.as_bytes()) }),
            None => Err((format!("its artifact has {} errors", diagnostics.errors()), "[]".to_owned())),
        };
    }
    let file = PlanFile::load(path, source.registry);
    if file.is_stale() {
        source.log.event(
            "warning",
            &format!("{}: its source has changed since it was built; the artifact is served", path.display()),
        );
    }
    match (&file.text, file.checked.plan.is_some()) {
        (Some(text), true) => {
            let sha256 = sha256(text.as_bytes());
            // It was seen to be there.
            file.checked.plan.map(|plan| Fresh { plan, sha256 }).ok_or_else(|| ("no plan".to_owned(), "[]".to_owned()))
        }
        _ => Err(wrong(&file)),
    }
}

/// What is wrong with a plan: its first error in a sentence, and all of them for programs.
pub(crate) fn wrong(file: &PlanFile) -> Wrong {
    let diagnostics = &file.checked.diagnostics;
    let errors = diagnostics.errors();
    let first = diagnostics.list().iter().find(|found| found.code.severity() == rankd_plan::Severity::Error);
    let first = first.map(|found| format!("{} {}", found.code.id(), found.message)).unwrap_or_default();
    let message = if errors > 1 { format!("{first}, and {} more errors", errors - 1) } else { first };
    let mut writer = Writer::new();
    writer.array(|w| file.report(|report| report.for_programs(w)));
    (message, writer.finish())
}

/// The allocator otherwise reserves a gigabyte of addresses, and addresses are what the child's memory is limited by.
const ALLOCATOR_RESERVE: &str = "MIMALLOC_ARENA_RESERVE";
const ALLOCATOR_RESERVE_KIB: &str = "16384";

/// Compiles plans in TypeScript in child processes.
pub(crate) struct Compiler {
    runtime: Runtime,
    /// What the last child said that the system keeps it from.
    confinement: String,
}

impl Compiler {
    pub(crate) fn new() -> Result<Compiler, String> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start a runtime: {error}"))?;
        Ok(Compiler { runtime, confinement: String::new() })
    }

    /// Gives the artifact.
    fn compile(&mut self, path: &Path, source: &Source<'_>) -> Result<String, Wrong> {
        let said = self.runtime.block_on(ask_child(path, source.texts))?;
        if self.confinement != said.confinement {
            let message = format!("TypeScript plans are compiled in a process with: {}", said.confinement);
            source.log.event("info", &message);
            self.confinement = said.confinement;
        }
        said.result
    }
}

async fn ask_child(path: &Path, texts: &RegistryTexts) -> Result<Said, Wrong> {
    let failed = |why: String| (why, "[]".to_owned());
    let program = std::env::current_exe().map_err(|error| failed(format!("it cannot be compiled: {error}")))?;
    let mut child = Command::new(program)
        .arg("compile-confined")
        .arg(path)
        // Plan code has no way to read the environment; should it find one, there is nothing to read.
        .env_clear()
        .env(ALLOCATOR_RESERVE, ALLOCATOR_RESERVE_KIB)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .map_err(|error| failed(format!("it cannot be compiled: {error}")))?;
    let mut output = Vec::new();
    let talk = async {
        if let Some(mut stdin) = child.stdin.take() {
            // One that has ended already says why, or how, below.
            let _ = stdin.write_all(texts.to_json().as_bytes()).await;
        }
        if let Some(stdout) = child.stdout.take() {
            // An artifact is text inside a JSON string here, so it may take more bytes than it has.
            stdout.take(2 * FILE_BYTES_MAX as u64).read_to_end(&mut output).await?;
        }
        child.wait().await
    };
    match timeout(WALL, talk).await {
        Err(_) => Err(failed(format!("compiling it took more than {} s and was stopped", WALL.as_secs()))),
        Ok(Err(error)) => Err(failed(format!("compiling it failed: {error}"))),
        Ok(Ok(status)) => read_output(&output)
            .ok_or_else(|| failed(format!("the compiler exceeded its limits or crashed ({status})"))),
    }
}

/// What a child said.
struct Said {
    confinement: String,
    /// An artifact, or what is wrong.
    result: Result<String, Wrong>,
}

/// `None` where it was cut off.
fn read_output(output: &[u8]) -> Option<Said> {
    let text = std::str::from_utf8(output).ok()?;
    let mut reader = Reader::new(text, 64);
    let (mut confinement, mut artifact) = (String::new(), None);
    let (mut message, mut diagnostics) = (String::new(), "[]".to_owned());
    let mut fields = reader.open_object().ok()?;
    while let Some((name, _)) = reader.field(&mut fields).ok()? {
        match &*name {
            "confinement" => confinement = reader.string().ok()?.into_owned(),
            "artifact" => artifact = Some(reader.string().ok()?.into_owned()),
            "message" => message = reader.string().ok()?.into_owned(),
            "diagnostics" => diagnostics = reader.string().ok()?.into_owned(),
            _ => return None,
        }
    }
    reader.end().ok()?;
    Some(Said { confinement, result: artifact.ok_or((message, diagnostics)) })
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
