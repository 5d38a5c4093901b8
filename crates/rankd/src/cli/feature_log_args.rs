//! The flags that say what is logged of rows, for every command that answers requests.

use crate::cli::capture_args::share;
use crate::cli::command_error::CommandError;
use crate::cli::pii_args::PiiArgs;
use crate::cli::say;
use clap::Args;
use rankd_edge::feature_log::FeatureLog;
use rankd_edge::stream_files::StreamLimits;
use std::path::PathBuf;

#[derive(Args, Clone, Debug)]
pub(crate) struct FeatureLogArgs {
    /// Log the rows of nodes that say log, or those of outputs where none does, into this folder, as Arrow streams
    #[arg(long, help_heading = "Feature log", value_name = "DIR")]
    feature_log: Option<PathBuf>,
    /// Of which share of the requests to log rows, decided by a hash of the request's id
    #[arg(long, help_heading = "Feature log", value_name = "SHARE", default_value = "1", value_parser = share)]
    feature_log_share: f64,
    /// Start another file after N MiB
    #[arg(long, help_heading = "Feature log", value_name = "N", default_value = "64", value_parser = clap::value_parser!(u64).range(1..=65_536))]
    feature_log_file_mb: u64,
    /// Start another file after N minutes
    #[arg(long, help_heading = "Feature log", value_name = "N", default_value = "60", value_parser = clap::value_parser!(u64).range(1..=100_000))]
    feature_log_file_minutes: u64,
    /// Remove the oldest files when all of them have more than N MiB
    #[arg(long, help_heading = "Feature log", value_name = "N", default_value = "1024", value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    feature_log_keep_mb: u64,
}

impl FeatureLogArgs {
    /// Starts to log rows, where that is asked for.
    pub(crate) fn start(&self, pii: &PiiArgs) -> Result<Option<FeatureLog>, CommandError> {
        let Some(folder) = &self.feature_log else { return Ok(None) };
        let limits = StreamLimits {
            file_bytes: self.feature_log_file_mb << 20,
            file_ms: self.feature_log_file_minutes * 60_000,
            folder_bytes: self.feature_log_keep_mb << 20,
        };
        let started = FeatureLog::start(folder, self.feature_log_share, limits, pii.pii()?, say::note);
        started.map(Some).map_err(|error| CommandError::Caused(Box::new(error)))
    }
}
