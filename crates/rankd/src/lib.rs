//! The programs `rankd` and `dslc`. The only room that knows arguments, the environment, files and terminals.
//!
//! Reading order: [`cli`] (what the user typed), [`library`] (plans and registries on disk), [`endpoints`] (stores for the
//! engine), [`input`], [`request_id`] and [`answer`] (a request's JSON in, a response's out), [`arrow`] (rows as an Arrow stream),
//! [`perfetto`] (traces for a viewer), [`explain`] (a plan told), [`serve`] (all of it behind HTTP), [`status`], [`files`], [`process`] (what
//! the system says about this process).

mod answer;
mod arrow;
mod cli;
mod endpoints;
mod explain;
mod files;
mod input;
mod library;
mod perfetto;
mod process;
mod request_id;
mod serve;
mod status;

use std::process::ExitCode;

/// The program `rankd`.
pub fn rankd() -> ExitCode {
    tell_panics();
    cli::main()
}

/// The program `dslc`.
pub fn dslc() -> ExitCode {
    tell_panics();
    cli::dslc::main()
}

fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        // A panic in a task is caught at its node and told in the response; only the program's own end up here.
        let in_a_task = std::thread::current().name().is_some_and(|name| name.starts_with("rankd-"));
        if !in_a_task {
            cli::say::to_people(&format!("bug: {panic}"));
        }
    }));
}
