//! `rankd run`: requests from stdin, one a line; responses to stdout, one a line, in the same order.
//!
//! Told to stop, it reads no further, answers the requests that it has read, and ends as if the input had ended there.

use crate::cli::bench::{self, Ends, Load, Requests, Wanted};
use crate::cli::capture_args::CaptureArgs;
use crate::cli::feature_log_args::FeatureLogArgs;
use crate::cli::pii_args::PiiArgs;
use crate::cli::plan_engine::{PlanEngine, RunArgs};
use crate::cli::{DONE, FAILED, WRONG, say};
use crate::signals::{SignalSettings, Signals};
use clap::{Args, ValueEnum};
use rankd_edge::answer::{self, Answer};
use rankd_edge::capture::{Capture, CapturedPlan, CapturedRequest};
use rankd_edge::feature_log::{FeatureLog, LoggedPlan, LoggedRequest};
use rankd_edge::files;
use rankd_edge::input::{REQUEST_BYTES_MAX, RefusedRequest};
use rankd_edge::library::{Library, PlanFile};
use rankd_edge::perfetto::Perfetto;
use rankd_edge::prepare::{Prepared, Tracing};
use rankd_engine::recorded::{Reads, RunRecorder};
use rankd_engine::{ErrorKind, Linked, Outcome, Request, RunError, clock};
use rankd_plan::Registry;
use rankd_plan::json::Writer;
use rankd_plan::render::excerpt;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, BufRead, BufReader, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

/// How long a stopping process waits for requests in flight.
const DRAIN: Duration = Duration::from_secs(5);

/// The flags of `rankd run`, which can also put the plan under load.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunCommand {
    #[command(flatten)]
    run: RunArgs,
    /// Ask for this user, instead of reading requests
    #[arg(long, value_name = "ID", conflicts_with = "bench")]
    user: Option<String>,
    /// How to print answers: json has one line for each, pretty has several, table shows the first rows [default: table on a terminal,
    /// otherwise json]
    #[arg(long, value_name = "json|pretty|table", value_enum, hide_possible_values = true)]
    format: Option<Format>,
    /// Load-test the plan with N requests and report latencies, instead of reading requests
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    bench: Option<u64>,
    /// With --bench, how many requests to keep in flight
    #[arg(long, value_name = "C", default_value = "1", requires = "bench", value_parser = clap::value_parser!(u64).range(1..=10_000))]
    bench_concurrency: u64,
    #[command(flatten)]
    capture: CaptureArgs,
    #[command(flatten)]
    feature_log: FeatureLogArgs,
    #[command(flatten)]
    pii: PiiArgs,
}

/// What captures a run.
struct SessionCapture {
    capture: Capture,
    /// Those that may answer.
    plans: Vec<CapturedPlan>,
}

/// What logs the rows of runs: the plans that have run so far, since an arm of an experiment may have another answer.
struct SessionFeatureLog {
    log: FeatureLog,
    plans: Vec<Arc<LoggedPlan>>,
}

impl SessionFeatureLog {
    fn keep(&mut self, request: LoggedRequest, plan: &Linked, registry: &Registry, outcome: &mut Outcome) {
        let known = self.plans.iter().position(|known| *known.name == *plan.name);
        let at = known.unwrap_or_else(|| {
            self.plans.push(self.log.plan(plan, &plan.sha256, registry));
            self.plans.len() - 1
        });
        self.log.keep(request, &self.plans[at], outcome);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Json,
    Pretty,
    Table,
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
    let signals = match Signals::listen(SignalSettings { early: FAILED, forced: FAILED, reloads: false }) {
        Ok(signals) => signals,
        Err(error) => {
            say::to_people(&format!("error: cannot install signal handlers: {error}"));
            return WRONG;
        }
    };
    let Some(running) = PlanEngine::start(args, library) else { return WRONG };
    // From here on, what was read is answered.
    signals.finish_first(None);
    let capture = match command.capture.start(say::note) {
        Ok(capture) => capture.map(|capture| SessionCapture { capture, plans: captured_plans(&running) }),
        Err(error) => {
            error.report();
            return WRONG;
        }
    };
    let feature_log = match command.feature_log.start(&command.pii) {
        Ok(log) => log.map(|log| SessionFeatureLog { log, plans: Vec::new() }),
        Err(error) => {
            error.report();
            return WRONG;
        }
    };
    let perfetto = args.trace.is_some().then(Perfetto::default);
    let format = command.format.unwrap_or(if say::programs_are_people() { Format::Table } else { Format::Json });
    let mut session = Session { args, running: &running, format, perfetto, capture, feature_log, began: clock::now() };
    let mut code = match &command.user {
        Some(user) => session.ask(user, std::io::stdout().lock()),
        None => session.read(&signals, std::io::stdout().lock()),
    };
    if let (Some(path), Some(perfetto)) = (&args.trace, session.perfetto)
        && let Err(error) = files::write(path, &perfetto.finish())
    {
        say::to_people(&format!("error: {}: {error}", path.display()));
        code = code.max(FAILED);
    }
    running.engine.stop(DRAIN);
    code
}

/// The plans that may answer, as captures name them.
fn captured_plans(running: &PlanEngine) -> Vec<CapturedPlan> {
    let texts = Arc::new(running.loaded.texts.clone());
    let captured = running.plans().filter_map(|(plan, file)| {
        Some(CapturedPlan::new(plan, file.artifact_text()?.into(), &running.loaded.registry, texts.clone()))
    });
    captured.collect()
}

struct Session<'a> {
    args: &'a RunArgs,
    running: &'a PlanEngine,
    format: Format,
    perfetto: Option<Perfetto>,
    capture: Option<SessionCapture>,
    feature_log: Option<SessionFeatureLog>,
    began: clock::Instant,
}

