//! An answer that is on its way to all who asked for it, on one thread.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// The sender's end, and what those who ask later join.
pub(super) struct Parcel<T>(Rc<RefCell<Inside<T>>>);

struct Inside<T> {
    content: Option<T>,
    /// Who waits, by number; those who have gone leave their place empty.
    waiting: Vec<Option<Waker>>,
}

impl<T> Clone for Parcel<T> {
    fn clone(&self) -> Parcel<T> {
        Parcel(self.0.clone())
    }
}

impl<T: Clone> Parcel<T> {
    pub(super) fn new() -> Parcel<T> {
        Parcel(Rc::new(RefCell::new(Inside { content: None, waiting: Vec::with_capacity(1) })))
    }

    /// Gets the answer when it is there.
    pub(super) fn wait(&self) -> Waiting<T> {
        let mut inside = self.0.borrow_mut();
        inside.waiting.push(None);
        Waiting { number: inside.waiting.len() - 1, inside: self.0.clone() }
    }

    /// Gives the answer to all who wait. They may have gone.
    pub(super) fn deliver(self, content: T) {
        let mut inside = self.0.borrow_mut();
        inside.content = Some(content);
        let waiting = std::mem::take(&mut inside.waiting);
        drop(inside);
        // The last one finds nobody else holding the parcel, and takes the answer without a copy.
        drop(self);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

pub(super) struct Waiting<T> {
    number: usize,
    inside: Rc<RefCell<Inside<T>>>,
}

impl<T: Clone> Future for Waiting<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let last = Rc::strong_count(&self.inside) == 1;
        let mut inside = self.inside.borrow_mut();
        if last && let Some(content) = inside.content.take() {
            return Poll::Ready(content);
        }
        if let Some(content) = &inside.content {
            return Poll::Ready(content.clone());
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
    async fn all_who_asked_get_the_answer_and_those_who_left_do_not_mind() {
        let parcel = Parcel::new();
        let (first, second, third) = (parcel.wait(), parcel.wait(), parcel.clone().wait());
        drop(second);
        parcel.deliver("here".to_owned());
        assert_eq!((first.await, third.await), ("here".to_owned(), "here".to_owned()));
    }
}
