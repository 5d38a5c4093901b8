//! Tasks that do next to nothing, fail, panic, or never end by themselves.

use crate::quiet::SCRIPTED;
use rankd_column::{Batch, RowSet};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Args, Compute, ComputeContext, Definition, Fetch, FetchContext, InputRows, Task};
use rankd_plan::signature::*;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone, Copy)]
enum Fate {
    Well,
    Fails,
    Panics,
    Endless,
}

fn fate(args: &Args<'_>) -> Fate {
    match &*args.text("fate") {
        "well" => Fate::Well,
        "fails" => Fate::Fails,
        "panics" => Fate::Panics,
        _ => Fate::Endless,
    }
}

fn failed() -> TaskError {
    TaskError::new(codes::INJECTED_FAILURE, "as the plan says")
}

struct Read(Fate);

impl Fetch for Read {
    async fn run(&self, _: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        tokio::task::yield_now().await;
        match self.0 {
            Fate::Well => {}
            Fate::Fails => return Err(failed()),
            Fate::Panics => panic!("{SCRIPTED} a read"),
            Fate::Endless => cx.sleep(Duration::from_secs(3600)).await,
        }
        Ok(RowSet::new(Batch::new((0..100).collect())))
    }
}

struct Work(Fate);

impl Compute for Work {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        match self.0 {
            Fate::Well => Ok(inputs[0].concat(&inputs[0]).take(100)),
            Fate::Fails => Err(failed()),
            Fate::Panics => panic!("{SCRIPTED} a computation"),
            Fate::Endless => {
                while !cx.is_stopped() {
                    std::hint::spin_loop();
                }
                Err(TaskError::stopped())
            }
        }
    }
}

const FATES: &[&str] = &["well", "fails", "panics", "endless"];
const PARAMS: &[Param] = &[
    Param { name: "fate", kind: ParamKind::Choice(FATES), need: Need::Default(Literal::Text("well")), doc: "" },
    Param { name: "rhs", kind: ParamKind::Node, need: Need::Optional, doc: "" },
];

const fn contract(inputs: Inputs, rows: RowEffect, runs: Runs) -> Contract {
    Contract { inputs, rows, reads: &[], writes: Writes::Nothing, params: PARAMS, runs, cost: Cost::Unknown }
}

static READ: Contract = contract(Inputs::None, RowEffect::Source, Runs::Loop);
static WORK: Contract = contract(Inputs::One, RowEffect::Appended, Runs::Cpu);

pub(crate) static DEFINITIONS: [Definition; 2] = [
    Definition {
        signature: Signature { op: "read", summary: "", contract: &READ },
        make: |args| Task::Fetch(Arc::new(Read(fate(args)))),
    },
    Definition {
        signature: Signature { op: "work", summary: "", contract: &WORK },
        make: |args| Task::Compute(Arc::new(Work(fate(args)))),
    },
];
