//! `rankd run`: requests from stdin, one a line; responses to stdout, one a line, in the same order.
//!
//! Told to stop, it reads no further, answers the requests that it has read, and ends as if the input had ended there.

use crate::cli::bench::{self, Ends, Load, Requests, Wanted};
use crate::cli::check::print_registry_problems;
use crate::cli::command_error::CommandError;
use crate::cli::engine::EngineArgs;
use crate::cli::{DONE, FAILED, Places, WRONG, say};
use crate::signals::{SignalSettings, Signals};
use clap::{Args, ValueEnum};
use rankd_edge::answer::{self, Answer};
use rankd_edge::input::{self, REQUEST_BYTES_MAX};
use rankd_edge::library::{self, Library, LoadedRegistry, PlanFile};
use rankd_edge::perfetto::Perfetto;
use rankd_edge::{endpoints, files};
use rankd_engine::{Engine, ErrorKind, Linked, RunError, Scheduler, Settings, clock, codes};
use rankd_plan::diagnostic::{nearest, quoted};
use rankd_plan::render::excerpt;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a stopping process waits for what is under way.
const DRAIN: Duration = Duration::from_secs(5);

#[derive(Args, Clone, Debug)]
pub(crate) struct RunArgs {
    /// Name of a plan in the plan folder
    #[arg(long, value_name = "NAME")]
    plan_name: Option<String>,
    /// Plan file
    #[arg(long, value_name = "FILE", conflicts_with = "plan_name")]
    plan: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) places: Places,
    /// Write a Perfetto trace of the run to a file
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Add a trace of the run to each response
    #[arg(long)]
    dump_run_trace: bool,
    #[command(flatten)]
    engine: EngineArgs,
    /// Which scheduler runs the nodes
    #[arg(long, help_heading = "Scheduler tuning", value_name = "S", value_enum, default_value = "async")]
    scheduler: SchedulerName,
    /// The same as --scheduler async
    #[arg(long, hide = true, conflicts_with_all = ["scheduler", "within_request_parallelism"])]
    async_scheduler: bool,
    /// The same as --scheduler pools
    #[arg(long, hide = true, conflicts_with = "scheduler")]
    within_request_parallelism: bool,
}

/// The flags of `rankd run`, which can also put the plan under load.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunCommand {
    #[command(flatten)]
    run: RunArgs,
    /// Load-test the plan with N requests and report latencies, instead of reading requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    bench: Option<u64>,
    /// With --bench, how many requests to keep in flight
    #[arg(long, value_name = "C", default_value = "1", requires = "bench", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    bench_concurrency: u64,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum SchedulerName {
    Async,
    Pools,
    Sequential,
}

impl RunArgs {
    /// The same flags for a plan that is given by name or path.
    pub(crate) fn with_plan(&self, plan: &str) -> RunArgs {
        let (name, path) =
            if library::is_name(plan) { (Some(plan.to_owned()), None) } else { (None, Some(plan.into())) };
        RunArgs { plan_name: name, plan: path, ..self.clone() }
    }

    fn settings(&self) -> Settings {
        let scheduler = match self.scheduler {
            _ if self.within_request_parallelism => Scheduler::Pools,
            SchedulerName::Async => Scheduler::Async,
            SchedulerName::Pools => Scheduler::Pools,
            SchedulerName::Sequential => Scheduler::Sequential,
        };
        self.engine.settings(scheduler)
    }
}

pub(crate) fn run(command: &RunCommand, library: &Library) -> u8 {
    let args = &command.run;
    if let Some(iterations) = command.bench {
        let load = Load {
            ends: Ends::Count(iterations),
            warmup: None,
            concurrency: command.bench_concurrency,
            rate: None,
            requests: Requests::Users(1, 1),
        };
        return bench::bench(args, library, &load, &Wanted::default());
    }
    let signals = match Signals::listen(SignalSettings { early: FAILED, reloads: false }) {
        Ok(signals) => signals,
        Err(error) => {
            say::to_people(&format!("error: cannot install signal handlers: {error}"));
            return WRONG;
        }
    };
    let Some((loaded, plan, file, engine)) = prepare(args, library) else { return WRONG };
    // From here on, what was read is answered.
    signals.finish_first(None);
    let requests = match UntilStopped::stdin(&signals) {
        Ok(stdin) => BufReader::new(stdin),
        Err(error) => {
            say::to_people(&format!("error: stdin: {error}"));
            return WRONG;
        }
    };
    let mut session =
        Session { args, loaded: &loaded, plan, file, engine: &engine, perfetto: None, began: clock::now() };
    session.perfetto = args.trace.is_some().then(Perfetto::default);
    let mut code = session.serve(requests, std::io::stdout().lock());
    if let (Some(path), Some(perfetto)) = (&args.trace, session.perfetto)
        && let Err(error) = files::write(path, &perfetto.finish())
    {
        say::to_people(&format!("error: {}: {error}", path.display()));
        code = code.max(FAILED);
    }
    engine.stop(DRAIN);
    code
}

