//! Pages of the documentation, run as a reader would: its files are written, its commands are run by one shell, and what they print is compared.
//!
//! In `docs/tutorial.md` and `docs/debugging.md` a block `sh` is run, the `text` or `json` block right after it is what it prints, and any other block whose
//! second word is a path is a file. `…` stands for anything within a line; a line that is only `…` for any number of lines. `UPDATE=1` rewrites
//! what the commands print.

#![expect(clippy::disallowed_methods, clippy::panic, reason = "a test lays out files and says what is wrong")]

#[path = "redis/server.rs"]
#[expect(dead_code, reason = "other tests use more of it")]
mod server;

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The most commands that the part without Redis may take.
const COMMANDS_MAX: usize = 12;

/// A fenced block: its language, its path or role, its text, and the line of its first line of text.
struct Block {
    language: String,
    path: String,
    text: String,
    line: usize,
}

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository is there")
}

fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut open = false;
    for (at, line) in text.lines().enumerate() {
        match line.strip_prefix("```") {
            Some(_) if open => open = false,
            Some(info) => {
                let mut words = info.split_whitespace().map(str::to_owned);
                let (language, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                blocks.push(Block { language, path, text: String::new(), line: at + 2 });
                open = true;
            }
            None if open => {
                let block = blocks.last_mut().expect("one is open");
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {}
        }
    }
    blocks
}

/// What is printed between the outputs of two blocks.
fn marker(at: usize) -> String {
    format!("==== block {at} ====")
}

/// One script for the whole page, so that a `cd` holds for all that follows.
fn script(blocks: &[Block], port: u16) -> String {
    let mut script = String::from("exec 2>&1\n");
    for (at, block) in blocks.iter().enumerate() {
        if block.language == "sh" {
            script += &format!("echo '{}'\nset -e\n{}\nset +e\n", marker(at), block.text.trim_end());
        } else if !block.path.is_empty() {
            script += &format!("cat > {} <<'END OF THE FILE'\n{}END OF THE FILE\n", block.path, block.text);
        }
    }
    script.replace("8080", &port.to_string())
}

/// Whether a printed line is what the page says.
fn fits(expected: &str, printed: &str) -> bool {
    let mut parts = expected.split('…');
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let mut last = None;
    for part in parts {
        let Some(at) = rest.find(part) else { return false };
        rest = &rest[at + part.len()..];
        last = Some(part);
    }
    rest.is_empty() || last == Some("")
}

/// Whether the printed lines are what the page says.
fn all_fit(expected: &[&str], printed: &[&str]) -> bool {
    match expected.split_first() {
        None => printed.is_empty(),
        Some((&"…", rest)) => (0..=printed.len()).any(|from| all_fit(rest, &printed[from..])),
        Some((first, rest)) => {
            printed.split_first().is_some_and(|(line, others)| fits(first, line) && all_fit(rest, others))
        }
    }
}

#[test]
fn the_tutorial_works_as_it_is_written() {
    works_as_written("tutorial");
}

#[test]
fn the_stories_about_debugging_work_as_they_are_written() {
    works_as_written("debugging");
}

fn works_as_written(name: &str) {
    let page = repository().join(format!("docs/{name}.md"));
    let text = fs::read_to_string(&page).expect("the page is there");
    let blocks = blocks(&text);
    let redis = server::Server::start(&[]);
    let folder = std::env::temp_dir().join(format!("rankd-{name}-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a temporary folder can be made");
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.expect("there is a free port").port();
    let programs = Path::new(env!("CARGO_BIN_EXE_rankd")).parent().expect("a program lies in a folder");
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let script = script(&blocks, port).replace("6379", &redis.port.to_string());
    let output = Command::new("bash")
        .args(["-c", &format!("trap 'kill $(jobs -p) 2> /dev/null' EXIT\n{script}")])
        .current_dir(&folder)
        .env("PATH", path)
        .env("RANKD_LISTEN", format!("127.0.0.1:{port}"))
        .stdin(Stdio::null())
        .output()
        .expect("bash can be started");
    let printed = String::from_utf8_lossy(&output.stdout)
        .replace(&format!(":{port}"), ":8080")
        .replace(&format!(":{}", redis.port), ":6379")
        .replace(&folder.display().to_string(), "");
    fs::remove_dir_all(&folder).expect("the folder can be removed");

    let mut wrong = Vec::new();
    let mut updated: Vec<String> = text.lines().map(str::to_owned).collect();
    // From the end, so that the numbers of the lines before stay.
    for (at, block) in blocks.iter().enumerate().rev().filter(|(_, block)| block.language == "sh") {
        let after = printed.split_once(&format!("{}\n", marker(at))).map_or("", |(_, after)| after);
        let said = after.split("==== block ").next().unwrap_or_default();
        let Some(expected) = blocks.get(at + 1).filter(|next| next.path.is_empty() && next.language != "sh") else {
            continue;
        };
        let lines = |text: &'_ str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        let (wanted, found) = (lines(&expected.text), lines(said));
        let [wanted_lines, found_lines] =
            [&wanted, &found].map(|lines| lines.iter().map(String::as_str).collect::<Vec<_>>());
        if !all_fit(&wanted_lines, &found_lines) {
            wrong.push(format!("docs/{name}.md:{}: expected\n{}printed\n{said}", block.line, expected.text));
            let from = expected.line - 1;
            updated.splice(from..from + wanted.len(), found);
        }
    }
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&page, updated.join("\n") + "\n").expect("the page can be written");
    } else if !wrong.is_empty() || !output.status.success() {
        wrong.reverse();
        panic!("the shell ended with {}\n{}\nthe whole output:\n{printed}", output.status, wrong.join("\n"));
    }
}

#[test]
fn the_first_list_takes_few_commands() {
    let text = fs::read_to_string(repository().join("docs/tutorial.md")).expect("the tutorial is there");
    let (first, _) = text.split_once("## The same from Redis").expect("the part about Redis has its heading");
    let blocks = blocks(first);
    let commands = blocks.iter().filter(|block| block.language == "sh").flat_map(|block| block.text.lines());
    let count = commands.filter(|line| !line.trim().is_empty() && !line.starts_with(' ')).count();
    assert!(count <= COMMANDS_MAX, "{count} commands");
}
