//! Shared libraries that look like ONNX Runtime and are not.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The function that every such library has.
pub(crate) const EMPTY: &str = "const void *OrtGetApiBase(void) { return 0; }\n";

/// Builds a library from C code, whose symbols have a version.
pub(crate) fn build(folder: &Path, name: &str, code: &str, version: &str) -> PathBuf {
    let [source, script, library] = ["c", "map", "so"].map(|kind| folder.join(format!("{name}.{kind}")));
    std::fs::write(&source, code).unwrap();
    std::fs::write(&script, format!("VERS_{version} {{ global: *; }};")).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source);
    cc.arg(format!("-Wl,--version-script={}", script.display()));
    assert!(cc.status().unwrap().success(), "the C compiler that the workspace is built with");
    library
}

/// A library that does this when it is loaded.
pub(crate) fn that(folder: &Path, name: &str, does: &str) -> PathBuf {
    let code = format!("__attribute__((constructor)) static void start(void) {{ {does} }}\n{EMPTY}");
    build(folder, name, &format!("#include <unistd.h>\n{code}"), "1.31.0")
}
