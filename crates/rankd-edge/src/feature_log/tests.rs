//! What is written to files: read back, with limits on memory and files, and with folders that cannot be written to.

use super::*;
use crate::stream_files;
use crate::table_file::read_stream;
use crate::test_plan;
use rankd_column::column::Cells;
use rankd_column::{Batch, Column, Key};
use rankd_plan::registry::Text;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::channel;

/// Keys 1 and 2: `views`, and one that is named like a column.
fn registry() -> Registry {
    let key = |id: u32, name: &str, more: &str| {
        format!("[[key]]\nkey_id = {id}\nname = \"{name}\"\ntype = \"int\"\ndoc = \"\"\n{more}\n")
    };
    let keys = key(1, "id", "nullable = false\nallow_write = false")
        + &key(2, "views", "nullable = true")
        + &key(3, "position", "nullable = true");
    let text = |text| Text { file: "", text };
    Registry::parse(text(&keys), text(""), text("")).0
}

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("rankd-features-{name}-{}", std::process::id()));
        // Nothing is left of an earlier process.
        let _ = std::fs::remove_dir_all(&path);
        Folder(path)
    }

    fn files(&self) -> Vec<PathBuf> {
        stream_files::list(&self.0, "features").unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A row of a file: request, user, time, node, position and id, then ints by key.
#[derive(Debug, PartialEq, Eq)]
struct LoggedRow(String, i64, i64, String, i64, i64, Vec<Option<i64>>);

/// The rows of a file that has these keys, and of how many batches they are.
fn read(path: &Path, keys: &[&str]) -> (Vec<LoggedRow>, usize) {
    let text = |name| (name, &["utf8"][..]);
    let int = |name| (name, &["int64"][..]);
    let mut columns = vec![
        text("request_id"),
        int("user_id"),
        int("at_ms"),
        text("plan"),
        text("plan_sha256"),
        text("arms"),
        text("node"),
        int("position"),
        int("id"),
    ];
    columns.extend(keys.iter().map(|key| int(key)));
    let (mut all, mut batches) = (Vec::new(), 0);
    let is_cut = read_stream(path, &columns, |rows, mut cursor| {
        batches += 1;
        let texts = |cells: Vec<Option<&[u8]>>| -> Vec<String> {
            cells.iter().map(|cell| String::from_utf8(cell.unwrap_or(b"null").to_vec()).unwrap()).collect()
        };
        let ints = |cells: Vec<Option<i64>>| cells.into_iter().map(Option::unwrap).collect::<Vec<_>>();
        let requests = texts(cursor.optional_bytes(rows)?);
        let (users, times) = (ints(cursor.optional_ints(rows)?), ints(cursor.optional_ints(rows)?));
        let [plans, _, arms, nodes] = [(); 4].map(|()| cursor.optional_bytes(rows).map(texts));
        assert!(plans?.iter().all(|plan| plan == "feed") && arms?.iter().all(|arms| arms == "null"));
        let (positions, ids) = (ints(cursor.optional_ints(rows)?), ints(cursor.optional_ints(rows)?));
        let cells: Vec<_> = keys.iter().map(|_| cursor.optional_ints(rows)).collect::<Option<_>>()?;
        let nodes = nodes?;
        all.extend((0..rows).map(|at| {
            let cells = cells.iter().map(|cells| cells[at]).collect();
            LoggedRow(requests[at].clone(), users[at], times[at], nodes[at].clone(), positions[at], ids[at], cells)
        }));
        Some(())
    });
    assert!(!is_cut.unwrap(), "the stream has an end");
    (all, batches)
}

fn rows(ids: std::ops::Range<i64>, key: Option<u32>) -> RowSet {
    let rows = RowSet::new(Batch::new(ids.clone().collect()));
    match key {
        None => rows,
        Some(key) => rows.with(Key(key), Arc::new(Column::Int(Cells::full(ids.map(|id| id * 10).collect())))),
    }
}

fn outcome(outputs: Vec<RowSet>) -> Outcome {
    Outcome { result: Ok(outputs), ..test_plan::outcome() }
}

fn request(id: &str) -> LoggedRequest {
    LoggedRequest { request_id: id.to_owned(), user_id: 7.into() }
}

fn start(folder: &Folder) -> FeatureLog {
    FeatureLog::start(&folder.0, 1.0, StreamLimits::default(), Pii::Omit, |note| panic!("{note}")).unwrap()
}

#[test]
fn rows_of_outputs_are_logged_with_the_keys_that_they_have() {
    let (folder, registry) = (Folder::new("outputs"), registry());
    let log = start(&folder);
    let plan = log.plan(&test_plan::plan(&registry), "0123", &registry);
    log.keep(request("a"), &plan, &mut outcome(vec![rows(1..3, Some(2)), rows(8..9, None)]));
    let sorted = rows(4..7, Some(2)).positions([2, 0]);
    log.keep(request("b"), &plan, &mut outcome(vec![sorted, rows(0..0, None)]));
    log.keep(request("c"), &plan, &mut outcome(vec![rows(5..6, Some(1)), rows(9..10, None)]));
    let mut failed = Outcome::failed(rankd_engine::RunError::bug("it failed"));
    log.keep(request("d"), &plan, &mut failed);
    let counts = log.writer.counts().clone();
    drop(log);
    assert_eq!(counts.written.load(Ordering::Relaxed), 3);
    // In the order of their first rows.
    let [first, second, third] = &folder.files()[..] else { panic!("{:?}", folder.files()) };
    assert!(first.to_str().unwrap().ends_with("-feed.arrows"));
    let (of_first, batches) = read(first, &["key.position"]);
    let told: Vec<_> = of_first.iter().map(|row| (&*row.0, row.1, &*row.3, row.4, row.5, row.6[0])).collect();
    let expected = [
        ("a", 7, "kept", 0, 1, Some(10)),
        ("a", 7, "kept", 1, 2, Some(20)),
        ("b", 7, "kept", 0, 6, Some(60)),
        ("b", 7, "kept", 1, 4, Some(40)),
    ];
    assert_eq!((told, batches), (expected.to_vec(), 1));
    assert!(of_first[0].2 > 1_600_000_000_000);
    let ids = |rows: Vec<LoggedRow>| rows.iter().map(|row| (row.3.clone(), row.5)).collect::<Vec<_>>();
    assert_eq!(ids(read(second, &[]).0), [("other".to_owned(), 8), ("other".to_owned(), 9)]);
    assert_eq!(ids(read(third, &["views"]).0), [("kept".to_owned(), 5)], "other keys are another file");
}

#[test]
fn a_plan_that_logs_nodes_logs_those_alone_and_a_missing_column_is_null() {
    let (folder, registry) = (Folder::new("nodes"), registry());
    let log = start(&folder);
    let mut linked = test_plan::plan(&registry);
    linked.nodes[4].log = Some(vec![(Key(2), "position".to_owned()), (Key(1), "views".to_owned())]);
    linked.logging = vec![4];
    let plan = log.plan(&linked, "0123", &registry);
    let mut run = outcome(vec![rows(1..3, None), rows(8..9, None)]);
    run.logged = vec![(4, rows(20..22, Some(1)))];
    log.keep(request("a"), &plan, &mut run);
    assert!(run.logged.is_empty() && run.result.unwrap().len() == 2);
    drop(log);
    let [only] = &folder.files()[..] else { panic!("{:?}", folder.files()) };
    let rows = read(only, &["key.position", "views"]).0;
    let told: Vec<_> = rows.iter().map(|row| (&*row.3, row.5, row.6.clone())).collect();
    assert_eq!(told, [("other", 20, vec![None, Some(200)]), ("other", 21, vec![None, Some(210)])]);
}

#[test]
fn many_rows_are_several_batches_and_another_version_is_another_file() {
    let (folder, registry) = (Folder::new("many"), registry());
    let log = start(&folder);
    let linked = test_plan::plan(&registry);
    let plans = ["0123", "4567"].map(|sha256| log.plan(&linked, sha256, &registry));
    log.keep(request("many"), &plans[0], &mut outcome(vec![rows(0..100_000, Some(1)), rows(0..0, None)]));
    log.keep(request("new"), &plans[1], &mut outcome(vec![rows(0..1, Some(1)), rows(0..0, None)]));
    drop(log);
    let files = folder.files();
    let (rows, batches) = read(&files[0], &["views"]);
    assert!((2..=4).contains(&batches), "{batches}");
    assert!((0..).zip(&rows).all(|(at, row)| row.4 == at && row.5 == at && row.6 == [Some(at * 10)]));
    assert_eq!((rows.len(), read(&files[1], &["views"]).0.len(), files.len()), (100_000, 1, 2));
}

#[test]
fn what_does_not_fit_is_dropped_and_what_cannot_be_written_is_told_once() {
    let (folder, registry) = (Folder::new("faults"), registry());
    let (tell, told) = channel();
    let log =
        FeatureLog::start(&folder.0, 1.0, StreamLimits::default(), Pii::Omit, move |note| tell.send(note).unwrap())
            .unwrap();
    let plan = log.plan(&test_plan::plan(&registry), "0123", &registry);
    // Ids and a column of eight bytes each.
    let large = rows(0..5 << 20, Some(1));
    log.keep(request("large"), &plan, &mut outcome(vec![large, rows(0..0, None)]));
    std::fs::remove_dir_all(&folder.0).unwrap();
    for id in ["a", "b"] {
        log.keep(request(id), &plan, &mut outcome(vec![rows(0..3, None), rows(0..3, Some(1))]));
    }
    let counts = log.writer.counts().clone();
    drop(log);
    let of = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
    assert_eq!((of(&counts.written), of(&counts.dropped), of(&counts.failed)), (0, 1, 2));
    let notes: Vec<String> = told.iter().collect();
    assert!(notes.len() == 1 && notes[0].starts_with("rows cannot be logged: "), "{notes:?}");
}

#[test]
fn an_id_is_always_in_the_share_or_always_out() {
    let folder = Folder::new("share");
    let log = FeatureLog::start(&folder.0, 0.25, StreamLimits::default(), Pii::Omit, drop).unwrap();
    let taken: Vec<u32> = (0..4000).filter(|id| log.takes(&format!("r{id}"))).collect();
    assert!((800..1200).contains(&taken.len()), "{}", taken.len());
    assert!(taken.iter().all(|id| log.takes(&format!("r{id}"))));
    let blocked = folder.0.join("file");
    crate::files::write(&blocked, "").unwrap();
    let refused = FeatureLog::start(&blocked, 1.0, StreamLimits::default(), Pii::Omit, drop);
    let refused = refused.err().unwrap().to_string();
    assert!(refused.starts_with("cannot write the feature log to "), "{refused}");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test looks at what was written")]
fn values_about_persons_are_left_out_or_hashed() {
    let text = |text| Text { file: "", text };
    let keys = "[[key]]\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\n\
                [[key]]\nname = \"phone\"\ntype = \"int\"\nnullable = true\npii = true\n";
    let registry = Registry::parse(text(keys), text(""), text("")).0;
    let salt = crate::pii::Salt::new("pepper").unwrap();
    for (pii, is_hashed) in [(Pii::Omit, false), (Pii::Hash(salt.clone()), true)] {
        let folder = Folder::new(if is_hashed { "hash" } else { "omit" });
        let log = FeatureLog::start(&folder.0, 1.0, StreamLimits::default(), pii, |note| panic!("{note}")).unwrap();
        let plan = log.plan(&test_plan::plan(&registry), "0123", &registry);
        log.keep(request("a"), &plan, &mut outcome(vec![rows(1..3, Some(1)), rows(0..0, None)]));
        drop(log);
        let [only] = &folder.files()[..] else { panic!("{:?}", folder.files()) };
        let bytes = std::fs::read(only).unwrap();
        let written = String::from_utf8_lossy(&bytes);
        assert_eq!(written.contains("phone.hash"), is_hashed);
        assert_eq!(written.contains(&salt.hash("10")) && written.contains(&salt.hash("20")), is_hashed);
        assert!(!written.contains("pepper"));
    }
}
