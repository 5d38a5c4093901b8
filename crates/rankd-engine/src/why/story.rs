//! The story of an item: each of its rows, from where it came in to its end.

use super::change::{Change, ChangeFinder, NoChange};
use super::dropped::Dropped;
use super::never::NotGiven;
use super::parts::{Part, Parts, written_keys};
use super::trail::{RowAt, Trail, TrailEnd, Walked};
use rankd_column::{Id, Key, Value};
use rankd_plan::Registry;
use rankd_plan::plan::NodeIx;

/// So many rows of an item are told about.
const ROWS_SHOWN: usize = 20;

/// What became of an item: what became of its best row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Answered,
    Dropped,
    Expanded,
    Grouped,
    /// No source gave it.
    Never,
    /// The run failed while it was there, or before it could be.
    Failed,
}

impl Verdict {
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Answered => "answered",
            Verdict::Dropped => "dropped",
            Verdict::Expanded => "expanded",
            Verdict::Grouped => "grouped",
            Verdict::Never => "never",
            Verdict::Failed => "failed",
        }
    }
}

/// An item that was asked about.
#[derive(Clone, Debug)]
pub struct AskedItem {
    pub id: Id,
    pub verdict: Verdict,
    /// Its rows, the best first.
    pub rows: Vec<RowStory>,
    /// How many rows it has in all.
    pub row_count: usize,
    /// Where it was in no source: each of them, and why it was not there.
    pub never: Vec<NotGiven>,
    /// Where it was dropped: a number whose change alone brings it into the answer, or why none is told.
    pub change: Option<Result<Change, NoChange>>,
}

/// One row, from where it came in to its end.
#[derive(Clone, Debug)]
pub struct RowStory {
    pub source: SourceRow,
    pub path: Vec<PathStep>,
    pub end: StoryEnd,
    /// The key that it was last ordered or picked by, and what that was made of.
    pub score: Vec<Part>,
}

/// A row where it came in.
#[derive(Clone, Debug)]
pub struct SourceRow {
    pub node: NodeIx,
    pub position: usize,
    /// What it had there.
    pub columns: Vec<(Key, Value)>,
    /// The id of the row that it was made of.
    pub parent: Option<Value>,
}

/// A node that a row went through.
#[derive(Clone, Debug)]
pub struct PathStep {
    pub node: NodeIx,
    /// Where it stood among the rows that came in, and among those that came out.
    pub before: Option<usize>,
    pub after: Option<usize>,
    /// What it was given there.
    pub written: Vec<(Key, Value)>,
}

/// How a row ended.
#[derive(Clone, Debug)]
pub enum StoryEnd {
    /// In this output, at this position.
    Answered {
        output: usize,
        position: usize,
    },
    Dropped(Box<Dropped>),
    /// New rows were made of it.
    Expanded {
        by: NodeIx,
        children: Option<usize>,
    },
    /// One new row was made of it and others.
    Grouped {
        by: NodeIx,
    },
    /// It was only looked at, by this node if any.
    Aside {
        by: Option<NodeIx>,
    },
    /// The run failed.
    Failed,
}

impl AskedItem {
    pub(super) fn of(
        walked: &Walked<'_>,
        registry: &Registry,
        id: &Id,
        changes: Option<&mut ChangeFinder<'_>>,
    ) -> AskedItem {
        let id = match (id, registry.has_text_ids()) {
            // An int is the id that its digits are.
            (Id::Int(id), true) => Id::from(&*id.to_string()),
            (id, _) => id.clone(),
        };
        let trails = walked.trails(&id);
        let verdict = match (trails.first().map(|trail| &trail.end), &walked.outcome.result) {
            (Some(TrailEnd::Answered { .. }), _) => Verdict::Answered,
            (Some(TrailEnd::Failed), _) => Verdict::Failed,
            (Some(TrailEnd::Dropped { .. }), _) => Verdict::Dropped,
            (Some(TrailEnd::Expanded { .. }), _) => Verdict::Expanded,
            (Some(TrailEnd::Grouped { .. }), _) => Verdict::Grouped,
            (Some(TrailEnd::Aside { .. }) | None, Ok(_)) => Verdict::Never,
            // What had not run yet might have given it.
            (Some(TrailEnd::Aside { .. }) | None, Err(_)) => Verdict::Failed,
        };
        let rows = trails.iter().take(ROWS_SHOWN).map(|trail| RowStory::of(walked, registry, trail)).collect();
        let never = match verdict {
            Verdict::Never => NotGiven::by_all(walked, registry, &id),
            Verdict::Answered | Verdict::Dropped | Verdict::Expanded | Verdict::Grouped | Verdict::Failed => Vec::new(),
        };
        let change = (verdict == Verdict::Dropped)
            .then(|| changes.map_or(Err(NoChange::NotRead), |changes| changes.find(&id, &trails)));
        AskedItem { id, verdict, rows, row_count: trails.len(), never, change }
    }
}

