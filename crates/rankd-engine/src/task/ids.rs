//! Ids as tasks see them: rows hold ints, or codes where ids are texts. A task decides once which of the two it has, never once a row.

use crate::codes;
use crate::error::TaskError;
use crate::request::Candidates;
use crate::store::{KeyBuffer, Keys, Replies};
use crate::task::{ComputeContext, FetchContext};
use rankd_column::id_texts::IdCoder;
use rankd_column::{Batch, Id, IdFault, IdTexts, RowSet};
use std::sync::Arc;

/// The most that the keys of one step have together: they are written before the first is sent.
const KEY_BYTES_MAX: usize = 1 << 30;

/// The keys of rows, which are written beforehand where ids are texts.
pub enum IdKeys<'k> {
    Ints { prefix: &'k str, ids: &'k [i64] },
    Texts(KeyBuffer),
}

impl IdKeys<'_> {
    pub fn keys(&self) -> Keys<'_> {
        match self {
            IdKeys::Ints { prefix, ids } => Keys::Numbered { prefix, ids },
            IdKeys::Texts(keys) => keys.keys(),
        }
    }
}

/// Ids that are made codes before other runs get the loop.
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

    /// No rows, whose ids are nevertheless of the run's kind.
    pub fn no_rows(&self) -> RowSet {
        RowSet::new(self.batch(Vec::new()))
    }

    /// The user's id as rows hold it.
    pub fn user_id(&self) -> Result<i64, TaskError> {
        match (&self.request.user_id, self.id_texts()) {
            (Id::Int(id), None) => Ok(*id),
            (Id::Text(_), None) => Err(int_ids()),
            (id, Some(texts)) => code(&mut texts.coder(), id).map_err(TaskError::id),
        }
    }

    /// The keys `{prefix}:{id}` of rows.
    pub fn keys<'k>(&self, prefix: &'k str, ids: &'k [i64]) -> Result<IdKeys<'k>, TaskError> {
        let Some(texts) = self.id_texts() else { return Ok(IdKeys::Ints { prefix, ids }) };
        let mut keys = KeyBuffer::with_capacity(ids.len(), ids.len() * (prefix.len() + 16));
        for id in ids {
            keys.push(|out| {
                out.extend_from_slice(prefix.as_bytes());
                out.push(b':');
                out.extend_from_slice(texts.text(*id).as_bytes());
            });
            if keys.byte_count() > KEY_BYTES_MAX {
                let message = format!("the keys of a step have more than {KEY_BYTES_MAX} bytes");
                return Err(TaskError::new(codes::STORED_TOO_LARGE, message));
            }
        }
        Ok(IdKeys::Texts(keys))
    }

    /// The codes of so many ids, which `code` gives one after the other. Many of them do not hold the loop all the time.
    pub async fn code_ids(
        &self,
        count: usize,
        mut code: impl FnMut(&mut IdCoder<'_>, usize) -> Result<i64, IdFault>,
    ) -> Result<Vec<i64>, TaskError> {
        let texts = self.id_texts().ok_or_else(|| TaskError::bug("codes of ids that are ints"))?;
        let mut codes = Vec::with_capacity(count);
        while codes.len() < count {
            if !codes.is_empty() {
                tokio::task::yield_now().await;
            }
            let (mut coder, end) = (texts.coder(), count.min(codes.len() + CODES_A_TURN));
            for at in codes.len()..end {
                codes.push(code(&mut coder, at).map_err(TaskError::id)?);
            }
        }
        Ok(codes)
    }

    /// The rows that the caller brought along, with ids of this run.
    pub async fn candidates(&self) -> Result<RowSet, TaskError> {
        let Some(candidates) = &self.request.candidates else { return Ok(self.no_rows()) };
        let rows = Candidates::rows(candidates)
            .map_err(|id| TaskError::new(codes::REPEATED_CANDIDATE, format!("the candidate id {id} appears twice")))?;
        let batch = rows.batch();
        let Some(texts) = self.id_texts() else {
            return if batch.id_texts().is_none() { Ok(rows.clone()) } else { Err(int_ids()) };
        };
        let codes = match batch.id_texts() {
            Some(own) => self.code_ids(batch.len(), |coder, row| coder.code(own.text(batch.ids()[row]))).await?,
            None => self.code_ids(batch.len(), |coder, row| code(coder, &Id::Int(batch.ids()[row]))).await?,
        };
        Ok(rows.renamed(codes, texts.clone()))
    }
}

/// Elements of lists as ids of the run.
pub(super) async fn code_elements(texts: &IdTexts, replies: &Replies) -> Result<Replies, TaskError> {
    let (mut coded, mut left) = (Replies::default(), 0);
    let mut coder = None;
    for at in 0..replies.len() {
        for element in replies.items(at) {
            let coder = coder.get_or_insert_with(|| texts.coder());
            match element.map(|element| coder.code_of_bytes(element)) {
                Some(Ok(id)) => coded.push_id(id),
                Some(Err(fault @ IdFault::TooMany)) => return Err(TaskError::id(fault)),
                Some(Err(_)) | None => coded.skip_element(),
            }
        }
        coded.end_reply();
        left += replies.items(at).len();
        if left >= CODES_A_TURN {
            (coder, left) = (None, 0);
            tokio::task::yield_now().await;
        }
    }
    Ok(coded)
}

/// An int is the id that its digits are.
pub fn code(coder: &mut IdCoder<'_>, id: &Id) -> Result<i64, IdFault> {
    match id {
        Id::Int(id) => coder.code(itoa::Buffer::new().format(*id)),
        Id::Text(text) => coder.code(text),
    }
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
