//! Random rows written by pyarrow in every way that is read, and read back; what is left out is said.
//!
//! Where Python or PyPI is not there, this says SKIPPED; the files in `fixtures` were written in the same way.

use crate::downloads;
use crate::rows::{Folder, Random, compare, json, random_rows, read};
use rankd_edge::table_file;
use std::process::Command;

const VERSION: &str = "pyarrow==26.0.1";

#[test]
fn random_rows_come_back_from_pyarrow() {
    let programs = match downloads::python(VERSION) {
        Ok(programs) => programs,
        Err(why) => return downloads::skipped("pyarrow writes no files for us", &why),
    };
    let mut random = Random(0x0D15_EA5E);
    for count in [0, 1, 300] {
        let folder = Folder::new(&format!("pyarrow-{count}"));
        let rows = random_rows(&mut random, count);
        let text: Vec<String> = rows.iter().map(|row| json(row, true)).collect();
        let input = folder.write("rows.json", format!("[{}]", text.join(",\n")).as_bytes());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/table_files/write.py");
        let output = Command::new(programs.join("python")).arg(script).arg(input).arg(&folder.0).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let mut files = 0;
        for path in rankd_edge::files::list(&folder.0).unwrap() {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name == "rows.json" {
                continue;
            }
            let table = read(&path).unwrap_or_else(|error| panic!("{error}"));
            compare(&table, &rows, &name);
            let left_out: Vec<&str> = table.left_out.iter().map(|column| column.name.as_str()).collect();
            let expected: &[&str] = if name.ends_with("arrow") { &["d", "st", "bin", "nn"] } else { &["d", "st"] };
            assert_eq!(left_out, expected, "{name}");
            let found = table_file::inspect(&path, &mut |_| {}).unwrap();
            assert_eq!((found.rows, found.columns.len()), (count, 10), "{name}");
            files += 1;
        }
        assert_eq!(files, 22);
    }
}
