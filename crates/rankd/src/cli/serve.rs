//! `rankd serve`: the flags of the server, and what must be there before it can start.

use crate::cli::capture_args::CaptureArgs;
use crate::cli::check::print_registry_problems;
use crate::cli::command_error::{BadArgument, CommandError};
use crate::cli::engine::EngineArgs;
use crate::cli::feature_log_args::FeatureLogArgs;
use crate::cli::pii_args::PiiArgs;
use crate::cli::{DONE, FAILED, ModelArgs, Places, WRONG, say};
use crate::compile_child::CompileChild;
use crate::signals::{SignalRequest, SignalSettings, Signals};
use clap::{Args, ValueEnum};
use rankd_edge::library::{self, Library};
use rankd_edge::{endpoints, files, late_data};
use rankd_engine::{Engine, Scheduler};
use rankd_serve::{
    ADMIN_CONNECTIONS, AdmissionSettings, CONSOLE_CONNECTIONS, ClientTimeouts, CollectorSettings, ConsoleSettings,
    ConsoleToken, Destination, HEALTH_CONNECTIONS, Hosts, Log, LogTarget, ReloadSettings, ServeSettings, Server,
    ShadowSettings, Start, StartupReport, VersionSettings, WhyServed, listed_host, listen, shadow_engine_settings,
};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::time::Duration;

/// Descriptors for what has no connection to do with: stores, logs, plans, listeners.
const DESCRIPTORS_KEPT: u64 = 64;
/// A token file has at most so many bytes.
const TOKEN_BYTES_MAX: usize = 4096;

