//! How good lists are where somebody has said which items are: gains by user and item, read from a file, and what follows from them.
//!
//! An item without a label has gain 0. Users without any label are left out, and counted. An interval comes from resampling users, because
//! requests of one user are not independent; its numbers are drawn from a fixed seed, so that a report can be made again.

use super::lists::RankedRow;
use rankd_column::Id;
use rankd_column::math::log2;
use rankd_plan::json::{Fault, Number, Reader};
use std::collections::HashMap;
use std::fmt;

/// How many times users are drawn for an interval.
const RESAMPLES: usize = 1_000;
/// Fields of a label nest no deeper.
const DEPTH_MAX: usize = 8;

/// What an item is worth to a user.
#[derive(Debug, Default)]
pub struct Labels {
    gains: HashMap<Id, HashMap<Id, f64>>,
}

/// A line of labels that cannot be read.
#[derive(Debug, PartialEq)]
pub struct LabelProblem {
    line: usize,
    what: String,
}

impl std::error::Error for LabelProblem {}

impl fmt::Display for LabelProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.what)
    }
}

impl Labels {
    /// Reads CSV with the header `user_id,id,gain`, in any order of the columns, or NDJSON with these fields. Ids are texts where the
    /// registry has texts.
    pub fn read(text: &str, has_text_ids: bool) -> Result<Labels, LabelProblem> {
        let mut lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()).peekable();
        let is_json = lines.peek().is_some_and(|(_, line)| line.trim_start().starts_with('{'));
        let mut labels = Labels::default();
        let mut columns = None;
        for (at, line) in lines {
            let problem = |what: String| LabelProblem { line: at + 1, what };
            let fields = match (is_json, columns) {
                (true, _) => Some(json_fields(line).map_err(problem)?),
                (false, None) => {
                    columns = Some(header(line).map_err(problem)?);
                    None
                }
                (false, Some(columns)) => Some(cells(line, columns).map_err(problem)?),
            };
            let Some([user, item, gain]) = fields else { continue };
            let id = |text: &str| match has_text_ids {
                true => Ok(Id::from(text)),
                false => text.parse().map(Id::Int).map_err(|_| problem(format!("{text:?} is not an id"))),
            };
            let worth = gain.parse().ok().filter(|gain: &f64| gain.is_finite() && *gain >= 0.0);
            let worth = worth.ok_or_else(|| problem(format!("the gain {gain:?} is not a number from 0 up")))?;
            labels.gains.entry(id(&user)?).or_default().insert(id(&item)?, worth);
        }
        Ok(labels)
    }

    /// The quality of a list for a user; nothing where no item has a label for the user.
    pub fn quality(&self, user: &Id, rows: &[RankedRow], k: usize) -> Option<Quality> {
        let gains = self.gains.get(user)?;
        let gain_of = |row: &RankedRow| gains.get(&row.id).copied().unwrap_or(0.0);
        let discount = |at: usize| log2(at as f64 + 2.0);
        let mut best: Vec<f64> = gains.values().copied().filter(|gain| *gain > 0.0).collect();
        best.sort_by(|a, b| b.total_cmp(a));
        if best.is_empty() {
            return None;
        }
        let ideal: f64 = best.iter().take(k).enumerate().map(|(at, gain)| gain / discount(at)).sum();
        let (mut found, mut precisions, mut gained) = (0_usize, 0.0, 0.0);
        for (at, row) in rows.iter().take(k).enumerate() {
            let gain = gain_of(row);
            gained += gain / discount(at);
            if gain > 0.0 {
                found += 1;
                precisions += found as f64 / (at + 1) as f64;
            }
        }
        let wanted = best.len() as f64;
        Some(Quality {
            ndcg: gained / ideal,
            precision: precisions / wanted.min(k as f64),
            recall: found as f64 / wanted,
        })
    }
}

/// The places of `user_id`, `id` and `gain` in a header.
fn header(line: &str) -> Result<[usize; 3], String> {
    let names = split(line)?;
    let place = |wanted: &str| names.iter().position(|name| name == wanted);
    match [place("user_id"), place("id"), place("gain")] {
        [Some(user), Some(item), Some(gain)] => Ok([user, item, gain]),
        _ => Err(format!("labels have the columns user_id, id and gain, not {}", names.join(", "))),
    }
}

fn cells(line: &str, columns: [usize; 3]) -> Result<[String; 3], String> {
    let cells = split(line)?;
    let cell = |at: usize| cells.get(at).cloned().ok_or_else(|| format!("there are only {} cells", cells.len()));
    Ok([cell(columns[0])?, cell(columns[1])?, cell(columns[2])?])
}

