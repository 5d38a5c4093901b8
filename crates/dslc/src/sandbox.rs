//! Runs plan code in a JavaScript engine that has nothing but the language and the DSL, for a bounded time and in bounded memory.
//!
//! The host gives the engine functions from numbers to a number and no other: what a plan computes comes back as text when it has
//! ended. Each run has an engine of its own. These limits are for mistakes and abuse in plan code; they do not protect from a bug in the engine itself.

use crate::resolve::{Import, RUNTIME_MODULE, resolve};
use crate::{operations, runtime};
use rankd_plan::json::Writer;
use rquickjs::context::intrinsic::{Eval, Json, MapSet, Promise, Proxy, RegExp, RegExpCompiler};
use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{CatchResultExt, CaughtError, Context, Ctx, Error, Function, Module, Object, Runtime, Value};
use rustix::time::{ClockId, clock_gettime};
use std::cell::Cell;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const MEMORY_BYTES_MAX: usize = 40 << 20;
const STACK_BYTES_MAX: usize = 1 << 20;
/// Larger, so that the engine reaches its own limit before the thread runs out of stack.
const THREAD_STACK_BYTES: usize = 8 << 20;
/// How long plan code may run, in processor time: a busy machine does not make a valid plan fail. What comes before and
/// after is bounded by the size of the sources.
const TIME_MAX: Duration = Duration::from_millis(1500);
/// How much later than that the engine itself may notice.
const GRACE: Duration = Duration::from_millis(200);
/// How much processor time an engine that is late may use without asking for the time.
const SILENT_MAX: Duration = Duration::from_millis(400);
/// How long plan code may take in all, however little processor time it got.
const WALL_MAX: Duration = Duration::from_secs(45);
/// How often that is looked at.
const STEP: Duration = Duration::from_millis(50);

/// How a run failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) kind: FailureKind,
    /// The message of what was thrown.
    pub(crate) message: String,
    /// The engine's stack: a line `at function (file:line:column)` for each call.
    pub(crate) stack: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureKind {
    Threw,
    Time,
    Memory,
    Stack,
    /// The mistake is among the problems.
    Reported,
}

/// What a run gave.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    /// The plan as the runtime writes it down.
    pub(crate) plan: Option<String>,
    /// What the runtime found wrong, as a JSON list.
    pub(crate) problems: String,
    pub(crate) failure: Option<Failure>,
}

/// Runs the module `entry` of `modules`, which are code by path.
///
/// The engine asks for the time whenever plan code loops or calls, but not inside its own functions: one that goes through a list
/// of four billion holes is not stopped. So it runs on a thread of its own, which is abandoned when it is late and has
/// not asked for a while. Both are processor time: how long a thread of a busy machine waits for its turn says nothing about the plan.
/// The time is that of the whole process, as no thread can read that of another; what else runs in it makes a late engine late a little sooner.
pub(crate) fn run(entry: String, modules: HashMap<String, String>, config: String) -> Outcome {
    let (send, receive) = mpsc::sync_channel(1);
    let asked = Arc::new(AtomicU64::new(0));
    let asking = asked.clone();
    let work = move || {
        let late = Rc::new(Cell::new(false));
        let outcome = match start(Modules { plan: modules, config }, late.clone(), asking) {
            Ok(context) => context.with(|ctx| Run { ctx, late }.run(&entry)),
            Err(error) => failed(FailureKind::Memory, error.to_string()),
        };
        // If the run was late, the receiver is gone, and the outcome is not needed.
        let _ = send.send(outcome);
    };
    let thread = std::thread::Builder::new().name("dslc-plan".to_owned()).stack_size(THREAD_STACK_BYTES).spawn(work);
    if let Err(error) = thread {
        return failed(FailureKind::Memory, error.to_string());
    }
    let began = processor_time(ClockId::ProcessCPUTime);
    let (mut waited, mut last_asked, mut asked_at) = (Duration::ZERO, 0, Duration::ZERO);
    loop {
        match receive.recv_timeout(STEP) {
            Ok(outcome) => return outcome,
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                return failed(FailureKind::Threw, "the engine failed".to_owned());
            }
            Err(mpsc::RecvTimeoutError::Timeout) => waited += STEP,
        }
        let worked = processor_time(ClockId::ProcessCPUTime).saturating_sub(began);
        let now_asked = asked.load(Ordering::Relaxed);
        if now_asked != last_asked {
            (last_asked, asked_at) = (now_asked, worked);
        }
        let is_late = worked > TIME_MAX + GRACE && worked.saturating_sub(asked_at) > SILENT_MAX;
        if is_late || waited > WALL_MAX {
            return failed(FailureKind::Time, "abandoned".to_owned());
        }
    }
}

