//! Reading a table file of 20 columns into columns, beside Polars and DuckDB on one thread: seconds, and bytes in memory.
//!
//! All read the same files, round after round in turn. The other formats are written from the CSV file by Polars; without it there is
//! only that one. DuckDB loads into a table of its own in memory, in the order of the file.

use crate::faults::stage::met;
use crate::python::{Python, introduce};
use crate::tables::counting;
use rankd_column::{Key, Type};
use rankd_edge::table_file::{self, BadCells, TableColumns, Wanted, WantedColumn};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::time::Instant;

const ROUNDS: usize = 5;
const PEERS: [&str; 2] = ["polars", "duckdb"];

/// The files, and by how many times as long Polars may take at least.
const FILES: [(&str, Option<f64>); 5] = [
    ("table.csv", Some(0.5)),
    ("snappy.parquet", Some(0.3)),
    ("zstd.parquet", Some(0.3)),
    ("table.arrow", None),
    ("table.ndjson", None),
];
/// Our columns may take so many times as many bytes as Polars', which are Arrow's.
const MEMORY_MAX: f64 = 1.3;

/// Answers `polars write` by writing the other formats, and `PEER FILE` by reading one: seconds, and the bytes of the columns.
const SCRIPT: &str = r#"
import os, time
folder = sys.argv[2]
pl, duckdb = there.get("polars"), there.get("duckdb")
path = lambda name: os.path.join(folder, name)
def write():
    frame = pl.read_csv(path("table.csv"))
    frame.write_parquet(path("zstd.parquet"))
    frame.write_parquet(path("snappy.parquet"), compression="snappy")
    frame.write_ipc(path("table.arrow"), compat_level=pl.CompatLevel.oldest())
    frame.write_ndjson(path("table.ndjson"))
    return ""
def with_polars(name):
    reads = {"csv": pl.read_csv, "parquet": pl.read_parquet, "arrow": pl.read_ipc, "ndjson": pl.read_ndjson}
    read = reads[name.rsplit(".")[-1]]
    start = time.perf_counter()
    frame = read(path(name))
    return f"{time.perf_counter() - start} {frame.estimated_size()}"
def with_duckdb(name):
    read = {"csv": "read_csv", "parquet": "read_parquet", "ndjson": "read_ndjson"}[name.rsplit(".")[-1]]
    with duckdb.connect(config={"threads": 1}) as connection:
        start = time.perf_counter()
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM {read}('{path(name)}')")
        took = time.perf_counter() - start
        size = connection.execute("SELECT sum(memory_usage_bytes) FROM duckdb_memory()").fetchone()[0]
        return f"{took} {size}"
answer(lambda peer, name: write() if name == "write" else with_polars(name) if peer == "polars" else with_duckdb(name))
"#;

