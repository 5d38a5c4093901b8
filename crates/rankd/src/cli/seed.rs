//! `rankd seed`: demo data of a realistic shape, the same every time, as a file or in a server.
//!
//! Users follow a few popular accounts and many obscure ones (a power law); media have titles, topics, likes that follow
//! views, ages, and now and then a hole in the data; each user has seen some of them, some are viewed most, and some are paid for.

use crate::cli::check::print_registry_problems;
use crate::cli::command_error::CommandError;
use crate::cli::{DONE, WRONG, say};
use clap::Args;
use rankd_column::math;
use rankd_edge::library::Library;
use rankd_edge::{endpoints, files};
use rankd_engine::store::closing;
use rankd_engine::store::redis::Preview;
use rankd_plan::json::Writer;
use rankd_plan::registry::EndpointSettings;
use std::cmp::Reverse;
use std::path::{Path, PathBuf};

/// Keys that are named where many would be overwritten.
const SHOWN_KEYS: usize = 10;

#[derive(Args)]
pub(crate) struct SeedArgs {
    /// How many users to generate; each has about ten media items
    #[arg(long, value_name = "N", default_value = "100", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    users: u32,
    /// The file to write, as NDJSON
    #[arg(long, value_name = "FILE", default_value = "data/demo.ndjson")]
    out: PathBuf,
    /// Load a data file into the servers of this environment instead of generating one
    #[arg(long, value_name = "NAME", conflicts_with_all = ["users", "out"])]
    env: Option<String>,
    /// The data file to load
    #[arg(long, value_name = "FILE", default_value = "data/demo.ndjson", requires = "env")]
    data: PathBuf,
    /// Overwrite a file that this command did not write, or keys that hold other data
    #[arg(long)]
    force: bool,
    /// Folder with the registry files
    #[arg(long, value_name = "DIR", default_value = "registry")]
    registry: PathBuf,
}

pub(crate) fn run(args: &SeedArgs, library: &Library) -> u8 {
    let done = match &args.env {
        Some(env) => load(args, library, env),
        None => make(args),
    };
    match done {
        Ok(words) => {
            say::to_people(&words);
            DONE
        }
        Err(error) => {
            error.report();
            WRONG
        }
    }
}

fn make(args: &SeedArgs) -> Result<String, CommandError> {
    let shown = args.out.display();
    if !args.force && !may_be_replaced(&args.out) {
        return Err(CommandError::Wrong(format!(
            "{shown} was not written by this command, or was changed since: nothing was written. --force overwrites it"
        )));
    }
    let mut bar = say::Progress::new("users", args.users as usize);
    let data = generate(args.users, |users| bar.at(users));
    let text = data.clone() + &closing::line(&data);
    files::write(&args.out, &text).map_err(CommandError::with(&shown))?;
    Ok(format!("{shown}: {} keys for {} users", data.lines().count(), args.users))
}

/// Whether a file is not there, or is as this command has left it.
fn may_be_replaced(path: &Path) -> bool {
    !path.exists() || endpoints::read(path).is_ok_and(|data| data.is_closed() || data.is_empty())
}

/// Loads the data file into every server that the environment names: keys that are not there yet, and with `--force` also those
/// that hold something else. Nothing is written before all servers have been looked at.
fn load(args: &SeedArgs, library: &Library, env: &str) -> Result<String, CommandError> {
    let loaded = library.load_registry(&args.registry, env);
    if loaded.has_errors() {
        print_registry_problems(&loaded);
        return Err(CommandError::Wrong(format!("the registry of {env} cannot be used")));
    }
    let data = endpoints::read(&args.data)?;
    let mut previews = Vec::new();
    for endpoint in loaded.registry.endpoints.list() {
        // Other kinds have no data that this program writes.
        let EndpointSettings::Redis(settings) = &endpoint.settings else { continue };
        let redis = endpoints::redis(endpoint, settings)?;
        let mut bar = say::Progress::new(&format!("compare {}", endpoint.name), data.len());
        let preview = redis.preview(&data, |keys| bar.at(keys))?;
        previews.push((endpoint, redis, preview));
    }
    if !args.force && previews.iter().any(|(.., preview)| !preview.other.is_empty()) {
        let told = previews
            .iter()
            .map(|(endpoint, redis, preview)| format!("{} at {}: {}", endpoint.name, redis.shown(), would_do(preview)));
        let told: Vec<String> = told.collect();
        let told = told.join("\n");
        let message = format!("nothing was written, because it would overwrite other data\n{told}");
        return Err(CommandError::Wrong(message));
    }
    let mut done = Vec::new();
    for (endpoint, redis, Preview { new, other, same }) in previews {
        let entries = [&new[..], &other[..]].concat();
        let mut bar = say::Progress::new(&format!("load {}", endpoint.name), entries.len());
        redis.load(&entries, |keys| bar.at(keys))?;
        done.push(format!(
            "{}: {} keys at {} ({} new, {} overwritten, {same} were there)",
            endpoint.name,
            data.len(),
            redis.shown(),
            new.len(),
            other.len()
        ));
    }
    Ok(done.join("\n"))
}

