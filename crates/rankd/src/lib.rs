//! The programs `rankd` and `dslc`. The only room that knows arguments, the environment, terminals and signals.
//!
//! Reading order: [`cli`] (what the user typed), [`signals`], [`compile_child`] and [`confinement`] (plan code in a process of its own).

mod cli;
mod compile_child;
mod confinement;
mod signals;

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
