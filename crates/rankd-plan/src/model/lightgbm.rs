//! Models as LightGBM writes them: lines of `name=value`, a block of them for each tree.

use super::lightgbm_tail::{Tail, read_tail};
use super::lightgbm_tree::{Scratch, read_tree};
use super::problem::{ModelProblem, Read};
use rankd_column::model::response::Link;
use rankd_column::model::{
    Builder, Dialect, FEATURES_MAX, Feature, FeatureKind, Model, OUTPUTS_MAX, Response, TREES_MAX,
};

/// A line and where it begins.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) at: usize,
    pub(super) text: &'a str,
}

impl<'a> Line<'a> {
    pub(super) fn fail<T>(self, message: impl Into<String>) -> Read<T> {
        Err(ModelProblem::new(self.at, message))
    }

    /// Name and value.
    pub(super) fn field(self) -> Option<(&'a str, Line<'a>)> {
        let (name, value) = self.text.split_once('=')?;
        Some((name, Line { at: self.at + name.len() + 1, text: value }))
    }

    /// The words of a value.
    pub(super) fn words(self) -> impl Iterator<Item = Line<'a>> {
        let (all, at) = (self.text, self.at);
        let place = move |word: &str| word.as_ptr() as usize - all.as_ptr() as usize;
        all.split_ascii_whitespace().map(move |word| Line { at: at + place(word), text: word })
    }

    pub(super) fn parsed<T: std::str::FromStr>(self, what: &str) -> Read<T> {
        match self.text.trim().parse() {
            Ok(value) => Ok(value),
            Err(_) => self.fail(format!("expected {what}")),
        }
    }
}

/// The lines of a file, without their ends.
pub(super) struct ModelLines<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> ModelLines<'a> {
    /// Where the next line begins.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    pub(super) fn next(&mut self) -> Option<Line<'a>> {
        let rest = self.text.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (line, behind) = match rest.find('\n') {
            Some(end) => (&rest[..end], end + 1),
            None => (rest, rest.len()),
        };
        let line = Line { at: self.at, text: line.strip_suffix('\r').unwrap_or(line) };
        self.at += behind;
        Some(line)
    }

    /// The next line that is not empty.
    pub(super) fn next_full(&mut self) -> Option<Line<'a>> {
        loop {
            let line = self.next()?;
            if !line.text.trim().is_empty() {
                return Some(line);
            }
        }
    }

    pub(super) fn ended<T>(&self, where_from: &str) -> Read<T> {
        Err(ModelProblem::new(self.at, format!("the file ends {where_from}")))
    }
}

#[derive(Default)]
struct Header<'a> {
    version: Option<Line<'a>>,
    trees_a_round: Option<usize>,
    last_feature: Option<usize>,
    names: Option<Line<'a>>,
    infos: Option<Line<'a>>,
    objective: Option<Line<'a>>,
    average: bool,
}

pub(super) fn read(text: &str) -> Read<Model> {
    let mut lines = ModelLines { text, at: 0 };
    match lines.next_full() {
        Some(Line { text: "tree", .. }) => {}
        Some(line) => return line.fail("expected `tree`, the first line of a LightGBM model"),
        None => return lines.ended("before it begins"),
    }
    let mut header = Header::default();
    let mut next = header.read(&mut lines)?;
    let outputs = header.trees_a_round.unwrap_or(1);
    let names = header.feature_names(lines.at)?;
    let features: Vec<Feature> = names.iter().map(|name| Feature::number(*name)).collect();
    let response = header.response()?;
    let mut builder = Builder::new(Dialect::LightGbm, features, outputs);
    let mut scratch = Scratch::default();
    while let Some(("Tree", number)) = next.field() {
        if number.parsed::<usize>("the number of a tree")? != builder.trees() {
            return number.fail(format!("expected tree {}", builder.trees()));
        }
        if builder.trees() == TREES_MAX {
            return number.fail(format!("more than {TREES_MAX} trees"));
        }
        next = read_tree(&mut lines, next.at, outputs, &mut builder, &mut scratch)?;
    }
    if next.text != "end of trees" {
        return next.fail("expected a tree or `end of trees`");
    }
    if !builder.trees().is_multiple_of(outputs) {
        return next.fail(format!("{} trees are no whole number of rounds of {outputs}", builder.trees()));
    }
    let Tail { categories, at } = read_tail(&mut lines)?;
    let mut kinds = header.categorical(names.len())?;
    if !categories.is_empty() && categories.len() != kinds.len() {
        return Err(ModelProblem::new(
            at,
            format!(
                "`pandas_categorical` has {} lists, but {} features are categorical, so which list is whose is not known",
                categories.len(),
                kinds.len()
            ),
        ));
    }
    for (feature, list) in kinds.drain(..).zip(categories) {
        builder.set_kind(feature, FeatureKind::Category(list));
    }
    Ok(builder.finish(header.objective.map_or_else(String::new, |line| line.text.trim().to_owned()), response))
}

