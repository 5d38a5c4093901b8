//! `rankd config`: every setting, its value, and where the value comes from.

use super::{Origin, Settings, commands, setting_name, variable_of};
use crate::cli::{Cli, DONE, WRONG, say};
use clap::{ArgAction, Args, CommandFactory};
use rankd_edge::listing::Listing;
use rankd_plan::json::Writer;
use std::collections::BTreeMap;
use std::path::Path;

#[derive(Args)]
pub(crate) struct ConfigArgs {
    /// Show only these settings
    names: Vec<String>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// Settings whose values are not shown.
const SECRETS: &[&str] = &["pii_salt"];

/// A setting of one or more commands that have the same value for it, from the same place.
struct Shown {
    name: String,
    values: Vec<String>,
    origin: Origin,
    commands: Vec<String>,
}

pub(crate) fn run(args: &ConfigArgs) -> u8 {
    let settings = match Settings::read() {
        Ok(settings) => settings,
        Err(error) => {
            error.report();
            return WRONG;
        }
    };
    let mut shown = all(&settings);
    let wanted: Vec<String> = args.names.iter().map(|name| name.trim_start_matches('-').replace('-', "_")).collect();
    if let Some(unknown) = wanted.iter().find(|wanted| shown.iter().all(|setting| setting.name != **wanted)) {
        let near = rankd_plan::diagnostic::nearest(unknown, shown.iter().map(|setting| setting.name.as_str()));
        let hint = near.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
        say::to_people(&format!("error: there is no setting {}{hint}", rankd_plan::diagnostic::quoted(unknown)));
        return WRONG;
    }
    shown.retain(|setting| wanted.is_empty() || wanted.contains(&setting.name));
    match args.json {
        true => say::to_programs(&to_json(&settings, &shown)),
        false => say::to_people(&to_table(&settings, &shown)),
    }
    DONE
}

fn all(settings: &Settings) -> Vec<Shown> {
    let program = Cli::command();
    let mut by_name: BTreeMap<String, Vec<Shown>> = BTreeMap::new();
    for (name, command) in commands(&program) {
        for arg in command.get_arguments() {
            let Some(setting) = setting_name(&name, arg) else { continue };
            let (origin, mut values) = settings.value(&name, arg);
            if SECRETS.contains(&setting.as_str()) {
                values.iter_mut().for_each(|value| *value = "(set)".to_owned());
            }
            if values.is_empty() && matches!(arg.get_action(), ArgAction::SetTrue) {
                values.push("false".to_owned());
            }
            let same = by_name.entry(setting.clone()).or_default();
            match same.iter_mut().find(|shown| shown.values == values && shown.origin == origin) {
                Some(shown) if shown.commands.contains(&name) => {}
                Some(shown) => shown.commands.push(name.clone()),
                None => same.push(Shown { name: setting, values, origin, commands: vec![name.clone()] }),
            }
        }
    }
    by_name.into_values().flatten().collect()
}

fn to_table(settings: &Settings, shown: &[Shown]) -> String {
    let mut listing = Listing::new(&["setting", "value", "from", "commands"]);
    for Shown { name, values, origin, commands } in shown {
        let from = match origin {
            Origin::Variable(variable) => variable.clone(),
            Origin::File(line) => format!("{}:{line}", settings.file_name()),
            Origin::Default => "default".to_owned(),
        };
        let value = if values.is_empty() { "-".to_owned() } else { values.join(",") };
        listing.row(vec![name.clone(), value, from, commands.join(", ")]);
    }
    let project = match &settings.project {
        Some(folder) => whole(folder),
        None => "none: no folder from here upwards has rankd.toml or registry/keys.toml; `rankd init NAME` makes one"
            .to_owned(),
    };
    format!("project: {project}\n\n{}", listing.render())
}

/// A folder's whole path.
fn whole(folder: &Path) -> String {
    let folder = Path::new(".").join(folder);
    folder.canonicalize().unwrap_or(folder).display().to_string()
}

fn to_json(settings: &Settings, shown: &[Shown]) -> String {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("project");
        match &settings.project {
            Some(folder) => w.string(&whole(folder)),
            None => w.null(),
        };
        w.field("settings").array(|w| {
            for Shown { name, values, origin, commands } in shown {
                w.object(|w| {
                    w.field("name").string(name);
                    w.field("values").array(|w| strings(w, values));
                    w.field("from").string(match origin {
                        Origin::Variable(_) => "variable",
                        Origin::File(_) => "file",
                        Origin::Default => "default",
                    });
                    w.field("variable").string(&variable_of(name));
                    if let Origin::File(line) = origin {
                        w.field("line").int(*line as i64);
                    }
                    w.field("commands").array(|w| strings(w, commands));
                });
            }
        });
    });
    writer.finish()
}

fn strings(w: &mut Writer, texts: &[String]) {
    for text in texts {
        w.string(text);
    }
}