/// The cells of a line of CSV. A cell in quotes may have commas, and quotes that are doubled.
fn split(line: &str) -> Result<Vec<String>, String> {
    let (mut cells, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut characters = line.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if is_quoted && characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => cells.push(std::mem::take(&mut cell).trim().to_owned()),
            _ => cell.push(character),
        }
    }
    if is_quoted {
        return Err("a quote is not closed on its line".to_owned());
    }
    cells.push(cell.trim().to_owned());
    Ok(cells)
}

fn json_fields(line: &str) -> Result<[String; 3], String> {
    let fault = |fault: Fault| fault.to_string();
    let mut found: [Option<String>; 3] = Default::default();
    let mut reader = Reader::new(line, DEPTH_MAX);
    let mut fields = reader.open_object().map_err(fault)?;
    while let Some((name, _)) = reader.field(&mut fields).map_err(fault)? {
        let at = match &*name {
            "user_id" => 0,
            "id" => 1,
            "gain" => 2,
            _ => {
                reader.skip().map_err(fault)?;
                continue;
            }
        };
        found[at] = Some(match reader.peek().map_err(fault)? {
            rankd_plan::json::Kind::Number => match reader.number().map_err(fault)? {
                Number::Int(value) => value.to_string(),
                Number::Float(value) => value.to_string(),
                Number::OutOfRange => return Err(format!("`{name}` is out of range")),
            },
            _ => reader.string().map_err(fault)?.into_owned(),
        });
    }
    reader.end().map_err(fault)?;
    match found {
        [Some(user), Some(item), Some(gain)] => Ok([user, item, gain]),
        _ => Err("a label has the fields user_id, id and gain".to_owned()),
    }
}

/// How good a list is for one user.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// The gains of the first k rows, each divided by log2(position + 2), of what the best order would have.
    pub ndcg: f64,
    /// Precision at each item that is worth something among the first k, averaged over all such items, k at most.
    pub precision: f64,
    /// The part of the items that are worth something among the first k.
    pub recall: f64,
}

/// One number of a quality.
pub type QualityPart = fn(&Quality) -> f64;

/// The parts of a quality, as reports name them.
pub const QUALITIES: [(&str, QualityPart); 3] =
    [("ndcg", |of| of.ndcg), ("map", |of| of.precision), ("recall", |of| of.recall)];

/// The qualities of both lists of each user's requests.
#[derive(Debug, Default)]
pub struct Qualities {
    users: HashMap<Id, Vec<[Quality; 2]>>,
    /// In the order in which they came, so that resampling is the same each time.
    order: Vec<Id>,
    /// Requests of users that have no label.
    pub unlabelled: u64,
}

/// A quality of both plans over all users, and the difference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QualityDiff {
    /// Of the first plan.
    pub a: f64,
    /// Of the second plan.
    pub b: f64,
    /// Between which values the difference of the means lies in 95 of 100 resamples of the users.
    pub interval: (f64, f64),
}

impl Qualities {
    /// Adds a request's lists.
    pub fn add(&mut self, user: &Id, both: Option<[Quality; 2]>) {
        let Some(both) = both else {
            self.unlabelled += 1;
            return;
        };
        let of_user = self.users.entry(user.clone()).or_default();
        if of_user.is_empty() {
            self.order.push(user.clone());
        }
        of_user.push(both);
    }

    /// How many users have labels.
    pub fn users(&self) -> usize {
        self.order.len()
    }

    /// One of [`QUALITIES`] over all users, each of whom counts the same; nothing where nobody has a label.
    pub fn diff(&self, of: QualityPart) -> Option<QualityDiff> {
        let means: Vec<(f64, f64)> = self
            .order
            .iter()
            .filter_map(|user| self.users.get(user))
            .map(|requests| {
                let mean =
                    |side: usize| requests.iter().map(|both| of(&both[side])).sum::<f64>() / requests.len() as f64;
                (mean(0), mean(1))
            })
            .collect();
        if means.is_empty() {
            return None;
        }
        let count = means.len() as f64;
        let (a, b) = means.iter().fold((0.0, 0.0), |(a, b), mean| (a + mean.0, b + mean.1));
        let mut differences: Vec<f64> = (0..RESAMPLES as u64).map(|round| resampled(&means, round)).collect();
        differences.sort_by(f64::total_cmp);
        let at = |share: f64| differences[((RESAMPLES - 1) as f64 * share).round() as usize];
        Some(QualityDiff { a: a / count, b: b / count, interval: (at(0.025), at(0.975)) })
    }
}

