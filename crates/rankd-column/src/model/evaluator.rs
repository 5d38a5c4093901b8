//! Models that are no trees: a library behind two small traits scores blocks of rows. Which library that is, is not known here.
//!
//! Calls through the traits are one a block, never one a row. Trees do not come this way.

use super::forest::BLOCK;
use super::input::Inputs;
use super::score::ScoreError;
use crate::stop::Picking;
use std::fmt;
use std::sync::Arc;

/// What scores the rows of a model.
pub trait Evaluator: Send + Sync + fmt::Debug {
    /// How many numbers a row gets.
    fn outputs(&self) -> usize;

    /// About how many bytes it takes.
    fn bytes(&self) -> usize;

    /// Makes ready to score blocks, one at a time. There are as many of these as there are scorings at once, and they are kept from one scoring to
    /// the next.
    fn start(&self) -> Result<Box<dyn BlockScorer>, EvaluatorFault>;
}

/// Scores blocks of rows, for one scoring at a time.
pub trait BlockScorer: Send {
    /// Scores `len` rows of the inputs, from `from` on, into the same rows of `out`, which has a slice for each output.
    fn score(
        &mut self,
        inputs: &mut dyn Inputs,
        from: usize,
        len: usize,
        out: &mut [&mut [f64]],
    ) -> Result<(), EvaluatorFault>;
}

/// Why rows could not be scored, in a short sentence without a full stop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvaluatorFault(pub String);

impl std::error::Error for EvaluatorFault {}

impl fmt::Display for EvaluatorFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What was started, and for which evaluator.
pub(super) struct StartedScorer {
    of: Arc<dyn Evaluator>,
    scorer: Box<dyn BlockScorer>,
}

/// Scores all rows block by block, with a look at the stop before each. Says how many have their scores.
pub(super) fn score(
    evaluator: &Arc<dyn Evaluator>,
    inputs: &mut dyn Inputs,
    rows: usize,
    out: &mut [&mut [f64]],
    kept: &mut Option<StartedScorer>,
    picking: Picking<'_>,
) -> Result<usize, ScoreError> {
    let started = match kept.take().filter(|kept| Arc::ptr_eq(&kept.of, evaluator)) {
        Some(started) => started,
        None => StartedScorer { of: evaluator.clone(), scorer: evaluator.start()? },
    };
    let scorer = &mut kept.insert(started).scorer;
    let mut done = 0;
    while done < rows && picking.goes_on(done)? {
        let len = BLOCK.min(rows - done);
        if let Err(fault) = scorer.score(inputs, done, len, out) {
            // One that has failed is not used again.
            *kept = None;
            return Err(fault.into());
        }
        done += len;
    }
    Ok(done)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Feature, Model, ModelOutput, NoContributions, ScoreScratch, Scoring};
    use crate::stop::Stop;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    /// Adds its two features. Fails at a row whose sum is negative.
    #[derive(Debug, Default)]
    struct Adder {
        started: Arc<AtomicUsize>,
    }

    struct AdderScorer {
        stop: Arc<AtomicBool>,
    }

    static STOP: std::sync::OnceLock<Arc<AtomicBool>> = std::sync::OnceLock::new();

    impl Evaluator for Adder {
        fn outputs(&self) -> usize {
            1
        }

        fn bytes(&self) -> usize {
            8
        }

        fn start(&self) -> Result<Box<dyn BlockScorer>, EvaluatorFault> {
            self.started.fetch_add(1, Ordering::Relaxed);
            Ok(Box::new(AdderScorer { stop: STOP.get_or_init(Arc::default).clone() }))
        }
    }

    impl BlockScorer for AdderScorer {
        fn score(
            &mut self,
            inputs: &mut dyn Inputs,
            from: usize,
            len: usize,
            out: &mut [&mut [f64]],
        ) -> Result<(), EvaluatorFault> {
            assert!(len <= 256, "a block");
            let mut values = vec![0.0; len];
            out[0][from..from + len].fill(0.0);
            for feature in 0..2 {
                inputs.read(feature, from, &mut values);
                out[0][from..from + len].iter_mut().zip(&values).for_each(|(sum, value)| *sum += value);
            }
            // As if somebody had given up meanwhile.
            self.stop.store(true, Ordering::Relaxed);
            let bad = out[0][from..from + len].iter().position(|sum| *sum < 0.0);
            bad.map_or(Ok(()), |at| Err(EvaluatorFault(format!("row {} is negative", from + at))))
        }
    }

    #[test]
    fn blocks_are_scored_until_somebody_stops_or_the_evaluator_fails() {
        let started = Arc::<AtomicUsize>::default();
        let features = vec![Feature::number("a"), Feature::number("b")];
        let model = Model::of_evaluator(features, String::new(), Arc::new(Adder { started: started.clone() }));
        assert!(model.is_used(1) && !model.is_used(2));
        assert_eq!((model.trees(), model.iterations(), model.outputs(ModelOutput::Raw)), (None, None, 1));
        let (mut scratch, mut scores) = (ScoreScratch::default(), vec![-1.0; 600]);
        let mut score = |bad: usize, scores: &mut [f64], picking: Picking<'_>| {
            let mut inputs = |feature: usize, from: usize, values: &mut [f64]| {
                let value = |row: usize| if row == bad { -1e9 } else { (row * (feature + 1)) as f64 };
                values.iter_mut().enumerate().for_each(|(at, into)| *into = value(from + at));
            };
            let scoring = Scoring { output: ModelOutput::Response, iterations: usize::MAX };
            model.score(&mut inputs, 600, scoring, &mut [scores], &mut scratch, picking)
        };
        assert_eq!(score(usize::MAX, &mut scores, Picking::default()), Ok(600));
        assert!(scores.iter().enumerate().all(|(row, score)| *score == (row * 3) as f64));
        let stop = STOP.get_or_init(Arc::default).clone();
        // Nobody waits any more after the first block; or there is only time for the first.
        stop.store(false, Ordering::Relaxed);
        let (given_up, until) = (Stop::when(&stop), Stop::default());
        assert_eq!(
            score(usize::MAX, &mut scores, Picking { stop: given_up, until, ..Picking::default() }),
            Err(ScoreError::Stopped)
        );
        stop.store(false, Ordering::Relaxed);
        assert_eq!(
            score(usize::MAX, &mut scores, Picking { stop: until, until: given_up, ..Picking::default() }),
            Ok(256)
        );
        assert_eq!(started.load(Ordering::Relaxed), 1, "what was started is kept, also where a scoring was stopped");
        let fault = EvaluatorFault("row 300 is negative".to_owned());
        assert_eq!(score(300, &mut scores, Picking::default()), Err(ScoreError::Failed(fault)));
        assert_eq!(score(usize::MAX, &mut scores, Picking::default()), Ok(600));
        assert_eq!(started.load(Ordering::Relaxed), 2, "one that has failed is not used again");
        let mut inputs = |_: usize, _: usize, _: &mut [f64]| {};
        let explained =
            model.contributions(&mut inputs, 0, 0..1, usize::MAX, &mut ScoreScratch::default(), Stop::default());
        assert_eq!(explained, Err(NoContributions::NoTrees));
    }
}
