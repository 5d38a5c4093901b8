//! What the thread does that writes the feature log: rows are sorted by their files and written piece by piece, so that a run with many rows takes no more
//! memory than one with few.

use super::LoggedRun;
use super::columns::{self, RowPiece};
use super::stream::LogStream;
use crate::stream_files::{BatchWriter, StreamFolder, StreamFolderError, StreamLimits, WriteReport};
use rankd_column::RowSet;
use rankd_plan::plan::NodeIx;
use std::io;
use std::path::Path;

/// What is written, in words.
pub(super) const WHAT: &str = "the feature log";
/// What the names of its files begin with.
const PREFIX: &str = "features";
/// A record batch has about so many bytes, or one row.
const BATCH_BYTES: usize = 8 << 20;

pub(super) struct FeatureWriter {
    folder: StreamFolder<LogStream>,
}

/// The rows of one file, each with the position of its run.
struct StreamRows<'r> {
    stream: LogStream,
    node: NodeIx,
    rows: Vec<(usize, &'r RowSet)>,
}

impl FeatureWriter {
    pub(super) fn open(folder: &Path, limits: StreamLimits) -> Result<FeatureWriter, StreamFolderError> {
        Ok(FeatureWriter { folder: StreamFolder::open(WHAT, folder, PREFIX, limits)? })
    }

    fn write_stream(&mut self, runs: &[LoggedRun], of: &StreamRows<'_>) -> io::Result<()> {
        let Some(first) = of.rows.first().and_then(|(run, _)| runs.get(*run)) else { return Ok(()) };
        let (plan, stream) = (&first.plan, &of.stream);
        let node = plan.nodes.get(of.node as usize).map_or("", |node| &*node.id);
        let (ids, fields) = (plan.keys.ids, plan.keys.fields(&stream.keys));
        self.folder.close_streams(|open| open.is_replaced_by(stream))?;
        let (label, mut pieces, mut bytes) = (format!("-{}", plan.name), Vec::new(), 0);
        let mut write = |pieces: &mut Vec<RowPiece<'_>>| {
            let batch = columns::batch(node, ids, &fields, pieces)?;
            pieces.clear();
            self.folder.write(stream.clone(), &label, || columns::schema(plan, node, ids, &fields), &batch)
        };
        for (run, rows) in of.rows.iter().filter_map(|(run, rows)| Some((runs.get(*run)?, *rows))) {
            let mut from = 0;
            while from < rows.len() {
                let (until, taken) = columns::fitting(rows, from, BATCH_BYTES - bytes, &fields);
                let is_whole = (from, until) == (0, rows.len());
                let rows = if is_whole { rows.clone() } else { rows.positions(from..until) };
                pieces.push(RowPiece { run, first: from, rows });
                (from, bytes) = (until, bytes + taken);
                if bytes >= BATCH_BYTES {
                    write(&mut pieces)?;
                    bytes = 0;
                }
            }
        }
        if pieces.is_empty() { Ok(()) } else { write(&mut pieces) }
    }
}

/// The rows of all runs by the file that they go into, in the order of the first of each.
fn by_stream(runs: &[LoggedRun]) -> Vec<StreamRows<'_>> {
    let mut streams: Vec<StreamRows<'_>> = Vec::new();
    for (at, run) in runs.iter().enumerate() {
        for (node, rows) in run.row_sets().filter(|(_, rows)| !rows.is_empty()) {
            let stream = LogStream::of(run, node, rows);
            match streams.iter_mut().find(|known| known.stream == stream) {
                Some(known) => known.rows.push((at, rows)),
                None => streams.push(StreamRows { stream, node, rows: vec![(at, rows)] }),
            }
        }
    }
    streams
}

impl BatchWriter for FeatureWriter {
    type Item = LoggedRun;

    fn write(&mut self, batch: Vec<LoggedRun>, report: &mut WriteReport) {
        let mut is_lost = vec![false; batch.len()];
        for of in by_stream(&batch) {
            if let Err(error) = self.write_stream(&batch, &of) {
                of.rows.iter().for_each(|(run, _)| is_lost[*run] = true);
                report.tell(&error);
            }
        }
        let lost = is_lost.iter().filter(|is_lost| **is_lost).count() as u64;
        report.lost(lost);
        report.written(batch.len() as u64 - lost);
    }

    fn close_old(&mut self) -> io::Result<()> {
        self.folder.close_old()
    }

    fn close(&mut self) -> io::Result<()> {
        self.folder.close()
    }
}
