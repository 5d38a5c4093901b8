//! What a graph reads and gives: its inputs as features, its outputs as numbers. Anything else than tensors of 32-bit floats with a row for
//! each row is refused by name.

use ort::session::Session;
use ort::value::{Outlet, TensorElementType, ValueType};
use rankd_column::model::{FEATURES_MAX, Feature};

/// The inputs and outputs of a model.
#[derive(Debug)]
pub(crate) struct Graph {
    pub(crate) inputs: GraphInputs,
    pub(crate) outputs: Vec<GraphOutput>,
}

/// How features go in.
#[derive(Debug)]
pub(crate) enum GraphInputs {
    /// One tensor, a row for each row and a number for each feature.
    Matrix { name: String, features: usize },
    /// A tensor for each feature.
    Columns(Vec<ColumnInput>),
}

#[derive(Debug)]
pub(crate) struct ColumnInput {
    name: String,
    /// Whether it is `[N, 1]` rather than `[N]`.
    pub(crate) has_two_dimensions: bool,
}

#[derive(Debug)]
pub(crate) struct GraphOutput {
    pub(crate) name: String,
    /// How many numbers it gives a row: as the graph declares it, and then as it was seen.
    pub(crate) numbers: Option<usize>,
}

/// A tensor of 32-bit floats with a row for each row.
enum Shape {
    /// `[N]`
    Flat,
    /// `[N, M]`, where the graph may leave open what M is.
    Table(Option<usize>),
}

impl Graph {
    /// Why a model is refused is a short sentence without a full stop.
    pub(crate) fn of(session: &Session) -> Result<Graph, String> {
        let shapes = |kind: &str, outlets: &[Outlet]| -> Result<Vec<(String, Shape)>, String> {
            let named = |outlet: &Outlet| {
                let shape = shape(outlet.dtype()).map_err(|why| format!("the {kind} {:?} {why}", outlet.name()));
                Ok((outlet.name().to_owned(), shape?))
            };
            outlets.iter().map(named).collect()
        };
        let inputs = inputs(shapes("input", session.inputs())?)?;
        let outputs = shapes("output", session.outputs())?.into_iter().map(|(name, shape)| match shape {
            Shape::Flat => GraphOutput { name, numbers: Some(1) },
            Shape::Table(numbers) => GraphOutput { name, numbers },
        });
        Ok(Graph { inputs, outputs: outputs.collect() })
    }

    /// In the order in which they are read. Those of a matrix have no names, unless it is only one.
    pub(crate) fn features(&self) -> Vec<Feature> {
        match &self.inputs {
            GraphInputs::Matrix { name, features: 1 } => vec![Feature::number(name.clone())],
            GraphInputs::Matrix { features, .. } => vec![Feature::number(""); *features],
            GraphInputs::Columns(columns) => {
                columns.iter().map(|column| Feature::number(column.name.clone())).collect()
            }
        }
    }
}

fn inputs(mut inputs: Vec<(String, Shape)>) -> Result<GraphInputs, String> {
    if let [(name, Shape::Table(features))] = &mut inputs[..] {
        let Some(features) = *features else {
            return Err(format!(
                "the input {name:?} leaves open how many features it has: export it with a fixed number"
            ));
        };
        if features == 0 || features > FEATURES_MAX {
            return Err(format!("the input {name:?} has {features} features, which is not from 1 to {FEATURES_MAX}"));
        }
        return Ok(GraphInputs::Matrix { name: std::mem::take(name), features });
    }
    if inputs.is_empty() {
        return Err("it has no input".to_owned());
    }
    let column = |(name, shape): (String, Shape)| match shape {
        Shape::Flat => Ok(ColumnInput { name, has_two_dimensions: false }),
        Shape::Table(Some(1)) => Ok(ColumnInput { name, has_two_dimensions: true }),
        Shape::Table(_) => Err(format!(
            "the input {name:?} is one of several, so it is one feature, and must be [N] or [N, 1]; one input may be [N, features]"
        )),
    };
    Ok(GraphInputs::Columns(inputs.into_iter().map(column).collect::<Result<_, _>>()?))
}

/// The shape of an input or output, or what is wrong with it.
fn shape(type_of: &ValueType) -> Result<Shape, String> {
    const WANTED: &str = "where a tensor of 32-bit floats is needed";
    let ValueType::Tensor { ty, shape, .. } = type_of else {
        return Err(format!("is {}, {WANTED}", kind(type_of)));
    };
    if *ty != TensorElementType::Float32 {
        return Err(format!("is a tensor of {ty}, {WANTED}"));
    }
    if shape.first().is_some_and(|rows| *rows >= 0) {
        return Err(format!("has the fixed shape {shape:?}: export it with as many rows as there are, [N, …]"));
    }
    match **shape {
        [_] => Ok(Shape::Flat),
        [_, numbers] => Ok(Shape::Table(usize::try_from(numbers).ok())),
        _ => Err(format!("has {} dimensions, where [N] or [N, M] is needed", shape.len())),
    }
}

fn kind(type_of: &ValueType) -> &'static str {
    match type_of {
        ValueType::Tensor { .. } => "a tensor",
        ValueType::Sequence(_) => "a sequence",
        ValueType::Map { .. } => "a map",
        ValueType::Optional(_) => "an optional value",
    }
}
