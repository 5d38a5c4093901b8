//! Programs from PyPI that a test asks for an opinion, each in an environment of its own under the target folder.

use crate::server::repository;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// The folder of an environment's programs, with this requirement installed once; why not, where Python or PyPI is not there.
pub(crate) fn programs(requirement: &str) -> Result<PathBuf, String> {
    let venv = repository().join("target/tmp").join(requirement.replace("==", "-"));
    let (programs, done) = (venv.join("bin"), venv.join("installed"));
    if done.is_file() {
        return Ok(programs);
    }
    let run = |program: PathBuf, args: &[&str]| -> Result<Output, String> {
        let output = Command::new(&program).args(args).stdin(Stdio::null()).output();
        let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
        let told = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
        if output.status.success() { Ok(output) } else { Err(told) }
    };
    run("python3".into(), &["-m", "venv", &venv.display().to_string()])?;
    run(programs.join("pip"), &["install", "--quiet", "--timeout", "10", "--retries", "1", requirement])?;
    std::fs::write(done, "").map_err(|error| error.to_string())?;
    Ok(programs)
}
