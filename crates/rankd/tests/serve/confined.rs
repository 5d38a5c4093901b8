//! The child that compiles plans in TypeScript: what it can still do, as it says itself when it is asked to try.

use crate::json::Json;
use crate::server::{Folder, Server, repository};
use std::process::Command;

#[test]
fn the_child_can_open_no_socket_start_no_process_and_write_no_file() {
    let output = Command::new(env!("CARGO_BIN_EXE_rankd"))
        .current_dir(repository())
        .args(["compile-confined", "--probe"])
        .env_clear()
        .env("MIMALLOC_ARENA_RESERVE", "16384")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let told = Json::read(&text);
    assert!(told.text("confinement").contains("no new privileges"), "{text}");
    if told.text("confinement").contains("no system call filter") {
        println!("not run: this kernel has no system call filter");
        return;
    }
    for what in ["socket", "process", "new_file"] {
        assert_ne!(told.text(what), "allowed", "{what}: {text}");
    }
}

#[test]
fn the_server_says_what_confines_its_compiler_and_hands_down_no_environment() {
    let folder = Folder::new();
    folder.write(
        "typed.plan.ts",
        "import { definePlan } from \"@ranking-dsl/runtime\";\nexport default definePlan({ name: \"typed\", build: (ctx) => ctx.fixedSource({ rowCount: 1 }) });\n",
    );
    folder.write("busy.plan.ts", "while (true) {}");
    let address = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let server = Server::start_at(&address, &folder.0, &[]);
    // `busy` comes first and is compiled for two seconds.
    let children = format!("/proc/{0}/task", server.id());
    let until = std::time::Instant::now() + crate::server::PATIENCE;
    let environment = loop {
        let tasks = std::fs::read_dir(&children).into_iter().flatten().flatten();
        let child = tasks
            .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
            .find_map(|all| all.split_whitespace().next().map(str::to_owned));
        let of = |file: &str| child.as_ref().and_then(|id| std::fs::read_to_string(format!("/proc/{id}/{file}")).ok());
        // Between its start and its own program it is still the server.
        if let (Some(command), Some(environment)) = (of("cmdline"), of("environ"))
            && command.contains("compile-confined")
        {
            break environment;
        }
        assert!(std::time::Instant::now() < until, "no child was seen");
        std::thread::yield_now();
    };
    let names: Vec<&str> =
        environment.split('\0').filter_map(|one| one.split('=').next()).filter(|name| !name.is_empty()).collect();
    assert_eq!(names, ["MIMALLOC_ARENA_RESERVE"], "nothing but a setting of its own allocator");
    server.says("TypeScript plans are compiled in a process with: limits on memory and time, no new privileges");
}
