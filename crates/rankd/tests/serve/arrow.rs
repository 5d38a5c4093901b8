//! Answers as Arrow, read by `pyarrow` from PyPI and held against the JSON answer to the same request.
//!
//! Where Python or PyPI is not there, this says SKIPPED and looks only at the heads and the ends; the bytes themselves are also
//! tested where they are written.

use crate::client::{curl, post};
use crate::downloads;
use crate::server::{Folder, Server, node, repository};
use std::path::Path;
use std::process::Command;

const VERSION: &str = "pyarrow==26.0.1";
const MEDIA: &str = "application/vnd.apache.arrow.stream";

/// Reads pairs of files NAME.json and NAME.arrow and ends with what is wrong.
const COMPARE: &str = r#"
import json, pathlib, struct, sys
import pyarrow as pa
TYPES = {"id": pa.int64(), "output": pa.utf8(), "likes": pa.int64(), "views": pa.int64(), "score": pa.float64(), "quality": pa.float64(),
         "verified": pa.bool_(), "title": pa.utf8(), "country": pa.utf8(), "tags": pa.list_(pa.utf8()),
         "visits": pa.list_(pa.int64()), "weights": pa.list_(pa.float64()), "embedding": pa.list_(pa.float32(), 3)}
# The digits of a number of 32 bits, read as one.
single = lambda value: struct.unpack("f", struct.pack("f", value))[0]
READ = {"weights": lambda list: [float(value) for value in list], "embedding": lambda list: [single(value) for value in list]}
for file in sorted(pathlib.Path(sys.argv[1]).glob("*.json")):
    answer = json.loads(file.read_text())
    with pa.ipc.open_stream(file.with_suffix(".arrow").read_bytes()) as reader:
        batches = list(reader)
        schema = reader.schema
    assert len(batches) == 1, (file, len(batches))
    batches[0].validate(full=True)
    names = schema.names
    assert names[0] == "id" and not schema.field("id").nullable, schema
    if names[1:2] == ["output"]:
        assert not schema.field("output").nullable, schema
        del names[1]
    assert names[1:] == [key for key in sys.argv[2].split(",") if key in names], schema
    for field in schema:
        assert TYPES[field.name] == field.type, schema
    rows = [{key: value for key, value in row.items() if value is not None} for row in batches[0].to_pylist()]
    if "candidates" in answer:
        candidates = answer.pop("candidates")
    else:
        # Outputs with names: a column says which output a row is of.
        named = answer.pop("outputs")
        candidates = [{"id": row.pop("id"), "output": name, **row} for name, rows_of in named.items() for row in rows_of]
        counts = json.loads(schema.metadata[b"response"]).pop("outputs")
        assert [(one["name"], one["rows"]) for one in counts] == [(name, len(rows_of)) for name, rows_of in named.items()], counts
        answer["outputs"] = counts
    # As text, so that 1 is not 1.0 and 0.0 not -0.0; a float that is whole is written like an int in JSON.
    floats = {field.name for field in schema if field.type == pa.float64()}
    for row in candidates:
        row.update({key: float(value) for key, value in row.items() if key in floats})
        row.update({key: READ[key](value) for key, value in row.items() if key in READ})
    assert repr(rows) == repr(candidates), (file, rows, candidates)
    assert json.loads(schema.metadata[b"response"]) == answer, (schema.metadata, answer)
    print(file.stem, len(rows), "rows,", len(names), "columns")
"#;

/// Keys in the order of the registry.
const KEYS: &str = "score,country,title,quality,likes,views,verified,tags,visits,weights,embedding";

/// Keys beside those of the repository's registry.
const ARRAYS: [(&str, &str); 4] =
    [("tags", "list<string>"), ("visits", "list<int>"), ("weights", "list<float>"), ("embedding", "vector<3>")];

const ROWS: &str = r#"[
    {"id":9223372036854775807,"likes":-9223372036854775808,"views":9223372036854775807,"score":0.1,"verified":true,"title":""},
    {"id":-9223372036854775808,"likes":0,"score":-0.0,"verified":false,"title":"naïve 漢字 🦀 \u0000 \"","country":"DE"},
    {"id":3,"score":1.7976931348623157e308,"verified":null,"title":null,"country":""},
    {"id":4,"likes":1,"score":5e-324,"verified":true,"title":"four"},
    {"id":5,"likes":2,"score":-2,"title":"five"},{"id":6},{"id":7,"verified":true},{"id":8,"verified":false},
    {"id":9,"verified":true,"title":"the ninth bit","likes":9}]"#;

const ROWS_WITH_ARRAYS: &str = r#"[
    {"id":1,"likes":3,"tags":["a","naïve 漢字 🦀 \u0000 \"",""],"visits":[9223372036854775807,-9223372036854775808],"embedding":[0.1,-0.0,3.4e38]},
    {"id":2,"tags":[],"visits":[],"weights":[],"embedding":[1,2,3]},
    {"id":3,"likes":9,"weights":[0.1,-0.0,5e-324,1.7976931348623157e308,7]},
    {"id":4,"likes":5,"tags":["a","a","b"],"embedding":[1e-45,16777216,0.3]},
    {"id":5,"tags":["one more"],"visits":[0]},{"id":6},{"id":7},{"id":8,"likes":1},{"id":9,"likes":7,"tags":["the ninth bit"]}]"#;

/// The repository's registry with more keys.
fn registry() -> Folder {
    let folder = Folder::new();
    for name in ["keys.toml", "params.toml", "endpoints.local.toml"] {
        let mut text = std::fs::read_to_string(repository().join("registry").join(name)).unwrap();
        if name == "keys.toml" {
            for (at, (name, type_of)) in ARRAYS.iter().enumerate() {
                let id = 1000 + at;
                text += &format!(
                    "\n[[key]]\nkey_id = {id}\nname = \"{name}\"\ntype = \"{type_of}\"\nnullable = true\ndoc = \"\"\n"
                );
            }
        }
        folder.write(name, &text);
    }
    folder
}

