//! What the metrics page tells of shadows.

use crate::metrics_text::MetricsText;
use crate::shadow_pair::{Distribution, DropReason, ShadowCounts, ShadowPair, ShadowResult};
use rankd_engine::ErrorKind;
use std::sync::Arc;

/// Adds the metrics of all pairs. `waiting` is how many shadows wait, where there are any.
pub(crate) fn render(page: &mut MetricsText, pairs: &[Arc<ShadowPair>], waiting: Option<usize>) {
    let all: Vec<([(&str, &str); 2], &ShadowCounts)> = pairs
        .iter()
        .map(|pair| ([("plan", &*pair.settings.plan), ("shadow", &*pair.settings.shadow)], &pair.counts))
        .collect();
    let mut counter =
        |name: &str, help: &str, label: &str, each: &dyn Fn(&ShadowCounts) -> Vec<(&'static str, u64)>| {
            page.family(name, "counter", help);
            for (labels, counts) in &all {
                for (value, count) in each(counts) {
                    page.sample_of(name, "", labels, &[(label, value)], count);
                }
            }
        };
    counter(
        "rankd_shadow_runs_total",
        "Runs of a plan's shadow, by how they compare with the plan.",
        "result",
        &|of| ShadowResult::ALL.map(|result| (result.name(), of.result(result))).to_vec(),
    );
    counter("rankd_shadow_failed_total", "Runs of a plan's shadow that failed, by kind of error.", "kind", &|of| {
        ErrorKind::ALL.iter().map(|kind| (kind.name(), of.failed(*kind))).collect()
    });
    counter(
        "rankd_shadow_dropped_total",
        "Requests of the share that a shadow did not run for, by reason.",
        "reason",
        &|of| DropReason::ALL.map(|reason| (reason.name(), of.dropped(reason))).to_vec(),
    );
    counter(
        "rankd_shadow_reads_total",
        "Keys and calls that shadows asked for, by whether the plan had read them or a store was asked.",
        "from",
        &|of| vec![("plan", of.reads_shared.get()), ("store", of.reads_live.get())],
    );
    type Of = fn(&ShadowCounts) -> &Distribution;
    let histograms: [(&str, &str, Of); 3] = [
        ("rankd_shadow_overlap", "Part of the first 20 rows that plan and shadow share.", |of| &of.overlap),
        ("rankd_shadow_rbo", "Rank-biased overlap of plan and shadow, p = 0.9.", |of| &of.rbo),
        ("rankd_shadow_displacement", "Places that a row of both moved, on average.", |of| &of.displacement),
    ];
    for (name, help, of) in histograms {
        page.family(name, "histogram", help);
        for (labels, counts) in &all {
            let distribution = of(counts);
            for (bound, count) in distribution.cumulated() {
                page.sample_of(name, "_bucket", labels, &[("le", &bound)], count);
            }
            page.sample_of(name, "_sum", labels, &[], distribution.sum());
            page.sample_of(name, "_count", labels, &[], distribution.count());
        }
    }
    page.one("rankd_shadow_waiting", "gauge", "Shadows that wait to run.", waiting.unwrap_or(0));
}
