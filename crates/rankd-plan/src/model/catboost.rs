//! Models as CatBoost saves them as JSON: what stands around the trees.
//!
//! As in XGBoost's files, what the trees need to be read comes behind them, so they are read last.

use super::catboost_tree::{FloatFeature, TreeReader};
use super::problem::{ModelProblem, Read};
use super::pull::{Kind, Number, Pull};
use rankd_column::model::response::Link;
use rankd_column::model::{Builder, Dialect, FEATURES_MAX, Feature, Missing, Model, OUTPUTS_MAX, Response};

pub(super) fn read(text: &str) -> Read<Model> {
    let mut pull = Pull::json(text);
    let mut file = CatBoostFile::default();
    file.read(&mut pull)?;
    file.build(&pull)
}

/// What a file says around its trees.
#[derive(Default)]
struct CatBoostFile<'a> {
    floats: Vec<FloatFeature>,
    names: Vec<String>,
    loss: Option<(String, usize)>,
    scale: f64,
    bias: Vec<f64>,
    oblivious: Option<Pull<'a>>,
    trees: Option<Pull<'a>>,
}

impl<'a> CatBoostFile<'a> {
    fn read(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "features_info" => self.features_info(pull)?,
                "model_info" => self.model_info(pull)?,
                "oblivious_trees" => {
                    self.oblivious = Some(pull.clone());
                    pull.skip()?;
                }
                "trees" => {
                    self.trees = Some(pull.clone());
                    pull.skip()?;
                }
                "scale_and_bias" => self.scale_and_bias(pull)?,
                name => return unknown(pull, name, "a model"),
            }
        }
        pull.end()
    }

    fn features_info(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "float_features" => {
                    let mut items = pull.open_array()?;
                    while pull.item(&mut items)? {
                        self.float_feature(pull)?;
                    }
                }
                "categorical_features" | "text_features" | "embedding_features" | "ctrs" => {
                    let mut items = pull.open_array()?;
                    if pull.item(&mut items)? {
                        return pull.fail(format!("`{name}` are not read; only a model of numbers is"));
                    }
                }
                name => return unknown(pull, name, "the features"),
            }
        }
        Ok(())
    }

    fn float_feature(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let (mut name, mut index, mut flat, mut missing) = (String::new(), None, None, Missing::Goes { right: false });
        let mut fields = pull.open_object()?;
        while let Some(field) = pull.field(&mut fields)? {
            match &*field {
                "feature_id" => name = pull.string()?.into_owned(),
                "feature_index" => index = Some(place(pull)?),
                "flat_feature_index" => flat = Some(place(pull)?),
                "nan_value_treatment" => {
                    missing = match &*pull.string()? {
                        // No border is below what is no number.
                        "AsIs" | "AsFalse" => Missing::Goes { right: false },
                        "AsTrue" => Missing::Goes { right: true },
                        other => return pull.fail(format!("`nan_value_treatment` {other:?} is not known")),
                    }
                }
                "borders" | "has_nans" => pull.skip()?,
                field => return unknown(pull, field, "a feature"),
            }
        }
        let (Some(index), Some(flat)) = (index, flat) else {
            return pull.fail("a feature without `feature_index` or `flat_feature_index`");
        };
        if index != self.floats.len() || flat < self.names.len() {
            return pull.fail("features that are not in order");
        }
        self.names.resize(flat, String::new());
        self.names.push(name);
        self.floats.push(FloatFeature { feature: flat as u32, missing });
        Ok(())
    }

    /// Of all this only the loss matters.
    fn model_info(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match (&*name, pull.peek()?) {
                ("params", Kind::Object) => {
                    let mut fields = pull.open_object()?;
                    while let Some(name) = pull.field(&mut fields)? {
                        match (&*name, pull.peek()?) {
                            ("loss_function", Kind::Object) => self.loss_function(pull)?,
                            _ => pull.skip()?,
                        }
                    }
                }
                _ => pull.skip()?,
            }
        }
        Ok(())
    }

    fn loss_function(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut fields = pull.open_object()?;
        while let Some(name) = pull.field(&mut fields)? {
            match &*name {
                "type" => {
                    let at = pull.at();
                    self.loss = Some((pull.string()?.into_owned(), at));
                }
                _ => pull.skip()?,
            }
        }
        Ok(())
    }

    /// A number, and a list of them or just one.
    fn scale_and_bias(&mut self, pull: &mut Pull<'a>) -> Read<()> {
        let mut items = pull.open_array()?;
        let mut at = 0;
        while pull.item(&mut items)? {
            match (at, pull.peek()?) {
                (0, _) => self.scale = double(pull)?,
                (1, Kind::Array) => doubles(pull, &mut self.bias)?,
                (1, _) => self.bias = vec![double(pull)?],
                _ => return pull.fail("expected a scale and a bias, and nothing more"),
            }
            at += 1;
        }
        match at == 2 && (1..=OUTPUTS_MAX).contains(&self.bias.len()) {
            true => Ok(()),
            false => pull.fail(format!("expected a scale and the biases of 1 to {OUTPUTS_MAX} outputs")),
        }
    }

    fn build(self, pull: &Pull<'a>) -> Read<Model> {
        if self.bias.is_empty() {
            return pull.fail("the file has no `scale_and_bias`");
        }
        let response = self.response()?;
        let features = self.names.into_iter().map(Feature::number).collect();
        let outputs = self.bias.len();
        let mut builder = Builder::new(Dialect::CatBoost, features, outputs);
        builder.scale_and_add(self.scale, self.bias);
        let mut reader = TreeReader::new(&self.floats, outputs);
        match (self.oblivious, self.trees) {
            (Some(mut trees), None) => {
                let mut items = trees.open_array()?;
                while trees.item(&mut items)? {
                    reader.oblivious(&mut trees, &mut builder)?;
                }
            }
            (None, Some(mut trees)) => {
                let mut items = trees.open_array()?;
                while trees.item(&mut items)? {
                    reader.tree(&mut trees, &mut builder)?;
                }
            }
            _ => return pull.fail("expected either `oblivious_trees` or `trees`"),
        }
        Ok(builder.finish(self.loss.map_or_else(String::new, |(name, _)| name), response))
    }

    /// As `predict` of a regressor or ranker, and the probabilities of a classifier.
    fn response(&self) -> Read<Response> {
        let link = match &self.loss {
            None => Link::Identity,
            Some((name, at)) => match &**name {
                "RMSE" | "MAE" | "Quantile" | "MultiQuantile" | "MultiRMSE" | "MAPE" | "Expectile" | "Huber" | "Lq"
                | "YetiRank" | "YetiRankPairwise" | "PairLogit" | "PairLogitPairwise" | "QueryRMSE"
                | "QuerySoftMax" | "LambdaMart" | "StochasticRank" | "StochasticFilter" | "GroupQuantile" => {
                    Link::Identity
                }
                "Logloss" | "CrossEntropy" | "MultiClassOneVsAll" | "MultiLogloss" | "MultiCrossEntropy" => {
                    Link::Sigmoid { slope: 1.0 }
                }
                "MultiClass" => Link::Softmax,
                "Poisson" | "Tweedie" => Link::Exp,
                other => return Err(ModelProblem::new(*at, format!("the loss `{other}` is not read"))),
            },
        };
        Ok(Response { link, average: false, dialect: Dialect::CatBoost })
    }
}

pub(super) fn unknown<T>(pull: &Pull<'_>, name: &str, of: &str) -> Read<T> {
    pull.fail(format!("a field `{name}` that is not known in {of}"))
}

fn place(pull: &mut Pull<'_>) -> Read<usize> {
    match pull.number()? {
        Number::Int(value) if (0..FEATURES_MAX as i64).contains(&value) => Ok(value as usize),
        Number::Int(_) | Number::Float(_) | Number::OutOfRange => {
            pull.fail(format!("expected the number of a feature below {FEATURES_MAX}"))
        }
    }
}

/// A finite number.
pub(super) fn double(pull: &mut Pull<'_>) -> Read<f64> {
    match pull.number()? {
        Number::Int(value) => Ok(value as f64),
        Number::Float(value) if value.is_finite() => Ok(value),
        Number::Float(_) | Number::OutOfRange => pull.fail("a number that is not finite"),
    }
}

pub(super) fn doubles(pull: &mut Pull<'_>, into: &mut Vec<f64>) -> Read<()> {
    into.clear();
    let mut items = pull.open_array()?;
    while pull.item(&mut items)? {
        into.push(double(pull)?);
    }
    Ok(())
}
