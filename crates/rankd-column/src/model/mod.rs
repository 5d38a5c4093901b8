//! Trained ensembles of trees, compiled for columns: the bits of the library that trained them, many rows at a time. Other models score rows
//! behind an [`Evaluator`], which the program hands in.
//!
//! Knows no file format: readers hand trees to a [`Builder`]. At load each split becomes a byte column and a rank, a byte column being a
//! feature with what its splits make of missing values, so that a missing value is decided once. Reading order: [`feature`],
//! [`source`] (trees as readers hand them over), [`build`], `forest` (the compiled form), `ranks`, `members` and `derive` (values to
//! bytes), `program` and `walk` (bytes to leaves), `total` (leaves to sums), [`response`], [`score`], [`input`], [`contributions`];
//! [`evaluator`] (models that are no trees).

pub mod build;
pub mod contributions;
mod derive;
pub mod evaluator;
pub mod feature;
mod forest;
pub mod input;
mod members;
mod program;
mod ranks;
pub mod response;
pub mod score;
pub mod source;
#[cfg(test)]
mod tests;
mod total;
mod walk;

pub use build::Builder;
pub use contributions::{Contributions, NoContributions};
pub use evaluator::{BlockScorer, Evaluator, EvaluatorFault};
pub use feature::{Categories, Feature, FeatureKind};
pub use input::{ColumnInputs, Inputs, Lookups};
pub use response::{ModelOutput, Response};
pub use score::{ScoreError, ScoreScratch, Scoring};
pub use source::{Branch, Dialect, LinearLeaf, Missing, Split, SplitTest, TreeFault, TreeSource};

use forest::Forest;
use std::sync::Arc;

/// More trees than this are refused.
pub const TREES_MAX: usize = 100_000;
/// More leaves of one tree than this are refused.
pub const LEAVES_MAX: usize = 65_536;
/// More features than this are refused: each takes memory, and a file can claim any number.
pub const FEATURES_MAX: usize = 100_000;
/// More outputs than this are refused, for the same reason.
pub const OUTPUTS_MAX: usize = 4_096;

/// A model that is ready to score rows. Made by a [`Builder`], or around an [`Evaluator`]; never changed.
#[derive(Debug)]
pub struct Model {
    features: Vec<Feature>,
    objective: String,
    body: Body,
}

/// What makes scores of features.
#[derive(Debug)]
enum Body {
    Trees { forest: Box<Forest>, response: Response },
    Other(Arc<dyn Evaluator>),
}

impl Model {
    /// A model that is no trees. All of its features are read.
    pub fn of_evaluator(features: Vec<Feature>, objective: String, evaluator: Arc<dyn Evaluator>) -> Model {
        Model { features, objective, body: Body::Other(evaluator) }
    }

    /// What it reads, in the order in which inputs are numbered. Features that no split uses are among them.
    pub fn features(&self) -> &[Feature] {
        &self.features
    }

    /// Whether any split or leaf looks at this feature. One that nothing looks at is never read.
    pub fn is_used(&self, feature: usize) -> bool {
        match &self.body {
            Body::Trees { forest, .. } => {
                forest.used.binary_search_by_key(&feature, |used| used.feature as usize).is_ok()
            }
            Body::Other(_) => feature < self.features.len(),
        }
    }

    /// As the file names it; empty where the file names none.
    pub fn objective(&self) -> &str {
        &self.objective
    }

    /// How many numbers a row gets, in the order of the classes.
    pub fn outputs(&self, output: ModelOutput) -> usize {
        match (&self.body, output) {
            (Body::Trees { forest, .. }, ModelOutput::Raw) => forest.outputs,
            (Body::Trees { forest, response }, ModelOutput::Response) => response.outputs(forest.outputs),
            (Body::Other(evaluator), ModelOutput::Raw | ModelOutput::Response) => evaluator.outputs(),
        }
    }

    /// How many trees it has; nothing for what is no trees.
    pub fn trees(&self) -> Option<usize> {
        match &self.body {
            Body::Trees { forest, .. } => Some(forest.trees.len()),
            Body::Other(_) => None,
        }
    }

    /// Boosting rounds: all that the file has, which is what a score uses unless it is asked to use fewer. Nothing for what is no trees.
    pub fn iterations(&self) -> Option<usize> {
        match &self.body {
            Body::Trees { forest, .. } => Some(forest.iterations),
            Body::Other(_) => None,
        }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        let body = match &self.body {
            Body::Trees { forest, .. } => forest.bytes(),
            Body::Other(evaluator) => evaluator.bytes(),
        };
        body + self.features.iter().map(Feature::bytes).sum::<usize>()
    }
}