/// Everything that answering takes: the registry, the plan, where it came from and an engine. What is missing has been told.
pub(crate) fn prepare(args: &RunArgs, library: &Library) -> Option<(LoadedRegistry, Arc<Linked>, PlanFile, Engine)> {
    let loaded = library.load_registry(&args.places.registry, &args.places.env);
    print_registry_problems(&loaded);
    if loaded.has_errors() {
        return None;
    }
    let (plan, file) = load_plan(&plan_path(args)?, args.plan_name.is_some(), library, &loaded)?;
    match start_engine(args, &loaded.registry) {
        Ok(engine) => Some((loaded, plan, file, engine)),
        Err(error) => {
            error.report();
            None
        }
    }
}

fn start_engine(args: &RunArgs, registry: &rankd_plan::Registry) -> Result<Engine, CommandError> {
    let stores = endpoints::open(registry, &mut say::note)?;
    Engine::start(args.settings(), stores).map_err(CommandError::with("cannot start threads"))
}

/// The file of the plan that is asked for.
fn plan_path(args: &RunArgs) -> Option<PathBuf> {
    if let Some(path) = &args.plan {
        return Some(path.clone());
    }
    let Some(name) = &args.plan_name else {
        say::to_people("error: which plan? Give --plan_name NAME or --plan FILE (rankd plans lists them)");
        return None;
    };
    let path = library::find(name, &args.places.plan_dir);
    if path.is_file() && library::is_name(name) {
        return Some(path);
    }
    let known: Vec<String> =
        library::list(&args.places.plan_dir).unwrap_or_default().iter().map(|p| library::name_of(p)).collect();
    let hint = nearest(name, known.iter().map(String::as_str)).map(|near| format!("; did you mean {near:?}?"));
    let folder = args.places.plan_dir.display();
    say::to_people(&format!("error: there is no plan {} in {folder}{}", quoted(name), hint.unwrap_or_default()));
    None
}

/// The plan in a file. A stale artifact that was found by the plan's name gives way to its source; one that was asked for is run.
fn load_plan(
    path: &Path,
    by_name: bool,
    library: &Library,
    loaded: &LoadedRegistry,
) -> Option<(Arc<Linked>, PlanFile)> {
    let mut file = library.load_plan(path, &loaded.registry);
    if by_name && file.is_stale() {
        let source = library::source_of(path);
        say::to_people(&format!("note: {} is stale; running {}", path.display(), source.display()));
        file = library.load_plan(&source, &loaded.registry);
    }
    let words = file.report(|report| report.for_people(say::in_colour(), &|span| file.source_text(span)));
    if !words.is_empty() {
        say::to_people(&words);
    }
    match Linked::link(file.checked.plan.as_ref()?, library.tasks(), &loaded.registry) {
        Ok(linked) => Some((Arc::new(linked), file)),
        Err(diagnostic) => {
            say::to_people(&format!("error: {}", diagnostic.message));
            None
        }
    }
}

struct Session<'a> {
    args: &'a RunArgs,
    loaded: &'a LoadedRegistry,
    plan: Arc<Linked>,
    /// Where the plan came from, to show what an error is about.
    file: PlanFile,
    engine: &'a Engine,
    perfetto: Option<Perfetto>,
    began: clock::Instant,
}