impl RowStory {
    fn of(walked: &Walked<'_>, registry: &Registry, trail: &Trail) -> RowStory {
        let Trail { places, end } = trail;
        let last = places[places.len() - 1];
        let end_step = match end {
            TrailEnd::Dropped { by, .. } | TrailEnd::Expanded { by, .. } | TrailEnd::Grouped { by } => Some(*by),
            TrailEnd::Aside { by } => *by,
            TrailEnd::Answered { .. } | TrailEnd::Failed => None,
        };
        let steps = places.windows(2).map(|pair| step(walked, registry, pair[0], pair[1]));
        let end_step =
            end_step.map(|node| PathStep { node, before: Some(last.position), after: None, written: Vec::new() });
        RowStory {
            source: source(walked, registry, places[0]),
            path: steps.chain(end_step).collect(),
            end: match end {
                TrailEnd::Answered { output } => StoryEnd::Answered { output: *output, position: last.position },
                TrailEnd::Failed => StoryEnd::Failed,
                TrailEnd::Dropped { by, input, why } => {
                    StoryEnd::Dropped(Box::new(Dropped::of(walked, registry, places, (*by, *input), why)))
                }
                TrailEnd::Expanded { by, children } => StoryEnd::Expanded { by: *by, children: *children },
                TrailEnd::Grouped { by } => StoryEnd::Grouped { by: *by },
                TrailEnd::Aside { by } => StoryEnd::Aside { by: *by },
            },
            score: match ordered_by(walked, places) {
                Some((key, place)) => Parts::new(walked, registry, places).of_key(key, place),
                None => Vec::new(),
            },
        }
    }
}

/// The key that a row was last ordered or picked by, and where on its way that was.
pub(super) fn ordered_by(walked: &Walked<'_>, places: &[RowAt]) -> Option<(Key, usize)> {
    (0..places.len()).rev().find_map(|place| {
        walked.call(places[place].node)?;
        let keys = walked.linked.written.step(places[place].node).task.orders_by();
        keys.first().map(|key| (*key, place))
    })
}

fn source(walked: &Walked<'_>, registry: &Registry, at: RowAt) -> SourceRow {
    let mut columns = Vec::new();
    let mut parent = None;
    let parent_id = registry.keys.named("parent_id").map(Key);
    if let Some(rows) = walked.rows(at.node) {
        for (key, _) in rows.batch().columns().iter().filter(|(key, _)| *key != Key::ORIGIN) {
            let value = rows.value(*key, at.position);
            match value {
                Value::Null => {}
                value if Some(*key) == parent_id => parent = Some(value),
                value => columns.push((*key, value)),
            }
        }
    }
    SourceRow { node: at.node, position: at.position, columns, parent }
}

fn step(walked: &Walked<'_>, registry: &Registry, before: RowAt, after: RowAt) -> PathStep {
    let mut written = Vec::new();
    if let (Some(seen), Some(given)) = (walked.rows(before.node), walked.rows(after.node)) {
        let declared = match walked.call(after.node) {
            Some(_) => written_keys(walked.node(after.node), registry),
            None => Vec::new(),
        };
        for (key, _) in given.batch().columns().iter().filter(|(key, _)| *key != Key::ORIGIN) {
            let value = given.value(*key, after.position);
            if declared.contains(key) || value != seen.value(*key, before.position) {
                written.push((*key, value));
            }
        }
    }
    PathStep { node: after.node, before: Some(before.position), after: Some(after.position), written }
}
