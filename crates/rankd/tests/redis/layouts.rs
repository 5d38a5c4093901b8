//! Random layouts, read by every form of `expand` and `hydrate`, on every store and scheduler: all must agree with a reader that goes
//! key by key and knows nothing of the program.

use crate::nodes::Cluster;
use crate::program::{Workspace, endpoint};
use crate::server::Server;
use rankd_plan::json::Reader;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

const KEYS: u64 = 300;
const REQUESTS: u64 = 40;
const CANDIDATES: u64 = 30;
const FANOUT: usize = 5;
/// Rows that have to agree for each store and scheduler.
const ROWS_MIN: usize = 10_000;

const REGISTRY: [(&str, &str); 8] = [
    ("parent_id", "int"),
    ("ref", "int"),
    ("score", "float"),
    ("count", "int"),
    ("title", "string"),
    ("tags", "list<string>"),
    ("numbers", "list<int>"),
    ("embedding", "vector<3>"),
];

/// The nodes that read, as their op and parameters.
const NODES: [(&str, &str); 14] = [
    ("expand", r#""key": "k:{key.ref}", "from": "list", "fanout": 5"#),
    ("expand", r#""key": "{{{key.ref}}}:t", "from": "list", "fanout": 5"#),
    ("expand", r#""key": "k:{key.ref}", "from": "set", "fanout": 5"#),
    ("expand", r#""key": "k:{key.ref}", "from": "zset", "fanout": 5, "score_key": "score""#),
    ("expand", r#""key": "k:{key.ref}", "from": "zset", "order": "desc", "fanout": 5, "score_key": "count""#),
    ("expand", r#""key": "k:{key.ref}", "from": "hash", "fanout": 5, "value_key": "score""#),
    (
        "expand",
        r#""key": "k:{key.ref}", "from": "json", "fanout": 5, "rows": "/items", "id": "key", "fields": {"/name": "title"}"#,
    ),
    ("hydrate", r#""key": "k:{key.ref}", "from": "hash", "fields": {"7": "title", "8": "score"}"#),
    ("hydrate", r#""key": "k:{key.ref}", "from": "json", "fields": {"title": "title", "/meta/year": "count"}"#),
    ("hydrate", r#""key": "k:{key.ref}", "from": "string", "out_key": "title""#),
    ("hydrate", r#""key": "k:{key.ref}", "from": "vector_f32", "out_key": "embedding""#),
    ("hydrate", r#""key": "k:{key.ref}", "from": "list", "out_key": "tags""#),
    ("hydrate", r#""key": "k:{key.ref}", "from": "set", "out_key": "numbers""#),
    ("hydrate", r#""key": "k:{key.ref}", "from": "zset", "order": "desc", "out_key": "tags""#),
];

/// A small generator, so that a failure comes again.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len() as u64) as usize]
    }

    /// Often an id, sometimes something that looks like one.
    fn element(&mut self) -> String {
        match self.below(6) {
            0 => self
                .pick(&["x", "", "1.5", "07", "7", "-0", " 8", "8x", "9223372036854775808", "-9223372036854775808"])
                .into(),
            1 => format!("-{}", self.below(9)),
            _ => self.below(50).to_string(),
        }
    }

    fn elements(&mut self) -> Vec<String> {
        (0..self.below(9)).map(|_| self.element()).collect()
    }

    /// A value of a hash or a JSON field, as text.
    fn value(&mut self) -> String {
        self.pick(&["a", "0.5", "7", "-2", "x y", "1e2", ""]).into()
    }

    fn score(&mut self) -> f64 {
        self.below(9) as f64 * 0.25 - 0.5
    }
}

/// What is stored under a key.
enum Stored {
    Nothing,
    List(Vec<String>),
    Set(BTreeSet<String>),
    SortedSet(BTreeMap<String, f64>),
    Hash(BTreeMap<String, String>),
    Bytes(Vec<u8>),
    Document(Document),
}

/// A JSON document: each field as JSON, or nothing.
struct Document {
    title: Option<String>,
    year: Option<String>,
    items: Option<Vec<(Option<String>, Option<String>)>>,
    /// Its end is missing.
    cut: bool,
}

impl Document {
    fn random(random: &mut Random) -> Document {
        let mut json = |of: &[&str]| match random.below(4) {
            0 => None,
            _ => Some(random.pick(of).to_owned()),
        };
        let title = json(&["\"t\"", "5", "null", "[\"t\"]", "\"7\""]);
        let year = json(&["1999", "1.5", "\"1999\"", "null", "-3"]);
        let items = (0..8)
            .map(|_| (json(&["1", "2", "\"3\"", "4.0", "\"x\"", "null", "5", "6"]), json(&["\"n\"", "1", "null"])));
        let items: Vec<_> = items.collect();
        let length = random.below(9) as usize;
        let items = (random.below(5) > 0).then(|| items.into_iter().take(length).collect());
        Document { title, year, items, cut: random.below(6) == 0 }
    }

    fn text(&self) -> String {
        let mut fields = Vec::new();
        fields.extend(self.title.as_ref().map(|title| format!("\"title\": {title}")));
        fields.extend(self.year.as_ref().map(|year| format!("\"meta\": {{\"year\": {year}, \"x\": [1]}}")));
        fields.extend(self.items.as_ref().map(|items| {
            let item = |(key, name): &(Option<String>, Option<String>)| {
                let key = key.as_ref().map(|key| format!("\"key\":{key}"));
                let name = name.as_ref().map(|name| format!("\"name\":{name}"));
                format!("{{{}}}", key.into_iter().chain(name).collect::<Vec<_>>().join(","))
            };
            format!("\"items\":[{}]", items.iter().map(item).collect::<Vec<_>>().join(","))
        }));
        let text = format!("{{{}}}", fields.join(", "));
        if self.cut { text[..text.len() - 1].to_owned() } else { text }
    }
}

impl Stored {
    fn random(random: &mut Random) -> Stored {
        match random.below(9) {
            0 => Stored::Nothing,
            1 => Stored::List(random.elements()),
            2 => Stored::Set(random.elements().into_iter().collect()),
            3 => Stored::SortedSet(random.elements().into_iter().map(|member| (member, random.score())).collect()),
            4 => Stored::Hash(random.elements().into_iter().map(|field| (field, random.value())).collect()),
            5 => Stored::Bytes(random.value().into_bytes()),
            6 => {
                let numbers = (0..2 + random.below(3)).map(|_| random.score() as f32);
                let mut bytes: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
                if random.below(4) == 0 {
                    bytes[3] = 0x7f;
                    bytes[2] = 0xc0;
                }
                Stored::Bytes(bytes)
            }
            _ => Stored::Document(Document::random(random)),
        }
    }

    /// The line of a data file.
    fn line(&self, key: &str) -> Option<String> {
        let list = |elements: &mut dyn Iterator<Item = &String>| {
            let quoted: Vec<String> = elements.map(|element| format!("{element:?}")).collect();
            format!("[{}]", quoted.join(","))
        };
        let held = match self {
            Stored::Nothing => return None,
            Stored::List(elements) => format!("\"list\":{}", list(&mut elements.iter())),
            Stored::Set(members) => format!("\"set\":{}", list(&mut members.iter())),
            Stored::SortedSet(members) => {
                let pairs: Vec<String> =
                    members.iter().map(|(member, score)| format!("[{member:?},{score:?}]")).collect();
                format!("\"zset\":[{}]", pairs.join(","))
            }
            Stored::Hash(fields) => {
                let fields: Vec<String> = fields.iter().map(|(field, value)| format!("{field:?}:{value:?}")).collect();
                format!("\"hash\":{{{}}}", fields.join(","))
            }
            Stored::Bytes(bytes) => format!("\"base64\":\"{}\"", base64(bytes)),
            Stored::Document(document) => format!("\"string\":{:?}", document.text()),
        };
        Some(format!("{{\"key\":\"{key}\",{held}}}\n"))
    }

    /// The bytes of a string.
    fn bytes(&self) -> Option<Vec<u8>> {
        match self {
            Stored::Bytes(bytes) => Some(bytes.clone()),
            Stored::Document(document) => Some(document.text().into_bytes()),
            _ => None,
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Stored::Nothing => true,
            Stored::List(elements) => elements.is_empty(),
            Stored::Set(members) => members.is_empty(),
            Stored::SortedSet(members) => members.is_empty(),
            Stored::Hash(fields) => fields.is_empty(),
            Stored::Bytes(_) | Stored::Document(_) => false,
        }
    }

    /// The members of a sorted set, from the lowest score on.
    fn by_score(&self) -> Option<Vec<(&String, f64)>> {
        let Stored::SortedSet(members) = self else { return None };
        let mut members: Vec<(&String, f64)> = members.iter().map(|(member, score)| (member, *score)).collect();
        members.sort_by(|(a, x), (b, y)| x.total_cmp(y).then_with(|| a.as_bytes().cmp(b.as_bytes())));
        Some(members)
    }
}

fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for group in bytes.chunks(3) {
        let bits = group.iter().chain([&0; 2]).take(3).fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
        for at in 0..4 {
            text.push(if at <= group.len() { LETTERS[(bits >> (18 - 6 * at) & 63) as usize] as char } else { '=' });
        }
    }
    text
}

/// A row as the program prints it: its columns by name.
type Row = BTreeMap<&'static str, String>;

fn printed(id: i64, row: &Row) -> String {
    let mut text = format!("{{\"id\":{id}");
    for (name, _) in REGISTRY {
        if let Some(value) = row.get(name) {
            let _ = write!(text, ",\"{name}\":{value}");
        }
    }
    text + "}"
}

fn as_id(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

fn json_list<T: std::fmt::Debug>(elements: impl IntoIterator<Item = T>) -> String {
    let elements: Vec<String> = elements.into_iter().map(|element| format!("{element:?}")).collect();
    format!("[{}]", elements.join(","))
}

fn json_text(text: &str) -> String {
    let mut json = String::from("\"");
    for letter in text.chars() {
        match letter {
            '"' | '\\' => json.extend(['\\', letter]),
            '\0'..='\x1f' => {
                let _ = write!(json, "\\u{:04x}", u32::from(letter));
            }
            _ => json.push(letter),
        }
    }
    json + "\""
}

/// The new rows that an `expand` gives for what is stored, each with its own columns.
fn expanded(node: usize, stored: &Stored) -> Vec<(i64, Row)> {
    let plain = |element: &String| as_id(element).map(|id| (id, Row::new()));
    let in_order = |mut rows: Vec<(i64, String, Row)>| {
        rows.sort_by(|(a, x, _), (b, y, _)| a.cmp(b).then_with(|| x.as_bytes().cmp(y.as_bytes())));
        rows.into_iter().take(FANOUT).map(|(id, _, row)| (id, row)).collect::<Vec<_>>()
    };
    match (node, stored) {
        (0 | 1, Stored::List(elements)) => elements.iter().take(FANOUT).filter_map(plain).collect(),
        (2, Stored::Set(members)) => {
            in_order(members.iter().filter_map(|member| Some((as_id(member)?, member.clone(), Row::new()))).collect())
        }
        (3 | 4, Stored::SortedSet(_)) => {
            let mut members = stored.by_score().unwrap_or_default();
            if node == 4 {
                members.reverse();
            }
            let row = |(member, score): (&String, f64)| {
                let column = match node {
                    3 => Some(("score", format!("{score:?}"))),
                    _ => (score.fract() == 0.0).then(|| ("count", format!("{}", score as i64))),
                };
                Some((as_id(member)?, column.into_iter().collect::<Row>()))
            };
            members.into_iter().take(FANOUT).filter_map(row).collect()
        }
        (5, Stored::Hash(fields)) => {
            let row = |(field, value): (&String, &String)| {
                let column = value.parse::<f64>().ok().map(|value| ("score", format!("{value:?}")));
                Some((as_id(field)?, field.clone(), column.into_iter().collect::<Row>()))
            };
            in_order(fields.iter().filter_map(row).collect())
        }
        (6, Stored::Document(Document { items: Some(items), cut: false, .. })) => {
            let row = |(key, name): &(Option<String>, Option<String>)| {
                let column = name.clone().filter(|name| name.starts_with('"')).map(|name| ("title", name));
                Some((as_id(key.as_ref()?.trim_matches('"'))?, column.into_iter().collect::<Row>()))
            };
            items.iter().take(FANOUT).filter_map(row).collect()
        }
        _ => Vec::new(),
    }
}

/// The columns that a `hydrate` gives for what is stored.
fn hydrated(node: usize, stored: &Stored) -> Row {
    let utf8 = || stored.bytes().and_then(|bytes| String::from_utf8(bytes).ok());
    // A collection without elements is a key that is not there.
    let missing = stored.is_empty();
    let columns: Vec<Option<(&'static str, String)>> = match (node, stored) {
        (7, Stored::Hash(fields)) => vec![
            fields.get("7").map(|value| ("title", format!("{value:?}"))),
            fields.get("8").and_then(|value| value.parse::<f64>().ok()).map(|value| ("score", format!("{value:?}"))),
        ],
        (8, Stored::Document(document)) if !document.cut => vec![
            document.title.clone().filter(|title| title.starts_with('"')).map(|title| ("title", title)),
            document.year.clone().filter(|year| year.parse::<i64>().is_ok()).map(|year| ("count", year)),
        ],
        (9, _) => vec![utf8().map(|text| ("title", json_text(&text)))],
        (10, _) => {
            let numbers = stored.bytes().filter(|bytes| bytes.len() == 12).map(|bytes| {
                let number = |at: usize| f32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
                [number(0), number(4), number(8)]
            });
            let finite = numbers.filter(|numbers| numbers.iter().all(|number| number.is_finite()));
            // An exponent has a sign in JSON as the program writes it.
            let signed = |list: String| list.replace('e', "e+").replace("e+-", "e-");
            vec![finite.map(|numbers| ("embedding", signed(json_list(numbers))))]
        }
        (11, Stored::List(elements)) => vec![Some(("tags", json_list(elements)))],
        (12, Stored::Set(members)) => {
            let mut numbers: Vec<(i64, &String)> =
                members.iter().filter_map(|member| Some((member.parse::<i64>().ok()?, member))).collect();
            numbers.sort();
            vec![Some(("numbers", json_list(numbers.iter().map(|(number, _)| number))))]
        }
        (13, Stored::SortedSet(_)) => {
            let members = stored.by_score().unwrap_or_default();
            vec![Some(("tags", json_list(members.iter().rev().map(|(member, _)| member))))]
        }
        (11 | 13, _) if missing => vec![Some(("tags", "[]".to_owned()))],
        (12, _) if missing => vec![Some(("numbers", "[]".to_owned()))],
        _ => Vec::new(),
    };
    columns.into_iter().flatten().collect()
}

/// The rows of an answer, one a line.
fn rows(response: &str) -> Vec<String> {
    let mut reader = Reader::new(response, 64);
    let mut fields = reader.open_object().expect("a response is an object");
    let mut rows = Vec::new();
    while let Some((name, _)) = reader.field(&mut fields).expect("JSON") {
        match &*name {
            "candidates" => {
                let mut items = reader.open_array().expect("a list of rows");
                while reader.item(&mut items).expect("JSON") {
                    rows.push(reader.raw().expect("JSON").to_owned());
                }
            }
            "error" => panic!("{response}"),
            _ => reader.skip().expect("JSON"),
        }
    }
    rows
}

#[test]
fn random_layouts_are_read_alike_everywhere() {
    let (server, cluster) = (Server::start(&[]), Cluster::start());
    let workspace = Workspace::new(&server.url());
    let patient = "connect_timeout_ms = 10000\nrequest_timeout_ms = 10000\nstall_timeout_ms = 10000";
    let nodes: Vec<String> = cluster.masters.iter().map(Server::url).collect();
    for (name, at) in [("local", "memory:data/layouts.ndjson"), ("test", &server.url()), ("cluster", &nodes.join(" "))]
    {
        let policy = if name == "local" { "" } else { patient };
        workspace.write(&format!("registry/endpoints.{name}.toml"), &endpoint(at, policy));
    }
    let mut keys =
        "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"id\"\n"
            .to_owned();
    for (at, (name, type_of)) in REGISTRY.iter().enumerate() {
        let _ = write!(
            keys,
            "[[key]]\nkey_id = {}\nname = \"{name}\"\ntype = \"{type_of}\"\nnullable = true\ndoc = \"x\"\n",
            at + 2
        );
    }
    workspace.write("registry/keys.toml", &keys);
    let mut plan =
        r#"{"schema_version": 1, "plan_name": "layouts", "nodes": [{"node_id": "n", "op": "candidates"}"#.to_owned();
    for (at, (op, params)) in NODES.iter().enumerate() {
        let params = format!("\"endpoint\": \"redis_default\", {params}");
        let _ = write!(
            plan,
            ", {{\"node_id\": \"n{at}\", \"op\": \"{op}\", \"inputs\": [\"n\"], \"params\": {{{params}}}}}"
        );
    }
    let outputs: Vec<String> = (0..NODES.len()).map(|at| format!("\"n{at}\"")).collect();
    let _ = write!(plan, "], \"outputs\": [{}]}}", outputs.join(", "));
    workspace.write("plans/layouts.plan.json", &plan);

    let mut random = Random(20_261_116);
    let stored: Vec<Stored> = (0..KEYS).map(|_| Stored::random(&mut random)).collect();
    let mut data = String::new();
    for (key, stored) in stored.iter().enumerate() {
        data.extend(stored.line(&format!("k:{key}")));
        data.extend(stored.line(&format!("{{{key}}}:t")));
    }
    workspace.write("data/layouts.ndjson", &data);

    let (mut requests, mut expected) = (String::new(), Vec::new());
    for request in 0..REQUESTS {
        // Some keys are read for several rows, some do not exist, and some rows have none.
        let refs: Vec<Option<u64>> =
            (0..CANDIDATES).map(|_| (random.below(8) > 0).then(|| random.below(KEYS + 5))).collect();
        let candidates = refs.iter().enumerate().map(|(id, key)| match key {
            Some(key) => format!("{{\"id\":{id},\"ref\":{key}}}"),
            None => format!("{{\"id\":{id}}}"),
        });
        let candidates: Vec<String> = candidates.collect();
        let _ = writeln!(requests, "{{\"user_id\":{},\"candidates\":[{}]}}", request + 1, candidates.join(","));
        let mut rows = Vec::new();
        for (node, (op, _)) in NODES.iter().enumerate() {
            for (id, key) in refs.iter().enumerate() {
                let nothing = Stored::Nothing;
                let stored = key.map(|key| stored.get(key as usize).unwrap_or(&nothing));
                if *op == "expand" {
                    for (new, mut row) in stored.map(|stored| expanded(node, stored)).unwrap_or_default() {
                        row.insert("parent_id", id.to_string());
                        rows.push(printed(new, &row));
                    }
                } else {
                    let mut row = stored.map(|stored| hydrated(node, stored)).unwrap_or_default();
                    row.extend(key.map(|key| ("ref", key.to_string())));
                    rows.push(printed(id as i64, &row));
                }
            }
        }
        expected.push(rows);
    }

    for env in ["test", "cluster"] {
        let seeded = workspace.rankd_in(&["seed", "--env", env, "--data", "data/layouts.ndjson"], "");
        assert_eq!(seeded.code, Some(0), "{}", seeded.stderr);
        // Everything is there already.
        let again = workspace.rankd_in(&["seed", "--env", env, "--data", "data/layouts.ndjson"], "");
        assert_eq!(again.code, Some(0), "{}", again.stderr);
    }
    let mut agreed = 0;
    for env in ["local", "test", "cluster"] {
        for scheduler in [&["async"][..], &["async", "--loops", "2", "--cpu_threads", "1"], &["pools"], &["sequential"]]
        {
            let args = [&["--plan_name", "layouts", "--env", env, "--scheduler"][..], scheduler].concat();
            let ran = workspace.rankd_in(&args, &requests);
            assert_eq!(ran.code, Some(0), "{args:?}: {}", ran.stderr);
            agreed = 0;
            for (request, (response, expected)) in ran.stdout.lines().zip(&expected).enumerate() {
                let found = rows(response);
                for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
                    assert_eq!(found, expected, "{args:?}: row {at} of request {request}");
                }
                assert_eq!(found.len(), expected.len(), "{args:?}: request {request}");
                agreed += found.len();
            }
            assert_eq!(ran.stdout.lines().count(), expected.len());
        }
    }
    assert!(agreed >= ROWS_MIN, "{agreed} rows are too few");
    println!("{agreed} rows agree on every store and scheduler");
}
