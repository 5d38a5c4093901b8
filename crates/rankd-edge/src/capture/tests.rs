//! A folder of captures as it fills: files are closed by size and by age, the oldest are removed, and what cannot be written is counted.

use super::folder::{CaptureFolder, list};
use super::*;
use crate::registry_files::RegistryTexts;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

struct Place(PathBuf);

impl Place {
    fn new() -> Place {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Place(std::env::temp_dir().join(format!("rankd-captures-{}-{number}", std::process::id())))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed stays in the system's temporary folder.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

const FOREVER_MS: u64 = 1 << 40;

fn folder(place: &Place, limits: CaptureLimits) -> CaptureFolder {
    CaptureFolder::open(&place.0, limits, Arc::default()).unwrap()
}

/// Writes a batch of so many bytes, and closes the file if that is due.
fn write(folder: &mut CaptureFolder, bytes: usize) {
    folder.write(&vec![0; bytes]).unwrap();
    if folder.is_due() {
        folder.close().unwrap();
    }
}

fn sizes(place: &Place) -> Vec<u64> {
    list(&place.0).unwrap().iter().map(|path| path.metadata().unwrap().len()).collect()
}

fn names(place: &Place) -> Vec<String> {
    let name = |path: &PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
    list(&place.0).unwrap().iter().map(name).collect()
}

fn request(id: &str) -> CapturedRequest {
    CapturedRequest {
        request_id: id.to_owned(),
        at_ms: 0,
        plan: "feed".to_owned(),
        plan_sha256: "a".repeat(64).into(),
        registry_sha256: "b".repeat(64).into(),
        engine_version: String::new(),
        request: b"{}".to_vec(),
        answer: Bytes::from_static(b"{}"),
        run: RunState::default(),
        record: RunRecord::default(),
    }
}

fn plan() -> CapturedPlan {
    let registry = Arc::new(RegistryTexts::default());
    let [sha256, registry_sha256] = ["a", "b"].map(|digit| digit.repeat(64).into());
    CapturedPlan { sha256, artifact: "{}".into(), registry_sha256, registry }
}

#[test]
fn a_file_is_closed_when_it_is_large_enough() {
    let place = Place::new();
    let limits = CaptureLimits { file_bytes: 10_000, file_ms: FOREVER_MS, folder_bytes: u64::MAX };
    let mut folder = folder(&place, limits);
    (0..7).for_each(|_| write(&mut folder, 4_000));
    // The schema comes first, so the third batch of a file makes it large enough.
    let sizes = sizes(&place);
    assert_eq!(sizes.len(), 3, "{sizes:?}");
    assert!(sizes[..2].iter().all(|bytes| (10_000..16_000).contains(bytes)), "{sizes:?}");
}

#[test]
fn a_file_is_closed_when_it_is_old_enough_whether_or_not_something_comes() {
    let place = Place::new();
    let limits = CaptureLimits { file_bytes: u64::MAX, file_ms: 0, folder_bytes: u64::MAX };
    let mut young = folder(&place, CaptureLimits { file_ms: FOREVER_MS, ..limits });
    write(&mut young, 100);
    assert!(!young.is_due() && young.time_left().is_some_and(|left| left > Duration::from_secs(3600)));
    write(&mut folder(&place, limits), 100);
    let [open, closed] = &list(&place.0).unwrap()[..] else { panic!("{:?}", names(&place)) };
    assert_eq!(open.metadata().unwrap().len() + 8, closed.metadata().unwrap().len(), "the mark at its end");
    // The thread that writes looks after that by itself.
    let idle = Place::new();
    let capture = Capture::start(&idle.0, 1.0, CaptureLimits { file_ms: 20, ..limits }, |_| {}).unwrap();
    capture.keep(request("r"), plan());
    let until = rankd_engine::clock::now() + Duration::from_secs(60);
    let is_closed = || capture.counts().written() == 1 && sizes(&idle) == [capture.counts().bytes() + 8];
    while !is_closed() {
        assert!(rankd_engine::clock::now() < until, "it is closed though nothing more comes");
        std::thread::yield_now();
    }
    assert!(capture.end(Duration::from_secs(60)));
    assert_eq!((capture.counts().files(), names(&idle).len()), (1, 1));
}

#[test]
fn the_oldest_files_go_first_and_the_last_one_stays() {
    let place = Place::new();
    let limits = CaptureLimits { file_bytes: 1, file_ms: FOREVER_MS, folder_bytes: 40_000 };
    let mut folder = folder(&place, limits);
    let mut before = Vec::new();
    for _ in 0..10 {
        write(&mut folder, 9_000);
        let now = names(&place);
        // What is there is what was there, less some of the oldest, and one more.
        let kept = &now[..now.len() - 1];
        assert!(before.ends_with(kept), "{before:?} {now:?}");
        before = now;
    }
    assert!(sizes(&place).iter().sum::<u64>() <= 40_000, "{:?}", sizes(&place));
    assert!(before.len() >= 2, "{before:?}");
    // However large the last one is, it stays, and everything before it goes.
    write(&mut folder, 100_000);
    assert_eq!(names(&place).len(), 1);
    assert!(sizes(&place)[0] > 100_000);
    // And so it is where the clock was put back: its name is not the last then.
    write(&mut folder, 9_000);
    let later = place.0.join("capture-9999999999999-000.arrows");
    std::fs::copy(&list(&place.0).unwrap()[0], &later).unwrap();
    write(&mut folder, 35_000);
    let left = names(&place);
    assert!(left.len() == 1 && left[0] != "capture-9999999999999-000.arrows", "{left:?}");
}

#[test]
fn what_is_written_is_read_back_and_what_comes_too_late_is_counted() {
    let place = Place::new();
    let capture = Capture::start(&place.0, 1.0, CaptureLimits::default(), |_| {}).unwrap();
    let arms = CapturedArms {
        experiments_sha256: "c".repeat(64),
        taken: vec![("w".to_owned(), "b".to_owned())],
        is_forced: true,
    };
    let run = RunState { tables: vec![("media".to_owned(), "d".repeat(64))], arms: Some(arms), ..RunState::default() };
    for at in 0..130 {
        capture.keep(CapturedRequest { run: run.clone(), ..request(&at.to_string()) }, plan());
    }
    assert!(capture.end(Duration::from_secs(60)));
    capture.keep(request("late"), plan());
    let counts = capture.counts();
    assert_eq!((counts.written(), counts.dropped(Dropped::Disk), counts.files()), (130, 1, 1));
    assert_eq!(counts.bytes() + 8, sizes(&place)[0]);
    let (mut at, files) = (0, CaptureFiles::find(std::slice::from_ref(&place.0)).unwrap());
    let seen = files.each(|beside, read| {
        assert_eq!((beside, &*read.request_id, &read.run), (Path::new(&place.0), &*at.to_string(), &run));
        at += 1;
    });
    assert_eq!((at, seen.unwrap()), (130, CaptureSeen { files: 1, cut: 0 }));
}

#[test]
fn what_does_not_fit_the_queue_or_is_too_large_is_counted() {
    let place = Place::new();
    let capture = Capture::start(&place.0, 1.0, CaptureLimits::default(), |_| {}).unwrap();
    let large = Bytes::from(vec![0; 65 << 20]);
    capture.keep(CapturedRequest { answer: large, ..request("large") }, plan());
    let mut cut = request("cut");
    cut.record.is_cut = true;
    capture.keep(cut, plan());
    assert_eq!(capture.counts().dropped(Dropped::TooLarge), 2);
    // More than a disk takes in the time: each of these is half of the queue.
    let half = Bytes::from(vec![0; 33 << 20]);
    let keep = || capture.keep(CapturedRequest { answer: half.clone(), ..request("half") }, plan());
    (0..50).for_each(|_| keep());
    assert!(capture.end(Duration::from_secs(60)));
    let counts = capture.counts();
    assert_eq!(counts.written() + counts.dropped(Dropped::QueueFull), 50);
    assert!(counts.dropped(Dropped::QueueFull) > 0 && counts.written() > 0, "{counts:?}");
}

#[test]
fn a_folder_that_goes_away_is_told_once_and_counted() {
    let place = Place::new();
    let (told, lines) = std::sync::mpsc::channel();
    let capture = Capture::start(&place.0, 1.0, CaptureLimits::default(), move |line| drop(told.send(line))).unwrap();
    std::fs::remove_dir_all(&place.0).unwrap();
    crate::files::write(&place.0, "a file is in its place").unwrap();
    (0..3).for_each(|_| capture.keep(request("r"), plan()));
    assert!(capture.end(Duration::from_secs(60)));
    assert_eq!((capture.counts().written(), capture.counts().dropped(Dropped::Disk)), (0, 3));
    drop(capture);
    assert_eq!(lines.iter().count(), 1);
    std::fs::remove_file(&place.0).unwrap();
}