impl Session<'_> {
    /// Answers every line until the input ends or nobody reads the output any more.
    fn serve(&mut self, mut requests: BufReader<UntilStopped<'_>>, mut responses: impl Write) -> u8 {
        let mut code = DONE;
        let mut line = Vec::new();
        loop {
            match read_line(&mut requests, &mut line) {
                Ok(End::Newline) => {}
                // The last line may have no end. One that was cut off by a signal is no request.
                Ok(End::Input) if !line.is_empty() && !requests.get_ref().is_stopped => {}
                Ok(End::Input) => return code,
                Err(error) => {
                    say::to_people(&format!("error: stdin: {error}"));
                    return WRONG;
                }
            }
            if line.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let (response, ok) = self.answer(&line);
            if !ok {
                code = FAILED;
            }
            // Where nothing more can be written, nobody gets the rest.
            if !say::wrote(write_line(&mut responses, &response)) {
                return code;
            }
        }
    }

    /// Shows people the part of an expression that failed, as its author wrote it.
    fn show_place(&self, error: &RunError) {
        let Some(span) = error.node.as_ref().and_then(|node| node.source.as_ref()) else { return };
        if let Some(text) = self.file.source_text(span) {
            say::to_people(&excerpt(&error.message, span, &text, say::in_colour()));
        }
    }

    fn answer(&mut self, line: &[u8]) -> (Vec<u8>, bool) {
        let refused = |id: &str, plan: &str, error: &RunError| (answer::failure(id, Some(plan), error, |_| {}), false);
        let mut input = match input::read(line, &self.loaded.registry) {
            Ok(input) => input,
            Err(input::UnreadableRequest { request_id, error }) => {
                return refused(&request_id, &self.plan.name, &error);
            }
        };
        let id = input.request.request_id.clone();
        if let Some(other) = input.plan.filter(|other| *other != self.plan.name) {
            let (asked, runs) = (quoted(&other), quoted(&self.plan.name));
            let message = format!("the request is for plan {asked}, but this process runs {runs}");
            return refused(&id, &self.plan.name, &RunError::new(codes::OTHER_PLAN, message));
        }
        let with_trace = input.request.trace || self.args.dump_run_trace;
        input.request.trace = with_trace || self.perfetto.is_some();
        let started = clock::nanos_between(self.began, clock::now());
        let outcome = self.engine.run(&self.plan, input.request);
        if let (Some(perfetto), Some(trace)) = (&mut self.perfetto, &outcome.trace) {
            perfetto.add(&self.plan, &id, trace, started);
        }
        if let Err(error) = &outcome.result
            && error.code.kind == ErrorKind::Bug
        {
            say::to_people(&format!("bug: plan {}, request {id}: {error}", self.plan.name));
        }
        if let Err(error) = &outcome.result {
            self.show_place(error);
            if let Some(detail) = &error.detail {
                say::to_people(&format!("request {id}: {detail}"));
            }
        }
        let (registry, output_keys) = (&self.loaded.registry, input.output_keys.as_deref());
        let answer = Answer { request_id: &id, plan: &self.plan, registry, output_keys, with_trace };
        (answer.render(&outcome), outcome.result.is_ok())
    }
}

fn write_line(out: &mut impl Write, line: &[u8]) -> io::Result<()> {
    out.write_all(line)?;
    out.write_all(b"\n")?;
    out.flush()
}

/// What a line ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Newline,
    Input,
}

/// Reads a line without its end. Of one that is too long, only so much is kept that it is seen to be.
fn read_line(input: &mut impl BufRead, line: &mut Vec<u8>) -> io::Result<End> {
    line.clear();
    loop {
        let buffer = input.fill_buf()?;
        if buffer.is_empty() {
            return Ok(End::Input);
        }
        let newline = buffer.iter().position(|byte| *byte == b'\n');
        let (part, used) = newline.map_or((buffer, buffer.len()), |at| (&buffer[..at], at + 1));
        let room = (REQUEST_BYTES_MAX + 1).saturating_sub(line.len());
        line.extend_from_slice(&part[..part.len().min(room)]);
        input.consume(used);
        if newline.is_some() {
            return Ok(End::Newline);
        }
    }
}

/// Stdin, which ends when the process is told to stop.
struct UntilStopped<'s> {
    stdin: File,
    signals: &'s Signals,
    is_stopped: bool,
}

impl UntilStopped<'_> {
    fn stdin(signals: &Signals) -> io::Result<UntilStopped<'_>> {
        let stdin = File::from(io::stdin().as_fd().try_clone_to_owned()?);
        Ok(UntilStopped { stdin, signals, is_stopped: false })
    }
}

impl Read for UntilStopped<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.is_stopped {
            let stopped = self.signals.stopped();
            let mut ready = [PollFd::new(&self.stdin, PollFlags::IN), PollFd::new(&stopped, PollFlags::IN)];
            match poll(&mut ready, None) {
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
                Ok(_) if !ready[1].revents().is_empty() => self.is_stopped = true,
                Ok(_) => return self.stdin.read(buffer),
            }
        }
        Ok(0)
    }
}