/// The mean difference of as many users, drawn with repetition.
fn resampled(means: &[(f64, f64)], round: u64) -> f64 {
    let mut state = round.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let sum: f64 = (0..means.len())
        .map(|_| {
            // SplitMix64.
            state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            let (a, b) = means[((mixed ^ (mixed >> 31)) % means.len() as u64) as usize];
            b - a
        })
        .sum();
    sum / means.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(ids: &[i64]) -> Vec<RankedRow> {
        ids.iter().map(|id| RankedRow { id: Id::Int(*id), score: None, group: None, source: None }).collect()
    }

    #[test]
    fn qualities_of_a_small_list_are_those_that_were_computed_by_hand() {
        let labels = Labels::read("user_id,id,gain\n7,1,3\n7,2,1\n7,9,2\n8,5,0\n", false).unwrap();
        let quality = labels.quality(&Id::Int(7), &list(&[2, 4, 1, 5]), 3).unwrap();
        let discount = |at: f64| log2(at + 2.0);
        let ideal = 3.0 / discount(0.0) + 2.0 / discount(1.0) + 1.0 / discount(2.0);
        assert!((quality.ndcg - (1.0 / discount(0.0) + 3.0 / discount(2.0)) / ideal).abs() < 1e-12);
        // Worth something: the first and the third place, of three items.
        assert!((quality.precision - (1.0 + 2.0 / 3.0) / 3.0).abs() < 1e-12);
        assert!((quality.recall - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(labels.quality(&Id::Int(8), &list(&[5]), 3), None, "nothing is worth anything to this user");
        assert_eq!(labels.quality(&Id::Int(9), &list(&[5]), 3), None);
        let best = labels.quality(&Id::Int(7), &list(&[1, 9, 2]), 3).unwrap();
        assert_eq!(best, Quality { ndcg: 1.0, precision: 1.0, recall: 1.0 });
    }

    #[test]
    fn labels_are_read_from_both_formats_and_what_is_wrong_has_its_line() {
        for text in [
            "gain,\"id\",user_id\n2.5,11,7\n",
            "{\"user_id\":7,\"id\":\"11\",\"gain\":2.5,\"at\":{\"day\":1}}\n\n",
            "user_id,id,gain,note\n7,11,2.5,\"a, b\"\n",
        ] {
            let labels = Labels::read(text, false).unwrap();
            assert_eq!(labels.gains[&Id::Int(7)][&Id::Int(11)], 2.5, "{text}");
        }
        let texts = Labels::read("user_id,id,gain\nu7,\"tt \"\"1\"\"\",1\n", true).unwrap();
        assert_eq!(texts.gains[&Id::from("u7")][&Id::from("tt \"1\"")], 1.0);
        for (text, expected) in [
            ("user,id,gain\n", "line 1: labels have the columns user_id, id and gain, not user, id, gain"),
            ("user_id,id,gain\n7,x,1\n", "line 2: \"x\" is not an id"),
            ("user_id,id,gain\n7,1,-1\n", "line 2: the gain \"-1\" is not a number from 0 up"),
            ("user_id,id,gain\n7,1\n", "line 2: there are only 2 cells"),
            ("user_id,id,gain\n\n7,\"1,1\n", "line 3: a quote is not closed on its line"),
            ("{\"user_id\":7,\"id\":1}\n", "line 1: a label has the fields user_id, id and gain"),
        ] {
            assert_eq!(Labels::read(text, false).unwrap_err().to_string(), expected, "{text}");
        }
    }

    #[test]
    fn an_interval_lies_around_the_difference_and_is_the_same_each_time() {
        let mut qualities = Qualities::default();
        for user in 0..200 {
            let of = |ndcg: f64| Quality { ndcg, ..Quality::default() };
            qualities.add(&Id::Int(user), Some([of(0.5), of(0.5 + (user % 5) as f64 / 100.0)]));
        }
        qualities.add(&Id::Int(1_000), None);
        let diff = qualities.diff(QUALITIES[0].1).unwrap();
        assert!((diff.a - 0.5).abs() < 1e-12 && (diff.b - 0.52).abs() < 1e-12, "{diff:?}");
        let (low, high) = diff.interval;
        // The standard error is 0.0141 / sqrt(200), so that the interval is about 0.002 to either side.
        assert!((0.0175..0.0190).contains(&low) && (0.0210..0.0225).contains(&high), "{diff:?}");
        assert_eq!(qualities.diff(QUALITIES[0].1), Some(diff));
        assert_eq!((qualities.users(), qualities.unlabelled), (200, 1));
        assert_eq!(Qualities::default().diff(QUALITIES[0].1), None);
    }
}
