//! Asking stores for items that were in no source: after a run, once, for all items and sources together.
//!
//! It is a run of its own, of one task that reads, so it works on any scheduler and within the limits of any run. What cannot be asked or is not
//! answered is said so; it never fails the question.

use super::change::NoChange;
use super::never::{AbsentReason, StoredFinding};
use super::story::AskedItem;
use crate::error::TaskError;
use crate::link::Linked;
use crate::recorded::Reads;
use crate::request::Request;
use crate::store::{KeyBuffer, KeyedEndpoint, KeyedRead, MemberOf, PositionIn, Replies};
use crate::task::{Elements, Fetch, FetchContext, Task};
use futures_util::future::join_all;
use rankd_column::RowSet;
use std::sync::{Arc, Mutex, PoisonError};

/// So many commands are sent in all, however many items and sources there are.
const COMMANDS_MAX: usize = 2_000;

/// By question: what the store has answered, or why it did not; nothing as long as it has not.
type SharedAnswers = Arc<Mutex<Vec<Option<Result<Replies, String>>>>>;

/// Questions for stores, and what they answered.
pub struct Inquiry {
    linked: Arc<Linked>,
    answers: SharedAnswers,
    /// Where each question belongs: the item, its source, and how many keys are asked.
    places: Vec<(usize, usize, usize)>,
}

/// One question: the same for some keys.
struct AskedStore {
    endpoint: u32,
    keys: KeyBuffer,
    elements: Elements,
    element: Arc<str>,
    /// The same as the only member, and as the only field.
    members: KeyBuffer,
    fields: [Arc<str>; 1],
}

impl Inquiry {
    /// What is to be asked for these items; nothing where there is nothing.
    pub(super) fn of(linked: &Linked, items: &[AskedItem]) -> Option<Inquiry> {
        let open = |(at, item): (usize, &'_ AskedItem)| {
            let stored = item.never.iter().enumerate().filter_map(|(source, never)| match &never.why {
                AbsentReason::Stored(stored) if stored.question.elements != Elements::Document => Some(source),
                _ => None,
            });
            stored.map(move |source| (at, source)).collect::<Vec<_>>()
        };
        let open: Vec<(usize, usize)> = items.iter().enumerate().flat_map(open).collect();
        let share = COMMANDS_MAX.checked_div(open.len())?.max(1);
        let (mut places, mut asked) = (Vec::new(), Vec::new());
        for (item, source) in open.into_iter().take(COMMANDS_MAX) {
            let AbsentReason::Stored(stored) = &items[item].never[source].why else { continue };
            let (mut keys, element) = (KeyBuffer::default(), Arc::<str>::from(items[item].id.to_string()));
            stored
                .question
                .keys
                .iter()
                .take(share)
                .for_each(|key| keys.push(|out| out.extend_from_slice(key.as_bytes())));
            let mut members = KeyBuffer::default();
            members.push(|out| out.extend_from_slice(element.as_bytes()));
            places.push((item, source, keys.len()));
            asked.push(AskedStore {
                endpoint: stored.question.endpoint,
                keys,
                elements: stored.question.elements,
                fields: [element.clone()],
                element,
                members,
            });
        }
        let answers: SharedAnswers = Arc::new(Mutex::new(asked.iter().map(|_| None).collect()));
        let task = AskStores { asked, answers: answers.clone() };
        Some(Inquiry { linked: Arc::new(linked.of_one("why", Task::Fetch(Arc::new(task)))), answers, places })
    }

    /// The request that it runs for, made of the one that the question is about. What another run recorded is asked in place of stores.
    pub fn request(&self, asked: &Request) -> Request {
        let reads = match &asked.reads {
            Reads::Live | Reads::Recorded(_) => Reads::Live,
            Reads::Replayed(replay) => Reads::Replayed(replay.clone()),
        };
        // It has no dials.
        Request { asked_dials: Vec::new(), candidates: None, reads, ..asked.clone() }
    }

    /// What runs, once.
    pub fn linked(&self) -> &Arc<Linked> {
        &self.linked
    }

    /// Puts what the stores have answered into the items, once that run is over.
    pub fn tell(self, items: &mut [AskedItem]) {
        let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        for ((item, source, asked), answer) in self.places.iter().zip(answers.drain(..)) {
            let Some(AbsentReason::Stored(stored)) = items[*item].never.get_mut(*source).map(|never| &mut never.why)
            else {
                continue;
            };
            (stored.asked, stored.found) = match answer {
                None => (0, StoredFinding::Failed("it did not answer in time".to_owned())),
                Some(Err(error)) => (0, StoredFinding::Failed(error)),
                Some(Ok(replies)) => {
                    (*asked, finding(&replies, &stored.question.keys, stored.question.elements, stored.fanout))
                }
            };
            // A larger fanout might bring it in, but what that reads was not read.
            if matches!(stored.found, StoredFinding::Cut { .. }) {
                items[*item].change = Some(Err(NoChange::NotRead));
            }
        }
    }
}

fn finding(replies: &Replies, keys: &[String], elements: Elements, fanout: usize) -> StoredFinding {
    // A place within what is read is worth more than one behind it.
    let mut cut = None;
    for (at, key) in keys.iter().enumerate().take(replies.len()) {
        let item = replies.items(at).next().flatten();
        let position = match elements {
            Elements::List | Elements::SortedSet { .. } => match item.and_then(|item| std::str::from_utf8(item).ok()) {
                Some(position) => position.parse::<usize>().ok(),
                None => continue,
            },
            Elements::Set if MemberOf::Set.is_there(item) => None,
            Elements::HashFields if item.is_some() => None,
            Elements::Set | Elements::HashFields | Elements::Document => continue,
        };
        let key = key.clone();
        match position {
            Some(position) if position < fanout => return StoredFinding::There { key, position: Some(position) },
            position => cut = cut.or(Some(StoredFinding::Cut { key, position })),
        }
    }
    cut.unwrap_or(StoredFinding::Absent)
}

struct AskStores {
    asked: Vec<AskedStore>,
    answers: SharedAnswers,
}

impl Fetch for AskStores {
    async fn run(&self, _: &[RowSet], cx: &FetchContext<'_>) -> Result<RowSet, TaskError> {
        let ask = async |(at, asked): (usize, &AskedStore)| {
            let read = match asked.elements {
                Elements::List => KeyedRead::Position { of: PositionIn::List, element: asked.element.as_bytes() },
                Elements::SortedSet { descending } => {
                    KeyedRead::Position { of: PositionIn::SortedSet { descending }, element: asked.element.as_bytes() }
                }
                Elements::Set => KeyedRead::Members { of: MemberOf::Set, members: asked.members.written() },
                Elements::HashFields | Elements::Document => KeyedRead::HashFields(&asked.fields),
            };
            let answer = cx.keyed(KeyedEndpoint(asked.endpoint)).read(read, asked.keys.keys()).await;
            if let Some(place) = self.answers.lock().unwrap_or_else(PoisonError::into_inner).get_mut(at) {
                *place = Some(answer.map_err(|error| error.message));
            }
        };
        // All of them leave together.
        join_all(self.asked.iter().enumerate().map(ask)).await;
        Ok(cx.no_rows())
    }
}
