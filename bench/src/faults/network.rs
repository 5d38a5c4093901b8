//! Packets that are really lost: rules of `nft` in a network namespace of our own, so that nothing else on the machine notices.

use std::process::Command;

/// Says to the program that it runs in a namespace of its own.
const INSIDE: &str = "RANKD_BENCH_NETWORK";

/// Runs this part of the program in a network namespace of its own, as a process of its own; here where that is not possible.
pub fn inside(name: &str, run: fn()) {
    if is_own() {
        return run();
    }
    let can = Command::new("unshare").args(["-n", "nft", "list", "ruleset"]).output();
    let can = can.is_ok_and(|told| told.status.success());
    if !can {
        println!("\n`unshare -n` or `nft` is missing or refused: lost packets are played by the proxy.");
        return run();
    }
    let program = std::env::current_exe().expect("a program knows its path");
    let mut inside = Command::new("unshare");
    inside.args(["-n", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""]).arg(program).arg(name);
    let status = inside.env(INSIDE, "1").status().expect("it was started before");
    assert!(status.success(), "in a network namespace: {status}");
}

/// Whether packets can be lost here.
pub fn is_own() -> bool {
    std::env::var_os(INSIDE).is_some()
}

/// Loses so many of a thousand packets from and to this port, until it is dropped.
pub struct Loss(());

impl Loss {
    pub fn at(port: u16, per_mille: u64) -> Loss {
        let some = if per_mille < 1000 { format!("numgen random mod 1000 < {per_mille}") } else { String::new() };
        let rule = |direction| format!("tcp {direction} {port} {some} counter drop");
        let rules = format!(
            "table inet rankd {{\nchain input {{\ntype filter hook input priority 0;\n{}\n{}\n}}\n}}\n",
            rule("dport"),
            rule("sport")
        );
        nft(&[&rules]);
        Loss(())
    }
}

impl Drop for Loss {
    fn drop(&mut self) {
        nft(&["delete table inet rankd"]);
    }
}

fn nft(words: &[&str]) {
    let told = Command::new("nft").args(words).output().expect("it was found before");
    assert!(told.status.success(), "nft: {}", String::from_utf8_lossy(&told.stderr));
}