/// How long the processor has worked, for this thread or for the process.
fn processor_time(clock: ClockId) -> Duration {
    Duration::try_from(clock_gettime(clock)).unwrap_or_default()
}

fn failed(kind: FailureKind, message: String) -> Outcome {
    Outcome { failure: Some(Failure { kind, message, stack: String::new() }), ..Outcome::default() }
}

/// An engine that counts in `asked` how often it asked for the time.
pub(crate) fn start(modules: Modules, late: Rc<Cell<bool>>, asked: Arc<AtomicU64>) -> rquickjs::Result<Context> {
    let runtime = Runtime::new()?;
    runtime.set_memory_limit(MEMORY_BYTES_MAX);
    runtime.set_max_stack_size(STACK_BYTES_MAX);
    let began = processor_time(ClockId::ThreadCPUTime);
    runtime.set_interrupt_handler(Some(Box::new(move || {
        asked.fetch_add(1, Ordering::Relaxed);
        late.set(late.get() || processor_time(ClockId::ThreadCPUTime).saturating_sub(began) > TIME_MAX);
        late.get()
    })));
    runtime.set_loader(Specifiers, modules);
    let context = Context::custom::<(Eval, RegExpCompiler, RegExp, Json, Proxy, MapSet, Promise)>(&runtime)?;
    context.with(|ctx| operations::give_numbers(&ctx))?;
    Ok(context)
}

/// Evaluates a module and gives what it exports.
pub(crate) fn evaluate<'js>(ctx: &Ctx<'js>, name: &str, code: impl Into<Vec<u8>>) -> rquickjs::Result<Object<'js>> {
    let (module, done) = Module::declare(ctx.clone(), name, code)?.eval()?;
    done.finish::<()>()?;
    module.namespace()
}

struct Run<'js> {
    ctx: Ctx<'js>,
    late: Rc<Cell<bool>>,
}

impl<'js> Run<'js> {
    fn run(&self, entry: &str) -> Outcome {
        let runtime: Object<'js> =
            match evaluate(&self.ctx, runtime::MAIN, runtime::code(runtime::MAIN)).catch(&self.ctx) {
                Ok(runtime) => runtime,
                Err(error) => return failed(FailureKind::Threw, format!("the runtime itself failed: {error}")),
            };
        let mut outcome = Outcome::default();
        match self.plan(entry, &runtime).catch(&self.ctx) {
            Ok(plan) => outcome.plan = plan,
            Err(error) => outcome.failure = Some(self.failure(error, &runtime)),
        }
        outcome.problems = self.call(&runtime, "writtenProblems", ()).unwrap_or_default();
        outcome
    }

    fn plan(&self, entry: &str, runtime: &Object<'js>) -> rquickjs::Result<Option<String>> {
        let plan: Value<'js> = evaluate(&self.ctx, "(plan)", self.entry_code(entry))?.get("plan")?;
        runtime.get::<_, Function<'js>>("finish")?.call((plan,))
    }

    /// A module that imports the plan, so that a missing default export is reported by us and not by the engine.
    fn entry_code(&self, entry: &str) -> String {
        let mut specifier = Writer::new();
        specifier.string(&format!("./{entry}"));
        let specifier = specifier.finish();
        format!("import * as file from {specifier}; export const plan = file.default;")
    }

