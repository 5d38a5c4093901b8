//! Exact timers for one event loop: a descriptor that the system makes readable at the earliest moment that is waited for.
//!
//! The runtime parks in whole milliseconds, so its timers are up to two of them late. The descriptor is one of those that it
//! parks on, and ends the park to within some 50 µs. It is armed again only when an earlier moment is added or when it has gone off:
//! a timer that is dropped before its time costs no system call, at the price of one needless wake-up now and then.

use crate::clock::{self, Instant};
use rustix::fd::OwnedFd;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::future::{Future, poll_fn};
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

thread_local! {
    /// Those of the loop that this thread runs.
    static CURRENT: RefCell<Option<Rc<Timers>>> = const { RefCell::new(None) };
}

/// The timers of the loop that this thread runs, where it has exact ones.
pub(crate) fn current() -> Option<Rc<Timers>> {
    CURRENT.with_borrow(Clone::clone)
}

/// Runs a loop with exact timers. Where the system refuses them, those of the runtime have to do.
pub(crate) async fn with_exact_timers<T>(inner: impl Future<Output = T>) -> T {
    let Ok(timers) = Timers::new() else { return inner.await };
    let timers = Rc::new(timers);
    CURRENT.set(Some(timers.clone()));
    let _installed = Installed;
    let ringing = tokio::task::spawn_local(async move { timers.ring().await });
    let value = inner.await;
    ringing.abort();
    value
}

/// Takes the timers away when the loop ends.
struct Installed;

impl Drop for Installed {
    fn drop(&mut self) {
        CURRENT.set(None);
    }
}

pub(crate) struct Timers {
    descriptor: AsyncFd<OwnedFd>,
    waiting: RefCell<WaitingTimers>,
}

#[derive(Default)]
struct WaitingTimers {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Those that have not gone off, earliest first.
    order: BTreeSet<(Instant, u32)>,
    /// What the descriptor is set to; nothing while it will not go off.
    armed: Option<Instant>,
}

struct Slot {
    at: Instant,
    /// `None` once it has gone off.
    waker: Option<Waker>,
}

impl Timers {
    fn new() -> io::Result<Timers> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let descriptor = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        #[expect(deprecated, reason = "the descriptor is owned and stays the same; what replaces this call is unsafe")]
        let descriptor = AsyncFd::with_interest(descriptor, Interest::READABLE)?;
        Ok(Timers { descriptor, waiting: RefCell::default() })
    }

    fn add(&self, at: Instant, now: Instant, waker: Waker) -> u32 {
        let waiting = &mut *self.waiting.borrow_mut();
        let slot = Slot { at, waker: Some(waker) };
        let number = match waiting.free.pop() {
            Some(number) => {
                waiting.slots[number as usize] = slot;
                number
            }
            None => {
                waiting.slots.push(slot);
                waiting.slots.len() as u32 - 1
            }
        };
        waiting.order.insert((at, number));
        if waiting.armed.is_none_or(|armed| at < armed) {
            self.arm(waiting, at, now);
        }
        number
    }

    fn remove(&self, number: u32) {
        let waiting = &mut *self.waiting.borrow_mut();
        let slot = &mut waiting.slots[number as usize];
        if slot.waker.take().is_some() {
            waiting.order.remove(&(slot.at, number));
        }
        waiting.free.push(number);
    }

    /// Whether it has gone off; if not, this waker is woken when it does.
    fn has_gone_off(&self, number: u32, waker: &Waker) -> bool {
        match &mut self.waiting.borrow_mut().slots[number as usize].waker {
            Some(kept) => {
                kept.clone_from(waker);
                false
            }
            None => true,
        }
    }

    fn arm(&self, waiting: &mut WaitingTimers, at: Instant, now: Instant) {
        // No time at all would disarm it.
        let left = at.saturating_duration_since(now).max(Duration::from_nanos(1));
        let seconds = left.as_secs().try_into().unwrap_or(i64::MAX);
        let once = Itimerspec {
            it_interval: Timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: Timespec { tv_sec: seconds, tv_nsec: left.subsec_nanos().into() },
        };
        // The descriptor is ours and the time is a time, so this cannot fail.
        let _ = timerfd_settime(self.descriptor.get_ref(), TimerfdTimerFlags::empty(), &once);
        waiting.armed = Some(at);
    }

    /// Wakes everybody whose moment has come, and sets the descriptor to the next one.
    fn go_off(&self) {
        let now = clock::now();
        let mut due = Vec::new();
        {
            let waiting = &mut *self.waiting.borrow_mut();
            while let Some(&(at, number)) = waiting.order.first()
                && at <= now
            {
                waiting.order.pop_first();
                due.extend(waiting.slots[number as usize].waker.take());
            }
            waiting.armed = None;
            if let Some(&(at, _)) = waiting.order.first() {
                self.arm(waiting, at, now);
            }
        }
        due.into_iter().for_each(Waker::wake);
    }

    /// Sees to it that the timers go off, for as long as the loop runs.
    async fn ring(&self) {
        poll_fn(|cx| {
            let bell = Waker::from(Arc::new(Bell { keeper: cx.waker().clone() }));
            loop {
                match self.descriptor.poll_read_ready(&mut Context::from_waker(&bell)) {
                    Poll::Ready(Ok(mut ready)) => {
                        // Not read: what counts is that it becomes readable again.
                        ready.clear_ready();
                        self.go_off();
                    }
                    // The runtime is going away.
                    Poll::Ready(Err(_)) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
    }
}

/// Called by the runtime, on the loop's thread, when the descriptor is ready. Those whose moment has come are woken right then: the
/// task that keeps the bell may have to wait for its turn behind everything else that is ready.
struct Bell {
    keeper: Waker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        if let Some(timers) = current() {
            timers.go_off();
        }
        self.keeper.wake_by_ref();
    }
}

/// One moment that is waited for.
pub(crate) struct Exact {
    timers: Rc<Timers>,
    slot: Option<u32>,
}

impl Exact {
    pub(crate) fn new(timers: Rc<Timers>) -> Exact {
        Exact { timers, slot: None }
    }

    pub(crate) fn poll(&mut self, at: Instant, cx: &mut Context<'_>) -> Poll<()> {
        match self.slot {
            Some(slot) if self.timers.has_gone_off(slot, cx.waker()) => Poll::Ready(()),
            Some(_) => Poll::Pending,
            None => {
                let now = clock::now();
                if now >= at {
                    return Poll::Ready(());
                }
                self.slot = Some(self.timers.add(at, now, cx.waker().clone()));
                Poll::Pending
            }
        }
    }

    pub(crate) fn unset(&mut self) {
        if let Some(slot) = self.slot.take() {
            self.timers.remove(slot);
        }
    }
}

impl Drop for Exact {
    fn drop(&mut self) {
        self.unset();
    }
}