impl Session<'_> {
    /// Answers one request, for a user.
    fn ask(&mut self, user: &str, mut responses: impl Write) -> u8 {
        let mut request = Writer::new();
        request.object(|w| {
            w.field("user_id").string(user);
        });
        let (response, ok) = self.answer(&request.into_bytes());
        say::wrote(write_line(&mut responses, &response));
        if ok { DONE } else { FAILED }
    }

    /// Answers the requests on stdin.
    fn read(&mut self, signals: &Signals, responses: impl Write) -> u8 {
        if io::stdin().is_terminal() {
            say::note(
                "reading requests from here, one JSON document a line, such as {\"user_id\": 7}; ctrl-d ends. \
                 --user 7 asks for one user directly"
                    .to_owned(),
            );
        }
        match UntilStopped::stdin(signals) {
            Ok(stdin) => self.serve(BufReader::new(stdin), responses),
            Err(error) => {
                say::to_people(&format!("error: stdin: {error}"));
                WRONG
            }
        }
    }

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
    fn show_place(error: &RunError, file: &PlanFile) {
        let Some(span) = error.node.as_ref().and_then(|node| node.source.as_ref()) else { return };
        if let Some(text) = file.source_text(span) {
            say::to_people(&excerpt(&error.message, span, &text, say::in_colour()));
        }
    }

    fn answer(&mut self, line: &[u8]) -> (Vec<u8>, bool) {
        let PlanEngine { loaded, plan, engine, .. } = self.running;
        let tracing = match (self.args.dump_run_trace, &self.perfetto) {
            (true, _) => Tracing::Shown,
            (false, Some(_)) => Tracing::Recorded,
            (false, None) => Tracing::AsAsked,
        };
        let (prepared, plan, file) = match self.running.prepare(line, tracing) {
            Ok(prepared) => prepared,
            Err(RefusedRequest { request_id, error }) => {
                let response = answer::failure(&request_id, Some(&plan.name), &error, |_| {});
                return (self.failed(response, &error), false);
            }
        };
        let Prepared { request, output_keys, with_trace } = prepared;
        let id = request.request_id.clone();
        let started = clock::nanos_between(self.began, clock::now());
        let capture = self.capture.as_ref().filter(|of| of.capture.takes(&id)).and_then(|of| {
            let captured = of.plans.iter().find(|captured| captured.sha256 == plan.sha256)?;
            Some((&of.capture, captured))
        });
        let logged = self.feature_log.as_ref().filter(|of| of.log.takes(&id));
        let logged = logged.map(|_| LoggedRequest { request_id: id.clone(), user_id: request.user_id.clone() });
        let recorder = capture.map(|_| Arc::<RunRecorder>::default());
        let reads = recorder.clone().map_or(Reads::Live, Reads::Recorded);
        let mut outcome = engine.run(plan, Request { reads, ..request });
        if let Some(perfetto) = &mut self.perfetto {
            perfetto.add(plan, &id, &outcome, started);
        }
        if let Err(error) = &outcome.result
            && error.code.kind == ErrorKind::Bug
        {
            say::to_people(&format!("bug: plan {}, request {id}: {error}", plan.name));
        }
        if let Err(error) = &outcome.result {
            Session::show_place(error, file);
            if let Some(detail) = &error.detail {
                say::to_people(&format!("request {id}: {detail}"));
            }
        }
        let (registry, output_keys) = (&loaded.registry, output_keys.as_deref());
        let answer = Answer { request_id: &id, plan, registry, output_keys, with_trace };
        if let (Some((capture, of)), Some(recorder)) = (capture, recorder) {
            let (sent, given) = (line.to_vec(), answer.render(&outcome).into());
            capture.keep(CapturedRequest::new(id.clone(), (plan, registry), sent, given, recorder.take()), of.clone());
        }
        let response = match (self.format, &outcome.result) {
            (Format::Table, Ok(outputs)) => {
                let colour = say::programs_are_people() && say::allows_colour();
                let table = answer.table(outputs, (&outcome.degraded, &outcome.short), say::terminal_width(), colour);
                table.trim_end().into()
            }
            (Format::Pretty, Ok(_)) => answer::pretty(&answer.render(&outcome)),
            (Format::Json, Ok(_)) => answer.render(&outcome),
            (_, Err(error)) => self.failed(answer.render(&outcome), error),
        };
        let ok = outcome.result.is_ok();
        if let (Some(request), Some(of)) = (logged, &mut self.feature_log) {
            of.keep(request, plan, registry, &mut outcome);
        }
        (response, ok)
    }

    /// A failure as it is asked for.
    fn failed(&self, response: Vec<u8>, error: &RunError) -> Vec<u8> {
        match self.format {
            Format::Json => response,
            Format::Pretty => answer::pretty(&response),
            Format::Table => format!("error: {error}").into_bytes(),
        }
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
