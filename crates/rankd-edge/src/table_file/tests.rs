//! Small files of each format, as tables of cases.

use super::*;
use rankd_column::{Element, Value};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A file with these bytes, removed when it is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn new(extension: &str, bytes: &[u8]) -> Temporary {
        static NUMBER: AtomicUsize = AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rankd-table-{}-{number}.{extension}", std::process::id()));
        std::io::Write::write_all(&mut crate::files::append(&path).unwrap(), bytes).unwrap();
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn wanted(columns: &[(&str, Type)]) -> Wanted {
    let columns = columns.iter().enumerate().map(|(at, (name, type_of))| WantedColumn {
        name: (*name).to_owned(),
        key: Key(at as u32 + 1),
        type_of: *type_of,
    });
    Wanted { id: Some("id".to_owned()), id_type: Type::Int, columns: columns.collect(), bad_cells: BadCells::Refuse }
}

fn read_bytes(extension: &str, bytes: &[u8], wanted: &Wanted) -> Result<TableColumns, String> {
    let file = Temporary::new(extension, bytes);
    let hidden = format!("{}: ", file.0.display());
    read(&file.0, wanted, &mut |_| {}).map_err(|error| error.to_string().replace(&hidden, ""))
}

/// The table as text: a line a row, the id first.
fn table(read: &TableColumns) -> String {
    let id = |row: usize| match &read.ids {
        None => "-".to_owned(),
        Some(TableIds::Ints(ids)) => ids[row].to_string(),
        Some(TableIds::Texts(ids)) => ids.get(row as u32).to_owned(),
    };
    let cells =
        |row: usize| read.columns.iter().map(|(_, column)| format!(" {}", column.value(row))).collect::<String>();
    (0..read.rows).map(|row| id(row) + &cells(row)).collect::<Vec<_>>().join("\n")
}

const ALL: [(&str, Type); 4] = [("n", Type::Int), ("x", Type::Float), ("b", Type::Bool), ("s", Type::Str)];

#[test]
fn csv_is_read_as_rfc_4180_has_it() {
    for (text, expected) in [
        ("id,n,x,b,s\n1,2,0.5,true,a\n", "1 2 0.5 true \"a\""),
        ("id,n,x,b,s\r\n1,2,0.5,true,a\r\n2,,,,\r\n", "1 2 0.5 true \"a\"\n2 null null null null"),
        ("\u{feff}id,s\n1,a", "1 \"a\""),
        ("s,id\n\"a,b\"\"c\"\"\",1\n\"\",2\n,3\n", "1 \"a,b\\\"c\\\"\"\n2 \"\"\n3 null"),
        ("id,s\n1,\"two\nlines\"\n2,\"\r\n\"\n", "1 \"two\\nlines\"\n2 \"\\r\\n\""),
        ("\"id\",\"n\"\n\"1\",\"2\"\n", "1 2"),
        ("id,other,n\n\n1,\"x\",2\n\n\n2,y,3\n\n", "1 2\n2 3"),
        ("id\n5\n4", "5\n4"),
        ("id,s\n", ""),
        ("id,b\n1,True\n2,0\n", "1 true\n2 false"),
        ("id,s\n1,é\u{1f980}\n2, spaces \n", "1 \"é🦀\"\n2 \" spaces \""),
        ("id,x\n1,1e-3\n2,-7\n", "1 0.001\n2 -7"),
    ] {
        let read = read_bytes("csv", text.as_bytes(), &wanted(&ALL)).unwrap();
        assert_eq!(table(&read), expected, "{text:?}");
    }
    let read = read_bytes("tsv", b"id\ts\tn\n1\ta,b\t\n2\t\"a\tb\"\t7", &wanted(&ALL)).unwrap();
    assert_eq!(table(&read), "1 null \"a,b\"\n2 7 \"a\\tb\"");
}

#[test]
fn what_is_wrong_with_a_text_is_said_with_its_line() {
    for (extension, text, expected) in [
        ("csv", "", "the file is empty: a header with the names of the columns comes first"),
        ("csv", "a,b\n1,2", "there is no column \"id\" for the id; the columns are \"a\", \"b\""),
        ("csv", "id,n,n\n1,2,3", "the column \"n\" is there twice"),
        ("csv", "id,n\n1,2\n3\n", "line 3: the row has 1 cells and the header 2"),
        ("csv", "id,n\n1,2,3\n", "line 2: the row has 3 cells and the header 2"),
        ("csv", "id,s\n1,\"a\nb\"\n1,x\n", "line 4 has the id 1, which line 2 has, too"),
        ("csv", "id,s\n5,\n1,\n\n1,\n", "line 5 has the id 1, which line 3 has, too"),
        ("csv", "id,s\n,x\n", "line 2, column \"id\": an id must not be null"),
        ("csv", "id,s\nx7,x\n", "line 2, column \"id\": the id \"x7\" is not an int"),
        (
            "csv",
            "id,s\n1,5\" disk\n",
            "line 2: a quote inside a cell that has none around it; put them around it and double those in it",
        ),
        (
            "csv",
            "id,s\n1,\"a\"b\n",
            "line 2: text behind the quote that closes a cell; a quote inside a cell is doubled",
        ),
        ("csv", "id,s\n1,a\n2,\"b\n\n", "line 3: a quote is not closed"),
        ("csv", "id,s\r1,a\r", "line 1: a carriage return inside a cell without quotes"),
        (
            "csv",
            "id,n,x,b\n1,2.0,nan,yes\n2,\"\",1,\n",
            "line 2, column \"n\": \"2.0\" is not of type int; line 3, column \"n\": \"\" is not of type int; line 2, column \"x\": \"nan\" is not of type float; line 2, column \"b\": \"yes\" is not of type bool",
        ),
        ("ndjson", "{\"id\":1}\n[1]\n", "line 2: a line must be a JSON object"),
        ("ndjson", "{\"id\":1}\n{\"id\":2,}\n", "line 2: not JSON: a comma before the end (byte 8 of the line)"),
        ("ndjson", "{\"id\":1} x\n", "line 1: not JSON: the document has ended, but text follows (byte 9 of the line)"),
        ("ndjson", "{\"id\":1,\"n\":1,\"n\":2}\n", "line 1: the field \"n\" is there twice"),
        ("ndjson", "{\"n\":1}\n", "line 1, column \"id\": an id must not be null"),
        ("ndjson", "{\"id\":null}\n", "line 1, column \"id\": an id must not be null"),
        ("ndjson", "{\"id\":\"1\"}\n", "line 1, column \"id\": the id \"1\" is not an int"),
        ("ndjson", "{\"id\":1}\n\n{\"id\":1}\n", "line 3 has the id 1, which line 1 has, too"),
        (
            "ndjson",
            "{\"id\":1,\"n\":1.5,\"s\":7,\"b\":\"true\",\"x\":1e400}",
            "line 1, column \"n\": 1.5 is not of type int; line 1, column \"s\": 7 is not of type string; line 1, column \"b\": \"true\" is not of type bool; line 1, column \"x\": a number that does not fit 64 bits is not of type float",
        ),
        ("txt", "id\n1", "a table file ends with one of .csv, .tsv, .ndjson, .parquet, .arrow"),
    ] {
        assert_eq!(read_bytes(extension, text.as_bytes(), &wanted(&ALL)).unwrap_err(), expected, "{text:?}");
    }
    for (extension, bytes, expected) in [
        ("csv", &b"id,s\n1,\xff\n"[..], "line 2, column \"s\": \"\u{fffd}\" is not UTF-8"),
        ("csv", b"id,\xff\n1,a\n", "line 1: the header is not UTF-8"),
        ("csv", b"\xff\xfei\0d\0", "line 1: the text is UTF-16; write it as UTF-8"),
        ("ndjson", b"{\"id\":1}\n{\"id\":2,\"s\":\"\xff\"}\n", "line 2: the line is not UTF-8"),
    ] {
        assert_eq!(read_bytes(extension, bytes, &wanted(&ALL)).unwrap_err(), expected);
    }
}

#[test]
fn bad_cells_are_null_where_that_is_asked_for_and_counted() {
    let wanted = Wanted { bad_cells: BadCells::Null, ..wanted(&ALL) };
    let read = read_bytes("csv", b"id,n,s\n1,x,\xff\n2,3,b\n", &wanted).unwrap();
    assert_eq!((table(&read).as_str(), read.bad_cells), ("1 null null\n2 3 \"b\"", 2));
    assert_eq!(read.first_bad_cells[0].to_string(), "line 2, column \"n\": \"x\" is not of type int");
    // An id is never made up.
    assert!(read_bytes("csv", b"id,n\nx,1\n", &wanted).is_err());
    let text: String = (0..100).map(|id| format!("{id},x\n")).collect();
    let read = read_bytes("csv", format!("id,n\n{text}").as_bytes(), &wanted).unwrap();
    assert_eq!((read.bad_cells, read.first_bad_cells.len()), (100, 10));
}

#[test]
fn objects_have_their_fields_in_any_order() {
    let text = "{\"id\":1,\"n\":2,\"x\":0.5,\"b\":true,\"s\":\"a\"}\n\n{\"s\":\"\\u00e9\",\"more\":{\"a\":[1]},\"id\":2}\r\n\
                {\"x\":3,\"id\":3,\"n\":null,\"more\":null}";
    let read = read_bytes("ndjson", text.as_bytes(), &wanted(&ALL)).unwrap();
    assert_eq!(table(&read), "1 2 0.5 true \"a\"\n2 null null null \"é\"\n3 null 3 null null");
    assert_eq!(read.left_out, [LeftOut { name: "more".to_owned(), why: LeftOutWhy::Unwanted }]);
}

#[test]
fn lists_and_vectors_are_json_arrays() {
    let types = [
        ("i", Type::List(Element::Int)),
        ("f", Type::List(Element::Float)),
        ("s", Type::List(Element::Str)),
        ("v", Type::Vector(2)),
    ];
    let csv = "id,i,f,s,v\n1,\"[1,2]\",[0.5],\"[\"\"a\"\",\"\"b\"\"]\",\"[1, 2.5]\"\n2,[],[],[],\n";
    let ndjson =
        "{\"id\":1,\"i\":[1,2],\"f\":[0.5],\"s\":[\"a\",\"b\"],\"v\":[1,2.5]}\n{\"id\":2,\"i\":[],\"f\":[],\"s\":[]}\n";
    for (extension, text) in [("csv", csv), ("ndjson", ndjson)] {
        let read = read_bytes(extension, text.as_bytes(), &wanted(&types)).unwrap();
        assert_eq!(table(&read), "1 [1, 2] [0.5] [\"a\", \"b\"] [1.0, 2.5]\n2 [] [] [] null", "{extension}");
    }
    for (cell, why) in [
        ("7", "\"7\" is not of type list<int>"),
        ("[1.5]", "\"[1.5]\" is not of type list<int>"),
        ("[null]", "\"[null]\" is not of type list<int>"),
        ("[[]]", "\"[[]]\" is not of type list<int>"),
        ("[1] 2", "\"[1] 2\" is not of type list<int>"),
    ] {
        let refused = read_bytes("csv", format!("id,i\n1,{cell}\n").as_bytes(), &wanted(&types)).unwrap_err();
        assert_eq!(refused, format!("line 2, column \"i\": {why}"));
    }
    let refused = read_bytes("ndjson", b"{\"id\":1,\"v\":[1]}", &wanted(&types)).unwrap_err();
    assert_eq!(refused, "line 1, column \"v\": [1] is not of type vector<2>");
}

#[test]
fn ids_may_be_text() {
    let texts = Wanted { id_type: Type::Str, ..wanted(&ALL) };
    let read = |extension: &str, text: &str| read_bytes(extension, text.as_bytes(), &texts);
    assert_eq!(table(&read("csv", "id,n\ntt01,1\n7,2\n").unwrap()), "tt01 1\n7 2");
    assert_eq!(table(&read("ndjson", "{\"id\":7}\n{\"id\":\"é\"}\n").unwrap()), "7\né");
    for (extension, text, expected) in [
        ("csv", "id\na\nb\na\n", "line 4 has the id \"a\", which line 2 has, too"),
        ("csv", "id,n\n\"\",1\n", "line 2, column \"id\": \"\": an id has at least one character"),
        ("csv", "id,n\n,1\n", "line 2, column \"id\": an id must not be null"),
        ("csv", "id\n\"a\nb\"\n", "line 2, column \"id\": \"a\\nb\": an id has no control characters"),
        ("ndjson", "{\"id\":7}\n{\"id\":\"7\"}\n", "line 2 has the id \"7\", which line 1 has, too"),
        ("ndjson", "{\"id\":1.5}\n", "line 1, column \"id\": the id \"1.5\" is not a string"),
    ] {
        assert_eq!(read(extension, text).unwrap_err(), expected);
    }
    let long = |bytes: usize| read("csv", &format!("id\n{}\n", "x".repeat(bytes)));
    assert!(long(512).is_ok());
    assert!(long(513).unwrap_err().ends_with("an id has at most 512 bytes"));
}

#[test]
fn a_column_may_be_the_id_and_a_key_or_two_keys() {
    let mut wanted = wanted(&[("id", Type::Int), ("a", Type::Str), ("a", Type::Int)]);
    let read = read_bytes("csv", b"a,id\n5,1\n6,2\n", &wanted).unwrap();
    assert_eq!(table(&read), "1 1 \"5\" 5\n2 2 \"6\" 6");
    let read = read_bytes("ndjson", b"{\"id\":1,\"a\":null}", &wanted).unwrap();
    assert_eq!(table(&read), "1 1 null null");
    wanted.id = None;
    let read = read_bytes("csv", b"a,id\n5,\n6,\n", &wanted).unwrap();
    assert_eq!(table(&read), "- null \"5\" 5\n- null \"6\" 6");
    wanted.columns[1].key = Key(1);
    assert_eq!(read_bytes("csv", b"a,id\n", &wanted).unwrap_err(), "the column \"a\" is there twice");
}

/// Rows that are longer than a block, that end at every place of one, and that are too long.
#[test]
fn rows_go_across_blocks() {
    let mut csv = String::from("id,s,n\n");
    let mut ndjson = String::new();
    let text = |id: usize| format!("{id}\n\"ü,").repeat(id * 7919 % 2_000);
    for id in 0..2_000 {
        csv.push_str(&format!("{id},\"{}\",{}\r\n", text(id).replace('"', "\"\""), id * 2));
        ndjson.push_str(&format!(
            "{{\"id\":{id},\"s\":\"{}\",\"n\":{}}}\n",
            text(id).replace('\n', "\\n").replace('"', "\\\""),
            id * 2
        ));
    }
    for (extension, bytes) in [("csv", csv.as_bytes()), ("ndjson", ndjson.as_bytes())] {
        let read = read_bytes(extension, bytes, &wanted(&ALL)).unwrap();
        assert_eq!(read.rows, 2_000);
        for id in 0..2_000 {
            assert_eq!(read.columns[0].1.value(id), Value::Int(id as i64 * 2), "{id}");
            assert_eq!(read.columns[1].1.value(id), Value::str(&text(id)), "{id}");
        }
    }
    let long = format!("id,s\n1,\"{}", "x".repeat(40 << 20));
    let refused = read_bytes("csv", long.as_bytes(), &wanted(&ALL)).unwrap_err();
    assert_eq!(refused, "line 2: a row is longer than 16 MiB; is a quote not closed?");
}

#[test]
fn every_byte_that_ends_a_cell_is_found_wherever_it_stands() {
    for at in 0..24 {
        for len in at..24 {
            for around in ['a', 'é', '\u{7f}', '!', '#', '-', '+'] {
                let mut cell: Vec<char> = vec![around; len];
                cell.insert(at, ',');
                let cell: String = cell.into_iter().collect();
                let text = format!("s,id\n\"{cell}\",1\n");
                let read = read_bytes("csv", text.as_bytes(), &wanted(&ALL)).unwrap();
                assert_eq!(read.columns[0].1.value(0), Value::str(&cell));
                let text = format!("s,t,id\n{cell},1\n");
                let read = read_bytes("csv", text.as_bytes(), &wanted(&ALL)).unwrap();
                let (before, _) = cell.split_once(',').unwrap();
                let expected = if before.is_empty() { Value::Null } else { Value::str(before) };
                assert_eq!(read.columns[0].1.value(0), expected);
            }
        }
    }
}

#[test]
fn a_file_that_nobody_has_described_is_understood() {
    let csv = "movie_id,title,year,rating,seen,tags,embedding,empty,zip,title\n\
               1,Alien,1979,8.5,true,\"[\"\"a\"\",\"\"b\"\"]\",\"[0.5,1,2]\",,007,x\n\
               2,Aliens,1986,8,false,[],\"[1,2,0.25]\",,10,x\n\
               3,Alien,,7.25,true,\"[\"\"a\"\"]\",,,20,x\n";
    let file = Temporary::new("csv", csv.as_bytes());
    // A name that is there twice is nobody's.
    assert!(inspect(&file.0, &mut |_| {}).is_err());
    let file = Temporary::new("csv", csv.replacen(",title\n", ",other\n", 1).as_bytes());
    let found = inspect(&file.0, &mut |_| {}).unwrap();
    let told: Vec<String> = found
        .columns
        .iter()
        .map(|c| {
            let distinct = c.distinct.map_or("-".to_owned(), |distinct| distinct.to_string());
            format!(
                "{} {}{} {distinct}{} {}",
                c.name,
                c.type_of,
                if c.nullable { "?" } else { "" },
                if c.could_be_id { "!" } else { "" },
                c.examples.join("|")
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "movie_id int 3! 1|2|3",
            "title string 2 Alien|Aliens",
            "year int? 2 1979|1986",
            "rating float 3 8.5|8|7.25",
            "seen bool 2 true|false",
            "tags list<string> - [\"a\", \"b\"]|[]|[\"a\"]",
            "embedding vector<3>? - [0.5, 1.0, 2.0]|[1.0, 2.0, 0.25]",
            "empty string? 0 ",
            "zip string 3! 007|10|20",
            "other string 1 x",
        ]
    );
    assert_eq!((found.rows, found.id), (3, Some(0)));
    let ndjson = "{\"a\":1,\"id\":\"x\",\"o\":{}}\n{\"a\":2.5,\"id\":\"y\",\"l\":[1]}\n";
    let file = Temporary::new("ndjson", ndjson.as_bytes());
    let found = inspect(&file.0, &mut |_| {}).unwrap();
    let types: Vec<String> = found.columns.iter().map(|column| format!("{} {}", column.name, column.type_of)).collect();
    assert_eq!(types, ["a float", "id string", "l list<int>"]);
    assert_eq!((found.id, found.left_out.len()), (Some(1), 1));
}