impl<'a> Header<'a> {
    /// Reads up to the first line that does not belong to it: a tree, or the end of all.
    fn read(&mut self, lines: &mut ModelLines<'a>) -> Read<Line<'a>> {
        loop {
            let Some(line) = lines.next_full() else { return lines.ended("in its header") };
            match line.field() {
                None if line.text == "average_output" => self.average = true,
                None if line.text == "end of trees" => return self.checked(line),
                Some(("Tree", _)) => return self.checked(line),
                Some(("version", value)) => once(&mut self.version, value, line)?,
                Some(("num_class", value)) => {
                    value.parsed::<usize>("a number of classes")?;
                }
                Some(("num_tree_per_iteration", value)) => {
                    let trees = value.parsed("a number of trees")?;
                    if trees == 0 || trees > OUTPUTS_MAX {
                        return value.fail(format!("a number of outputs that is not from 1 to {OUTPUTS_MAX}"));
                    }
                    once(&mut self.trees_a_round, trees, line)?;
                }
                Some(("max_feature_idx", value)) => once(&mut self.last_feature, value.parsed("a feature")?, line)?,
                Some(("feature_names", value)) => once(&mut self.names, value, line)?,
                Some(("feature_infos", value)) => once(&mut self.infos, value, line)?,
                Some(("objective", value)) => once(&mut self.objective, value, line)?,
                // Nothing of these is needed to score.
                Some(("label_index" | "monotone_constraints" | "tree_sizes", _)) => {}
                Some((name, _)) => return line.fail(format!("a field `{name}` that is not known here")),
                None => return line.fail("a line that is not known here"),
            }
        }
    }

    fn checked(&self, line: Line<'a>) -> Read<Line<'a>> {
        match self.version {
            Some(Line { text: "v3" | "v4", .. }) => Ok(line),
            Some(version) => version.fail(format!("version {:?} is not known; v3 and v4 are", version.text)),
            None => line.fail("the header has no `version`"),
        }
    }

    fn feature_names(&self, at: usize) -> Read<Vec<&'a str>> {
        let (Some(names), Some(last)) = (self.names, self.last_feature) else {
            return Err(ModelProblem::new(at, "the header lacks `feature_names` or `max_feature_idx`"));
        };
        let found: Vec<&str> = names.words().take(FEATURES_MAX + 1).map(|name| name.text).collect();
        match found.len() {
            n if n > FEATURES_MAX => names.fail(format!("more than {FEATURES_MAX} features")),
            n if Some(n) != last.checked_add(1) => {
                names.fail(format!("{n} feature names, but `max_feature_idx` is {last}"))
            }
            _ => Ok(found),
        }
    }

    /// The features that are categorical, by the values that the training saw: `3:1:2` and not `[0.1:7]`.
    fn categorical(&self, features: usize) -> Read<Vec<usize>> {
        let Some(infos) = self.infos else { return Ok(Vec::new()) };
        let found: Vec<Line<'_>> = infos.words().take(FEATURES_MAX + 1).collect();
        if found.len() != features {
            return infos.fail(format!("{} feature infos for {features} features", found.len()));
        }
        let categorical =
            found.iter().enumerate().filter(|(_, info)| !info.text.starts_with('[') && info.text != "none");
        Ok(categorical.map(|(at, _)| at).collect())
    }

    /// What becomes of sums. The first word names the objective, the others its settings.
    fn response(&self) -> Read<Response> {
        let respond = |link| Response { link, average: self.average, dialect: Dialect::LightGbm };
        let Some(objective) = self.objective else { return Ok(respond(Link::Identity)) };
        let mut words = objective.words();
        let Some(name) = words.next() else { return Ok(respond(Link::Identity)) };
        let (mut slope, mut sqrt) = (1.0, false);
        for word in words {
            match (name.text, word.text.split_once(':')) {
                ("binary" | "multiclassova", Some(("sigmoid", value))) => {
                    let value = Line { at: word.at + "sigmoid:".len(), text: value };
                    slope = value.parsed::<f64>("a number")?;
                    if !(slope.is_finite() && slope > 0.0) {
                        return value.fail("a sigmoid that is not above zero");
                    }
                }
                ("multiclass" | "multiclassova", Some(("num_class", _))) => {}
                (
                    "regression" | "regression_l1" | "huber" | "fair" | "quantile" | "mape" | "poisson" | "gamma"
                    | "tweedie",
                    None,
                ) if word.text == "sqrt" => sqrt = true,
                // The settings of these matter for training only.
                ("quantile" | "huber" | "fair" | "poisson" | "tweedie" | "lambdarank" | "rank_xendcg", Some(_)) => {}
                _ => return word.fail(format!("objective `{}` with a setting that is not known", name.text)),
            }
        }
        let link = match name.text {
            "regression" | "regression_l1" | "huber" | "fair" | "quantile" | "mape" if sqrt => Link::SignedSquare,
            "regression" | "regression_l1" | "huber" | "fair" | "quantile" | "mape" | "lambdarank" | "rank_xendcg"
            | "custom" => Link::Identity,
            "binary" | "multiclassova" => Link::Sigmoid { slope },
            "cross_entropy" => Link::Sigmoid { slope: 1.0 },
            "cross_entropy_lambda" => Link::Softplus,
            "multiclass" => Link::Softmax,
            "poisson" | "gamma" | "tweedie" if !sqrt => Link::Exp,
            _ => return name.fail(format!("objective `{}` is not known", name.text)),
        };
        Ok(respond(link))
    }
}

fn once<T>(field: &mut Option<T>, value: T, line: Line<'_>) -> Read<()> {
    match field.replace(value) {
        None => Ok(()),
        Some(_) => line.fail("a field that was given before"),
    }
}
