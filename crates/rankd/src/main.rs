//! The program `rankd`: the tasks that ship with it, and nothing else of its own.

use std::process::ExitCode;

/// A request makes and drops many small things on one thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let app = rankd::App::new().tasks(rankd_tasks::definitions());
    #[cfg(feature = "onnx")]
    let app = app.onnx(rankd_onnx::open);
    app.run()
}