fn server() -> ([Folder; 2], Server) {
    let (folder, registry) = (Folder::new(), registry());
    let given = || node("given", "candidates", &[], "");
    let sorted = || node("sorted", "sort", &["given"], r#""key":"likes","order":"desc""#);
    let first = || node("first", "take", &["sorted"], r#""count":4"#);
    let fixed = || {
        node("fixed", "fixed_source", &[], r#""row_count":3,"columns":{"quality":[0.5,null,1],"title":["a","b",null]}"#)
    };
    folder.plan("given", &[given()], "given");
    folder.plan("first", &[given(), sorted(), first()], "first");
    folder.plan("several", &[given(), sorted(), first(), fixed()], r#"first","fixed","given"#);
    let nodes = [given(), sorted(), first(), fixed()].join(",");
    let named = format!(
        r#"{{"schema_version":1,"plan_name":"named","nodes":[{nodes}],"outputs":{{"best":"first","fixed":"fixed","all":"given"}}}}"#
    );
    folder.write("named.plan.json", &named);
    let server = Server::start(&folder.0, &["--registry", registry.0.to_str().unwrap()]);
    ([folder, registry], server)
}

/// Asks for both forms and keeps them in files.
fn ask(server: &Server, plan: &str, body: &str, files: &Path, name: &str) {
    let url = server.url(&format!("/rank/{plan}"));
    let json = post(&url, body);
    assert!(json.status == 200 && json.headers.contains("application/json"), "{json:?}");
    std::fs::write(files.join(format!("{name}.json")), &json.body).unwrap();
    let (arrow, head) = (files.join(format!("{name}.arrow")), files.join(format!("{name}.head")));
    let status = Command::new("curl")
        .args(["-s", "-S", "--max-time", "60", "-H", "content-type: application/json", "-d", body, &url])
        .args(["-H", &format!("accept: {MEDIA}, application/json;q=0.5"), "-o"])
        .args([&arrow, Path::new("-D"), &head])
        .status();
    assert!(status.unwrap().success());
    let head = std::fs::read_to_string(head).unwrap().to_lowercase();
    assert!(head.contains(" 200 ") && head.contains(&format!("content-type: {MEDIA}\r\n")), "{head}");
    let bytes = std::fs::read(arrow).unwrap();
    assert!(bytes.starts_with(&[0xff; 4]) && bytes.ends_with(&[0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0]), "{bytes:?}");
}

#[test]
fn an_arrow_stream_says_what_the_json_says() {
    let ([folder, _registry], server) = server();
    let files = folder.0.join("answers");
    std::fs::create_dir(&files).unwrap();
    let request = |more: &str| format!(r#"{{"user_id":1,"request_id":"same","candidates":{ROWS}{more}}}"#);
    ask(&server, "given", &request(""), &files, "all");
    ask(&server, "first", &request(""), &files, "a view");
    ask(&server, "several", &request(""), &files, "several outputs");
    ask(&server, "named", &request(""), &files, "outputs with names");
    ask(&server, "named", &request(r#","output_keys":[]"#), &files, "names and no keys");
    let keys = r#","output_keys":["title","quality","score","title","id"]"#;
    ask(&server, "several", &request(keys), &files, "some keys");
    ask(&server, "given", &request(r#","output_keys":[]"#), &files, "no keys");
    ask(&server, "given", r#"{"user_id":1,"request_id":"same"}"#, &files, "no rows");
    let none = r#"{"user_id":1,"request_id":"same","candidates":[],"output_keys":["title","likes"]}"#;
    ask(&server, "given", none, &files, "no rows of some keys");
    let arrays = |more: &str| format!(r#"{{"user_id":1,"request_id":"same","candidates":{ROWS_WITH_ARRAYS}{more}}}"#);
    ask(&server, "given", &arrays(""), &files, "lists and vectors");
    ask(&server, "first", &arrays(""), &files, "a view of lists and vectors");
    ask(&server, "several", &arrays(r#","output_keys":["embedding","tags"]"#), &files, "some lists and vectors");
    let none = r#"{"user_id":1,"request_id":"same","candidates":[],"output_keys":["tags","weights","embedding"]}"#;
    ask(&server, "given", none, &files, "no rows of lists and vectors");
    match downloads::python(VERSION) {
        Err(why) => downloads::skipped("pyarrow does not read our answers", &why),
        Ok(programs) => {
            let mut python = Command::new(programs.join("python"));
            let output = python.args(["-c", COMPARE]).arg(&files).arg(KEYS).output().unwrap();
            let told = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{told}{}", String::from_utf8_lossy(&output.stderr));
            assert_eq!(told.lines().count(), 13, "{told}");
            println!("{told}");
        }
    }
}

#[test]
fn errors_and_those_who_take_anything_get_json() {
    let (_folders, server) = server();
    let accept = |accept: &str, plan: &str| {
        let (accept, url) = (format!("accept: {accept}"), server.url(&format!("/rank/{plan}")));
        curl(&["-H", "content-type: application/json", "-H", &accept, "-d", r#"{"user_id":1}"#, &url])
    };
    let missing = accept(MEDIA, "nowhere");
    assert_eq!((missing.status, missing.kind().as_str()), (404, "unknown_plan"));
    for anything in ["*/*", "application/*", "text/html", &format!("{MEDIA};q=0"), &format!("{MEDIA};q=0.1, */*")] {
        let answer = accept(anything, "given");
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.json().list("candidates").is_empty(), "{anything}: {answer:?}");
    }
}
