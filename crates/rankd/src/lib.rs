//! The programs `rankd` and `dslc`. The only room that knows arguments, the environment, files and terminals.
//!
//! Reading order: [`cli`] (what the user typed), [`library`] (plans and registries on disk), [`endpoints`] and [`late_data`] (stores for the
//! engine), [`input`], [`request_id`] and [`answer`] (a request's JSON in, a response's out), [`arrow`] (rows as an Arrow stream),
//! [`perfetto`] (traces for a viewer), [`explain`] (a plan told), [`serve`] (all of it behind HTTP), [`status`], [`signals`], [`files`], [`process`] (what
//! the system says about this process), [`confinement`] (what it keeps one from).

mod answer;
mod arrow;
mod cli;
mod confinement;
mod endpoints;
mod explain;
mod files;
mod input;
mod late_data;
mod library;
mod perfetto;
mod process;
mod request_id;
mod serve;
mod signals;
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

/// Reports panics that nobody else does.
fn tell_panics() {
    std::panic::set_hook(Box::new(|panic| {
        if !is_caught(std::thread::current().name()) {
            cli::say::to_people(&format!("bug: {panic}"));
        }
    }));
}

/// Whether a panic on this thread is caught and reported where it is: tasks run on event loops and in the pools, and the answer and the
/// log say what became of them. All other threads, such as those of the log and of spans, end with it.
fn is_caught(thread: Option<&str>) -> bool {
    thread.is_some_and(|name| ["rankd-loop-", "rankd-cpu-", "rankd-io-"].iter().any(|kind| name.starts_with(kind)))
}

#[cfg(test)]
mod tests {
    use super::is_caught;

    #[test]
    fn only_threads_that_catch_panics_are_left_to_report_them() {
        for caught in ["rankd-loop-0", "rankd-cpu-13", "rankd-io-2"] {
            assert!(is_caught(Some(caught)), "{caught}");
        }
        for heard in
            [Some("rankd-log"), Some("rankd-spans"), Some("rankd-signals"), Some("rankd-reload"), Some("main"), None]
        {
            assert!(!is_caught(heard), "{heard:?}");
        }
    }
}
