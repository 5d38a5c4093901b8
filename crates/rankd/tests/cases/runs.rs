//! Cases about what a plan gives: the request through the real program, on every scheduler and every store, which must agree.

use crate::markdown::Case;
use crate::nodes::Cluster;
use crate::server::Server;
use crate::service::{Reply, Seen, Service};
use crate::workspace::Workspace;
use rankd_plan::json::Reader;

const SCHEDULERS: [&[&str]; 4] = [
    &["--scheduler", "async"],
    &["--scheduler", "async", "--loops", "2", "--cpu_threads", "1"],
    &["--scheduler", "pools"],
    &["--scheduler", "sequential"],
];

/// A server alone, and a cluster.
pub(crate) struct Servers {
    alone: Server,
    cluster: Cluster,
}

impl Servers {
    pub(crate) fn start() -> Servers {
        Servers { alone: Server::start(&[]), cluster: Cluster::start() }
    }
}

/// The rows of each response, one a line, or its error.
pub(crate) fn run(case: &Case, servers: &Servers) -> String {
    let workspace = Workspace::of(case);
    // It answers as long as the case runs.
    let _service = case.block("service").map(|answers| start_service(case, answers, &workspace));
    let mut environments = vec!["local"];
    if runs_on_redis(case) {
        load(case, &workspace, "redis", &format!("url = {:?}", servers.alone.url()), &[&servers.alone]);
        let urls: Vec<String> = servers.cluster.masters.iter().map(|master| format!("{:?}", master.url())).collect();
        let masters: Vec<&Server> = servers.cluster.masters.iter().collect();
        load(case, &workspace, "cluster", &format!("cluster = [{}]", urls.join(", ")), &masters);
        environments.extend(["redis", "cluster"]);
    }
    let requests: String =
        case.block("request").unwrap_or("{\"user_id\": 1}").lines().map(|line| line.to_owned() + "\n").collect();
    let extra: Vec<&str> = case.block("args").unwrap_or_default().split_whitespace().collect();
    let mut answers: Vec<(String, String)> = Vec::new();
    for environment in environments {
        for scheduler in SCHEDULERS {
            let args = [&["--plan_name", "case", "--env", environment], scheduler, &extra[..]].concat();
            let output = workspace.rankd_with_input(&args, requests.as_bytes());
            let text = String::from_utf8(output.stdout).expect("JSON is UTF-8");
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(!text.is_empty(), "{}: nothing on stdout, but on stderr: {errors}", case.place());
            let failed = text.lines().any(|line| line.contains("\"error\":{"));
            assert_eq!(output.status.code(), Some(i32::from(failed)), "{}: the exit code; {errors}", case.place());
            answers.push((args.join(" "), text.lines().map(lines).collect::<Vec<_>>().join("\n")));
        }
    }
    for (args, answer) in &answers {
        assert_eq!(*answer, answers[0].1, "{}: {args} and {}", case.place(), answers[0].0);
    }
    answers.swap_remove(0).1
}

/// Starts the service that a case talks to; in the case's endpoints, `SERVICE` is its url.
fn start_service(case: &Case, answers: &str, workspace: &Workspace) -> Service {
    let answers: Vec<ServiceAnswer> = answers.lines().map(ServiceAnswer::read).collect();
    let service = Service::start(move |seen: &Seen| {
        let answer = answers.iter().find(|answer| answer.path == seen.path && answer.is_to(&seen.body));
        answer.map_or(Reply::status(404, ""), |answer| Reply::status(answer.status, &answer.text))
    });
    let file = "registry/endpoints.local.toml";
    let endpoints = case.block(file).expect("a case with a service has its endpoint");
    workspace.write(file, endpoints.replace("SERVICE", &service.url()).as_bytes());
    service
}

/// A line of a service block: `{"path": …, "body": …, "status": …, "answer": …}`.
struct ServiceAnswer {
    path: String,
    body: Option<String>,
    status: u16,
    text: String,
}

impl ServiceAnswer {
    fn read(line: &str) -> ServiceAnswer {
        let mut answer = ServiceAnswer { path: String::new(), body: None, status: 200, text: String::new() };
        let mut reader = Reader::new(line, 64);
        let mut fields = reader.open_object().expect("a line is an object");
        while let Some((name, _)) = reader.field(&mut fields).expect("JSON") {
            match &*name {
                "path" => answer.path = reader.string().expect("a path is a string").into_owned(),
                "body" => answer.body = Some(reader.raw().expect("JSON").to_owned()),
                "status" => answer.status = reader.raw().expect("JSON").parse().expect("a status is a number"),
                "answer" => answer.text = reader.raw().expect("JSON").to_owned(),
                "text" => answer.text = reader.string().expect("a text is a string").into_owned(),
                _ => panic!("a line of a service has path, body, status, answer or text, not {name:?}"),
            }
        }
        answer
    }

    fn is_to(&self, body: &str) -> bool {
        self.body.as_deref().is_none_or(|wanted| wanted == body)
    }
}

/// Whether the case can be had from a server: one with endpoints of its own makes trouble in the embedded store.
fn runs_on_redis(case: &Case) -> bool {
    case.block("registry/endpoints.local.toml").is_none()
}

/// Makes an environment of servers that hold the case's data, and nothing else.
fn load(case: &Case, workspace: &Workspace, environment: &str, at: &str, servers: &[&Server]) {
    let endpoint = format!(
        "[[endpoint]]\nendpoint_id = \"ep_0001\"\nname = \"redis_default\"\nkind = \"redis\"\n{at}\n\
         connect_timeout_ms = 10000\nrequest_timeout_ms = 10000\nstall_timeout_ms = 10000\n",
    );
    workspace.write(&format!("registry/endpoints.{environment}.toml"), endpoint.as_bytes());
    servers.iter().for_each(|server| server.must(&["FLUSHALL"]));
    let output = workspace.rankd(&["seed", "--env", environment, "--data", "data/demo.ndjson"]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{}: its data cannot be loaded: {errors}", case.place());
}

/// A response without its ids: a row a line, the list of outputs, the error.
fn lines(response: &str) -> String {
    let mut lines = Vec::new();
    let mut reader = Reader::new(response, 64);
    let mut fields = reader.open_object().expect("a response is an object");
    while let Some((name, _)) = reader.field(&mut fields).expect("JSON") {
        match &*name {
            "candidates" => {
                let mut items = reader.open_array().expect("a list of rows");
                while reader.item(&mut items).expect("JSON") {
                    lines.push(reader.raw().expect("JSON").to_owned());
                }
                if lines.is_empty() {
                    lines.push("no rows".to_owned());
                }
            }
            "request_id" | "plan" => reader.skip().expect("JSON"),
            "degraded" => lines.push(format!("{name}: {}", without_times(reader.raw().expect("JSON")))),
            _ => lines.push(format!("{name}: {}", reader.raw().expect("JSON"))),
        }
    }
    lines.join("\n")
}

/// What is degraded without when it was, which is no two times the same.
fn without_times(degraded: &str) -> String {
    let mut parts = degraded.split(r#","after_ms":"#);
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.'))
}