pub fn run(rows: usize) {
    let folder = std::env::temp_dir().join(format!("rankd-bench-tables-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the files");
    write_csv(&folder.join("table.csv"), rows).expect("room for the file");
    let mut python = Python::start(&PEERS, SCRIPT, &[&folder.to_string_lossy()]);
    println!("\n## Files\n\n{rows} rows, 20 columns, one thread. Seconds: min / median of {ROUNDS} rounds in turn.\n");
    introduce(python.as_ref(), &PEERS);
    if let Some(python) = python.as_mut().filter(|python| python.has("polars")) {
        python.ask("polars write").expect("Polars can write what it has read");
    }
    println!(
        "| file | MB | rankd s | Polars s | DuckDB s | Polars ÷ rankd | goal | met | DuckDB ÷ rankd |\n\
         |---|---|---|---|---|---|---|---|---|"
    );
    let measured: Vec<(&str, Vec<Option<Rounds>>)> = FILES
        .into_iter()
        .filter(|(name, _)| folder.join(name).exists())
        .map(|(name, goal)| {
            let [ours, polars, duckdb] = measure(&folder.join(name), name, python.as_mut());
            let ratio = |peer: &Option<Rounds>| Some(peer.as_ref()?.min() / ours.as_ref()?.min());
            let judged = ratio(&polars).zip(goal).map(|(ratio, goal)| met(ratio >= goal));
            println!(
                "| {name} | {} | {} | {} | {} | {} | {} | {} | {} |",
                megabytes(folder.join(name).metadata().map_or(0.0, |meta| meta.len() as f64)),
                shown(&ours),
                shown(&polars),
                shown(&duckdb),
                two_places(ratio(&polars)),
                goal.map(|goal| format!("≥ {goal}")).unwrap_or_default(),
                judged.unwrap_or_default(),
                two_places(ratio(&duckdb)),
            );
            (name, vec![ours, polars, duckdb])
        })
        .collect();
    println!(
        "\nMegabytes of the columns, and the most that was held while the file was read.\n\n\
         | file | rankd | most | Polars | DuckDB | rankd ÷ Polars | goal | met |\n|---|---|---|---|---|---|---|---|"
    );
    for (name, peers) in &measured {
        let bytes = |at: usize| peers[at].as_ref().map(|rounds| rounds.bytes);
        let ratio = bytes(0).zip(bytes(1)).map(|(ours, polars)| ours / polars);
        let [ours, polars, duckdb] = [0, 1, 2].map(|at| bytes(at).map(megabytes).unwrap_or_default());
        let most = peers[0].as_ref().map(|ours| megabytes(ours.most)).unwrap_or_default();
        let judged = ratio.map(|ratio| met(ratio <= MEMORY_MAX)).unwrap_or_default();
        let ratio = two_places(ratio);
        println!("| {name} | {ours} | {most} | {polars} | {duckdb} | {ratio} | ≤ {MEMORY_MAX} | {judged} |");
    }
    std::fs::remove_dir_all(&folder).expect("the folder that was made");
}

/// What one reader took for a file.
#[derive(Default)]
struct Rounds {
    seconds: Vec<f64>,
    bytes: f64,
    most: f64,
}

impl Rounds {
    fn min(&self) -> f64 {
        self.seconds.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn median(&self) -> f64 {
        let mut sorted = self.seconds.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        sorted[sorted.len() / 2]
    }
}

/// Ours, Polars' and DuckDB's rounds; `None` for a peer that is not there or cannot read the file.
fn measure(path: &Path, name: &str, mut python: Option<&mut Python>) -> [Option<Rounds>; 3] {
    let mut all = [Some(Rounds::default()), Some(Rounds::default()), Some(Rounds::default())];
    for _ in 0..ROUNDS {
        let ours = all[0].get_or_insert_default();
        let (before, start) = (counting::mark(), Instant::now());
        let table = read(path);
        ours.seconds.push(start.elapsed().as_secs_f64());
        ours.bytes = (counting::held() - before) as f64;
        ours.most = (counting::peak() - before) as f64;
        assert_eq!(table.columns.len(), 19);
        drop(table);
        for (at, peer) in PEERS.iter().enumerate() {
            let can_read = *peer == "polars" || !name.ends_with(".arrow");
            let python = python.as_deref_mut().filter(|python| python.has(peer) && can_read);
            let answer = python.and_then(|python| python.ask(&format!("{peer} {name}")));
            match (&mut all[at + 1], answer.as_deref()) {
                (Some(rounds), Some([seconds, bytes])) => {
                    rounds.seconds.push(*seconds);
                    rounds.bytes = *bytes;
                }
                (rounds, _) => *rounds = None,
            }
        }
    }
    all
}

fn shown(rounds: &Option<Rounds>) -> String {
    rounds.as_ref().map(|rounds| format!("{:.3} / {:.3}", rounds.min(), rounds.median())).unwrap_or_default()
}

fn two_places(number: Option<f64>) -> String {
    number.map(|number| format!("{number:.2}")).unwrap_or_default()
}

fn megabytes(bytes: f64) -> String {
    format!("{:.1}", bytes / 1e6)
}

fn read(path: &Path) -> TableColumns {
    let columns = columns().into_iter().enumerate();
    let columns = columns.map(|(at, (name, type_of))| WantedColumn { name, key: Key(at as u32 + 1), type_of });
    let wanted = Wanted {
        id: Some("id".to_owned()),
        id_type: Type::Int,
        columns: columns.collect(),
        bad_cells: BadCells::Refuse,
    };
    table_file::read(path, &wanted, &mut |_| {}).expect("a file that was just written")
}

/// Name and type of each column besides `id`.
fn columns() -> Vec<(String, Type)> {
    let groups = [("int", 6, Type::Int), ("float", 6, Type::Float), ("bool", 2, Type::Bool), ("topic", 4, Type::Str)];
    let many =
        groups.iter().flat_map(|(name, count, type_of)| (0..*count).map(move |at| (format!("{name}{at}"), *type_of)));
    many.chain([("title".to_owned(), Type::Str)]).collect()
}

fn write_csv(path: &Path, rows: usize) -> std::io::Result<()> {
    let mut file = BufWriter::new(std::fs::File::create(path)?);
    let names: Vec<String> = columns().into_iter().map(|(name, _)| name).collect();
    writeln!(file, "id,{}", names.join(","))?;
    let mut state = 88_172_645_463_325_252_u64;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    for row in 0..rows {
        write!(file, "{}", row * 7 + 1)?;
        for (name, type_of) in columns() {
            let value = next();
            // One cell in twenty is null.
            match type_of {
                _ if value.is_multiple_of(20) => write!(file, ",")?,
                Type::Int => write!(file, ",{}", value % 100_000)?,
                Type::Float => write!(file, ",{:.4}", value as f64 / 9e12)?,
                Type::Bool => write!(file, ",{}", value.is_multiple_of(3))?,
                _ if name == "title" => write!(file, ",The title of {}", value % 10_000_000)?,
                _ => write!(file, ",topic {}", value % 500)?,
            }
        }
        writeln!(file)?;
    }
    file.flush()
}
