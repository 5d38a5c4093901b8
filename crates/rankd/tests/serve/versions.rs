//! Versions of plans: rolled back, pinned and unpinned by operators, and rolled back by the server itself.

use crate::client::{Answer, Line, get, metric, metrics_until, post};
use crate::json::Json;
use crate::server::{Folder, PATIENCE, Server, node, plan_text, repository};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

/// A version of a plan: as many rows as its number says, in two nodes that must be of the same version.
fn version(number: usize) -> String {
    let source = node("n0", "fixed_source", &[], &format!("\"row_count\":{number}"));
    let take = node(&format!("v{number}"), "take", &["n0"], &format!("\"count\":{number}"));
    plan_text("feed", &[source, take], &format!("v{number}"))
}

/// A version that fails for requests whose weight is 0, and so not in its trial.
fn failing() -> String {
    let source = node("n0", "fixed_source", &[], "\"row_count\":1");
    let divide = node("n1", "vm", &["n0"], "\"out_key\":\"score\",\"expr\":\"e0\"");
    let by_weight = r#""expr_table":{"e0":{"op":"div","a":{"op":"const_number","value":1},"b":{"op":"param_ref","param":"weight"}}}"#;
    plan_text("feed", &[source, divide], "n1").replace("\"expr_table\":{}", by_weight)
}

/// A server with operators, and what they see of it.
struct Operated {
    server: Server,
    admin: String,
}

impl Operated {
    fn start(folder: &Folder, flags: &[&str]) -> Operated {
        let flags = [&["--admin", "127.0.0.1:0", "--watch-ms", "5"], flags].concat();
        let server = Server::start(&folder.0, &flags);
        let admin = server.admin();
        Operated { server, admin }
    }

    fn post(&self, path: &str, body: &str) -> Answer {
        post(&format!("http://{}{path}", self.admin), body)
    }

    fn plan(&self) -> Json {
        get(&format!("http://{}/plans/feed", self.admin)).json()
    }

    /// The digests of all versions, newest first.
    fn digests(&self) -> Vec<String> {
        self.plan().list("versions").iter().map(|version| version.text("sha256").to_owned()).collect()
    }

    fn until(&self, what: impl Fn(&str) -> bool) {
        metrics_until(&self.admin, what);
    }

    /// Waits until so many versions have come into service.
    fn serves(&self, count: usize) {
        self.until(|now| metric(now, "rankd_plan_version{plan=\"feed\"}") == count as f64);
    }

