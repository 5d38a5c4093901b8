//! Scores rows block by block.
//!
//! A look at the stop comes before each block, and within a block whenever much was done. A block whose sums are not complete is as if it
//! had not been begun. Nothing is allocated once a scratch has served the model.

use super::derive::{DeriveScratch, UsedFeature, prepare};
use super::evaluator::{EvaluatorFault, StartedScorer};
use super::forest::{BLOCK, ByteLane, CompiledTree, Forest, Group, Leaves, NO_LANE, STRIP, Shape};
use super::input::Inputs;
use super::program::MASK_LEAVES_MAX;
use super::source::Dialect;
use super::total::{add_four, add_many, add_one};
use super::walk::{PLACES, leaves, many_leaves};
use super::{Body, Model, ModelOutput, evaluator};
use crate::kernel::wide::wide;
use crate::stop::{Picking, Stop, Stopped};
use std::fmt;
use std::ops::AddAssign;

/// A look at the stop comes after so many splits of a block, too.
const SPLITS_A_LOOK: usize = 1 << 16;

/// What is asked of a model.
#[derive(Clone, Copy, Debug)]
pub struct Scoring {
    pub output: ModelOutput,
    /// How many boosting rounds to use, from the first on; all where there are fewer.
    pub iterations: usize,
}

/// Working memory for one scoring at a time, of any model.
#[derive(Default)]
pub struct ScoreScratch {
    values: Vec<[f64; BLOCK]>,
    kept: Vec<[f64; BLOCK]>,
    derive: DeriveScratch,
    columns: Vec<ByteLane>,
    walk: Option<Box<WalkScratch>>,
    singles: Vec<[f32; BLOCK]>,
    doubles: Vec<[f64; BLOCK]>,
    /// Of the model that was scored last, where that is no trees.
    started: Option<StartedScorer>,
}

struct WalkScratch {
    places: [ByteLane; PLACES],
    four: [ByteLane; 4],
    many: [u32; BLOCK],
}

/// Why there are no scores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScoreError {
    /// Nobody waits for them any more.
    Stopped,
    /// What scores the rows has failed. Trees do not.
    Failed(EvaluatorFault),
}

impl std::error::Error for ScoreError {}

impl fmt::Display for ScoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScoreError::Stopped => Stopped.fmt(f),
            ScoreError::Failed(fault) => fault.fmt(f),
        }
    }
}

impl From<Stopped> for ScoreError {
    fn from(Stopped: Stopped) -> ScoreError {
        ScoreError::Stopped
    }
}

impl From<EvaluatorFault> for ScoreError {
    fn from(fault: EvaluatorFault) -> ScoreError {
        ScoreError::Failed(fault)
    }
}

impl Model {
    /// Scores rows `0..rows` of the inputs into `out`, which has a slice for each output, as long as there are rows. How many rows, from the
    /// first on, have their scores: all of them, unless there was no time for more.
    pub fn score(
        &self,
        inputs: &mut dyn Inputs,
        rows: usize,
        scoring: Scoring,
        out: &mut [&mut [f64]],
        scratch: &mut ScoreScratch,
        picking: Picking<'_>,
    ) -> Result<usize, ScoreError> {
        let (forest, response) = match &self.body {
            Body::Trees { forest, response } => (forest, response),
            Body::Other(of) => return evaluator::score(of, inputs, rows, out, &mut scratch.started, picking),
        };
        scratch.fit(forest);
        let iterations = scoring.iterations.min(forest.iterations);
        let mut done = 0;
        while done < rows {
            if !picking.goes_on(done)? {
                break;
            }
            let len = BLOCK.min(rows - done);
            scratch.read(forest, inputs, done, len);
            match scratch.sum(forest, len, iterations, picking.stop, picking.until) {
                Ok(()) => {}
                Err(Stopped) => {
                    picking.stop.check()?;
                    break;
                }
            }
            scratch.raw(forest, len);
            if scoring.output == ModelOutput::Response {
                response.apply(&mut scratch.doubles, len, iterations);
            }
            for (out, sums) in out.iter_mut().zip(&scratch.doubles) {
                out[done..done + len].copy_from_slice(&sums[..len]);
            }
            done += len;
        }
        Ok(done)
    }
}

