//! Disks that are full and disks that hang: requests are answered as if nothing were captured, what is lost is counted, and memory and the time to stop stay bounded.
//!
//! Both need a file system of their own, which only root can mount. Where that is not permitted, this says SKIPPED.

use crate::captures::{all_is_the_same, files, replay};
use crate::client::{Line, get, metric, metrics_until, post};
use crate::downloads;
use crate::server::{Folder, PATIENCE, Server, node, repository};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

/// A file system of a test's own, gone when the test is over.
struct Mounted {
    folder: Folder,
    at: PathBuf,
    is_frozen: bool,
}

fn run(program: &str, args: &[&str]) -> Result<(), String> {
    let output = Command::new(program).args(args).output().map_err(|error| format!("{program}: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{program}: {told}")) }
}

impl Mounted {
    fn new() -> Mounted {
        let folder = Folder::new();
        let at = folder.0.join("disk");
        std::fs::create_dir(&at).unwrap();
        Mounted { folder, at, is_frozen: false }
    }

    /// So many bytes of memory.
    fn small(size: &str) -> Result<Mounted, String> {
        let mounted = Mounted::new();
        run("mount", &["-t", "tmpfs", "-o", &format!("size={size}"), "none", mounted.at.to_str().unwrap()])?;
        Ok(mounted)
    }

    /// A file system that can be frozen.
    fn freezable() -> Result<Mounted, String> {
        let mounted = Mounted::new();
        let image = mounted.folder.0.join("image");
        let image = image.to_str().unwrap();
        run("truncate", &["-s", "64M", image])?;
        run("mkfs.ext4", &["-q", image])?;
        run("mount", &["-o", "loop", image, mounted.at.to_str().unwrap()])?;
        Ok(mounted)
    }

    fn freeze(&mut self) -> Result<(), String> {
        run("fsfreeze", &["-f", self.at.to_str().unwrap()])?;
        self.is_frozen = true;
        Ok(())
    }

    fn thaw(&mut self) {
        if std::mem::take(&mut self.is_frozen) {
            run("fsfreeze", &["-u", self.at.to_str().unwrap()]).unwrap();
        }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        self.thaw();
        // What is in use by a process that is about to end is let go when it has ended.
        let _ = run("umount", &["-l", self.at.to_str().unwrap()]);
    }
}

fn dropped(metrics: &str, reason: &str) -> f64 {
    metric(metrics, &format!("rankd_capture_dropped_total{{reason=\"{reason}\"}}"))
}

/// A plan whose answers have about 200 KB.
fn large_plan(folder: &Folder) {
    folder.plan("large", &[node("n0", "fixed_source", &[], "\"row_count\":20000")], "n0");
}

fn start(plans: &Path, captures: &Path, flags: &[&str]) -> Server {
    Server::start(plans, &[&["--capture", captures.to_str().unwrap()], flags].concat())
}

