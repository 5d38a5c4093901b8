//! Several steps over the same rows in one pass: each chunk goes through all of them while it is in the cache.
//!
//! A pass gives exactly what its parts give one after the other: the same rows, the same columns, the same error of the same
//! part. A chunk in which a part fails is not the end: an earlier part may fail on a later chunk, and one after the other it
//! would have been first. So after a failure the parts before it see the rest of the rows, and nothing else does.
//!
//! Shape: columns computed and rows filtered in any order, then a sort, then a take. A sort with a take keeps only the best
//! rows as it goes. A take without a sort ends the pass early where no part before it can fail on a row.
//!
//! Columns are made for as many rows as the batch has. So that a few rows of a large batch do not cost a column as long as that, rows
//! that are a small part of their batch are gathered into one of their own before columns are made: at the start, and where a
//! column is made after a filter over many rows.

use crate::batch::Key;
use crate::expr::compile::Program;
use crate::expr::eval::{CHUNK, EvalError, Evaluation, Tested};
use crate::expr::frame::{Bound, Frame};
use crate::expr::output::Made;
use crate::expr::run_values::RunValues;
use crate::expr::scratch::Scratch;
use crate::expr::step::Memos;
use crate::kernel::compact::{compact, give_back, make_room, room_for};
use crate::kernel::sort::Order;
use crate::kernel::top::Best;
use crate::kernel::wide::wide;
use crate::rowset::{RowSet, Rows};
use crate::stop::{Looks, Stop, Stopped};
use crate::value::Type;
use std::fmt;
use std::mem::{swap, take};
use std::sync::Arc;

/// More parts than this make several passes: what a run does between two looks at the clock stays bounded.
pub const PARTS_MAX: usize = 32;

/// One step of a pass.
#[derive(Clone, Debug)]
pub enum Part {
    /// Writes a column. It does not see the columns of so many parts right before it: several that are computed of the same rows.
    Compute { key: Key, program: Arc<Program>, siblings: u16 },
    /// Keeps the rows for which a predicate holds.
    Filter { program: Arc<Program> },
    /// Orders the rows, stable, nulls last.
    Sort { key: Key, order: Order },
    /// Keeps the first rows.
    Take { count: usize },
}

impl Part {
    /// What the part evaluates for each row, if anything.
    pub fn program(&self) -> Option<&Arc<Program>> {
        match self {
            Part::Compute { program, .. } | Part::Filter { program } => Some(program),
            Part::Sort { .. } | Part::Take { .. } => None,
        }
    }

    /// Whether it sees what the part before it gives.
    pub fn begins(&self) -> bool {
        match self {
            Part::Compute { siblings, .. } => *siblings == 0,
            Part::Filter { .. } | Part::Sort { .. } | Part::Take { .. } => true,
        }
    }

    fn siblings(&self) -> usize {
        match self {
            Part::Compute { siblings, .. } => usize::from(*siblings),
            Part::Filter { .. } | Part::Sort { .. } | Part::Take { .. } => 0,
        }
    }

    fn reads(&self, key: Key) -> bool {
        match self {
            Part::Compute { program, .. } | Part::Filter { program } => program.columns.contains(&key),
            Part::Sort { key: sorted, .. } => *sorted == key,
            Part::Take { .. } => false,
        }
    }

    /// The key of a string column that the part makes. Its strings get their numbers at the end, so no other part can read it.
    fn makes_strings(&self) -> Option<Key> {
        match self {
            Part::Compute { key, program, .. } if program.result == Some(Type::Str) => Some(*key),
            _ => None,
        }
    }
}

/// Which part failed, and why.
#[derive(Clone, Debug, PartialEq)]
pub struct PassError {
    pub part: usize,
    pub error: EvalError,
}

impl std::error::Error for PassError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.error)
    }
}

impl fmt::Display for PassError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "part {} of the pass: {}", self.part, self.error)
    }
}

/// Parts that run together.
#[derive(Debug)]
pub struct Pass {
    parts: Vec<Part>,
    /// How many parts at the front evaluate programs.
    evaluated: usize,
    /// The keys of the columns that are made, in the order of their parts.
    made: Vec<Key>,
    sort: Option<(Key, Order)>,
    take: Option<usize>,
    /// No part can fail on a row.
    infallible: bool,
    /// The columns that are needed of rows that are gathered; `None` for all.
    live: Option<Arc<[Key]>>,
    /// The same parts as two passes, for many rows: up to the filter after which a column is made, and the rest.
    halves: Option<Box<[Pass; 2]>>,
}

