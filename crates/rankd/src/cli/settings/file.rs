//! `rankd.toml`: settings for all commands, and in a table such as `[serve]` those of one command.

use crate::cli::command_error::CommandError;
use rankd_edge::files;
use rankd_plan::diagnostic::{nearest, quoted};
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// The largest file.
const BYTES_MAX: usize = 1 << 20;

/// One setting of the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FileEntry {
    /// The command that it is for; `None` for every command that has such a flag.
    pub(crate) command: Option<String>,
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
    pub(crate) line: usize,
}

/// Reads the file, if there is one. `known` are the settings with their commands.
pub(crate) fn read(path: &Path, known: &BTreeSet<(String, String)>) -> Result<Vec<FileEntry>, CommandError> {
    if !path.exists() {
        return Ok(Vec::new());
    }
    let shown = path.display().to_string();
    let text = files::read_text(path, BYTES_MAX).map_err(CommandError::with(&shown))?;
    parse(&text, known).map_err(|wrong| {
        let lines: Vec<String> = wrong.iter().map(|(line, message)| format!("{shown}:{line}: {message}")).collect();
        CommandError::Wrong(lines.join("\nerror: "))
    })
}

/// What is wrong, by line.
type Wrong = Vec<(usize, String)>;

fn parse(text: &str, known: &BTreeSet<(String, String)>) -> Result<Vec<FileEntry>, Wrong> {
    let line_of = |span: Range<usize>| 1 + text[..span.start.min(text.len())].matches('\n').count();
    let (file, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        let wrong = |error: &toml::de::Error| {
            let message = error.message().lines().next().unwrap_or("this is not TOML").to_owned();
            (line_of(error.span().unwrap_or(0..0)), message)
        };
        return Err(errors.iter().map(wrong).collect());
    }
    let (mut entries, mut wrong) = (Vec::new(), Wrong::new());
    let mut add = |command: Option<&str>, name: &str, value: &DeValue<'_>, line: usize| {
        let is_known =
            |(of, setting): &&(String, String)| setting == name && command.is_none_or(|command| of == command);
        if !known.iter().any(|pair| is_known(&pair)) {
            let of = command.map(|command| format!(" of {command}")).unwrap_or_default();
            let near = known.iter().filter(|(of, _)| command.is_none_or(|command| of == command));
            let commands = known.iter().map(|(of, _)| of.as_str()).filter(|_| command.is_none());
            let near = nearest(name, near.map(|(_, setting)| setting.as_str()).chain(commands));
            let hint = near.map_or("`rankd config` lists them".to_owned(), |near| format!("did you mean {near:?}?"));
            wrong.push((line, format!("there is no setting {}{of}; {hint}", quoted(name))));
            return;
        }
        match values(value) {
            Some(values) => {
                let (command, name) = (command.map(str::to_owned), name.to_owned());
                entries.push(FileEntry { command, name, values, line });
            }
            None => wrong.push((line, format!("{name} takes a text, a number, true or false, or a list of these"))),
        }
    };
    for (name, value) in file.get_ref() {
        let line = line_of(name.span());
        match value.get_ref() {
            DeValue::Table(table) if known.iter().any(|(command, _)| command == &**name.get_ref()) => {
                for (setting, value) in table {
                    add(Some(name.get_ref()), setting.get_ref(), value.get_ref(), line_of(setting.span()));
                }
            }
            value => add(None, name.get_ref(), value, line),
        }
    }
    wrong.sort();
    if wrong.is_empty() { Ok(entries) } else { Err(wrong) }
}

/// The texts that a flag would have been given.
fn values(value: &DeValue<'_>) -> Option<Vec<String>> {
    match value {
        DeValue::Array(items) => items.iter().map(|item| scalar(item.get_ref())).collect(),
        value => Some(vec![scalar(value)?]),
    }
}

fn scalar(value: &DeValue<'_>) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Boolean(value) => Some(value.to_string()),
        DeValue::Float(float) => Some(float.as_str().to_owned()),
        DeValue::Integer(int) => i64::from_str_radix(int.as_str(), int.radix()).ok().map(|int| int.to_string()),
        DeValue::Datetime(_) | DeValue::Array(_) | DeValue::Table(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Vec<FileEntry>, Wrong> {
        let known = [("run", "loops"), ("run", "plan_name"), ("serve", "loops"), ("serve", "hosts")];
        parse(text, &known.map(|(command, name)| (command.to_owned(), name.to_owned())).into())
    }

    #[test]
    fn settings_are_for_all_commands_or_for_one() {
        let entries = parsed("loops = 0x2\n[serve]\nhosts = [\"a\", \"b\"]\n").unwrap();
        let shown: Vec<_> =
            entries.iter().map(|e| (e.command.as_deref(), &*e.name, e.values.join(","), e.line)).collect();
        assert!(shown.contains(&(None, "loops", "2".to_owned(), 1)), "{shown:?}");
        assert!(shown.contains(&(Some("serve"), "hosts", "a,b".to_owned(), 3)), "{shown:?}");
    }

    #[test]
    fn what_is_unknown_is_refused_with_the_nearest_name() {
        let wrong = parsed("lops = 1\nplan_name = {}\n[serv]\nloops = 1\n[serve]\nplan_name = \"x\"\n").unwrap_err();
        let lines: Vec<String> = wrong.iter().map(|(line, message)| format!("{line} {message}")).collect();
        assert_eq!(
            lines,
            [
                "1 there is no setting \"lops\"; did you mean \"loops\"?",
                "2 plan_name takes a text, a number, true or false, or a list of these",
                "3 there is no setting \"serv\"; did you mean \"serve\"?",
                "6 there is no setting \"plan_name\" of serve; `rankd config` lists them",
            ]
        );
        assert_eq!(parsed("loops = = 1").unwrap_err()[0].0, 1);
    }
}