#[derive(Args)]
pub(crate) struct ServeArgs {
    /// Address to listen on; port 0 picks a free port
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Serve /plans, /rollback, /pin, /tasks, /explain, /why and /metrics on this address instead of that of --listen
    #[arg(long, value_name = "ADDR")]
    admin: Option<SocketAddr>,
    /// Where /why/{plan} is served: on --admin alone, on --listen as well (on), or nowhere (off). It shows what became of items in a run,
    /// with their values
    #[arg(long, value_name = "WHERE", value_enum, default_value = "admin")]
    why: WhyWhere,
    /// Serve the console on this address: a page for browsers that shows plans, runs and stores
    #[arg(long, help_heading = "Console", value_name = "ADDR")]
    console: Option<SocketAddr>,
    /// Answer the console only to those who have the token in this file; needed where --console is not on loopback
    #[arg(long, help_heading = "Console", value_name = "FILE", requires = "console")]
    console_token: Option<PathBuf>,
    /// Answer on --console also requests whose host header names one of these hosts, besides loopback and the address itself
    #[arg(long, help_heading = "Console", value_name = "HOST,…", value_delimiter = ',', value_parser = listed_host, requires = "console")]
    console_host: Vec<String>,
    /// Whether the console shows the values of rows, and what became of them
    #[arg(long, help_heading = "Console", value_name = "WHETHER", value_enum, default_value = "on")]
    console_rows: ConsoleRows,
    /// Answer on --listen only requests whose host header names one of these hosts; health checks are always answered [default: on
    /// loopback the names of loopback, elsewhere any host]
    #[arg(long, value_name = "HOST,…", value_delimiter = ',', value_parser = listed_host)]
    hosts: Vec<String>,
    /// Accept a body without a content type as JSON
    #[arg(long)]
    lenient: bool,
    /// Let requests choose the arms of experiments that they are in; for tests, not for the public
    #[arg(long)]
    force_arms: bool,
    #[command(flatten)]
    places: Places,
    #[command(flatten)]
    models: ModelArgs,
    #[command(flatten)]
    feature_log: FeatureLogArgs,
    #[command(flatten)]
    pii: PiiArgs,
    /// Longest time a request with a deadline may queue before it is refused, in ms [default: a quarter of the time it has left]
    #[arg(long, help_heading = "Limits", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=60_000))]
    queue_ms: Option<u64>,
    /// Ceiling of the adaptive limit on concurrent runs per loop
    #[arg(long, help_heading = "Limits", value_name = "N", default_value = "4096", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    runs_max: u32,
    /// Limit the concurrent runs of one plan; can be repeated for other plans
    #[arg(long, help_heading = "Limits", value_name = "PLAN=N", value_parser = plan_limit)]
    plan_limit: Vec<(String, usize)>,
    /// Maximum number of connections; beyond it, the one idle longest is closed to make room
    #[arg(long, help_heading = "Limits", value_name = "N", default_value = "16384", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    connections_max: u64,
    /// Memory for the bodies of requests that are not answered yet, on each loop, in MiB; what is made of them takes several times as much
    /// [default: 64, or less where the process may have less than 1 GiB]
    #[arg(long, help_heading = "Limits", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    bodies_mb: Option<u64>,
    /// Memory for answers that clients have not read yet, on all loops together, in MiB
    #[arg(long, help_heading = "Limits", value_name = "N", default_value = "32", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    answers_mb: u64,
    /// Time to receive a request's head, from its first byte, in ms
    #[arg(long, help_heading = "Limits", value_name = "N", default_value = "5000", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    head_ms: u64,
    /// Time to receive a request's body, from the end of its head, in ms
    #[arg(long, help_heading = "Limits", value_name = "N", default_value = "5000", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    body_ms: u64,
    /// Close a connection that is idle for this long, in ms; behind a load balancer, set it higher than the balancer's idle timeout
    #[arg(long, help_heading = "Limits", value_name = "N", default_value = "8000", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    idle_ms: u64,
    /// Close a connection whose client does not read the answer for this long, in ms
    #[arg(long, help_heading = "Limits", value_name = "N", default_value = "5000", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    stall_ms: u64,
    /// Time for requests in flight to finish when the process is stopped, in ms
    #[arg(long, help_heading = "Limits", value_name = "N", default_value = "5000", value_parser = clap::value_parser!(u64).range(1..=600_000))]
    drain_ms: u64,
    /// How often to check the plan folder, in ms; 0 for only on SIGHUP. Less often if checking would take more than 0.5 % of a core
    #[arg(long, value_name = "N", default_value = "250", value_parser = clap::value_parser!(u64).range(0..=3_600_000))]
    watch_ms: u64,
    /// Accept a new version of a plan without a trial run for user 1
    #[arg(long)]
    no_trial: bool,
    /// Let operators roll plans back and pin their versions, on the address of --admin
    #[arg(long)]
    allow_rollback: bool,
    /// Roll a plan back by itself if a new version gives clearly more bad answers in its first minute than the version before
    #[arg(long)]
    auto_rollback: bool,
    /// Run another plan beside PLAN for a share of its requests, after they are answered, and compare the answers in the metrics; can be
    /// repeated for other plans
    #[arg(long, value_name = "PLAN=SHADOW:SHARE", value_parser = shadow)]
    shadow: Vec<ShadowSettings>,
    /// Trace one request in N for the per-op metrics; 0 for none
    #[arg(long, help_heading = "Logs and traces", value_name = "N", default_value = "64")]
    trace_every: u64,
    /// Send spans of requests and their nodes to this OpenTelemetry collector, as OTLP over HTTP with JSON
    #[arg(long, help_heading = "Logs and traces", value_name = "URL")]
    otlp: Option<Destination>,
    /// Send the spans of one request in N, in addition to those whose caller records the trace; 0 for only those
    #[arg(long, help_heading = "Logs and traces", value_name = "N", default_value = "64", requires = "otlp")]
    otlp_sample: u64,
    /// Write a JSON line for each request to a file, or to stderr if FILE is -
    #[arg(long, help_heading = "Logs and traces", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    access_log: Option<String>,
    /// Write a JSON line for each node of each request to a file, or to stderr if FILE is -
    #[arg(long, help_heading = "Logs and traces", value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    audit_log: Option<String>,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    engine: EngineArgs,
}

/// Where questions about items are answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum WhyWhere {
    Admin,
    On,
    Off,
}

/// Whether the console shows the values of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum ConsoleRows {
    On,
    Off,
}

fn plan_limit(text: &str) -> Result<(String, usize), BadArgument> {
    let (plan, limit) = text.split_once('=').ok_or(BadArgument::from("write it as PLAN=N"))?;
    let limit = limit.parse().ok().filter(|limit| *limit > 0);
    let limit = limit.ok_or(BadArgument::from("N must be a number of at least 1"))?;
    Ok((plan.to_owned(), limit))
}

fn shadow(text: &str) -> Result<ShadowSettings, BadArgument> {
    let form = || BadArgument::from("write it as PLAN=SHADOW:SHARE, such as feed=feed_next:0.05");
    let (plan, rest) = text.split_once('=').ok_or_else(form)?;
    let (shadow, share) = rest.split_once(':').ok_or_else(form)?;
    if !library::is_name(plan) || !library::is_name(shadow) {
        return Err(form());
    }
    if plan == shadow {
        return Err("a plan cannot be its own shadow: name another plan".into());
    }
    let share = share.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    let share = share.ok_or(BadArgument::from("SHARE must be a number above 0 and at most 1, such as 0.05"))?;
    Ok(ShadowSettings { plan: plan.to_owned(), shadow: shadow.to_owned(), share })
}