/// So many rows are filtered first, in a pass of their own, if a column is made of those that are left.
const FILTERED_FIRST: usize = 1 << 15;

impl Pass {
    /// How many of these parts, from the first on, one pass can take.
    pub fn reach(parts: &[Part]) -> usize {
        let mut strings: Vec<Key> = Vec::new();
        let (mut fitting, mut seen) = (0_usize, 0);
        for part in parts.iter().take(PARTS_MAX) {
            if part.begins() {
                seen = strings.len();
            }
            if strings[..seen].iter().any(|key| part.reads(*key)) {
                break;
            }
            strings.extend(part.makes_strings());
            fitting += 1;
        }
        // Parts that are computed of the same rows stay together.
        fitting = fitting.saturating_sub(parts.get(fitting).map_or(0, Part::siblings));
        let parts = &parts[..fitting];
        let evaluated = parts.iter().take_while(|part| part.program().is_some()).count();
        let sorted = evaluated + usize::from(matches!(parts.get(evaluated), Some(Part::Sort { .. })));
        sorted + usize::from(matches!(parts.get(sorted), Some(Part::Take { .. })))
    }

    /// The pass of these parts; `None` when they do not fit into one.
    pub fn new(parts: Vec<Part>) -> Option<Pass> {
        Pass::with_live(parts, None)
    }

    /// The same where the columns are known that the parts, or what comes after them, need of the rows; `None` for all.
    pub fn with_live(parts: Vec<Part>, live: Option<Arc<[Key]>>) -> Option<Pass> {
        if parts.is_empty() || Pass::reach(&parts) < parts.len() {
            return None;
        }
        let pass = Pass::whole(parts, live)?;
        let halves = pass.halves().map(Box::new);
        Some(Pass { halves, ..pass })
    }

    /// The pass in two. A take at the end that bounds the work of all parts bounds that of the filters, too.
    fn halves(&self) -> Option<[Pass; 2]> {
        let is_filter = |part: &Part| matches!(part, Part::Filter { .. });
        let filtered = self.parts.iter().position(is_filter)?;
        let made = self.parts[filtered..].iter().position(|part| matches!(part, Part::Compute { .. }))?;
        let (first, rest) = self.parts.split_at(filtered + made);
        let mut first = first.to_vec();
        if self.takes_early() {
            // Which rows are taken is known before the columns are made only where no filter comes after.
            if rest.iter().any(is_filter) {
                return None;
            }
            first.extend(self.take.map(|count| Part::Take { count }));
        }
        Some([Pass::whole(first, self.live.clone())?, Pass::with_live(rest.to_vec(), self.live.clone())?])
    }

    fn whole(parts: Vec<Part>, live: Option<Arc<[Key]>>) -> Option<Pass> {
        let programs = parts.iter().filter_map(Part::program);
        let (evaluated, infallible) =
            (programs.clone().count(), programs.clone().all(|program| program.is_infallible()));
        let made = parts.iter().filter_map(|part| match part {
            Part::Compute { key, .. } => Some(*key),
            _ => None,
        });
        let made = made.collect();
        let sort = parts.iter().find_map(|part| match part {
            Part::Sort { key, order } => Some((*key, *order)),
            _ => None,
        });
        let take = parts.iter().find_map(|part| match part {
            Part::Take { count } => Some(*count),
            _ => None,
        });
        Some(Pass { parts, evaluated, made, sort, take, infallible, live, halves: None })
    }

    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// How many groups of parts that see the same rows come before the group of this part.
    pub fn group_of(&self, part: usize) -> usize {
        self.parts.iter().take(part + 1).filter(|part| part.begins()).count().saturating_sub(1)
    }

    /// Whether a take at the end bounds the work of the parts before it: nothing is evaluated for rows that cannot be taken.
    pub fn takes_early(&self) -> bool {
        self.take.is_some() && self.sort.is_none() && self.infallible
    }

    /// Whether a sort and a take at the end keep only the best rows.
    pub fn picks_best(&self) -> bool {
        self.take.is_some() && self.sort.is_some()
    }

