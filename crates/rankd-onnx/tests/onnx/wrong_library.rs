//! Files that are not the shared library of ONNX Runtime: refused before they are loaded, soon, and with what to do.

use crate::c_library;
use crate::model_file::layers;
use crate::wheel::Wheel;
use crate::{folder, read};
use rankd_plan::model::ModelPlace;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

fn refused(library: &Path, why: &str) {
    let started = Instant::now();
    let problem = read(library, &layers(&[2, 1])).expect_err(why);
    // A coarse guard: the goal is a second, on a machine that has nothing else to do.
    assert!(started.elapsed() < Duration::from_secs(8), "{why}: {:?}", started.elapsed());
    assert!(problem.message.contains(why), "{why}: {problem}");
    assert_eq!(problem.place, ModelPlace::Runtime);
    assert!(problem.help.is_some_and(|help| help.contains("--onnxruntime")), "it says what to do");
}

#[test]
fn a_file_that_is_not_the_library_is_refused() {
    let folder = folder("wrong-library");
    let text = folder.join("text.so");
    std::fs::write(&text, "not a library, but a text that is longer than the header of one would be").unwrap();
    refused(&text, "it does not begin as an ELF file does");
    refused(&folder.join("none.so"), "No such file");
    refused(&folder, "it is not a file");
    refused(Path::new("/bin/ls"), "does not export OrtGetApiBase");
    let problem = rankd_onnx::open(None, None).read(&layers(&[2, 1])).expect_err("none is named");
    assert!(problem.to_string().contains("RANKD_ONNXRUNTIME"), "{problem}");
}

#[test]
fn a_library_that_is_cut_off_is_refused() {
    let Some(wheel) = Wheel::get("a cut-off library of ONNX Runtime") else { return };
    let whole = std::fs::read(&wheel.library).unwrap();
    let cut = folder("wrong-library").join("cut.so");
    for length in [100, 5_000, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&cut, &whole[..length]).unwrap();
        refused(&cut, "it is cut off");
    }
    let mut other = whole;
    // Another machine.
    other[18] = 8;
    std::fs::write(&cut, other).unwrap();
    refused(&cut, "it is for another machine");
}

#[test]
fn libraries_that_only_look_right_are_refused() {
    let folder = folder("wrong-library");
    let build = |name: &str, code: &str, version: &str| c_library::build(&folder, name, code, version);
    refused(&build("other", "int other(void) { return 1; }", "1.31.0"), "does not export OrtGetApiBase");
    refused(&build("old", c_library::EMPTY, "1.9.0"), "it is ONNX Runtime 1.9.0, and 1.17 or later is needed");
    // In a process of its own, because a process that has loaded a library cannot load another.
    const ALONE: &str = "RANKD_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        refused(&c_library::that(&folder, "hangs", "for (;;) pause();"), "it has not started within 5 s");
        // The thread that hangs would keep the process from ending in the ordinary way.
        std::process::abort();
    }
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "wrong_library::libraries_that_only_look_right_are_refused", "--nocapture"]).env(ALONE, "1");
    let output = test.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && !said.contains("panicked"), "{said}");
}