impl ScoreScratch {
    /// Makes room for a model.
    fn fit(&mut self, forest: &Forest) {
        let kept = forest.used.iter().filter(|used| used.kept.is_some()).count();
        self.values.resize(1, [0.0; BLOCK]);
        self.kept.resize(self.kept.len().max(kept), [0.0; BLOCK]);
        self.columns.resize(self.columns.len().max(forest.columns), NO_LANE);
        self.doubles.resize(forest.outputs, [0.0; BLOCK]);
        if forest.dialect == Dialect::XgBoost {
            self.singles.resize(forest.outputs, [0.0; BLOCK]);
        }
        self.walk.get_or_insert_with(|| {
            Box::new(WalkScratch { places: [NO_LANE; PLACES], four: [NO_LANE; 4], many: [0; BLOCK] })
        });
    }

    /// Reads a block of rows and makes byte columns of it.
    pub(super) fn read(&mut self, forest: &Forest, inputs: &mut dyn Inputs, from: usize, len: usize) {
        for used in &forest.used {
            let values = match used.kept {
                Some(at) => &mut self.kept[at as usize],
                None => &mut self.values[0],
            };
            inputs.read(used.feature as usize, from, &mut values[..len]);
            derive(forest.dialect, used, values, len, &mut self.derive, &mut self.columns);
        }
    }

    /// The byte columns of the block.
    pub(super) fn columns(&self) -> &[ByteLane] {
        &self.columns
    }

    /// Makes room, for who only wants byte columns.
    pub(super) fn fit_columns(&mut self, forest: &Forest) {
        self.fit(forest);
    }

    fn sum(
        &mut self,
        forest: &Forest,
        len: usize,
        iterations: usize,
        stop: Stop<'_>,
        until: Stop<'_>,
    ) -> Result<(), Stopped> {
        let Some(walk) = &mut self.walk else { return Ok(()) };
        let mut work =
            Work { forest, columns: &self.columns, kept: &self.kept, walk, len, stop, until, left: SPLITS_A_LOOK };
        match &forest.leaves {
            Leaves::Double(values) => {
                start(&mut self.doubles, &forest.start, |start| start);
                work.groups(iterations, values, &mut self.doubles)
            }
            Leaves::Single(values) => {
                start(&mut self.singles, &forest.start, |start| start as f32);
                work.groups(iterations, values, &mut self.singles)
            }
        }
    }

    /// Raw scores from sums.
    fn raw(&mut self, forest: &Forest, len: usize) {
        if let Leaves::Single(_) = forest.leaves {
            for (doubles, singles) in self.doubles.iter_mut().zip(&self.singles) {
                doubles.iter_mut().zip(singles).for_each(|(double, single)| *double = f64::from(*single));
            }
        }
        for (doubles, bias) in self.doubles.iter_mut().zip(&forest.bias) {
            doubles[..len].iter_mut().for_each(|sum| *sum = *sum * forest.scale + bias);
        }
    }
}

fn derive(
    dialect: Dialect,
    used: &UsedFeature,
    values: &mut [f64; BLOCK],
    len: usize,
    scratch: &mut DeriveScratch,
    columns: &mut [ByteLane],
) {
    // What is behind the last row is worked on, too, as far as the strip goes.
    let values = &mut values[..len.next_multiple_of(STRIP)];
    wide(
        #[inline(always)]
        || {
            prepare(dialect, values);
            used.derive(dialect, values, len, scratch, columns);
        },
    );
}

fn start<T: Copy>(sums: &mut [[T; BLOCK]], start: &[f64], number: fn(f64) -> T) {
    sums.iter_mut().zip(start).for_each(|(sums, start)| *sums = [number(*start); BLOCK]);
}

/// The work on one block.
struct Work<'a> {
    forest: &'a Forest,
    columns: &'a [ByteLane],
    kept: &'a [[f64; BLOCK]],
    walk: &'a mut WalkScratch,
    len: usize,
    stop: Stop<'a>,
    until: Stop<'a>,
    /// How many splits until the next look.
    left: usize,
}