    /// Runs all parts. How many rows each gave is in the scratch afterwards, and how long each took where the scratch times them: what
    /// comes before the first chunk counts for the first part, and what follows the last chunk for the last.
    pub fn run(
        &self,
        rows: &RowSet,
        run: RunValues<'_>,
        scratch: &mut Scratch,
        stop: Stop<'_>,
    ) -> Result<RowSet, PassError> {
        let filters = self.parts.iter().any(|part| matches!(part, Part::Filter { .. }));
        let enough = self.take.filter(|_| self.takes_early());
        let first = enough.filter(|_| !filters).map(|count| rows.take(count));
        let rows = first.as_ref().unwrap_or(rows);
        if let Some(halves) = self.halves.as_deref().filter(|_| rows.len() >= FILTERED_FIRST) {
            return Pass::run_halves(halves, rows, run, scratch, stop);
        }
        let gathers = !self.made.is_empty() && rows.is_narrow();
        let gathered = gathers.then(|| self.gather(rows, stop)).transpose().map_err(stopped_at(0))?;
        let rows = gathered.as_ref().unwrap_or(rows);
        let mut walk = Walk::start(self, rows, run, scratch, stop).map_err(stopped_at(self.evaluated))?;
        let view = rows.rows();
        let (mut done, mut looks) = (0, stop.looks());
        while done < view.len() && !(filters && enough.is_some_and(|enough| walk.kept.len() >= enough)) {
            let chunk = view.slice(done, CHUNK.min(view.len() - done));
            make_room(&mut walk.kept, if walk.keeps { chunk.len() } else { 0 }, done, view.len());
            walk.chunk(chunk, scratch, stop, &mut looks)?;
            done += chunk.len();
        }
        let result = walk.finish(filters, done, &mut scratch.rows_out, stop);
        scratch.times.spent_on(self.parts.len() - 1);
        if let Err(PassError { part, .. }) = &result {
            scratch.rows_out.truncate(*part);
        }
        result
    }
}

impl Pass {
    fn gather(&self, rows: &RowSet, stop: Stop<'_>) -> Result<RowSet, Stopped> {
        rows.gathered(|key| self.live.as_ref().is_none_or(|live| live.contains(&key)), stop)
    }

    /// One half and then the other: all of its rows go through the first before any goes through the second.
    fn run_halves(
        [first, rest]: &[Pass; 2],
        rows: &RowSet,
        run: RunValues<'_>,
        scratch: &mut Scratch,
        stop: Stop<'_>,
    ) -> Result<RowSet, PassError> {
        let rows = first.run(rows, run, scratch, stop)?;
        let (mut rows_out, mut nanos) = (scratch.rows_out.clone(), scratch.times.nanos.clone());
        // A take that was put forward is a part of the rest.
        rows_out.truncate(first.evaluated);
        nanos.truncate(first.evaluated);
        let result = rest.run(&rows, run, scratch, stop);
        rows_out.append(&mut scratch.rows_out);
        nanos.append(&mut scratch.times.nanos);
        (scratch.rows_out, scratch.times.nanos) = (rows_out, nanos);
        result.map_err(|failed| PassError { part: first.evaluated + failed.part, ..failed })
    }
}

/// A pass on its way through the rows.
struct Walk<'a> {
    pass: &'a Pass,
    rows: &'a RowSet,
    /// By part, as far as parts are still evaluated: those before the one that failed.
    frames: Vec<Frame<'a>>,
    /// The columns that are made, in the order of their parts.
    made: Vec<Made>,
    /// The rows that came through all filters, where they are not offered to `best`.
    kept: Vec<u32>,
    /// Whether there are such rows.
    keeps: bool,
    best: Option<Picked<'a>>,
    failed: Option<PassError>,
}

