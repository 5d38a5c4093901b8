//! `rankd code`: what a code in an answer or a diagnostic means, what to do about it, and an example.
//!
//! All of it comes from the two tables of codes and from the cases; `docs/errors.md` is the same pages in one file.

mod examples;
#[cfg(test)]
mod tests;

use crate::cli::{DONE, WRONG, say};
use clap::Args;
use examples::Block;
use rankd_edge::listing::Listing;
use rankd_engine::codes::{self, Cause, ErrorCode};
use rankd_plan::Code;
use rankd_plan::diagnostic::{nearest, quoted};
use rankd_plan::json::Writer;
use rankd_serve::status;

#[derive(Args)]
pub(crate) struct CodeArgs {
    /// Explain this code [default: list all codes]
    code: Option<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &CodeArgs) -> u8 {
    let known = entries();
    let shown: Vec<Entry> = match &args.code {
        None => known,
        Some(id) => match known.iter().find(|entry| entry.id().eq_ignore_ascii_case(id)) {
            Some(entry) => vec![*entry],
            None => {
                let near = nearest(id, known.iter().map(|entry| entry.id()));
                let hint = near.map_or("rankd code lists them".to_owned(), |near| format!("did you mean {near}?"));
                say::to_people(&format!("error: there is no code {}; {hint}", quoted(id)));
                return WRONG;
            }
        },
    };
    if args.json {
        say::to_programs(&to_json(&shown));
    } else if args.code.is_some() {
        shown.iter().for_each(|entry| say::to_people(&page(*entry)));
    } else {
        let mut listing = Listing::new(&["code", "kind", "retry", "meaning"]);
        for entry in shown {
            let retry = if entry.retry() { "yes" } else { "" };
            listing.row([entry.id(), entry.kind(), retry, entry.about()].map(str::to_owned).to_vec());
        }
        say::to_people(&listing.render());
    }
    DONE
}

/// A code of either table.
#[derive(Clone, Copy)]
enum Entry {
    Error(&'static ErrorCode),
    Diagnostic(Code),
}

/// All codes: those of failed requests, then those of diagnostics.
fn entries() -> Vec<Entry> {
    let errors = codes::ALL.iter().copied().map(Entry::Error);
    errors.chain(Code::ALL.iter().copied().map(Entry::Diagnostic)).collect()
}

impl Entry {
    fn id(self) -> &'static str {
        match self {
            Entry::Error(code) => code.id,
            Entry::Diagnostic(code) => code.id(),
        }
    }

    fn about(self) -> &'static str {
        match self {
            Entry::Error(code) => code.about,
            Entry::Diagnostic(code) => code.about(),
        }
    }

    fn help(self) -> &'static str {
        match self {
            Entry::Error(code) => code.help,
            Entry::Diagnostic(code) => code.help(),
        }
    }

    /// The kind of an error, the severity of a diagnostic.
    fn kind(self) -> &'static str {
        match self {
            Entry::Error(code) => code.kind.name(),
            Entry::Diagnostic(code) => code.severity().name(),
        }
    }

    fn retry(self) -> bool {
        match self {
            Entry::Error(code) => code.retry,
            Entry::Diagnostic(_) => false,
        }
    }

    /// What the code says besides its meaning, in words.
    fn facts(self) -> String {
        match self {
            Entry::Error(code) => {
                let cause = match code.cause {
                    Cause::Weather => "weather (the same request may succeed a moment later)",
                    Cause::Mistake => "mistake (something has to be changed)",
                };
                let retry = if code.retry { "retry" } else { "do not retry" };
                format!("{} · HTTP {} · {cause} · {retry}", code.kind.name(), status::of(code).as_u16())
            }
            Entry::Diagnostic(code) => code.severity().name().to_owned(),
        }
    }

    fn example(self) -> Vec<Block> {
        match self {
            Entry::Error(code) => vec![Block { title: String::new(), text: answer(code) }],
            Entry::Diagnostic(code) => examples::find(code.id()),
        }
    }
}

/// An error as answers show it.
fn answer(code: &ErrorCode) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("error").object(|w| {
            w.field("code").string(code.id);
            w.field("kind").string(code.kind.name());
            w.field("retry").bool(code.retry);
            w.field("message").string(code.example);
        });
    });
    writer.finish()
}

/// A code in full, for people.
fn page(entry: Entry) -> String {
    let mut text = format!("{}: {}\n{}\n\n{}\n", entry.id(), entry.about(), entry.facts(), entry.help());
    for Block { title, text: block } in entry.example() {
        text.push('\n');
        if !title.is_empty() {
            text.push_str(&format!("{title}\n"));
        }
        block.lines().for_each(|line| text.push_str(&format!("  {line}\n")));
    }
    text
}

fn to_json(shown: &[Entry]) -> String {
    let mut writer = Writer::new();
    writer.array(|w| {
        for entry in shown {
            w.object(|w| {
                w.field("code").string(entry.id());
                match entry {
                    Entry::Error(code) => {
                        w.field("kind").string(code.kind.name());
                        w.field("status").int(status::of(code).as_u16().into());
                        w.field("cause").string(code.cause.name());
                        w.field("retry").bool(code.retry);
                    }
                    Entry::Diagnostic(code) => {
                        w.field("severity").string(code.severity().name());
                    }
                }
                w.field("meaning").string(entry.about());
                w.field("help").string(entry.help());
                w.field("example").array(|w| {
                    for Block { title, text } in entry.example() {
                        w.object(|w| {
                            if !title.is_empty() {
                                w.field("file").string(&title);
                            }
                            w.field("text").string(&text);
                        });
                    }
                });
            });
        }
    });
    writer.finish()
}