#[test]
fn a_full_disk_loses_captures_and_nothing_else() {
    let disk = match Mounted::small("600k") {
        Ok(disk) => disk,
        Err(why) => return downloads::skipped("captures on a full disk", &why),
    };
    large_plan(&disk.folder);
    let captures = disk.at.join("captures");
    let mut server = start(&disk.folder.0, &captures, &[]);
    let mut line = Line::open(&server.address);
    let mut ask = |count: usize| {
        for _ in 0..count {
            line.post("/rank/large", r#"{"user_id":1}"#).unwrap();
            assert_eq!(line.answer().unwrap().status, 200);
        }
    };
    // A batch of one or two fits; one of many does not.
    ask(1);
    metrics_until(&server.address, |now| metric(now, "rankd_captured_total") == 1.0);
    ask(64);
    let metrics = metrics_until(&server.address, |now| dropped(now, "disk") >= 64.0);
    assert_eq!((metric(&metrics, "rankd_captured_total"), dropped(&metrics, "disk")), (1.0, 64.0));
    server.says("requests cannot be captured");
    assert_eq!(server.said().matches("requests cannot be captured").count(), 1, "{}", server.said());
    // What was taken back leaves room: the disk is in use again.
    ask(1);
    metrics_until(&server.address, |now| metric(now, "rankd_captured_total") == 2.0);
    server.signal("-TERM");
    assert!(server.ended(PATIENCE).success());
    assert_eq!(files(&captures).len(), 1, "one file, though a batch of it failed");
    all_is_the_same(&captures, 2);
    assert_eq!(replay(&captures, &[]).0.number("cut_files"), 0.0);
}

#[test]
fn a_disk_without_any_room_gets_no_files() {
    let disk = match Mounted::small("64k") {
        Ok(disk) => disk,
        Err(why) => return downloads::skipped("captures on a disk without room", &why),
    };
    let captures = disk.at.join("captures");
    let mut server = start(&repository().join("plans"), &captures, &[]);
    // Nothing is left for plans and registries, either.
    let full = std::fs::write(disk.at.join("full"), vec![0; 1 << 20]);
    assert!(full.is_err(), "it has no room");
    for round in 1..=3 {
        assert_eq!(post(&server.url("/rank/for_you"), r#"{"user_id":1}"#).status, 200);
        metrics_until(&server.address, |now| dropped(now, "disk") == f64::from(round));
    }
    server.signal("-TERM");
    assert!(server.ended(PATIENCE).success());
    let left: Vec<PathBuf> = files(&captures);
    assert_eq!(left, Vec::<PathBuf>::new());
    let plans = captures.join("plans");
    assert_eq!(std::fs::read_dir(&plans).map_or(0, Iterator::count), 0, "half of a plan is of no use");
}

#[test]
fn a_disk_that_hangs_costs_captures_and_no_request_and_no_end() {
    let mut disk = match Mounted::freezable() {
        Ok(disk) => disk,
        Err(why) => return downloads::skipped("captures on a disk that hangs", &why),
    };
    large_plan(&disk.folder);
    let captures = disk.at.join("captures");
    let mut server = start(&disk.folder.0, &captures, &["--drain_ms", "1000"]);
    let url = server.url("/rank/large");
    assert_eq!(post(&url, r#"{"user_id":1}"#).status, 200);
    metrics_until(&server.address, |now| metric(now, "rankd_captured_total") == 1.0);
    if let Err(why) = disk.freeze() {
        return downloads::skipped("captures on a disk that hangs", &why);
    }
    let before_kb = server.kilobytes("VmRSS:");
    let mut line = Line::open(&server.address);
    // About 200 KB each: twice as much as the queue holds.
    for _ in 0..640 {
        line.post("/rank/large", r#"{"user_id":1}"#).unwrap();
        assert_eq!(line.answer().unwrap().status, 200);
    }
    let metrics = get(&server.url("/metrics")).body;
    assert!(dropped(&metrics, "queue_full") > 0.0, "{metrics}");
    assert_eq!((dropped(&metrics, "disk"), metric(&metrics, "rankd_captured_total")), (0.0, 1.0));
    let grown_mb = server.kilobytes("VmRSS:").saturating_sub(before_kb) >> 10;
    assert!(grown_mb < 400, "{grown_mb} MiB more than before");
    let told = Instant::now();
    server.signal("-TERM");
    // Its own time to drain and what comes after; a disk that hangs is not waited for. A write that hangs in the system keeps the process, though.
    server.says("captures that waited to be written are lost");
    assert!(told.elapsed() < Duration::from_secs(20), "{:?}", told.elapsed());
    disk.thaw();
    server.ended(PATIENCE);
    // What was written is whole, up to a last batch that may be cut.
    let (told, _) = replay(&captures, &[]);
    assert!(told.number("same") >= 1.0 && told.number("different") == 0.0, "{told:?}");
}
