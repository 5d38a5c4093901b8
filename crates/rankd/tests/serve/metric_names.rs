//! The board, the alert rules and the table of metrics name what the server really tells.

use crate::client::{get, post};
use crate::server::{Server, repository};
use std::collections::{BTreeMap, BTreeSet};

/// A family of metrics: its type, its help and its labels.
#[derive(Clone, Debug, Default, PartialEq)]
struct Family {
    kind: String,
    help: String,
    labels: BTreeSet<String>,
}

type Families = BTreeMap<String, Family>;

fn text(path: &str) -> String {
    std::fs::read_to_string(repository().join(path)).unwrap()
}

/// The table of `docs/operations.md`.
fn documented() -> Families {
    let cells = |line: &str| line.split('|').map(|cell| cell.trim().replace('`', "")).collect::<Vec<_>>();
    let text = text("docs/operations.md");
    let rows = text.lines().filter(|line| line.starts_with("| `rankd_")).map(cells);
    rows.map(|row| {
        let labels = row[3].split(", ").filter(|label| !label.is_empty()).map(str::to_owned).collect();
        (row[1].clone(), Family { kind: row[2].clone(), help: row[4].clone(), labels })
    })
    .collect()
}

/// The family that a series belongs to.
fn family_of<'f>(families: &'f Families, series: &str) -> Option<(&'f String, &'f Family)> {
    let parts = ["_bucket", "_sum", "_count"].into_iter().filter_map(|part| series.strip_suffix(part));
    let histogram =
        parts.filter_map(|name| families.get_key_value(name)).find(|(_, family)| family.kind == "histogram");
    families.get_key_value(series).or(histogram)
}

/// The words before a `=`, `!=` or `=~` between braces.
fn matched(selector: &str) -> impl Iterator<Item = &str> {
    let inside = selector.strip_prefix('{').and_then(|rest| rest.split('}').next()).unwrap_or("");
    inside
        .split(", ")
        .flat_map(|part| part.split("\","))
        .filter_map(|part| part.split(['=', '!']).next())
        .filter(|name| !name.is_empty())
}

/// What `/metrics` tells of its families.
fn told(metrics: &str) -> Families {
    let mut families = Families::new();
    for line in metrics.lines() {
        let words: Vec<&str> = line.splitn(4, ' ').collect();
        match words.as_slice() {
            ["#", "HELP", name, help] => families.entry((*name).to_owned()).or_default().help = (*help).to_owned(),
            ["#", "TYPE", name, kind] => families.entry((*name).to_owned()).or_default().kind = (*kind).to_owned(),
            _ => {
                let (series, rest) = line.split_at(line.find(['{', ' ']).unwrap());
                let (name, _) = family_of(&families, series).unwrap_or_else(|| panic!("{line} has no family"));
                let (name, labels) = (name.clone(), matched(rest).filter(|label| *label != "le").map(str::to_owned));
                families.entry(name).or_default().labels.extend(labels);
            }
        }
    }
    families
}

#[test]
fn the_documented_metrics_are_those_that_are_told() {
    let server = Server::start(
        &repository().join("plans"),
        &["--trace-every", "1", "--why", "on", "--shadow", "complex_dag=diamond:1"],
    );
    assert_eq!(post(&server.url("/rank/complex_dag"), r#"{"user_id":1}"#).status, 200);
    assert_eq!(post(&server.url("/why/complex_dag"), r#"{"user_id":1,"items":[1]}"#).status, 200);
    // The answer to the first is in the metrics of the second.
    get(&server.url("/metrics"));
    let mut told = told(&get(&server.url("/metrics")).body);
    let documented = documented();
    for (name, family) in &mut told {
        // Of stores there is nothing to tell, but for those on servers; there are neither tables nor models nor experiments nor fallbacks, and nothing was wasted.
        let absent = ["rankd_store_", "rankd_table_", "rankd_model_", "rankd_arm_", "rankd_degraded_", "rankd_wasted_"];
        let absent = absent.iter().any(|prefix| name.starts_with(prefix));
        if family.labels.is_empty() && absent {
            family.labels.clone_from(&documented[name].labels);
        }
    }
    assert_eq!(told, documented);
}

#[test]
fn the_board_and_the_alerts_name_documented_metrics_and_labels() {
    let families = documented();
    for (path, expected) in [("deploy/grafana.json", 20), ("deploy/alerts.yaml", 8)] {
        let text = text(path).replace("\\\"", "\"");
        let expressions: Vec<&str> = text.split("expr").skip(1).collect();
        assert!(expressions.len() >= expected, "{path} has {} expressions", expressions.len());
        for expression in expressions {
            // Prometheus adds the instance, a histogram the bound.
            let mut labels = BTreeSet::from(["instance", "le"]);
            let mut rest = expression;
            while let Some(at) = rest.find("rankd_") {
                let series = &rest[at..];
                let end = series.find(|letter: char| !letter.is_ascii_lowercase() && letter != '_').unwrap();
                let (series, after) = series.split_at(end);
                let (_, family) = family_of(&families, series).unwrap_or_else(|| panic!("{path}: what is {series}?"));
                let own: BTreeSet<&str> = family.labels.iter().map(String::as_str).chain(["instance", "le"]).collect();
                let unknown: Vec<&str> = matched(after).filter(|label| !own.contains(label)).collect();
                assert!(unknown.is_empty(), "{path}: {series} has no {unknown:?}");
                labels.extend(own);
                rest = after;
            }
            let grouped = expression.split("by (").skip(1).flat_map(|rest| rest.split(')').next().unwrap().split(", "));
            let shown = expression
                .split("{{")
                .skip(1)
                .map(|rest| rest.split("}}").next().unwrap().trim().trim_start_matches("$labels."));
            for label in grouped.chain(shown) {
                assert!(labels.contains(label), "{path}: nothing has the label {label:?} in{expression}");
            }
        }
    }
}
