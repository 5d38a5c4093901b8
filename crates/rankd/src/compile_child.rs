//! Compiles plans in TypeScript for the server, each in a process of its own: `rankd compile-confined`.
//!
//! Plan code cannot hurt the server: the child has limits on memory and time that the system keeps, it cannot talk to anybody
//! (`confinement`), and it is stopped when it takes too long.

use rankd_edge::library::PlanProblem;
use rankd_edge::registry_files::RegistryTexts;
use rankd_plan::json::Reader;
use rankd_plan::limits::FILE_BYTES_MAX;
use rankd_serve::{Compiled, PlanCompiler};
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;
use std::{fmt, io};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::Command;
use tokio::runtime::Runtime;
use tokio::time::timeout;

/// How long a plan may take to compile by the clock. The processor time that it may take is far less and is limited by the child
/// itself; this is for a child that cannot even be scheduled.
const WALL: Duration = Duration::from_secs(20);

/// The allocator otherwise reserves a gigabyte of addresses, and addresses are what the child's memory is limited by.
const ALLOCATOR_RESERVE: &str = "MIMALLOC_ARENA_RESERVE";
const ALLOCATOR_RESERVE_KIB: &str = "16384";

/// Compiles plans in child processes, one at a time.
pub(crate) struct CompileChild {
    runtime: Runtime,
}

impl CompileChild {
    pub(crate) fn new() -> io::Result<CompileChild> {
        Ok(CompileChild { runtime: tokio::runtime::Builder::new_current_thread().enable_all().build()? })
    }
}

impl PlanCompiler for CompileChild {
    fn compile(&mut self, path: &Path, registry: &RegistryTexts) -> Compiled {
        self.runtime
            .block_on(ask_child(path, registry))
            .unwrap_or_else(|why| Compiled { result: Err(PlanProblem::in_words(why.to_string())), confinement: None })
    }
}

/// Why there is no result from the child.
#[derive(Debug)]
enum ChildError {
    /// It cannot be started.
    Start(io::Error),
    /// It cannot be read from or waited for.
    Read(io::Error),
    TooSlow,
    /// It ended without a whole result.
    Crashed(ExitStatus),
}

impl std::error::Error for ChildError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ChildError::Start(error) | ChildError::Read(error) => Some(error),
            ChildError::TooSlow | ChildError::Crashed(_) => None,
        }
    }
}

impl fmt::Display for ChildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChildError::Start(error) => write!(f, "it cannot be compiled: {error}"),
            ChildError::Read(error) => write!(f, "compiling it failed: {error}"),
            ChildError::TooSlow => write!(f, "compiling it took more than {} s and was stopped", WALL.as_secs()),
            ChildError::Crashed(status) => write!(f, "the compiler exceeded its limits or crashed ({status})"),
        }
    }
}

/// What a child made of a plan.
async fn ask_child(path: &Path, texts: &RegistryTexts) -> Result<Compiled, ChildError> {
    let program = std::env::current_exe().map_err(ChildError::Start)?;
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
        .map_err(ChildError::Start)?;
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
        Err(_) => Err(ChildError::TooSlow),
        Ok(Err(error)) => Err(ChildError::Read(error)),
        Ok(Ok(status)) => read_output(&output).ok_or(ChildError::Crashed(status)),
    }
}

/// `None` where it was cut off.
fn read_output(output: &[u8]) -> Option<Compiled> {
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
    let result = artifact.ok_or(PlanProblem { message, diagnostics });
    Some(Compiled { result, confinement: Some(confinement) })
}
