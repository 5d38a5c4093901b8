//! Random rows written as text and as our own Arrow stream, and read back.

use crate::rows::{Folder, Random, compare, csv, json, random_rows, read};

#[test]
fn random_rows_come_back_from_text() {
    let (folder, mut random) = (Folder::new("text"), Random(0x9E37_79B9_7F4A_7C15));
    for round in 0..30 {
        let count = random.below(200);
        let rows = random_rows(&mut random, count);
        let ndjson: String = rows.iter().map(|row| json(row, round % 2 == 0) + "\n").collect();
        let files = [
            folder.write("rows.csv", csv(&rows, ",", "\n").as_bytes()),
            folder.write("windows.csv", csv(&rows, ",", "\r\n").as_bytes()),
            folder.write("rows.tsv", csv(&rows, "\t", "\n").as_bytes()),
            folder.write("rows.ndjson", ndjson.as_bytes()),
        ];
        for path in files {
            if count == 0 && path.extension().is_some_and(|extension| extension == "ndjson") {
                // Without rows there are no columns, either.
                assert_eq!(read(&path).unwrap().rows, 0);
                continue;
            }
            compare(&read(&path).unwrap(), &rows, &path.display().to_string());
        }
    }
}
