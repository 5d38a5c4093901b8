//! The metrics of captures: what became of requests that were to be captured.

use crate::metrics_text::MetricsText;
use rankd_edge::capture::{Capture, CaptureCounts, Dropped};

/// Also where nothing is captured: then they are 0.
pub(crate) fn write(page: &mut MetricsText, capture: Option<&Capture>) {
    let counts = capture.map(Capture::counts);
    let count = |of: &dyn Fn(&CaptureCounts) -> u64| counts.map_or(0, of);
    page.one("rankd_captured_total", "counter", "Requests written to captures.", count(&CaptureCounts::written));
    page.family("rankd_capture_dropped_total", "counter", "Requests that were to be captured and are not, by reason.");
    for why in Dropped::ALL {
        let value = count(&|counts| counts.dropped(why));
        page.sample("rankd_capture_dropped_total", &[("reason", why.name())], value);
    }
    page.one("rankd_capture_bytes_total", "counter", "Bytes written to captures.", count(&CaptureCounts::bytes));
    page.one("rankd_capture_files_total", "counter", "Files of captures begun.", count(&CaptureCounts::files));
}