impl<'a> Walk<'a> {
    /// Only being stopped is an error here.
    fn start(
        pass: &'a Pass,
        rows: &'a RowSet,
        run: RunValues<'a>,
        scratch: &mut Scratch,
        stop: Stop<'_>,
    ) -> Result<Walk<'a>, Stopped> {
        scratch.rows_out.clear();
        scratch.rows_out.resize(pass.parts.len(), 0);
        scratch.times.start(pass.parts.len());
        let frames = Vec::with_capacity(pass.evaluated);
        let made = Vec::with_capacity(pass.made.len());
        let mut walk = Walk { pass, rows, frames, made, kept: Vec::new(), keeps: false, best: None, failed: None };
        let (mut filtered, mut first_memo) = (false, Memos::default());
        for (at, part) in pass.parts.iter().enumerate() {
            let Some(program) = part.program() else { break };
            let seen = walk.made.len() - part.siblings().min(walk.made.len());
            match Frame::bind(program, rows, &pass.made[..seen], run, stop) {
                Ok(mut frame) => {
                    frame.first_memo = first_memo;
                    scratch.prepare(&frame);
                    first_memo = first_memo.after(program.memos);
                    walk.frames.push(frame);
                }
                Err(error) => {
                    walk.failed = Some(PassError { part: at, error });
                    return Ok(walk);
                }
            }
            match part {
                Part::Compute { .. } => walk.made.push(Made::new(program, rows, !filtered)),
                _ => filtered = true,
            }
        }
        walk.best = Picked::start(&walk, stop)?;
        if walk.best.is_none() && filtered {
            walk.keeps = true;
            walk.kept = room_for(match pass.take {
                Some(count) if pass.takes_early() => rows.len().min(count.saturating_add(CHUNK)),
                _ => rows.len(),
            });
        }
        Ok(walk)
    }

    /// Takes a chunk of the view through all parts. Being stopped is the only error that ends the walk at once.
    fn chunk(
        &mut self,
        view: Rows<'_>,
        scratch: &mut Scratch,
        stop: Stop<'_>,
        looks: &mut Looks<'_>,
    ) -> Result<(), PassError> {
        if self.frames.is_empty() {
            looks.before(view.len()).map_err(stopped_at(0))?;
        }
        let [mut kept, mut keeping] = take(&mut scratch.kept);
        let (mut made, mut filtered) = (0, false);
        for at in 0..self.frames.len() {
            let rows = if filtered { Rows::Listed(&kept) } else { view };
            if rows.is_empty() {
                break;
            }
            looks.before(rows.len()).map_err(stopped_at(at))?;
            let batch = self.rows.batch();
            let result = match &self.pass.parts[at] {
                Part::Compute { .. } => {
                    let (before, making) = self.made.split_at_mut(made);
                    made += 1;
                    let evaluation = Evaluation { frame: &self.frames[at], batch, made: before, stop };
                    evaluation.chunk(rows, scratch, &mut making[0])
                }
                _ => {
                    let last = at + 1 == self.pass.evaluated;
                    let mut best = self.best.as_mut().filter(|_| last);
                    let made = &self.made;
                    let (mut out, mut offered) = (0, Ok(()));
                    keeping.clear();
                    let then = |rows: Rows<'_>, holds: &[bool]| match &mut best {
                        Some(best) => {
                            out += count(holds);
                            offered = best.offer(made, rows, Some(holds), stop);
                        }
                        None => {
                            compact(holds, rows, &mut keeping);
                            out += keeping.len();
                        }
                    };
                    let evaluation = Evaluation { frame: &self.frames[at], batch, made, stop };
                    let root = evaluation.frame.program.root;
                    let result = evaluation.chunk(rows, scratch, &mut Tested { root, then });
                    offered.map_err(stopped_at(at))?;
                    scratch.rows_out[at] += out;
                    swap(&mut kept, &mut keeping);
                    filtered = true;
                    result
                }
            };
            scratch.times.spent_on(at);
            if let Err(error) = result {
                self.failed = Some(PassError { part: at, error });
                self.frames.truncate(at);
                break;
            }
        }
        if self.failed.is_none() {
            let rows = if filtered { Rows::Listed(&kept) } else { view };
            match &mut self.best {
                Some(best) if !best.after_filter => {
                    best.offer(&self.made, rows, None, stop).map_err(stopped_at(self.pass.evaluated))?;
                    scratch.times.spent_on(self.pass.evaluated);
                }
                Some(_) => {}
                None if filtered => self.kept.extend_from_slice(&kept),
                None => {}
            }
        }
        scratch.kept = [kept, keeping];
        Ok(())
    }

    /// What the parts gave, once all rows were seen, of which there are `seen`.
    fn finish(self, filtered: bool, seen: usize, rows_out: &mut [usize], stop: Stop<'_>) -> Result<RowSet, PassError> {
        let mut out = seen;
        for (part, rows_out) in self.pass.parts.iter().zip(rows_out.iter_mut()) {
            match part {
                Part::Filter { .. } => out = *rows_out,
                Part::Take { count } => *rows_out = out.min(*count),
                Part::Compute { .. } | Part::Sort { .. } => *rows_out = out,
            }
        }
        if let Some(failed) = self.failed {
            return Err(failed);
        }
        let last = self.pass.parts.len() - 1;
        self.give(filtered, stop).map_err(stopped_at(last))
    }

    /// The rows, with the columns that were made, in their order.
    fn give(self, filtered: bool, stop: Stop<'_>) -> Result<RowSet, Stopped> {
        let frames = self.pass.parts.iter().zip(&self.frames).filter(|(part, _)| matches!(part, Part::Compute { .. }));
        let mut batch = None;
        for ((key, made), (_, frame)) in self.pass.made.iter().zip(self.made).zip(frames) {
            let column = Arc::new(made.finish(&frame.symbols, stop)?);
            batch = Some(batch.as_ref().unwrap_or(self.rows.batch()).with(*key, column));
        }
        let rows = batch.map_or_else(|| self.rows.clone(), |batch| self.rows.with_batch(batch));
        let picked = self.best.is_some();
        let rows = match self.best {
            Some(best) => rows.looking_at(best.finish(stop)?),
            None if filtered => rows.looking_at(give_back(self.kept)),
            None => rows,
        };
        match (self.pass.sort, self.pass.take) {
            (Some((key, order)), Some(count)) if !picked => rows.top(key, order, count, stop),
            (Some((key, order)), None) => rows.sort(key, order, stop),
            (None, Some(count)) => Ok(rows.take(count)),
            _ => Ok(rows),
        }
    }
}