    fn failure(&self, error: CaughtError<'js>, runtime: &Object<'js>) -> Failure {
        let (message, stack) = match &error {
            CaughtError::Exception(exception) => {
                let name = exception.get::<_, String>("name").unwrap_or_default();
                let message = exception.message().unwrap_or_default();
                let stack = exception.stack().unwrap_or_default();
                (if name.is_empty() || name == "Error" { message } else { format!("{name}: {message}") }, stack)
            }
            CaughtError::Value(value) => (shown(value), String::new()),
            CaughtError::Error(error) => (error.to_string(), String::new()),
        };
        let is_reported = || match &error {
            CaughtError::Exception(exception) => {
                self.call(runtime, "isReported", (exception.clone(),)).unwrap_or(false)
            }
            _ => false,
        };
        let kind = if self.late.get() {
            FailureKind::Time
        } else if is_reported() {
            FailureKind::Reported
        } else if ["out of memory", "string too long"].iter().any(|words| message.contains(words)) || message == "null"
        {
            FailureKind::Memory
        } else if message.contains("Maximum call stack size exceeded") || message.contains("stack overflow") {
            FailureKind::Stack
        } else {
            FailureKind::Threw
        };
        Failure { kind, message: message.chars().take(500).collect(), stack }
    }

    fn call<A, R>(&self, runtime: &Object<'js>, name: &str, args: A) -> rquickjs::Result<R>
    where
        A: rquickjs::function::IntoArgs<'js>,
        R: rquickjs::FromJs<'js>,
    {
        runtime.get::<_, Function<'js>>(name)?.call(args)
    }
}

/// A thrown value that is no error.
fn shown(value: &Value<'_>) -> String {
    match value.as_string().and_then(|text| text.to_string().ok()) {
        Some(text) => text,
        None if value.is_null() => "null".to_owned(),
        None => value.as_number().map_or_else(|| value.type_name().to_owned(), |number| number.to_string()),
    }
}

/// Finds modules by the rules of [`resolve()`]. Every import was resolved before, so a refusal here is for code that made one up.
/// The files of the runtime import one another by name; nothing else can import them.
struct Specifiers;

impl Resolver for Specifiers {
    fn resolve<'js>(
        &mut self,
        _: &Ctx<'js>,
        base: &str,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<String> {
        if runtime::is_part(base) && runtime::is_part(name) {
            return Ok(name.to_owned());
        }
        match resolve(base, name) {
            Ok(Import::Runtime) => Ok(RUNTIME_MODULE.to_owned()),
            Ok(Import::File(path)) => Ok(path),
            Err(refused) => Err(Error::new_resolving_message(base, name, refused.message)),
        }
    }
}

/// The code of the modules, which was made before the run. No file is read here.
pub(crate) struct Modules {
    pub(crate) plan: HashMap<String, String>,
    /// What the runtime knows before the plan runs, as JSON.
    pub(crate) config: String,
}

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _: Option<ImportAttributes<'js>>,
    ) -> rquickjs::Result<Module<'js, Declared>> {
        if name == RUNTIME_MODULE {
            let names = operations::exports().join(",");
            return Module::declare(ctx.clone(), name, format!("export const {{{names}}} = $rankd.exports;"));
        }
        if name == runtime::CONFIG {
            return Module::declare(ctx.clone(), name, config_code(&self.config));
        }
        if name == runtime::NATIVES {
            return Module::declare(ctx.clone(), name, operations::natives());
        }
        if runtime::is_part(name) {
            return Module::declare(ctx.clone(), name, runtime::code(name));
        }
        match self.plan.remove(name) {
            Some(code) => Module::declare(ctx.clone(), name, code),
            None => Err(Error::new_loading(name)),
        }
    }
}

fn config_code(config: &str) -> String {
    let mut text = Writer::new();
    text.string(config);
    format!("export const config = JSON.parse({});", text.finish())
}