    fn rows(&self) -> usize {
        post(&self.server.url("/rank/feed"), r#"{"user_id":1}"#).json().list("candidates").len()
    }

    /// Its exit code, what it tells programs and what it tells people.
    fn command(&self, args: &[&str]) -> (Option<i32>, String, String) {
        let url = format!("http://{}", self.admin);
        let mut command = Command::new(env!("CARGO_BIN_EXE_rankd"));
        let output = command.current_dir(repository()).arg("plans").args(args).args(["--url", &url]).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }
}

fn refused(answer: &Answer) -> (u16, String) {
    (answer.status, answer.json().text("error.code").to_owned())
}

#[test]
fn operators_roll_back_and_pin_under_load_and_no_request_notices() {
    let folder = Folder::new();
    folder.write("feed.plan.json", &version(1));
    let at = Operated::start(&folder, &["--allow-rollback"]);
    let (done, answered) = (AtomicBool::new(false), AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut line = Line::open(&at.server.address);
                while !done.load(Ordering::Relaxed) {
                    line.post("/rank/feed", r#"{"user_id":1,"trace":true}"#).unwrap();
                    let answer = line.answer().unwrap();
                    assert_eq!(answer.status, 200, "{}", answer.body);
                    let json = answer.json();
                    let last = json.list("trace.nodes").last().unwrap().text("node").to_owned();
                    assert_eq!(last, format!("v{}", json.list("candidates").len()), "of one version");
                    answered.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let operate = || {
            for number in 2..=4 {
                folder.write("feed.plan.json", &version(number));
                at.serves(number);
            }
            let four = at.digests();
            assert_eq!(four.len(), 4);
            // To the version before, twice; the answer is the plan as it is then.
            for rows in [3, 2] {
                let answer = at.post("/rollback/feed", "{}");
                assert_eq!(answer.status, 200, "{}", answer.body);
                assert_eq!((at.rows(), answer.json().text("sha256")), (rows, &*four[4 - rows]));
            }
            let plan = at.plan();
            assert!(plan.text("held.message").contains("until the file changes"), "{plan:?}");
            let states: Vec<(bool, bool)> = plan
                .list("versions")
                .iter()
                .map(|one| (*one.at("served") == Json::Bool(true), one.has("refused")))
                .collect();
            assert_eq!(states, [(false, true), (false, true), (true, false), (false, false)]);
            // The same file again changes nothing; the way forward is open; another file is served.
            folder.write("feed.plan.json", &version(4));
            at.server.signal("-HUP");
            at.server.says("reloaded on SIGHUP");
            assert_eq!(at.rows(), 2);
            let (code, told, _) = at.command(&["rollback", "feed", &four[1]]);
            assert_eq!((code, Json::read(&told).text("sha256"), at.rows()), (Some(0), &*four[1], 3));
            folder.write("feed.plan.json", &version(5));
            at.until(|now| metric(now, "rankd_plan_problem{plan=\"feed\"}") == 0.0);
            assert_eq!(at.rows(), 5);
            // Back from there leads past what was rolled back.
            assert_eq!(at.post("/rollback/feed", "{}").json().text("sha256"), four[1]);
            // Pinned by a few digits: what comes is loaded, reported and not served.
            let (code, told, said) = at.command(&["pin", "feed", &four[2][..8]]);
            assert_eq!((code, at.rows()), (Some(0), 2), "{told}{said}");
            assert_eq!(refused(&at.post("/rollback/feed", "")), (409, "E135".to_owned()));
            folder.write("feed.plan.json", &version(6));
            let newest = || at.plan().list("versions")[0].text("since").to_owned();
            let until = Instant::now() + PATIENCE;
            while at.digests().len() < 6 {
                assert!(Instant::now() < until, "{}", newest());
            }
            let plan = at.plan();
            assert_eq!((at.rows(), plan.text("pinned")), (2, &*four[2]));
            assert!(plan.text("held.message").starts_with("the plan is pinned to"), "{plan:?}");
            at.server.says("a good version is not served: the plan is pinned to");
            let (code, _, _) = at.command(&["unpin", "feed"]);
            assert_eq!((code, at.rows(), at.plan().has("pinned")), (Some(0), 6, false));
        };
        operate();
        done.store(true, Ordering::Relaxed);
    });
    println!("{} requests answered", answered.load(Ordering::Relaxed));
    assert!(answered.load(Ordering::Relaxed) > 0);
    at.until(|now| metric(now, "rankd_plan_rollbacks_total{plan=\"feed\"}") == 4.0);
}

#[test]
fn what_is_not_there_or_not_allowed_is_refused_and_a_restart_forgets() {
    let folder = Folder::new();
    folder.write("feed.plan.json", &version(1));
    {
        let at = Operated::start(&folder, &["--allow-rollback"]);
        let unknown = format!(r#"{{"sha256":"{}"}}"#, "0123abcd".repeat(8));
        for (path, body, expected) in [
            ("/rollback/feed", "{}", (409, "E133")),
            ("/rollback/feed", unknown.as_str(), (404, "E132")),
            ("/pin/feed", unknown.as_str(), (404, "E132")),
            ("/pin/feed", r#"{"sha256":"0123"}"#, (400, "E105")),
            ("/pin/feed", r#"{"sha256":"0123ABCD"}"#, (400, "E105")),
            ("/pin/feed", "{}", (400, "E104")),
            ("/pin/feed", r#"{"sha":null}"#, (400, "E103")),
            ("/pin/other", unknown.as_str(), (404, "E201")),
            ("/rollback/other", "{}", (404, "E201")),
        ] {
            let (status, code) = refused(&at.post(path, body));
            assert_eq!((status, &*code), expected, "{path} {body}");
        }
        // A page in a browser can send this without asking.
        let url = format!("http://{}/rollback/feed", at.admin);
        let plain = crate::client::curl(&["-H", "content-type: text/plain", "-d", "{}", &url]);
        assert_eq!(refused(&plain), (415, "E123".to_owned()));
        // Callers have no way to it.
        assert_eq!(post(&at.server.url("/rollback/feed"), "{}").status, 404);
        let (code, _, said) = at.command(&["pin", "feed", "0123abcd"]);
        assert_eq!(code, Some(1));
        assert!(said.contains("E132 the plan \"feed\" has no version that begins with \"0123abcd\""), "{said}");
        folder.write("feed.plan.json", &version(2));
        at.serves(2);
        let first = at.digests()[1].clone();
        assert_eq!(at.post("/pin/feed", &format!(r#"{{"sha256":"{first}"}}"#)).status, 200);
        assert_eq!(at.rows(), 1);
    }
    let at = Operated::start(&folder, &["--allow-rollback"]);
    assert_eq!((at.rows(), at.digests().len(), at.plan().has("pinned")), (2, 1, false));
    assert_eq!(refused(&at.post("/rollback/feed", "{}")), (409, "E133".to_owned()));
    drop(at);
    let at = Operated::start(&folder, &[]);
    assert_eq!(refused(&at.post("/rollback/feed", "{}")), (403, "E131".to_owned()));
    assert_eq!(*at.plan().list("versions")[0].at("kept"), Json::Bool(false));
    // Without an address for operators, it cannot be allowed.
    let command = Command::new(env!("CARGO_BIN_EXE_rankd"))
        .current_dir(repository())
        .args(["serve", "--listen", "127.0.0.1:0", "--allow-rollback"])
        .output()
        .unwrap();
    assert_eq!(command.status.code(), Some(2));
    assert!(String::from_utf8(command.stderr).unwrap().contains("--allow_rollback needs --admin"));
}

#[test]
fn ten_versions_are_known_and_64_mib_of_their_artifacts_are_kept() {
    let folder = Folder::new();
    // Blanks make an artifact large, and change nothing else.
    let large = |number: usize| version(number) + &" ".repeat(7 << 20);
    folder.write("feed.plan.json", &large(1));
    let at = Operated::start(&folder, &["--allow-rollback"]);
    for number in 2..=12 {
        folder.write("feed.plan.json", &large(number));
        at.serves(number);
    }
    let kept = || -> Vec<bool> {
        at.plan().list("versions").iter().map(|version| *version.at("kept") == Json::Bool(true)).collect()
    };
    // Nine times 7 MiB are 63; the tenth would be too much.
    assert_eq!(kept(), [true, true, true, true, true, true, true, true, true, false]);
    let digests = at.digests();
    let to = |digest: &str| at.post("/rollback/feed", &format!(r#"{{"sha256":"{digest}"}}"#));
    assert_eq!((refused(&to(&digests[9])), at.rows()), ((404, "E132".to_owned()), 12), "version 3 is not kept");
    let back = to(&digests[8]);
    assert_eq!((back.status, at.rows()), (200, 4), "{}", back.body);
    // What is served in place of the file's version cannot be made again without its artifact: it stays, and another goes.
    assert_eq!(at.post("/pin/feed", &format!(r#"{{"sha256":"{}"}}"#, digests[8])).status, 200);
    folder.write("feed.plan.json", &large(13));
    let until = Instant::now() + PATIENCE;
    while at.digests()[0] == digests[0] {
        assert!(Instant::now() < until, "the thirteenth version comes");
    }
    assert_eq!(at.digests()[9], digests[8], "ten are known, the pinned one among them");
    assert_eq!(kept(), [true, true, true, true, true, true, true, true, false, true]);
    assert_eq!(at.rows(), 4);
}

#[test]
fn a_version_that_does_not_fit_the_registry_of_today_is_refused_and_one_that_is_held_keeps_a_registry_out() {
    let (folder, registry) = (Folder::new(), Folder::new());
    for entry in std::fs::read_dir(repository().join("registry")).unwrap() {
        let entry = entry.unwrap();
        std::fs::copy(entry.path(), registry.0.join(entry.file_name())).unwrap();
    }
    let keys = std::fs::read_to_string(registry.0.join("keys.toml")).unwrap();
    let added = "\n[[key]]\nkey_id = 9001\nname = \"added\"\ntype = \"float\"\nnullable = true\ndoc = \"\"\n";
    registry.write("keys.toml", &format!("{keys}{added}"));
    let old = failing().replace("\"score\"", "\"added\"");
    folder.write("feed.plan.json", &old);
    let at = Operated::start(&folder, &["--allow-rollback", "--registry", registry.0.to_str().unwrap()]);
    folder.write("feed.plan.json", &version(2));
    at.serves(2);
    assert_eq!(at.post("/rollback/feed", "{}").status, 200);
    assert_eq!(at.rows(), 1);
    // What is served needs the key, although the file does not.
    registry.write("keys.toml", &keys);
    at.server.signal("-HUP");
    at.until(|now| metric(now, "rankd_registry_problem") == 1.0);
    assert_eq!(at.rows(), 1);
    let newest = at.digests()[0].clone();
    assert_eq!(at.post("/rollback/feed", &format!(r#"{{"sha256":"{newest}"}}"#)).status, 200);
    at.server.signal("-HUP");
    at.until(|now| metric(now, "rankd_registry_problem") == 0.0);
    let before = at.plan();
    let answer = at.post("/rollback/feed", "{}");
    assert_eq!(refused(&answer), (422, "E134".to_owned()), "{}", answer.body);
    assert!(answer.json().list("diagnostics")[0].text("message").contains("added"), "{}", answer.body);
    let after = at.plan();
    assert_eq!((at.rows(), after.text("sha256"), after.has("held")), (2, before.text("sha256"), false));
}

/// Asks so often; three of four requests have the weight that the bad version fails for. Gives how many failed.
fn ask(line: &mut Line, times: usize) -> usize {
    let answers = (0..times).map(|turn| {
        let weight = if turn % 4 == 0 { 1 } else { 0 };
        line.post("/rank/feed", &format!(r#"{{"user_id":1,"params":{{"weight":{weight}}}}}"#)).unwrap();
        line.answer().unwrap().status
    });
    answers.filter(|status| *status != 200).count()
}

#[test]
fn a_version_that_fails_for_most_is_rolled_back_by_itself() {
    let folder = Folder::new();
    folder.write("feed.plan.json", &version(1));
    let at = Operated::start(&folder, &["--auto-rollback"]);
    let mut line = Line::open(&at.server.address);
    assert_eq!(ask(&mut line, 300), 0);
    let good = at.digests()[0].clone();
    folder.write("feed.plan.json", &failing());
    at.serves(2);
    let (until, mut failed) = (Instant::now() + PATIENCE, 0);
    let rollbacks =
        || metric(&get(&format!("http://{}/metrics", at.admin)).body, "rankd_plan_rollbacks_total{plan=\"feed\"}");
    while rollbacks() == 0.0 {
        failed += ask(&mut line, 40);
        assert!(Instant::now() < until, "{}", at.server.said());
    }
    assert!(failed >= 20, "{failed}");
    assert_eq!(ask(&mut line, 40), 0, "the good version is back");
    let plan = at.plan();
    assert_eq!(plan.text("sha256"), good);
    assert!(plan.text("held.message").contains("rolled back by itself"), "{plan:?}");
    let bad = &plan.list("versions")[0];
    assert!(bad.text("verdict").starts_with("rolled back: ") && bad.number("bad_share") > 0.5, "{bad:?}");
    at.server.says("rolled back: ");
    // A rollback is no reason to send requests elsewhere.
    assert_eq!(get(&format!("http://{}/readyz", at.admin)).body, r#"{"status":"ready"}"#);
    // The same file is refused; another one is served.
    at.server.signal("-HUP");
    at.server.says("reloaded on SIGHUP");
    assert_eq!(ask(&mut line, 4), 0);
    folder.write("feed.plan.json", &version(3));
    at.serves(4);
    // Operators may not do the same without the other flag.
    assert_eq!(refused(&at.post("/rollback/feed", "{}")), (403, "E131".to_owned()));
}

#[test]
fn without_the_flag_a_bad_version_is_counted_and_stays() {
    let folder = Folder::new();
    folder.write("feed.plan.json", &version(1));
    let at = Operated::start(&folder, &["--allow-rollback"]);
    let mut line = Line::open(&at.server.address);
    ask(&mut line, 300);
    folder.write("feed.plan.json", &failing());
    at.serves(2);
    assert_eq!(ask(&mut line, 400), 300);
    let plan = at.plan();
    let [bad, good] = plan.list("versions") else { panic!("two versions: {plan:?}") };
    assert_eq!((bad.number("answers"), bad.number("bad"), good.number("bad")), (400.0, 300.0, 0.0));
    assert!(!bad.has("verdict") && !bad.has("refused") && *bad.at("served") == Json::Bool(true), "{bad:?}");
}