/// Being stopped, as the error of a part.
fn stopped_at(part: usize) -> impl Fn(Stopped) -> PassError {
    move |stopped| PassError { part, error: stopped.into() }
}

/// How many hold. Counted in bytes as far as a byte can count.
fn count(holds: &[bool]) -> usize {
    wide(
        #[inline(always)]
        || {
            holds
                .chunks(128)
                .map(|some| usize::from(some.iter().fold(0u8, |count, &holds| count + u8::from(holds))))
                .sum()
        },
    )
}

/// The best rows by one key, picked as the chunks come.
struct Picked<'a> {
    best: BestByType,
    key: Bound<'a>,
    order: Order,
    /// The last filter offers its rows, as a mask and not as a list.
    after_filter: bool,
}

enum BestByType {
    Ints(Best<i64>),
    Floats(Best<f64>),
    Bools(Best<bool>),
}

impl<'a> Picked<'a> {
    /// `None` where there is nothing to pick, or where another way is better: much of the rows is wanted, the key's column is
    /// not there, or it is of strings.
    fn start(walk: &Walk<'a>, stop: Stop<'_>) -> Result<Option<Picked<'a>>, Stopped> {
        let (pass, rows) = (walk.pass, walk.rows);
        let (Some((key, order)), Some(count)) = (pass.sort, pass.take) else { return Ok(None) };
        if count > rows.len() / 2 || count == 0 {
            return Ok(None);
        }
        let key = match pass.made.iter().rposition(|made| *made == key) {
            Some(at) => Bound::Made(at),
            None => Bound::of(rows.batch(), key, &mut Default::default(), &mut Default::default(), stop)?,
        };
        let best = match key.so_far(&walk.made) {
            Bound::Ints(_) => BestByType::Ints(Best::new(count, rows.len())),
            Bound::Floats(_) => BestByType::Floats(Best::new(count, rows.len())),
            Bound::Bools(_) => BestByType::Bools(Best::new(count, rows.len())),
            Bound::Codes(..) | Bound::Lists(..) | Bound::Vectors(..) | Bound::Missing | Bound::Made(_) => {
                return Ok(None);
            }
        };
        let last = pass.evaluated.checked_sub(1).map(|last| &pass.parts[last]);
        Ok(Some(Picked { best, key, order, after_filter: matches!(last, Some(Part::Filter { .. })) }))
    }

    fn offer(&mut self, made: &[Made], rows: Rows<'_>, mask: Option<&[bool]>, stop: Stop<'_>) -> Result<(), Stopped> {
        let order = self.order;
        match (&mut self.best, self.key.so_far(made)) {
            (BestByType::Ints(best), Bound::Ints(key)) => best.offer(order, key.values, key.valid, rows, mask, stop),
            (BestByType::Floats(best), Bound::Floats(key)) => {
                best.offer(order, key.values, key.valid, rows, mask, stop)
            }
            (BestByType::Bools(best), Bound::Bools(key)) => best.offer(order, key.values, key.valid, rows, mask, stop),
            // The column of a key does not change its type.
            _ => Ok(()),
        }
    }

    fn finish(self, stop: Stop<'_>) -> Result<Vec<u32>, Stopped> {
        match self.best {
            BestByType::Ints(best) => best.finish(stop),
            BestByType::Floats(best) => best.finish(stop),
            BestByType::Bools(best) => best.finish(stop),
        }
    }
}
