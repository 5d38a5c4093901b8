//! Downloads are made once, by whoever comes first, and are seen whole or not at all.

use crate::downloads::once;
use std::path::PathBuf;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

fn root(name: &str) -> PathBuf {
    let root = std::env::temp_dir().join(format!("rankd-once-{name}-{}", std::process::id()));
    // Of another process that had the same number.
    let _ = std::fs::remove_dir_all(&root);
    root
}

#[test]
fn of_many_who_come_at_once_one_fetches_and_all_see_the_whole() {
    let root = root("many");
    let (made, start) = (AtomicU32::new(0), Barrier::new(8));
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                start.wait();
                let folder = once(&root, "thing", |partial| {
                    made.fetch_add(1, Ordering::Relaxed);
                    for part in 0..100 {
                        std::fs::write(partial.join(part.to_string()), "x").map_err(|error| error.to_string())?;
                        std::thread::yield_now();
                    }
                    Ok(())
                });
                let folder = folder.expect("it can be made");
                assert_eq!(std::fs::read_dir(folder).expect("it is there").count(), 100);
            });
        }
    });
    assert_eq!(made.load(Ordering::Relaxed), 1);
    std::fs::remove_dir_all(root).expect("it was made");
}

#[test]
fn what_failed_halfway_is_not_there_and_is_tried_again() {
    let root = root("half");
    let half = |partial: &std::path::Path| std::fs::write(partial.join("half"), "x").map_err(|error| error.to_string());
    let failed = once(&root, "thing", |partial| half(partial).and(Err("the network is gone".into())));
    assert_eq!(failed, Err("the network is gone".to_owned()));
    assert!(!root.join("thing").exists());
    // What it left behind is not taken for a beginning.
    let folder = once(&root, "thing", |partial| {
        assert_eq!(std::fs::read_dir(partial).expect("it is there").count(), 0);
        half(partial)
    });
    assert_eq!(folder, Ok(root.join("thing")));
    std::fs::remove_dir_all(root).expect("it was made");
}
