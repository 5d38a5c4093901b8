//! An answer that is awaited by every task that asked for it, on one thread.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The sender's end, which tasks that ask later join.
pub(super) struct Parcel<T>(Rc<RefCell<Inside<T>>>);

struct Inside<T> {
    content: Option<T>,
    /// It has taken longer than is usual.
    overdue: bool,
    /// The waiting tasks, by number; the place of one that has not been polled is empty.
    waiting: Vec<Option<Waker>>,
}

impl<T> Clone for Parcel<T> {
    fn clone(&self) -> Parcel<T> {
        Parcel(self.0.clone())
    }
}

impl<T: Clone> Parcel<T> {
    pub(super) fn new() -> Parcel<T> {
        Parcel(Rc::new(RefCell::new(Inside { content: None, overdue: false, waiting: Vec::with_capacity(1) })))
    }

    /// Gets the answer when it is there.
    pub(super) fn wait(&self) -> Waiting<T> {
        let mut inside = self.0.borrow_mut();
        inside.waiting.push(None);
        Waiting { number: inside.waiting.len() - 1, inside: self.0.clone(), knows_it_is_overdue: false }
    }

    /// Notifies all waiting tasks, present and later ones, that it takes longer than is usual; only the first call has an effect.
    pub(super) fn mark_overdue(&self) {
        let mut inside = self.0.borrow_mut();
        if std::mem::replace(&mut inside.overdue, true) {
            return;
        }
        let waiting: Vec<Waker> = inside.waiting.iter().flatten().cloned().collect();
        drop(inside);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Gives the answer to all waiting tasks. Some may have stopped waiting.
    pub(super) fn deliver(self, content: T) {
        let mut inside = self.0.borrow_mut();
        inside.content = Some(content);
        let waiting = std::mem::take(&mut inside.waiting);
        drop(inside);
        // The last task finds no other holder of the parcel, and takes the answer without a copy.
        drop(self);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

pub(super) struct Waiting<T> {
    number: usize,
    inside: Rc<RefCell<Inside<T>>>,
    knows_it_is_overdue: bool,
}

/// What a waiting task receives.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum News<T> {
    /// It takes longer than is usual. Said once; the answer may still come.
    Overdue,
    Answer(T),
}

impl<T: Clone> Waiting<T> {
    /// The answer alone.
    pub(super) async fn answer(&mut self) -> T {
        loop {
            if let News::Answer(content) = (&mut *self).await {
                return content;
            }
        }
    }
}

impl<T: Clone> Future for Waiting<T> {
    type Output = News<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<News<T>> {
        let last = Rc::strong_count(&self.inside) == 1;
        let mut inside = self.inside.borrow_mut();
        if last && let Some(content) = inside.content.take() {
            return Poll::Ready(News::Answer(content));
        }
        if let Some(content) = &inside.content {
            return Poll::Ready(News::Answer(content.clone()));
        }
        if inside.overdue && !self.knows_it_is_overdue {
            drop(inside);
            self.knows_it_is_overdue = true;
            return Poll::Ready(News::Overdue);
        }
        if let Some(place) = inside.waiting.get_mut(self.number) {
            match place {
                Some(waker) => waker.clone_from(cx.waker()),
                None => *place = Some(cx.waker().clone()),
            }
        }
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn all_waiting_tasks_get_the_answer_and_a_dropped_one_does_no_harm() {
        let parcel = Parcel::new();
        let (mut first, second, mut third) = (parcel.wait(), parcel.wait(), parcel.clone().wait());
        drop(second);
        parcel.deliver("here".to_owned());
        assert_eq!((first.answer().await, third.answer().await), ("here".to_owned(), "here".to_owned()));
    }

    #[tokio::test]
    async fn that_it_is_overdue_is_said_once_to_each_and_the_answer_may_still_come() {
        let parcel = Parcel::new();
        let mut early = parcel.wait();
        parcel.mark_overdue();
        parcel.mark_overdue();
        let mut late = parcel.wait();
        assert_eq!(((&mut early).await, (&mut late).await), (News::Overdue, News::Overdue));
        parcel.deliver(7);
        assert_eq!((early.await, late.await), (News::Answer(7), News::Answer(7)));
    }
}
