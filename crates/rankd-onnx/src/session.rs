//! A model that scores blocks of rows: a session of ONNX Runtime, on the thread that calls it and on no other.
//!
//! A session scores one block at a time, because its memory is not shared safely. As many scorings as there are at once, as many sessions
//! there are, each with the model's weights. They are kept with the memory of a scoring, so that none is made twice.

use crate::graph::{ColumnInput, Graph, GraphInputs};
use ort::environment::Environment;
use ort::logging::LogLevel;
use ort::session::{Session, SessionInputValue};
use ort::value::TensorRef;
use rankd_column::model::{BlockScorer, Evaluator, EvaluatorFault, Inputs, OUTPUTS_MAX};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Rows that are scored before a model is used, to see what it gives. Not 1, which a wrong dimension may have as well.
const MEASURED_ROWS: usize = 3;

/// Rows that columns are turned into at a time, so that the first-level cache holds them with many features.
const TURNED_ROWS: usize = 64;

/// What sessions of a model are made of.
#[derive(Clone)]
pub(crate) struct SessionSource {
    environment: Environment,
    model: Arc<[u8]>,
}

impl SessionSource {
    pub(crate) fn new(environment: Environment, model: &[u8]) -> SessionSource {
        SessionSource { environment, model: model.into() }
    }

    pub(crate) fn session(&self) -> ort::Result<Session> {
        let builder = Session::builder(&self.environment)?;
        // With one thread there is no pool: the caller's thread does everything.
        let builder = builder.with_intra_threads(1)?.with_inter_threads(1)?.with_parallel_execution(false)?;
        let builder = builder.with_intra_op_spinning(false)?.with_inter_op_spinning(false)?;
        builder.with_log_level(LogLevel::Fatal)?.commit_from_memory(&self.model)
    }

    /// The model itself. The first scoring takes the session that is there.
    pub(crate) fn evaluator(self, graph: Graph, first: Session) -> SessionEvaluator {
        let outputs = graph.outputs.iter().filter_map(|output| output.numbers).sum();
        SessionEvaluator { source: self, graph: Arc::new(graph), outputs, first: Mutex::new(Some(first)) }
    }
}

pub(crate) struct SessionEvaluator {
    source: SessionSource,
    graph: Arc<Graph>,
    outputs: usize,
    first: Mutex<Option<Session>>,
}

impl fmt::Debug for SessionEvaluator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionEvaluator").field("graph", &self.graph).finish_non_exhaustive()
    }
}

impl Evaluator for SessionEvaluator {
    fn outputs(&self) -> usize {
        self.outputs
    }

    fn bytes(&self) -> usize {
        self.source.model.len()
    }

    fn start(&self) -> Result<Box<dyn BlockScorer>, EvaluatorFault> {
        let first = self.first.lock().unwrap_or_else(PoisonError::into_inner).take();
        let session = match first {
            Some(session) => session,
            None => self.source.session().map_err(fault)?,
        };
        Ok(Box::new(SessionScorer { session, graph: self.graph.clone(), values: Vec::new(), tensors: Vec::new() }))
    }
}

struct SessionScorer {
    session: Session,
    graph: Arc<Graph>,
    values: Vec<f64>,
    /// A matrix row by row, or one column after the other.
    tensors: Vec<f32>,
}

impl BlockScorer for SessionScorer {
    fn score(
        &mut self,
        inputs: &mut dyn Inputs,
        from: usize,
        len: usize,
        out: &mut [&mut [f64]],
    ) -> Result<(), EvaluatorFault> {
        self.values.resize(len, 0.0);
        match &self.graph.inputs {
            GraphInputs::Matrix { features, .. } => {
                self.tensors.resize(len * features, 0.0);
                for (part, matrix) in self.tensors.chunks_mut(TURNED_ROWS * features).enumerate() {
                    let values = &mut self.values[..matrix.len() / features];
                    for feature in 0..*features {
                        inputs.read(feature, from + part * TURNED_ROWS, values);
                        let cells = matrix[feature..].iter_mut().step_by(*features);
                        cells.zip(&*values).for_each(|(cell, value)| *cell = *value as f32);
                    }
                }
            }
            GraphInputs::Columns(columns) => {
                self.tensors.resize(len * columns.len(), 0.0);
                for (feature, column) in self.tensors.chunks_exact_mut(len).enumerate() {
                    inputs.read(feature, from, &mut self.values);
                    column.iter_mut().zip(&self.values).for_each(|(cell, value)| *cell = *value as f32);
                }
            }
        }
        let mut next = 0;
        run(&mut self.session, &self.graph, &self.tensors, len, |at, numbers, given| {
            if self.graph.outputs[at].numbers != Some(numbers) {
                return Err(other_shape(&self.graph.outputs[at].name, numbers));
            }
            for number in 0..numbers {
                let Some(out) = out.get_mut(next + number) else { return Err(other_shape("", numbers)) };
                let given = given[number..].iter().step_by(numbers);
                out[from..from + len].iter_mut().zip(given).for_each(|(out, given)| *out = f64::from(*given));
            }
            next += numbers;
            Ok(())
        })
    }
}