impl ServeArgs {
    /// The first plan that has two shadows.
    fn shadowed_twice(&self) -> Option<&str> {
        let plans: Vec<&str> = self.shadow.iter().map(|one| &*one.plan).collect();
        (1..plans.len()).find(|at| plans[..*at].contains(&plans[*at])).map(|at| plans[at])
    }

    fn settings(&self, loops: usize) -> ServeSettings {
        let ms = Duration::from_millis;
        let timeouts = ClientTimeouts {
            head: ms(self.head_ms),
            body: ms(self.body_ms),
            idle: ms(self.idle_ms),
            stall: ms(self.stall_ms),
        };
        let admin_connections = if self.admin.is_some() { ADMIN_CONNECTIONS } else { 0 };
        let console_connections = if self.console.is_some() { CONSOLE_CONNECTIONS } else { 0 };
        let kept = DESCRIPTORS_KEPT + (HEALTH_CONNECTIONS + admin_connections + console_connections) as u64;
        ServeSettings {
            timeouts,
            admission: AdmissionSettings { queue: self.queue_ms.map(ms), limit_max: f64::from(self.runs_max) },
            connections_max: self.connections_max.min(descriptors().saturating_sub(kept).max(1)) as usize,
            body_bytes_max: (self.bodies_mb.unwrap_or_else(|| bodies_mb(loops)) as usize) << 20,
            answer_bytes_max: (self.answers_mb as usize) << 20,
            trace_every: self.trace_every,
            plan_limits: self.plan_limit.iter().cloned().collect(),
            hosts: match self.hosts.as_slice() {
                [] => Hosts::of(self.listen),
                listed => Hosts::Listed(listed.to_vec()),
            },
            admin_hosts: self.admin.map(Hosts::of),
            lenient: self.lenient,
            why: match self.why {
                WhyWhere::Admin => WhyServed::OnAdmin,
                WhyWhere::On => WhyServed::Everywhere,
                WhyWhere::Off => WhyServed::Nowhere,
            },
            force_arms: self.force_arms,
            versions: VersionSettings { allow_rollback: self.allow_rollback, auto_rollback: self.auto_rollback },
        }
    }
}

/// The console's listener and settings, where there is to be one.
fn open_console(args: &ServeArgs) -> Result<Option<(TcpListener, ConsoleSettings)>, CommandError> {
    let Some(address) = args.console else { return Ok(None) };
    let token = match &args.console_token {
        Some(file) => {
            let text = files::read_text(file, TOKEN_BYTES_MAX).map_err(CommandError::with(file.display()))?;
            Some(ConsoleToken::parse(&text).map_err(CommandError::with(file.display()))?)
        }
        None if address.ip().is_loopback() => None,
        None => {
            let message = format!(
                "--console {address} can be reached from other machines, so it needs --console_token FILE: without a token it is \
                 served on loopback only"
            );
            return Err(CommandError::Wrong(message));
        }
    };
    let hosts = Hosts::LoopbackOr(address.ip(), args.console_host.clone());
    let mut listeners = listen(address, 1).map_err(|error| cannot_listen(address, &error))?;
    let settings = ConsoleSettings { hosts, token, rows: args.console_rows == ConsoleRows::On };
    Ok(listeners.pop().map(|listener| (listener, settings)))
}

pub(crate) fn run(args: &ServeArgs, library: &Library) -> u8 {
    match try_run(args, library) {
        Ok(()) => DONE,
        Err(error) => {
            error.report();
            WRONG
        }
    }
}

