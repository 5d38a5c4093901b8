//! The requests that differ most: what is kept of each, and the command that says more about it.

use super::{Asked, ComparedRequest};
use rankd_column::Id;

/// How many of the requests that differ most are shown.
pub(super) const SHOWN_MAX: usize = 10;
/// How many ids of such a request are shown that entered or left.
pub(super) const SHOWN_IDS: usize = 5;

/// A request whose answers differ.
pub(super) struct Shown {
    /// Which one it was, from 0 on, and as it was sent.
    pub(super) number: u64,
    pub(super) request: String,
    /// Its id, where it was captured.
    pub(super) captured_id: Option<String>,
    pub(super) overlap: f64,
    pub(super) rbo: f64,
    /// The code of an error that only one of the plans gave, and whether that was the second.
    pub(super) failed: Option<(&'static str, bool)>,
    pub(super) left: Vec<Id>,
    pub(super) entered: Vec<Id>,
}

impl Shown {
    /// Nothing differs yet.
    pub(super) fn new(number: u64, request: ComparedRequest<'_>) -> Shown {
        Shown {
            number,
            request: request.text.to_owned(),
            captured_id: request.captured_id.map(str::to_owned),
            overlap: 1.0,
            rbo: 1.0,
            failed: None,
            left: Vec::new(),
            entered: Vec::new(),
        }
    }

    pub(super) fn fail(&mut self, code: &'static str, is_second: bool) -> bool {
        (self.overlap, self.rbo, self.failed) = (0.0, 0.0, Some((code, is_second)));
        true
    }

    /// A command that says why an item is missing from one of the plans, or where it came from.
    pub(super) fn why(&self, asked: &Asked) -> Option<String> {
        let (plan, id) = match (self.left.first(), self.entered.first()) {
            (Some(id), _) => (&asked.plans[1], id),
            (None, Some(id)) => (&asked.plans[0], id),
            (None, None) => return None,
        };
        let (plan, id) = (
            quoted(plan),
            match id {
                Id::Int(id) => id.to_string(),
                Id::Text(text) => quoted(text),
            },
        );
        Some(match (&asked.captures, &self.captured_id) {
            (Some(files), Some(request_id)) => {
                let files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
                let (files, request_id) = (files.join(" "), quoted(request_id));
                format!("rankd why {plan} --capture {files} --request_id {request_id} --item {id}")
            }
            _ => format!("echo {} | rankd why {plan} --item {id}", quoted(&self.request)),
        })
    }
}

/// A word of a shell.
fn quoted(text: &str) -> String {
    match !text.is_empty() && text.chars().all(|at| at.is_ascii_alphanumeric() || "_-./".contains(at)) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}