fn other_shape(name: &str, numbers: usize) -> EvaluatorFault {
    EvaluatorFault(format!("the output {name:?} gives a row {numbers} numbers, which it did not before"))
}

/// Runs the graph on some rows and finds out how many numbers each output gives a row.
pub(crate) fn measure(session: &mut Session, graph: &mut Graph) -> Result<(), EvaluatorFault> {
    let tensors = vec![0.0; MEASURED_ROWS * graph.features().len()];
    let mut seen = Vec::new();
    run(session, graph, &tensors, MEASURED_ROWS, |_, numbers, _| {
        seen.push(numbers);
        Ok(())
    })?;
    let all: usize = seen.iter().sum();
    if all == 0 || all > OUTPUTS_MAX {
        return Err(EvaluatorFault(format!("it gives a row {all} numbers, which is not from 1 to {OUTPUTS_MAX}")));
    }
    graph.outputs.iter_mut().zip(seen).for_each(|(output, numbers)| output.numbers = Some(numbers));
    Ok(())
}

/// Runs the graph on rows. Each output goes to `take` with its position, how many numbers it gives a row, and those of all rows.
fn run(
    session: &mut Session,
    graph: &Graph,
    tensors: &[f32],
    rows: usize,
    mut take: impl FnMut(usize, usize, &[f32]) -> Result<(), EvaluatorFault>,
) -> Result<(), EvaluatorFault> {
    let inputs: ort::Result<Vec<SessionInputValue<'_>>> = match &graph.inputs {
        GraphInputs::Matrix { features, .. } => tensor([rows, *features], tensors).map(|matrix| vec![matrix]),
        GraphInputs::Columns(columns) => {
            let column = |(column, values): (&ColumnInput, _)| match column.has_two_dimensions {
                true => tensor([rows, 1], values),
                false => tensor([rows], values),
            };
            columns.iter().zip(tensors.chunks_exact(rows)).map(column).collect()
        }
    };
    let outputs = session.run(inputs.map_err(fault)?.as_slice()).map_err(fault)?;
    for (at, output) in graph.outputs.iter().enumerate() {
        let given =
            outputs.get(&output.name).map(|value| value.try_extract_tensor::<f32>()).transpose().map_err(fault)?;
        let Some((shape, given)) = given else {
            return Err(EvaluatorFault(format!("the output {:?} was not given", output.name)));
        };
        let numbers = match **shape {
            [of] if of as usize == rows => 1,
            [of, numbers] if of as usize == rows => numbers as usize,
            _ => {
                let message = format!("the output {:?} has the shape {shape:?} for {rows} rows", output.name);
                return Err(EvaluatorFault(format!("{message}: it must have a row for each, [N] or [N, M]")));
            }
        };
        take(at, numbers, given)?;
    }
    Ok(())
}

fn tensor<const DIMENSIONS: usize>(shape: [usize; DIMENSIONS], values: &[f32]) -> ort::Result<SessionInputValue<'_>> {
    TensorRef::from_array_view((shape, values)).map(SessionInputValue::from)
}

fn fault(error: ort::Error) -> EvaluatorFault {
    EvaluatorFault(in_words(&error))
}

/// What ONNX Runtime says, as one line.
pub(crate) fn in_words(error: &ort::Error) -> String {
    const CHARACTERS_MAX: usize = 400;
    let words: Vec<&str> = error.message().split_whitespace().collect();
    let mut words = words.join(" ");
    if let Some((end, _)) = words.char_indices().nth(CHARACTERS_MAX) {
        words.truncate(end);
        words.push('…');
    }
    words
}