fn try_run(args: &ServeArgs, library: &Library) -> Result<(), CommandError> {
    // First of all: reading what comes next may take long, and as process 1 a signal without a handler is ignored.
    let mut signals = Signals::listen(SignalSettings { early: DONE, forced: FAILED, reloads: true })
        .map_err(CommandError::with("cannot install signal handlers"))?;
    if args.allow_rollback && args.admin.is_none() {
        let message = "--allow_rollback needs --admin ADDR: plans are rolled back and pinned on that address only";
        return Err(CommandError::Wrong(message.to_owned()));
    }
    if let Some(plan) = args.shadowed_twice() {
        return Err(CommandError::Wrong(format!(
            "--shadow is given twice for {plan}: a plan has one shadow at a time"
        )));
    }
    let settings = args.engine.settings(Scheduler::Async);
    let listen = |address, count| listen(address, count).map_err(|error| cannot_listen(address, &error));
    let loops = settings.loops;
    let listeners = listen(args.listen, loops)?;
    let admin = args.admin.map(|address| listen(address, 1)).transpose()?.and_then(|mut only| only.pop());
    let console = open_console(args)?;
    let loaded = library.load_registry(&args.places.registry, &args.places.env);
    print_registry_problems(&loaded);
    if loaded.has_errors() {
        return Err(CommandError::Reported);
    }
    let target = |text: &Option<String>| text.as_deref().map(LogTarget::parse);
    let feature_log = args.feature_log.start(&args.pii)?;
    let log = Log::start(target(&args.access_log).as_ref(), target(&args.audit_log).as_ref())?;
    let capture = args.capture.start(log.errors())?;
    let (stores, late) = late_data::open(&loaded.registry, args.models.files(library, &loaded.registry))?;
    let shadows = match args.shadow.as_slice() {
        [] => None,
        pairs => {
            let stores = endpoints::open_again(&stores, &loaded.registry)?;
            let engine = Engine::start(shadow_engine_settings(settings.policy), stores);
            Some((pairs.to_vec(), engine.map_err(CommandError::with("cannot start threads"))?))
        }
    };
    let engine = Engine::start(settings, stores).map_err(CommandError::with("cannot start threads"))?;
    let compiler = CompileChild::new().map_err(CommandError::with("cannot start a runtime"))?;
    let Places { plan_dir, registry, env } = args.places.clone();
    let start = Start {
        listeners,
        admin,
        console,
        loaded,
        late,
        engine,
        log,
        library: library.clone(),
        compiler: Box::new(compiler),
        settings: args.settings(loops),
        reload: ReloadSettings { plan_dir, registry, env, trial: !args.no_trial },
        feature_log,
        shadows,
        collector: args.otlp.clone().map(|to| CollectorSettings { to, sample: args.otlp_sample }),
        capture,
        watch: (args.watch_ms > 0).then(|| Duration::from_millis(args.watch_ms)),
        drain: Duration::from_millis(args.drain_ms),
    };
    signals.finish_first(Some(start.stop_time_max()));
    let server = Server::start(start, |report| match report {
        StartupReport::Note(note) => say::note(note),
        StartupReport::Ready(greeting) => say::to_people(&greeting),
        StartupReport::Failed(error) => {
            say::to_people(&format!("error: {error}"));
            std::process::exit(WRONG.into());
        }
        StartupReport::NoShadow(why) => {
            say::to_people(&format!("error: {why}"));
            std::process::exit(WRONG.into());
        }
    })?;
    server.run_until(async {
        while signals.next().await == SignalRequest::Reload {
            server.reload();
        }
    });
    Ok(())
}

fn cannot_listen(address: SocketAddr, error: &io::Error) -> CommandError {
    let why = match error.kind() {
        io::ErrorKind::AddrInUse => "another process is listening there; stop it, or choose another port".to_owned(),
        _ => error.to_string(),
    };
    CommandError::Wrong(format!("cannot listen on {address}: {why}"))
}

/// The bodies of requests that are not answered take at most this, in MiB.
const BODIES_MB: u64 = 64;
/// What is made of a body, rows and an answer, takes up to eight times as much as the body, and together they may take half of the memory
/// that there is.
const OF_A_BODY: u64 = 16;

/// The memory for bodies on each of so many loops, in MiB, where no flag says it.
fn bodies_mb(loops: usize) -> u64 {
    let most = memory_limit().map_or(BODIES_MB, |bytes| (bytes >> 20) / OF_A_BODY / loops.max(1) as u64);
    most.clamp(1, BODIES_MB)
}

/// How much memory the process may have, as far as a limit is set for it.
#[expect(clippy::disallowed_methods, reason = "the limit of a control group is a file")]
fn memory_limit() -> Option<u64> {
    let of_process = [Resource::Data, Resource::As].into_iter().filter_map(|resource| getrlimit(resource).current);
    // In a container this is the container's own group; where there is no limit, it says so in a word.
    let of_group = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    of_process.chain(of_group).min()
}

/// How many descriptors the process may have: as many as the system lets it.
fn descriptors() -> u64 {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: maximum, maximum };
    // Where it may not be raised, what there is has to do.
    match setrlimit(Resource::Nofile, raised) {
        Ok(()) => maximum.unwrap_or(u64::MAX),
        Err(_) => current.unwrap_or(u64::MAX),
    }
}
