//! `rankd completions`: what a shell needs to complete command lines. Names of plans are asked of `rankd plans --names`.

use crate::cli::{Cli, DONE, say};
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::io::Write;

#[derive(Args)]
pub(crate) struct CompletionsArgs {
    /// The shell to write completions for
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs) -> u8 {
    let script = script(args.shell);
    let mut out = std::io::stdout().lock();
    say::wrote(out.write_all(script.as_bytes()).and_then(|()| out.flush()));
    DONE
}

/// What gives the names of the plans of the project that the shell is in.
const NAMES: &str = "rankd plans --names 2>/dev/null";
/// The commands whose first argument is a plan.
const OF_PLANS: [&str; 5] = ["explain", "why", "diff", "bench", "check"];

/// The script that clap makes, with plans where it would give files.
fn script(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "rankd", &mut script);
    let mut script = String::from_utf8_lossy(&script).into_owned();
    match shell {
        Shell::Bash => {
            script = script.replace(
                "                --plan-name)\n                    COMPREPLY=($(compgen -f \"${cur}\"))",
                &format!(
                    "                --plan-name|--plan_name)\n                    COMPREPLY=($(compgen -W \"$({NAMES})\" -- \"${{cur}}\"))"
                ),
            );
            for command in OF_PLANS {
                let start = format!("        rankd__subcmd__{command})\n            opts=\"");
                script = script.replace(&start, &format!("{start}$({NAMES}) "));
            }
        }
        Shell::Zsh => {
            let plans = format!("{{compadd -- $({NAMES})}}");
            script = script.replace(":NAME of a plan:_default", &format!(":NAME:{plans}"));
            let lines = script.lines().map(|line| match line.trim_start() {
                flag if flag.starts_with("'--plan-name=") => line.replace(":_default'", &format!(":{plans}'")),
                plan if is_plan_argument(plan) => line.replace(":_default'", &format!(":{plans}; _files'")),
                _ => line.to_owned(),
            });
            script = lines.collect::<Vec<_>>().join("\n") + "\n";
        }
        Shell::Fish => {
            let flag = |line: &str| line.contains(" -l plan-name ");
            let lines = script.lines().map(|line| match flag(line) {
                true => format!("{line} -f -a \"({NAMES})\""),
                false => line.to_owned(),
            });
            let of_plans = OF_PLANS.map(|command| {
                format!("complete -c rankd -n \"__fish_rankd_using_subcommand {command}\" -a \"({NAMES})\"")
            });
            script = lines.chain(of_plans).collect::<Vec<_>>().join("\n") + "\n";
        }
        // Names of plans are not completed there.
        _ => {}
    }
    script
}

/// Whether a line of a script for zsh is about an argument that names plans.
fn is_plan_argument(line: &str) -> bool {
    let is_one = line.contains("Name or file of the ") && line.contains("plan");
    (is_one && line.contains(":_default'")) || line.contains("Plan names or files")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_plans_are_completed_where_plans_are_named() {
        for (shell, times) in [(Shell::Bash, 11), (Shell::Zsh, 12), (Shell::Fish, 11)] {
            // A flag of `rankd`, `run`, `explain`, `why`, `diff` and `bench`, and the argument of five commands, of which `diff` has two.
            assert_eq!(script(shell).matches(NAMES).count(), times, "{shell}\n{}", script(shell));
        }
    }
}
