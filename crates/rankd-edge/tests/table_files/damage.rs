//! Files with a byte flipped, or cut short: a clear error or rows, never a panic, and never much more memory than the file and its
//! columns take.

use crate::allocator::peak_of;
use crate::rows::{Folder, Random, csv, json, random_rows, read};
use rankd_plan::digest::in_hexadecimal;
use sha2::{Digest, Sha256};

/// How often each file is damaged.
const TIMES: usize = 1_000;
/// What reading needs whatever the file is: the block of a text, and what messages and maps take.
const FIXED: usize = 1 << 20;

fn damage(name: &str, bytes: &[u8]) {
    let (folder, mut random) = (Folder::new(&name.replace('.', "-")), Random(0xBAD_F11E));
    let (whole, whole_peak) = peak_of(|| read(&folder.write(name, bytes)).unwrap());
    // Whatever way the format takes through its file, all of it is hashed.
    assert_eq!(whole.sha256, Some(in_hexadecimal(&Sha256::digest(bytes))), "{name}");
    assert!(whole.rows > 0);
    // Twice the file, and what the whole table took while it was read.
    let peak_max = 2 * bytes.len() + 2 * whole_peak + FIXED;
    let mut errors = 0;
    for time in 0..TIMES {
        let mut damaged = bytes.to_vec();
        if time % 4 == 3 {
            damaged.truncate(random.below(bytes.len()));
        } else {
            let at = random.below(bytes.len());
            damaged[at] ^= 1 << random.below(8);
        }
        let path = folder.write(name, &damaged);
        let (result, peak) = peak_of(|| read(&path));
        match result {
            Ok(table) => {
                assert!(table.columns.iter().all(|(_, column)| column.len() == table.rows), "{name}");
            }
            Err(error) => {
                errors += 1;
                assert!(error.to_string().len() > path.display().to_string().len() + 10, "{error}");
            }
        }
        assert!(peak < peak_max, "{name}: {peak} bytes for a file of {}", bytes.len());
    }
    // A test that cannot find damage would be none.
    assert!(errors > TIMES / 20, "{name}: {errors} errors");
}

#[test]
fn damaged_text_is_no_danger() {
    let rows = random_rows(&mut Random(7), 300);
    damage("rows.csv", csv(&rows, ",", "\r\n").as_bytes());
    damage("rows.tsv", csv(&rows, "\t", "\n").as_bytes());
    damage("rows.ndjson", rows.iter().map(|row| json(row, false) + "\n").collect::<String>().as_bytes());
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test reads its fixtures")]
fn damaged_arrow_and_parquet_are_no_danger() {
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/table_files/fixtures");
    let mut count = 0;
    for path in rankd_edge::files::list(fixtures.as_ref()).unwrap() {
        damage(&path.file_name().unwrap().to_string_lossy(), &std::fs::read(&path).unwrap());
        count += 1;
    }
    assert!(count > 5);
}