/// What loading would do, in words.
fn would_do(preview: &Preview<'_>) -> String {
    let (new, same, other) = (preview.new.len(), preview.same, preview.other.len());
    let mut keys: Vec<&str> = preview.other.iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    let more = if other > SHOWN_KEYS { ", …" } else { "" };
    keys.truncate(SHOWN_KEYS);
    match other {
        0 => format!("{new} keys would be added, {same} are there already"),
        _ => {
            let keys = keys.join(", ");
            format!(
                "{new} keys would be added, {same} are there already, {other} hold something else and would be overwritten with --force: {keys}{more}"
            )
        }
    }
}

const COUNTRIES: &[&str] = &["US", "US", "US", "IN", "IN", "BR", "DE", "GB", "FR", "JP", "NG", "MX"];
const TOPICS: &[&str] = &["music", "news", "sport", "food", "travel", "science", "games", "film"];
const FIRST: &[&str] =
    &["Ada", "Ben", "Chi", "Dua", "Eli", "Fay", "Gus", "Hana", "Ivo", "Jun", "Kai", "Lea", "Mo", "Nia"];
const OPENINGS: &[&str] =
    &["How to", "Why we", "The art of", "Ten ways to", "Live:", "A day of", "Inside", "Secrets of"];

/// A small generator of our own, so that the data never changes with a dependency.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Small numbers often, large ones rarely: the density falls with the square.
    fn skewed(&mut self, bound: u64) -> u64 {
        (math::pow(bound as f64, self.unit()) - 1.0) as u64 % bound
    }

    fn pick<'a>(&mut self, list: &[&'a str]) -> &'a str {
        list[self.below(list.len() as u64) as usize]
    }
}

/// The lines of all keys; `progress` is told how many users are done.
fn generate(users: u32, mut progress: impl FnMut(usize)) -> String {
    let users = u64::from(users);
    let mut random = Random(20_260_101);
    let mut out = String::new();
    let mut media_of: Vec<Vec<u64>> = Vec::new();
    // Above every user id: a user's list and a medium's hash both live under `media:`.
    let mut next_medium = 10_000_000;
    for user in 1..=users {
        line(&mut out, &format!("user:{user}"), "hash", |w| profile(w, user, &mut random));
        let count = 2 + random.below(17);
        media_of.push((next_medium..next_medium + count).collect());
        next_medium += count;
    }
    for user in 1..=users {
        let most = users.saturating_sub(1).min(60);
        let count = if most == 0 { 0 } else { 1 + random.skewed(most) };
        let follows = distinct(count, user, || 1 + random.skewed(users));
        ids(&mut out, &format!("follow:{user}"), "list", &follows);
        let mut random = Random(user ^ 0xACC0_0FF5);
        let recommended = distinct(most.min(25), user, || 1 + random.below(users));
        ids(&mut out, &format!("recommendation:{user}"), "list", &recommended);
        ids(&mut out, &format!("media:{user}"), "list", &media_of[user as usize - 1]);
        if user % 1000 == 0 || user == users {
            progress(user as usize);
        }
    }
    let mut views_of: Vec<(u64, u64)> = Vec::new();
    for media in &media_of {
        let country = random.pick(COUNTRIES);
        for &medium in media {
            let mut views = 0;
            line(&mut out, &format!("media:{medium}"), "hash", |w| views = details(w, country, &mut random));
            views_of.push((views, medium));
        }
    }
    for user in 1..=users {
        let mut random = Random(user ^ 0x5EE2_B4FE);
        let count = 5 + random.below(16);
        let seen = distinct(count, 0, || views_of[random.below(views_of.len() as u64) as usize].1);
        ids(&mut out, &format!("seen:{user}"), "set", &seen);
    }
    // The most viewed first; the others follow each other by id, so that the order does not depend on a sort.
    views_of.sort_unstable_by_key(|(views, medium)| (Reverse(*views), *medium));
    trending(&mut out, &views_of[..views_of.len().min(TRENDING)]);
    let mut random = Random(0x0AD5);
    let promoted = distinct(PROMOTED, 0, || views_of[random.below(views_of.len() as u64) as usize].1);
    ids(&mut out, "promoted", "list", &promoted);
    out
}

