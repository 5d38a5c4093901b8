//! Computations that say how dear they are, rightly or wrongly.

use rankd_column::{Batch, RowSet};
use rankd_engine::clock::{self, Instant};
use rankd_engine::error::TaskError;
use rankd_engine::task::{Compute, ComputeContext, Definition, InputRows, Maker};
use rankd_plan::signature::*;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// When each `spin` began.
pub(crate) static STARTS: Mutex<Vec<Instant>> = Mutex::new(Vec::new());

/// Whether `moody` takes 5 ms or nothing.
pub(crate) static SLOW: AtomicBool = AtomicBool::new(false);

struct Body(fn());

impl Compute for Body {
    fn run(&self, inputs: &mut InputRows<'_>, _: &mut ComputeContext<'_>) -> Result<RowSet, TaskError> {
        (self.0)();
        let empty = inputs.iter().next().is_none();
        Ok(if empty { RowSet::new(Batch::new(vec![1, 2, 3])) } else { inputs.take(0) })
    }
}

fn spin_for(duration: Duration) {
    let began = clock::now();
    while clock::now() - began < duration {
        std::hint::spin_loop();
    }
}

const fn contract(inputs: Inputs, rows: RowEffect, cost: Cost) -> Contract {
    Contract { inputs, rows, reads: &[], writes: Writes::Nothing, params: &[], cost }
}

const CHEAP: Cost = Cost::About { fixed_ns: 500.0, per_row_ns: 0.0 };

static FIRST: Contract = contract(Inputs::None, RowEffect::Source, Cost::Trivial);
static PASS: Contract = contract(Inputs::One, RowEffect::Same, Cost::Trivial);
static SPIN: Contract = contract(Inputs::One, RowEffect::Same, CHEAP);

macro_rules! definition {
    ($op:literal, $contract:expr, $body:expr) => {
        Definition {
            signature: Signature { op: $op, summary: "", contract: $contract },
            maker: Maker::Compute(|_| Arc::new(Body($body))),
        }
    };
}

pub(crate) static DEFINITIONS: [Definition; 4] = [
    definition!("first", &FIRST, || {}),
    definition!("pass", &PASS, || {}),
    definition!("spin", &SPIN, || {
        STARTS.lock().unwrap().push(clock::now());
        spin_for(Duration::from_millis(1));
    }),
    definition!("moody", &SPIN, || {
        if SLOW.load(Ordering::Relaxed) {
            spin_for(Duration::from_millis(5));
        }
    }),
];
