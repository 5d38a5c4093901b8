//! The flags that say what is captured, for every command that captures requests.

use crate::cli::command_error::{BadArgument, CommandError};
use clap::Args;
use rankd_edge::capture::{Capture, CaptureLimits};
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct CaptureArgs {
    /// Capture requests, with all that their runs depended on and their answers, into this folder; rankd replay runs them again
    #[arg(long, help_heading = "Capture", value_name = "DIR")]
    capture: Option<PathBuf>,
    /// Which share of the requests to capture, decided by a hash of the request's id
    #[arg(long, help_heading = "Capture", value_name = "SHARE", default_value = "1", value_parser = share)]
    capture_share: f64,
    /// Start another file after N MiB
    #[arg(long, help_heading = "Capture", value_name = "N", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    capture_file_mb: u64,
    /// Start another file after N minutes
    #[arg(long, help_heading = "Capture", value_name = "N", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    capture_file_minutes: u64,
    /// Remove the oldest files when all of them have more than N MiB
    #[arg(long, help_heading = "Capture", value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    capture_keep_mb: u64,
}

impl CaptureArgs {
    /// Starts to capture, where that is asked for. `tell` is told once of what cannot be written.
    pub(crate) fn start(&self, tell: impl FnMut(String) + Send + 'static) -> Result<Option<Capture>, CommandError> {
        let Some(folder) = &self.capture else { return Ok(None) };
        let limits = CaptureLimits {
            file_bytes: self.capture_file_mb << 20,
            file_ms: self.capture_file_minutes * 60_000,
            folder_bytes: self.capture_keep_mb << 20,
        };
        let started = Capture::start(folder, self.capture_share, limits, tell);
        started.map(Some).map_err(|error| CommandError::Caused(Box::new(error)))
    }
}

pub(crate) fn share(text: &str) -> Result<f64, BadArgument> {
    let share = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "a share is a number from 0 to 1, such as 0.001".into())
}
