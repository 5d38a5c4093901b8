//! The signals that end or reload the process, received by a thread that does nothing else.
//!
//! So no signal is lost, whatever the rest of the process is busy with: reading files that hang, compiling plans, resolving names.
//! As process 1, too, where the system ignores every signal without a handler. A second signal to stop ends the process at once.

use crossbeam_channel::bounded;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::OnceLock;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What the process is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignalRequest {
    Stop,
    Reload,
}

/// Which signals a command handles, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SignalSettings {
    /// The exit code of a process that is stopped before it has accepted anything.
    pub(crate) early: u8,
    /// The exit code of a process that is stopped before it has finished.
    pub(crate) forced: u8,
    /// Whether SIGHUP means to reload; otherwise it ends the process, as it does by default.
    pub(crate) reloads: bool,
}

/// How a process that has accepted requests ends.
#[derive(Clone, Copy, Debug)]
struct Ending {
    /// The most time from the first signal to the end; `None` for as long as it takes.
    within: Option<Duration>,
}

pub(crate) struct Signals {
    asked: UnboundedReceiver<SignalRequest>,
    /// Readable from the first signal to stop on, for whoever waits for descriptors.
    stopped: UnixStream,
}

/// Set once requests are accepted. Until then there is nothing to finish, so a signal to stop ends the process at once.
static ENDING: OnceLock<Ending> = OnceLock::new();

impl Signals {
    /// Installs the handlers and starts the thread. Call it before anything that may take time.
    pub(crate) fn listen(settings: SignalSettings) -> io::Result<Signals> {
        let (tell, asked) = unbounded_channel();
        let (stopped, stop) = UnixStream::pair()?;
        let (ready, installed) = bounded(1);
        std::thread::Builder::new().name("rankd-signals".to_owned()).spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let installed = runtime.and_then(|runtime| {
                let handlers = runtime.block_on(async { Handlers::install(settings) })?;
                Ok((runtime, handlers))
            });
            match installed {
                // Whoever started the thread waits for this.
                Err(error) => drop(ready.send(Err(error))),
                Ok((runtime, handlers)) => {
                    drop(ready.send(Ok(())));
                    runtime.block_on(handlers.attend(settings, &tell, stop));
                }
            }
        })?;
        installed.recv().unwrap_or_else(|_| Err(io::Error::other("the thread for signals ended")))?;
        Ok(Signals { asked, stopped })
    }

    /// From now on a first signal to stop is handed to the process, which ends within this time, or is ended.
    pub(crate) fn finish_first(&self, within: Option<Duration>) {
        // A process accepts requests in one place only.
        let _ = ENDING.set(Ending { within });
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> SignalRequest {
        // The thread ends only with the process.
        self.asked.recv().await.unwrap_or(SignalRequest::Stop)
    }

    /// Becomes readable when the process is told to stop, and stays so.
    pub(crate) fn stopped(&self) -> BorrowedFd<'_> {
        self.stopped.as_fd()
    }
}

struct Handlers {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Option<Signal>,
}

impl Handlers {
    fn install(settings: SignalSettings) -> io::Result<Handlers> {
        Ok(Handlers {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: settings.reloads.then(|| signal(SignalKind::hangup())).transpose()?,
        })
    }

    async fn attend(mut self, settings: SignalSettings, tell: &UnboundedSender<SignalRequest>, stop: UnixStream) {
        while self.next().await == SignalRequest::Reload {
            // Nobody listens only while the process ends.
            let _ = tell.send(SignalRequest::Reload);
        }
        let Some(ending) = ENDING.get() else { std::process::exit(settings.early.into()) };
        drop(stop);
        let _ = tell.send(SignalRequest::Stop);
        let again = async { while self.next().await == SignalRequest::Reload {} };
        match ending.within {
            // Running out of time ends it as a second signal does.
            Some(within) => drop(tokio::time::timeout(within, again).await),
            None => again.await,
        }
        // Nothing is said: whoever holds the lock of stderr may be what hangs.
        std::process::exit(settings.forced.into());
    }

    async fn next(&mut self) -> SignalRequest {
        let hung_up = async {
            match &mut self.hang_up {
                Some(signal) => drop(signal.recv().await),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = self.terminate.recv() => SignalRequest::Stop,
            _ = self.interrupt.recv() => SignalRequest::Stop,
            () = hung_up => SignalRequest::Reload,
        }
    }
}
