//! Model files of the libraries that trained them: every bit of the scores, and files that were damaged.
//!
//! The files are made by `make_golden.py`. Nothing here needs Python.

#![expect(clippy::unwrap_used, clippy::panic, reason = "what tests call fails the test, as an assertion would")]
#![expect(unsafe_code, reason = "counting what is allocated needs a global allocator")]

mod damage;
mod large;
mod refused;
mod rows;
mod warm;

use rankd_plan::model::{Format, read};
use rows::{Golden, RESPONSE_LIMIT, contribution_limit};
use std::path::{Path, PathBuf};

/// Every model of the folder, with its format.
#[expect(clippy::disallowed_methods, reason = "the files of a test")]
fn models() -> Vec<(Format, PathBuf)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let format = |path: &Path| match (path.file_name()?.to_str()?.split_once('_')?.0, path.extension()?.to_str()?) {
        ("lgb", "txt") => Some(Format::LightGbm),
        ("xgb", "json" | "ubj") => Some(Format::XgBoost),
        ("cb", "json") => Some(Format::CatBoost),
        _ => None,
    };
    let mut models: Vec<_> = files.filter_map(|path| Some((format(&path)?, path))).collect();
    models.sort_by(|(_, a), (_, b)| a.cmp(b));
    models
}

#[expect(clippy::disallowed_methods, reason = "the files of a test")]
fn bytes(path: &Path) -> Vec<u8> {
    std::fs::read(path).unwrap()
}

#[test]
fn every_raw_score_has_the_bits_of_its_library() {
    let models = models();
    assert!(models.len() >= 21, "{} models", models.len());
    for (format, path) in models {
        let name = path.display();
        let model = read(format, &bytes(&path), None).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        let found = Golden::read(&bytes(&path.with_extension("rows"))).compare(format, &model);
        assert_eq!(found.wrong_raw, 0, "{name}: {found:?}");
        assert!(found.response_units <= RESPONSE_LIMIT, "{name}: {found:?}");
        let error = found.contribution_error.unwrap_or(0.0);
        assert!(error <= contribution_limit(format), "{name}: {found:?}");
    }
}
