//! Ids as tasks see them: rows hold ints, or codes where ids are texts. A task decides once which of the two it has, never once a row.

use crate::codes;
use crate::error::TaskError;
use crate::request::Candidates;
use crate::task::{ComputeContext, FetchContext};
use rankd_column::id_texts::IdCoder;
use rankd_column::{Batch, Id, IdFault, IdTexts, RowSet};
use std::sync::Arc;

/// Candidates whose ids are made codes before other runs get the loop.
const CODES_A_TURN: usize = 4096;

impl ComputeContext<'_> {
    /// What the run's ids are codes of; `None` where ids are ints.
    pub fn id_texts(&self) -> Option<&Arc<IdTexts>> {
        self.id_texts
    }
}

impl FetchContext<'_> {
    /// What the run's ids are codes of; `None` where ids are ints.
    pub fn id_texts(&self) -> Option<&Arc<IdTexts>> {
        self.request.id_texts.as_ref()
    }

    /// New rows with these ids.
    pub fn batch(&self, ids: Vec<i64>) -> Batch {
        Batch::with_ids(ids, self.request.id_texts.clone())
    }

    /// The user's id as rows hold it.
    pub fn user_id(&self) -> Result<i64, TaskError> {
        match (&self.request.user_id, self.id_texts()) {
            (Id::Int(id), None) => Ok(*id),
            (Id::Text(_), None) => Err(int_ids()),
            (id, Some(texts)) => code(&mut texts.coder(), id),
        }
    }

    /// The rows that the caller brought along, with ids of this run.
    pub async fn candidates(&self) -> Result<RowSet, TaskError> {
        let Some(candidates) = &self.request.candidates else { return Ok(RowSet::empty()) };
        let rows = Candidates::rows(candidates)
            .map_err(|id| TaskError::new(codes::REPEATED_CANDIDATE, format!("the candidate id {id} appears twice")))?;
        let batch = rows.batch();
        let Some(texts) = self.id_texts() else {
            return if batch.id_texts().is_none() { Ok(rows.clone()) } else { Err(int_ids()) };
        };
        let mut codes = Vec::with_capacity(batch.len());
        for start in (0..batch.len()).step_by(CODES_A_TURN) {
            if start > 0 {
                tokio::task::yield_now().await;
            }
            let (mut coder, end) = (texts.coder(), batch.len().min(start + CODES_A_TURN));
            for row in start..end {
                codes.push(match batch.id_texts() {
                    Some(own) => coder.code(own.text(batch.ids()[row])).map_err(TaskError::id)?,
                    None => code(&mut coder, &Id::Int(batch.ids()[row]))?,
                });
            }
        }
        Ok(rows.renamed(codes, texts.clone()))
    }
}

/// An int is the id that its digits are.
fn code(coder: &mut IdCoder<'_>, id: &Id) -> Result<i64, TaskError> {
    let code = match id {
        Id::Int(id) => coder.code(itoa::Buffer::new().format(*id)),
        Id::Text(text) => coder.code(text),
    };
    code.map_err(TaskError::id)
}

fn int_ids() -> TaskError {
    TaskError::new(codes::DIFFERENT_REGISTRY, "the request has ids that are texts, but the plan's registry has ints")
}

impl TaskError {
    /// A text that could not become an id of the run.
    pub fn id(fault: IdFault) -> TaskError {
        match fault {
            IdFault::TooMany => TaskError::new(codes::TOO_MANY_IDS, "the run has met more ids than it may keep"),
            fault => TaskError::new(codes::WRONG_VALUE, fault.to_string()),
        }
    }
}
