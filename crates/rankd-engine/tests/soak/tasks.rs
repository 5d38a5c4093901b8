//! Tasks that do next to nothing, fail, panic, or never end by themselves.

use crate::quiet::SCRIPTED;
use rankd_column::{Batch, RowSet};
use rankd_engine::codes;
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, Definition, Fetch, FetchContext, InputRows, LinkContext, Make};
use rankd_plan::signature::typed::Input;
use rankd_plan::signature::*;
use rankd_plan::{choices, params};
use std::time::Duration;

#[derive(Clone, Copy)]
enum Fate {
    Well,
    Fails,
    Panics,
    Endless,
}

choices! {
    enum Fates -> Fate {
        "well" => Fate::Well,
        "fails" => Fate::Fails,
        "panics" => Fate::Panics,
        "endless" => Fate::Endless,
    }
}

params! {
    struct Params {
        /// What becomes of it
        fate: Fates = "well",
        /// More rows, which are not looked at
        rhs: Option<Input>,
    }
}

fn failed() -> TaskError {
    TaskError::new(codes::INJECTED_FAILURE, "as the plan says")
}

struct Read(Fate);

impl Make for Read {
    type Params = Params;

    fn make(params: Params, _: &LinkContext<'_>) -> Read {
        Read(params.fate)
    }
}

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

impl Make for Work {
    type Params = Params;

    fn make(params: Params, _: &LinkContext<'_>) -> Work {
        assert!(params.rhs.is_none_or(|at| at > 0), "the first input is not given by a parameter");
        Work(params.fate)
    }
}

impl Compute for Work {
    fn run(&self, inputs: &mut InputRows<'_>, cx: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        match self.0 {
            Fate::Well => Ok(inputs[0].concat(&inputs[0], cx.stop())?.take(100)),
            Fate::Fails => Err(failed()),
            Fate::Panics => panic!("{SCRIPTED} a computation"),
            Fate::Endless => {
                while !cx.stop().is_set() {
                    std::hint::spin_loop();
                }
                Err(TaskError::stopped())
            }
        }
    }
}

const fn contract(inputs: Inputs, rows: RowEffect) -> Contract {
    Contract { inputs, rows, reads: &[], writes: Writes::Nothing, params: Params::PARAMS, cost: Cost::Unknown }
}

static READ: Contract = contract(Inputs::None, RowEffect::Source);
static WORK: Contract = contract(Inputs::One, RowEffect::Appended);

pub(crate) static DEFINITIONS: [Definition; 2] =
    [Definition::of::<Read, _>("read", "", &READ), Definition::of::<Work, _>("work", "", &WORK)];