impl Work<'_> {
    fn groups<T: Copy + AddAssign + Narrow>(
        &mut self,
        iterations: usize,
        values: &[T],
        sums: &mut [[T; BLOCK]],
    ) -> Result<(), Stopped> {
        for group in &self.forest.groups {
            let trees = self.forest.trees_of(group, iterations);
            if !self.forest.linear.is_empty() {
                trees.iter().try_for_each(|tree| self.formulas(tree, group, sums))?;
                continue;
            }
            let (fours, rest) = trees.as_chunks::<4>();
            for four in fours {
                self.look(four)?;
                match four.iter().all(|tree| tree.leaf_count as usize <= MASK_LEAVES_MAX) {
                    true => self.four(four, group, values, sums),
                    false => four.iter().for_each(|tree| self.one(tree, group, values, sums)),
                }
            }
            self.look(rest)?;
            rest.iter().for_each(|tree| self.one(tree, group, values, sums));
        }
        Ok(())
    }

    fn look(&mut self, trees: &[CompiledTree]) -> Result<(), Stopped> {
        let splits: usize = trees.iter().map(|tree| tree.leaf_count as usize).sum();
        if self.left < splits {
            self.stop.check()?;
            self.until.check()?;
            self.left = SPLITS_A_LOOK;
        }
        self.left = self.left.saturating_sub(splits);
        Ok(())
    }

    fn four<T: Copy + AddAssign>(
        &mut self,
        trees: &[CompiledTree; 4],
        group: &Group,
        values: &[T],
        sums: &mut [[T; BLOCK]],
    ) {
        let (forest, columns, walk, strips) = (self.forest, self.columns, &mut *self.walk, self.len.div_ceil(STRIP));
        wide(
            #[inline(always)]
            || {
                for (tree, lane) in trees.iter().zip(&mut walk.four) {
                    if let Shape::Leaf = tree.shape {
                        *lane = NO_LANE;
                    }
                    leaves(forest, tree, columns, strips, &mut walk.places, lane);
                }
                for (output, sums) in sums[group.outputs.clone()].iter_mut().enumerate() {
                    let tables = trees.map(|tree| tree.leaves + output * tree.leaf_count as usize);
                    add_four(&mut sums[..strips * STRIP], values, tables, &walk.four);
                }
            },
        );
    }

    fn one<T: Copy + AddAssign>(&mut self, tree: &CompiledTree, group: &Group, values: &[T], sums: &mut [[T; BLOCK]]) {
        let (forest, columns, walk, len) = (self.forest, self.columns, &mut *self.walk, self.len);
        let few = tree.leaf_count as usize <= MASK_LEAVES_MAX;
        wide(
            #[inline(always)]
            || {
                if few {
                    walk.four[0] = NO_LANE;
                    leaves(forest, tree, columns, len.div_ceil(STRIP), &mut walk.places, &mut walk.four[0]);
                } else {
                    many_leaves(forest, tree, columns, len, &mut walk.many);
                }
                for (output, sums) in sums[group.outputs.clone()].iter_mut().enumerate() {
                    let table = tree.leaves + output * tree.leaf_count as usize;
                    if few {
                        add_one(sums, values, table, &walk.four[0]);
                    } else {
                        add_many(&mut sums[..len], &values[table..], &walk.many);
                    }
                }
            },
        );
    }

    /// A tree whose leaves have formulas.
    fn formulas<T: AddAssign + Narrow>(
        &mut self,
        tree: &CompiledTree,
        group: &Group,
        sums: &mut [[T; BLOCK]],
    ) -> Result<(), Stopped> {
        self.look(std::slice::from_ref(tree))?;
        many_leaves(self.forest, tree, self.columns, self.len, &mut self.walk.many);
        let first = tree.first_leaf as usize;
        for (row, leaf) in self.walk.many[..self.len].iter().enumerate() {
            let formula = &self.forest.linear[first + *leaf as usize];
            let mut value = formula.constant;
            for (feature, factor) in &formula.terms {
                value += factor * self.kept[*feature as usize][row];
            }
            if formula.terms.iter().any(|(feature, _)| self.kept[*feature as usize][row].is_nan()) {
                value = self.forest.leaves.value(tree.leaves + *leaf as usize);
            }
            sums[group.outputs.start][row] += T::narrow(value);
        }
        Ok(())
    }
}

/// A number as sums have it.
trait Narrow {
    fn narrow(value: f64) -> Self;
}

impl Narrow for f64 {
    fn narrow(value: f64) -> f64 {
        value
    }
}

impl Narrow for f32 {
    fn narrow(value: f64) -> f32 {
        value as f32
    }
}