/// How many media are in the list of those that are viewed most, and how many somebody pays for.
const TRENDING: usize = 40;
const PROMOTED: u64 = 6;

fn trending(out: &mut String, media: &[(u64, u64)]) {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("key").string("trending");
        w.field("zset").array(|w| {
            for (views, medium) in media {
                w.array(|w| {
                    w.int(*medium as i64).float(*views as f64);
                });
            }
        });
    });
    out.push_str(&writer.finish());
    out.push('\n');
}

/// So many different ids, none of them `not`; fewer if they are hard to find.
fn distinct(count: u64, not: u64, mut next: impl FnMut() -> u64) -> Vec<u64> {
    let mut ids: Vec<u64> = Vec::new();
    for _ in 0..count * 20 {
        let id = next();
        if id != not && !ids.contains(&id) {
            ids.push(id);
        }
        if ids.len() as u64 == count {
            break;
        }
    }
    ids
}

fn profile(w: &mut Writer, user: u64, random: &mut Random) {
    let name = format!("{} {user}", random.pick(FIRST));
    w.field("name").string(&name);
    w.field("country").string(random.pick(COUNTRIES));
    w.field("age").int(14 + random.skewed(60) as i64);
    w.field("verified").bool(random.below(20) == 0);
}

/// Says how many views it has.
fn details(w: &mut Writer, country: &str, random: &mut Random) -> u64 {
    let topic = random.pick(TOPICS);
    let title = format!("{} {topic} no {}", random.pick(OPENINGS), random.below(1000));
    let views = random.skewed(1_000_000);
    w.field("title").string(&title);
    w.field("topic").string(topic);
    w.field("country").string(country);
    w.field("views").int(views as i64);
    w.field("likes").int((views as f64 * 0.2 * random.unit()) as i64);
    w.field("age_hours").float((random.unit() * 24_000.0).round() / 100.0);
    // One medium in ten has never been looked at by an editor.
    if random.below(10) > 0 {
        w.field("quality").float((random.unit() * 1000.0).round() / 1000.0);
    }
    w.field("nsfw").bool(random.below(25) == 0);
    views
}

fn ids(out: &mut String, key: &str, kind: &str, ids: &[u64]) {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("key").string(key);
        w.field(kind).array(|w| {
            for id in ids {
                w.int(*id as i64);
            }
        });
    });
    out.push_str(&writer.finish());
    out.push('\n');
}

fn line(out: &mut String, key: &str, kind: &str, fields: impl FnOnce(&mut Writer)) {
    let mut writer = Writer::new();
    writer.object(|w| {
        w.field("key").string(key);
        w.field(kind).object(fields);
    });
    out.push_str(&writer.finish());
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_users_give_the_same_data() {
        let data = generate(30, |_| {});
        assert_eq!(data, generate(30, |_| {}));
        assert!(rankd_engine::store::memory::Data::parse(&data).is_ok_and(|data| data.len() > 100));
    }

    #[test]
    fn one_user_has_nobody_to_follow() {
        assert!(generate(1, |_| {}).contains("{\"key\":\"follow:1\",\"list\":[]}"));
    }
}
