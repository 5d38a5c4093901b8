//! ONNX Runtime: its shared library, loaded and started once a process.
//!
//! A file that is not the library is refused before anything of it is loaded. What looks right and then hangs or crashes while it starts does so
//! in the trial. Where there is none, it hangs on a thread of its own: whoever asked is told after [`START_MAX`], and the thread is left behind.

use crate::elf;
use crate::trial;
use ort::environment::Environment;
use ort::logging::LogLevel;
use rankd_plan::model::{ModelProblem, OnnxTrial};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

/// Where to get the library.
pub(crate) const WHERE: &str =
    "libonnxruntime.so.1.* is in the folder onnxruntime/capi of the package onnxruntime of PyPI";

/// A start usually takes 50 ms. Much more than that, because a good library on a slow disk and a busy machine must not be refused.
const START_MAX: Duration = Duration::from_secs(5);

/// Older libraries lack functions that are called.
const MINOR_MIN: u32 = ort::MINOR_VERSION;

/// What became of the first library that was loaded. The process cannot load another: the library's state is the process's.
enum Loaded {
    Started(PathBuf, Environment),
    Hangs(PathBuf),
}

static LOADED: Mutex<Option<Loaded>> = Mutex::new(None);

/// Starts the library in a file, if it is not running already.
pub(crate) fn start(library: &Path, trial: Option<OnnxTrial>) -> Result<Environment, ModelProblem> {
    let refused = |why: String| {
        let message = format!("{} cannot be used: {why}", library.display());
        ModelProblem::of_runtime(message, format!("name another file with --onnxruntime or RANKD_ONNXRUNTIME: {WHERE}"))
    };
    // Relative paths mean something else to the loader.
    let path = std::path::absolute(library).map_err(|error| refused(error.to_string()))?;
    let mut loaded = LOADED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Loaded::Started(running, environment)) = &*loaded
        && *running == path
    {
        return Ok(environment.clone());
    }
    let version = elf::version(&path).map_err(refused)?;
    if let Some(version) = version.filter(|version| is_too_old(version)) {
        return Err(refused(format!("it is ONNX Runtime {version}, and 1.{MINOR_MIN} or later is needed")));
    }
    match &*loaded {
        Some(Loaded::Started(running, _)) => {
            return Err(refused(format!("this process runs {} already", running.display())));
        }
        Some(Loaded::Hangs(hangs)) => return Err(refused(format!("{} hangs in this process", hangs.display()))),
        None => {}
    }
    if let Some(command) = trial {
        trial::must_pass(command(&path), START_MAX).map_err(refused)?;
    }
    let (send, receive) = sync_channel(1);
    let to_load = path.clone();
    // Nobody may be there any more to receive it.
    let load = move || drop(send.send(load(&to_load)));
    let thread = thread::Builder::new().name("rankd-onnx-start".to_owned()).spawn(load);
    thread.map_err(|error| refused(format!("no thread can be started: {error}")))?;
    match receive.recv_timeout(START_MAX) {
        Ok(Ok(environment)) => {
            *loaded = Some(Loaded::Started(path, environment.clone()));
            Ok(environment)
        }
        Ok(Err(why)) => Err(refused(why)),
        Err(RecvTimeoutError::Timeout) => {
            *loaded = Some(Loaded::Hangs(path));
            Err(refused(format!("it has not started within {} s", START_MAX.as_secs())))
        }
        Err(RecvTimeoutError::Disconnected) => Err(refused("it cannot be started".to_owned())),
    }
}

fn is_too_old(version: &str) -> bool {
    let mut parts = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (parts.next(), parts.next()) < (Some(1), Some(MINOR_MIN))
}

/// Loads and starts the library on this thread. Why it cannot be used is a short sentence without a full stop.
pub(crate) fn load(path: &Path) -> Result<Environment, String> {
    let builder = ort::init_from(path).map_err(|error| error.to_string())?;
    let built = builder.with_name("rankd").with_telemetry(false).build().map_err(|error| error.to_string())?;
    // What goes wrong comes back as an error. The library would write it to stderr as well.
    built.set_log_level(LogLevel::Fatal);
    Ok(built)
}

#[cfg(test)]
mod tests {
    use super::is_too_old;

    #[test]
    fn versions_are_compared_by_number() {
        for old in ["1.9.0", "1.16.3", "0.5", ""] {
            assert!(is_too_old(old), "{old}");
        }
        for new in ["1.17.0", "1.31.1", "2.0.0"] {
            assert!(!is_too_old(new), "{new}");
        }
    }
}
