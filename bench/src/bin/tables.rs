//! Reading a table file of 20 columns into columns, beside Polars on one thread: seconds, and bytes in memory.
//!
//! Polars is Python's: `PYTHON` names a Python that has it, `python3` by default. Without it only ours is measured, as CSV.

use rankd_column::{Key, Type};
use rankd_edge::table_file::{self, BadCells, TableColumns, Wanted, WantedColumn};
use std::alloc::{GlobalAlloc, Layout};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicIsize, Ordering};
use std::time::Instant;

/// The program's own choice, counted.
struct Counting(mimalloc::MiMalloc);

static HELD: AtomicIsize = AtomicIsize::new(0);
static PEAK: AtomicIsize = AtomicIsize::new(0);

fn count(bytes: isize) {
    let held = HELD.fetch_add(bytes, Ordering::Relaxed) + bytes;
    PEAK.fetch_max(held, Ordering::Relaxed);
}

// SAFETY: every call is passed on as it is; the counters touch no memory of it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        unsafe { self.0.alloc(layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        unsafe { self.0.realloc(memory, layout, size) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        unsafe { self.0.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting(mimalloc::MiMalloc);

const ROWS: usize = 1_000_000;
const ROUNDS: usize = 5;

/// Name and type of each column besides `id`.
fn columns() -> Vec<(String, Type)> {
    let groups = [("int", 6, Type::Int), ("float", 6, Type::Float), ("bool", 2, Type::Bool), ("topic", 4, Type::Str)];
    let many =
        groups.iter().flat_map(|(name, count, type_of)| (0..*count).map(move |at| (format!("{name}{at}"), *type_of)));
    many.chain([("title".to_owned(), Type::Str)]).collect()
}

/// Reads a file in turns, prints for each format its name, the least seconds and the bytes of the columns, and writes other formats.
const POLARS: &str = r#"
import os, sys, time
os.environ["POLARS_MAX_THREADS"] = "1"
import polars as pl
folder, rounds = sys.argv[1], int(sys.argv[2])
path = lambda name: os.path.join(folder, name)
frame = pl.read_csv(path("table.csv"))
frame.write_parquet(path("zstd.parquet"))
frame.write_parquet(path("snappy.parquet"), compression="snappy")
frame.write_ipc(path("table.arrow"), compat_level=pl.CompatLevel.oldest())
frame.write_ndjson(path("table.ndjson"))
del frame
reads = {"table.csv": pl.read_csv, "zstd.parquet": pl.read_parquet, "snappy.parquet": pl.read_parquet,
         "table.arrow": pl.read_ipc, "table.ndjson": pl.read_ndjson}
for name, read in reads.items():
    best = 1e9
    for _ in range(rounds):
        start = time.perf_counter()
        frame = read(path(name))
        best = min(best, time.perf_counter() - start)
    print(name, best, frame.estimated_size())
"#;

fn main() {
    let rows = std::env::args().nth(1).and_then(|rows| rows.parse().ok()).unwrap_or(ROWS);
    let folder = std::env::temp_dir().join(format!("rankd-bench-tables-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for the files");
    write_csv(&folder.join("table.csv"), rows).expect("room for the file");
    let polars = polars(&folder);
    println!("{rows} rows, 20 columns. Seconds: the least of {ROUNDS}.\n");
    println!(
        "| file | MB | rankd s | Polars s | Polars ÷ rankd | rankd MB | peak MB | Polars MB |\n|---|---|---|---|---|---|---|---|"
    );
    for name in ["table.csv", "snappy.parquet", "zstd.parquet", "table.arrow", "table.ndjson"] {
        let path = folder.join(name);
        let Ok(meta) = path.metadata() else { continue };
        let ours = measure(&path);
        let peer = polars.iter().find(|(known, ..)| known == name);
        let mb = |bytes: f64| format!("{:.1}", bytes / 1e6);
        let (seconds, ratio, bytes) = match peer {
            Some((_, seconds, bytes)) => {
                (format!("{seconds:.3}"), format!("{:.2}", seconds / ours.seconds), mb(*bytes))
            }
            None => Default::default(),
        };
        let (file, held, peak) = (mb(meta.len() as f64), mb(ours.held as f64), mb(ours.peak as f64));
        println!("| {name} | {file} | {:.3} | {seconds} | {ratio} | {held} | {peak} | {bytes} |", ours.seconds);
    }
    std::fs::remove_dir_all(&folder).expect("the folder that was made");
}

struct Measured {
    seconds: f64,
    held: isize,
    peak: isize,
}

fn measure(path: &Path) -> Measured {
    let mut best = Measured { seconds: f64::MAX, held: 0, peak: 0 };
    for _ in 0..ROUNDS {
        let before = HELD.load(Ordering::Relaxed);
        PEAK.store(before, Ordering::Relaxed);
        let start = Instant::now();
        let table = read(path);
        best.seconds = best.seconds.min(start.elapsed().as_secs_f64());
        best.held = HELD.load(Ordering::Relaxed) - before;
        best.peak = PEAK.load(Ordering::Relaxed) - before;
        assert_eq!(table.columns.len(), 19);
    }
    best
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

/// What Polars took for each file, and the bytes of its columns; nothing where there is no Polars.
fn polars(folder: &PathBuf) -> Vec<(String, f64, f64)> {
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let output = Command::new(python).args(["-c", POLARS]).arg(folder).arg(ROUNDS.to_string()).output();
    let Some(output) = output.ok().filter(|output| output.status.success()) else {
        println!("There is no Python with Polars: set PYTHON to one that has it.\n");
        return Vec::new();
    };
    let line = |line: &str| {
        let mut words = line.split(' ');
        Some((words.next()?.to_owned(), words.next()?.parse().ok()?, words.next()?.parse().ok()?))
    };
    String::from_utf8_lossy(&output.stdout).lines().filter_map(line).collect()
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
