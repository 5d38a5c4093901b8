//! `docs/models.md` as a reader would follow it: its files are written, its commands are run, and LightGBM itself compares the scores.
//!
//! Where Python or PyPI is not there, this says SKIPPED.

use crate::downloads;
use crate::server::{Folder, repository};
use std::path::Path;
use std::process::Command;

const VERSION: &str = "lightgbm[pandas]==4.6.0";

/// The fenced blocks of a page: what stands behind the fence, and the text.
fn blocks(page: &str) -> Vec<(&str, String)> {
    let mut blocks: Vec<(&str, String)> = Vec::new();
    let mut is_open = false;
    for line in page.lines() {
        match line.strip_prefix("```") {
            Some(_) if is_open => is_open = false,
            Some(info) => {
                blocks.push((info, String::new()));
                is_open = true;
            }
            None if is_open => {
                if let Some((_, text)) = blocks.last_mut() {
                    *text += &format!("{line}\n");
                }
            }
            None => {}
        }
    }
    blocks
}

#[test]
fn the_page_about_models_trains_one_and_its_scores_are_equal() {
    let programs = match downloads::python(VERSION) {
        Ok(programs) => programs,
        Err(why) => return downloads::skipped("docs/models.md is not run with LightGBM", &why),
    };
    let project = Folder::new();
    std::fs::create_dir_all(project.0.join("registry")).unwrap();
    std::fs::create_dir_all(project.0.join("plans")).unwrap();
    for name in ["keys.toml", "params.toml"] {
        let from = repository().join("registry").join(name);
        std::fs::copy(from, project.0.join("registry").join(name)).unwrap();
    }
    project.write("registry/endpoints.local.toml", "");
    let page = std::fs::read_to_string(repository().join("docs/models.md")).unwrap();
    let (mut files, mut commands) = (0, String::from("set -e\n"));
    for (info, text) in blocks(&page) {
        match info.split_once(' ') {
            Some((_, path)) => {
                project.write(path, &text);
                files += 1;
            }
            None if info == "sh" => commands += &text,
            None => {}
        }
    }
    assert_eq!((files, commands.lines().count()), (4, 4), "the page has its files and commands:\n{commands}");
    let rankd = Path::new(env!("CARGO_BIN_EXE_rankd")).parent().unwrap();
    let path = std::env::join_paths([programs.as_path(), rankd, Path::new("/usr/bin"), Path::new("/bin")]).unwrap();
    let ran = Command::new("sh").args(["-c", &commands]).current_dir(&project.0).env("PATH", path).output().unwrap();
    let (told, complained) = (String::from_utf8_lossy(&ran.stdout), String::from_utf8_lossy(&ran.stderr));
    assert!(ran.status.success(), "{told}{complained}");
    assert!(told.ends_with("1000 scores are equal\n"), "{told}{complained}");
}
