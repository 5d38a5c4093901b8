//! The OpenAPI document, held against the server by `schemathesis` from PyPI: no server error, no status that is not in it.
//!
//! Where Python or PyPI is not there, this says SKIPPED and looks only at the document itself.

use crate::client::get;
use crate::downloads;
use crate::server::{Folder, Server, rows};
use std::process::Command;

const VERSION: &str = "schemathesis==4.32.5";

#[test]
fn the_server_does_what_its_document_says() {
    let folder = Folder::new();
    let (name, nodes) = rows("rows", 3);
    folder.plan(&name, &nodes, "n0");
    let server = Server::start(&folder.0, &["--queue-ms", "10000", "--why", "on"]);
    let document = get(&server.url("/openapi.json")).json();
    assert_eq!(document.text("openapi"), "3.1.0");
    let programs = match downloads::python(VERSION) {
        Ok(programs) => programs,
        Err(why) => return downloads::skipped("schemathesis does not hold the server against its document", &why),
    };
    let checks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance";
    let output = Command::new(programs.join("python"))
        .arg(programs.join("schemathesis"))
        .args(["run", &server.url("/openapi.json"), "--checks", checks, "--max-examples", "40", "--seed", "1"])
        .args(["--phases", "examples,coverage,fuzzing", "--no-color", "--suppress-health-check", "all"])
        .current_dir(&folder.0)
        .output()
        .unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{told}");
    println!("{}", told.lines().filter(|line| line.contains("pass") || line.contains("generated")).collect::<String>());
}
