//! The metrics as Prometheus reads them. Every name starts with `rankd_`; `docs/operations.md` lists them all.

use crate::app::App;
use crate::capture_metrics;
use crate::collector::Collector;
use crate::connection_state::{CloseReason, ConnectionClass};
use crate::limiter::{PRESSURE_MAX, Refusal};
use crate::metrics::{Count, LoopMetrics, PLACES, PlanCounts};
use crate::metrics_text::{MetricsText, seconds};
use crate::readiness::{Phase, Warnings};
use crate::request_outcome::RequestOutcome;
use crate::shadow_engine::ShadowEngine;
use crate::shadow_metrics;
use crate::time_slice::TimeSlice;
use rankd_edge::stream_files::WriteCounts;
use rankd_edge::tables::TableFiles;
use rankd_edge::{date, process};
use rankd_engine::store::health::{BreakerState, LATENCY_BOUNDS_US, Snapshot};
use rankd_engine::trace::ROW_COUNTS;
use std::sync::Arc;

/// Renders the page in time slices, because with thousands of plans it takes long.
pub(crate) async fn render(app: &App) -> String {
    // About as much as it takes, so that what is there is not copied again and again.
    let mut page =
        MetricsText { out: String::with_capacity(PAGE_BYTES + PLAN_BYTES * app.catalog.load().list().len()) };
    plans(&mut page, app).await;
    http(&mut page, app);
    admission(&mut page, app);
    ops(&mut page, app);
    engine(&mut page, app);
    tables(&mut page, app);
    models(&mut page, app);
    experiments(&mut page, app);
    capture_metrics::write(&mut page, app.capture.as_ref());
    shadow_metrics::render(&mut page, &app.catalog.load().shadows, app.shadows.as_ref().map(ShadowEngine::waiting));
    itself(&mut page, app);
    page.out
}

/// About how many bytes a page has without plans, and how many a plan adds.
const PAGE_BYTES: usize = 64 << 10;
const PLAN_BYTES: usize = 2 << 10;

async fn plans(page: &mut MetricsText, app: &App) {
    let catalog = app.catalog.load_full();
    let all = catalog.list();
    let mut slice = TimeSlice::begin();
    let unknown: Vec<&PlanCounts> = app.metrics.loops().iter().map(|one| &one.no_plan).collect();
    // The requests that no plan was found for come last, under an empty name.
    let of_plans = all.iter().map(|plan| (plan.name.as_str(), plan.counters.metrics.loops.iter().collect::<Vec<_>>()));
    let with_unknown = || of_plans.clone().chain([("", unknown.clone())]);
    page.family("rankd_requests_total", "counter", "Requests for a plan, by outcome.");
    for (plan, counts) in with_unknown() {
        for outcome in RequestOutcome::all() {
            let value: u64 = counts.iter().map(|counts| counts.outcome(outcome)).sum();
            // Also those that never were: the rate of a counter that begins at 1 does not show the first.
            page.sample("rankd_requests_total", &[("plan", plan), ("outcome", outcome.name())], value);
        }
        slice.yield_if_over().await;
    }
    page.family(
        "rankd_degraded_total",
        "counter",
        "Fallbacks taken in runs for requests, by the node that they stood for and the reason.",
    );
    for (plan, good) in all.iter().filter_map(|plan| Some((&plan.name, plan.good.as_ref()?))) {
        for (node, reason, count) in good.degraded.all() {
            let labels = [("plan", &**plan), ("node", node), ("reason", reason.name())];
            page.sample("rankd_degraded_total", &labels, count);
            slice.yield_if_over().await;
        }
    }
    page.family("rankd_request_seconds", "histogram", "Time from the first byte of a request to its answer.");
    for (plan, counts) in with_unknown() {
        page.times("rankd_request_seconds", &[("plan", plan)], counts.iter().map(|counts| &counts.took));
        slice.yield_if_over().await;
    }
    page.family("rankd_rows_total", "counter", "Rows returned.");
    for (plan, counts) in of_plans.clone() {
        let rows: u64 = counts.iter().map(|counts| counts.rows.get()).sum();
        page.sample("rankd_rows_total", &[("plan", plan)], rows);
        slice.yield_if_over().await;
    }
    page.family("rankd_why_total", "counter", "Questions about items of a plan, by outcome.");
    for (plan, counts) in with_unknown() {
        for outcome in RequestOutcome::all() {
            let value: u64 = counts.iter().map(|counts| counts.asked(outcome)).sum();
            if value > 0 {
                page.sample("rankd_why_total", &[("plan", plan), ("outcome", outcome.name())], value);
            }
        }
        slice.yield_if_over().await;
    }
    page.family(
        "rankd_plan_version",
        "gauge",
        "Number of times that a version of a plan came into service; 0 while it has none.",
    );
    for plan in all {
        let version = plan.good.as_ref().map_or(0, |good| good.version);
        page.sample("rankd_plan_version", &[("plan", &plan.name)], version);
        slice.yield_if_over().await;
    }
    page.family("rankd_plan_problem", "gauge", "1 while a plan's file is not the version in service.");
    for plan in all {
        let is_other = plan.problem.is_some() || plan.held().is_some();
        page.sample("rankd_plan_problem", &[("plan", &plan.name)], u8::from(is_other));
        slice.yield_if_over().await;
    }
    page.family("rankd_plan_rollbacks_total", "counter", "Rollbacks of a plan, by operators and by --auto_rollback.");
    for plan in all {
        page.sample("rankd_plan_rollbacks_total", &[("plan", &plan.name)], plan.counters.rollbacks.get());
        slice.yield_if_over().await;
    }
    let Warnings { plan_folder, registry, tables, models, experiments, shadows } = &*app.readiness.warnings();
    page.one(
        "rankd_plan_folder_problem",
        "gauge",
        "1 while the plan folder is empty or cannot be listed and the last good plans are served.",
        u8::from(plan_folder.is_some()),
    );
    page.one(
        "rankd_registry_problem",
        "gauge",
        "1 while the registry on disk is refused and the previous one is in use.",
        u8::from(registry.is_some()),
    );
    page.one(
        "rankd_tables_problem",
        "gauge",
        "1 while the file of a table is refused and an earlier version of it is in use.",
        u8::from(tables.is_some()),
    );
    page.one(
        "rankd_models_problem",
        "gauge",
        "1 while the file of a model is refused and an earlier version of it is in use.",
        u8::from(models.is_some()),
    );
    page.one(
        "rankd_experiments_problem",
        "gauge",
        "1 while the file of experiments is refused or one of them cannot be applied.",
        u8::from(experiments.is_some()),
    );
    page.one("rankd_shadows_problem", "gauge", "1 while a plan's shadow cannot run.", u8::from(shadows.is_some()));
    page.family("rankd_reloads_total", "counter", "Plan versions loaded or refused, by result.");
    page.sample("rankd_reloads_total", &[("result", "ok")], app.metrics.reloads_ok.get());
    page.sample("rankd_reloads_total", &[("result", "failed")], app.metrics.reloads_failed.get());
}

fn tables(page: &mut MetricsText, app: &App) {
    let now = date::millis();
    let each = |tables: &Arc<TableFiles>| -> Vec<_> {
        tables.sources().iter().map(|source| (source.clone(), tables.current(source))).collect()
    };
    let all = app.tables.as_ref().map(each).unwrap_or_default();
    page.family("rankd_table_rows", "gauge", "Rows of a table.");
    for (source, table) in &all {
        let rows = table.as_ref().map_or(0, |table| table.batch().len());
        page.sample("rankd_table_rows", &[("table", source.name())], rows);
    }
    page.family("rankd_table_bytes", "gauge", "Memory of a table's columns and indexes.");
    for (source, table) in &all {
        page.sample("rankd_table_bytes", &[("table", source.name())], table.as_ref().map_or(0, |table| table.bytes()));
    }
    page.family("rankd_table_age_seconds", "gauge", "Time since the version of a table that is in use was loaded.");
    for (source, _) in all.iter().filter(|(_, table)| table.is_some()) {
        let age = now.saturating_sub(source.loaded_ms()) as f64 / 1e3;
        page.sample("rankd_table_age_seconds", &[("table", source.name())], age);
    }
    page.family("rankd_table_reloads_total", "counter", "Changed files of a table, by result.");
    for (source, _) in &all {
        let (good, failed) = source.reloads();
        for (result, count) in [("ok", good), ("failed", failed)] {
            page.sample("rankd_table_reloads_total", &[("table", source.name()), ("result", result)], count);
        }
    }
}

fn models(page: &mut MetricsText, app: &App) {
    let versions = app.catalog.load().registry.models_in_use().versions();
    let all = app.models.as_ref().map(|models| models.sources()).unwrap_or_default();
    page.family("rankd_model_rows_total", "counter", "Rows that a model has scored.");
    for source in all {
        let rows = versions.get(source.at()).map_or(0, |model| model.rows());
        page.sample("rankd_model_rows_total", &[("model", source.name())], rows);
    }
    page.family("rankd_model_reloads_total", "counter", "Changed files of a model, by outcome.");
    for source in all {
        let (good, failed) = source.reloads();
        for (outcome, count) in [("ok", good), ("failed", failed)] {
            page.sample("rankd_model_reloads_total", &[("model", source.name()), ("outcome", outcome)], count);
        }
    }
}

fn experiments(page: &mut MetricsText, app: &App) {
    page.family("rankd_arm_requests_total", "counter", "Requests that were in an arm of an experiment.");
    for ((experiment, arm), count) in app.catalog.load().experiments.counts.all() {
        page.sample("rankd_arm_requests_total", &[("experiment", experiment), ("arm", arm)], count);
    }
    page.family("rankd_experiments_reloads_total", "counter", "Changed files of experiments, by outcome.");
    for (outcome, count) in [("ok", &app.metrics.experiments_ok), ("failed", &app.metrics.experiments_failed)] {
        page.sample("rankd_experiments_reloads_total", &[("outcome", outcome)], count.get());
    }
}

/// The sum of one counter over all loops.
fn sum(app: &App, of: impl Fn(&LoopMetrics) -> &Count) -> u64 {
    app.metrics.loops().iter().map(|one| of(one).get()).sum()
}

fn http(page: &mut MetricsText, app: &App) {
    let loops = app.metrics.loops();
    page.family("rankd_http_responses_total", "counter", "Responses, by path and first digit of the status.");
    for route in 0..=app.metrics.routes.len() {
        for digit in 0..5 {
            let value: u64 = loops.iter().map(|one| one.response(route, digit)).sum();
            if value > 0 {
                let path = app.metrics.routes.get(route).copied().unwrap_or("other");
                let status = format!("{}xx", digit + 1);
                page.sample("rankd_http_responses_total", &[("route", path), ("status", &status)], value);
            }
        }
    }
    page.one(
        "rankd_connections_open",
        "gauge",
        "Open connections.",
        ConnectionClass::ALL.iter().map(|class| app.open(*class)).sum::<usize>(),
    );
    page.one("rankd_connections_total", "counter", "Connections accepted.", sum(app, |one| &one.accepted));
    page.one(
        "rankd_connections_refused_total",
        "counter",
        "Connections refused because the server was full.",
        sum(app, |one| &one.refused),
    );
    page.one(
        "rankd_accept_failures_total",
        "counter",
        "Failed attempts to accept a connection.",
        sum(app, |one| &one.accept_failures),
    );
    page.family("rankd_connections_cut_total", "counter", "Connections closed by the server, by reason.");
    for (at, close_reason) in CloseReason::ALL.iter().enumerate() {
        let value: u64 = loops.iter().map(|one| one.closed(at)).sum();
        page.sample("rankd_connections_cut_total", &[("reason", close_reason.name())], value);
    }
    page.one(
        "rankd_answers_untaken_bytes",
        "gauge",
        "Bytes of answers that clients have not read yet.",
        sum(app, |one| &one.unread),
    );
    page.one(
        "rankd_panics_caught_total",
        "counter",
        "Panics caught outside tasks while answering.",
        sum(app, |one| &one.panics),
    );
}

fn admission(page: &mut MetricsText, app: &App) {
    page.family("rankd_admission_rejected_total", "counter", "Requests refused, by reason.");
    for (at, refused) in Refusal::ALL.iter().enumerate() {
        page.sample("rankd_admission_rejected_total", &[("reason", refused.name())], sum(app, |one| &one.rejected[at]));
    }
    page.sample("rankd_admission_rejected_total", &[("reason", "memory")], sum(app, |one| &one.memory_rejected));
    page.sample("rankd_admission_rejected_total", &[("reason", "untaken")], sum(app, |one| &one.unread_rejected));
    page.sample(
        "rankd_admission_rejected_total",
        &[("reason", "connections")],
        sum(app, |one| &one.no_connection_rejected),
    );
    page.family("rankd_admission_queue_seconds", "histogram", "Time that admitted requests spent in the queue.");
    page.times("rankd_admission_queue_seconds", &[], app.metrics.loops().iter().map(|one| &one.queued));
    type Of = fn(&LoopMetrics) -> &Count;
    let gauges: [(&str, &str, Of); 3] = [
        ("rankd_runs_under_way", "Runs in progress.", |one| &one.running),
        ("rankd_admission_line", "Requests in the queue.", |one| &one.queue_len),
        ("rankd_admission_limit", "Current value of the adaptive limit on concurrent runs.", |one| &one.limit),
    ];
    for (name, help, of) in gauges {
        page.family(name, "gauge", help);
        for (number, one) in app.metrics.loops().iter().enumerate() {
            page.sample(name, &[("loop", &number.to_string())], of(one).get());
        }
    }
    page.family("rankd_pressure", "gauge", "How hard the loop is pressed, from 0 to 1; dials follow it.");
    for (number, one) in app.metrics.loops().iter().enumerate() {
        // It is told by runs: where there are none, nothing presses.
        let is_idle = one.running.get() == 0 && one.queue_len.get() == 0;
        let pressure = if is_idle { 0.0 } else { one.pressure.get() as f64 / f64::from(PRESSURE_MAX) };
        page.sample("rankd_pressure", &[("loop", &number.to_string())], pressure);
    }
}

fn ops(page: &mut MetricsText, app: &App) {
    let loops = app.metrics.loops();
    page.one(
        "rankd_traced_runs_total",
        "counter",
        "Traced runs, from which the per-op metrics come.",
        sum(app, |one| &one.traced),
    );
    let used: Vec<(usize, &str)> = app
        .tasks
        .signatures()
        .iter()
        .enumerate()
        .filter(|(at, _)| loops.iter().any(|one| one.ops[*at].places.iter().any(|place| place.get() > 0)))
        .map(|(at, task)| (at, task.op))
        .collect();
    page.family("rankd_op_run_seconds", "histogram", "Run time of nodes, in traced runs.");
    for (at, op) in &used {
        page.times("rankd_op_run_seconds", &[("op", op)], loops.iter().map(|one| &one.ops[*at].run));
    }
    page.family("rankd_op_queue_seconds", "histogram", "Time that nodes waited for a thread, in traced runs.");
    for (at, op) in &used {
        page.times("rankd_op_queue_seconds", &[("op", op)], loops.iter().map(|one| &one.ops[*at].queue));
    }
    page.family("rankd_op_rows_total", "counter", "Rows into and out of nodes, in traced runs.");
    for (at, op) in &used {
        let rows = |of: fn(&LoopMetrics, usize) -> u64| loops.iter().map(|one| of(one, *at)).sum::<u64>();
        let labels = |direction| [("op", *op), ("direction", direction)];
        page.sample("rankd_op_rows_total", &labels("in"), rows(|one, at| one.ops[at].rows_in.get()));
        page.sample("rankd_op_rows_total", &labels("out"), rows(|one, at| one.ops[at].rows_out.get()));
    }
    page.family(
        "rankd_op_row_counts_total",
        "counter",
        "Rows that nodes dropped, put against a rule (relaxed), or found without what they work by (lacking), in traced runs.",
    );
    for (at, op) in &used {
        for (of, what) in ROW_COUNTS.iter().enumerate() {
            let value: u64 = loops.iter().map(|one| one.ops[*at].row_counts[of].get()).sum();
            page.sample("rankd_op_row_counts_total", &[("op", op), ("what", what)], value);
        }
    }
    page.family(
        "rankd_op_nodes_total",
        "counter",
        "Nodes in traced runs, by where they ran: on the loop or in a pool.",
    );
    for (at, op) in &used {
        for (place, name) in PLACES.iter().enumerate() {
            let value: u64 = loops.iter().map(|one| one.ops[*at].places[place].get()).sum();
            page.sample("rankd_op_nodes_total", &[("op", op), ("where", name)], value);
        }
    }
}

fn engine(page: &mut MetricsText, app: &App) {
    let stats = &app.gauges.stats;
    page.family(
        "rankd_computations_total",
        "counter",
        "Computations, by whether they ran on the loop or how they reached the CPU pool.",
    );
    for (how, count) in [("inline", stats.inlined()), ("chained", stats.chained()), ("offloaded", stats.offloads())] {
        page.sample("rankd_computations_total", &[("how", how)], count);
    }
    page.one(
        "rankd_late_completions_total",
        "counter",
        "Nodes that finished after their run had been answered.",
        stats.late_completions(),
    );
    page.family(
        "rankd_wasted_cpu_seconds_total",
        "counter",
        "CPU time of nodes that finished after their run had been answered, by plan.",
    );
    for (plan, wasted) in stats.wasted() {
        page.sample("rankd_wasted_cpu_seconds_total", &[("plan", &*plan)], seconds(wasted.ns));
    }
    page.one("rankd_task_panics_total", "counter", "Panics caught in tasks.", stats.panics());
    page.one("rankd_pool_depth", "gauge", "Jobs waiting for or running in the CPU pool.", app.gauges.pool_depth());
    page.family("rankd_store_commands_total", "counter", "Commands that tasks issued to an endpoint.");
    for (endpoint, count) in app.endpoints.iter().zip(stats.commands()) {
        page.sample("rankd_store_commands_total", &[("endpoint", endpoint)], count);
    }
    page.family(
        "rankd_store_unread_total",
        "counter",
        "Values of an endpoint that could not be read as what their key takes.",
    );
    for (endpoint, key, count) in stats.unread() {
        if let Some(endpoint) = app.endpoints.get(endpoint as usize) {
            page.sample("rankd_store_unread_total", &[("endpoint", endpoint), ("key", &key)], count);
        }
    }
    stores(page, app);
    page.family(
        "rankd_loop_longest_turn_seconds",
        "gauge",
        "Longest time that one task blocked a loop since the metrics were last read.",
    );
    for (number, longest) in app.gauges.longest_polls.iter().enumerate() {
        let labels = [("loop", &*number.to_string())];
        page.sample("rankd_loop_longest_turn_seconds", &labels, seconds(longest.take_ns()));
    }
}

/// How the endpoints on servers are doing.
fn stores(page: &mut MetricsText, app: &App) {
    let health = |at: usize| app.gauges.stats.health(at).map(|health| health.snapshot());
    let served = app.endpoints.iter().enumerate().filter_map(|(at, name)| Some((name.as_str(), health(at)?)));
    let all: Vec<(&str, Snapshot)> = served.collect();
    type Of = fn(&Snapshot) -> u64;
    let counters: [(&str, &str, Of); 6] = [
        ("rankd_store_steps_total", "Pipelines sent to an endpoint.", |now| now.steps),
        ("rankd_store_shared_total", "Pipelines not sent because an identical one was in flight.", |now| now.shared),
        ("rankd_store_errors_total", "Pipelines that failed, whether or not they were sent.", |now| now.errors),
        ("rankd_store_retries_total", "Commands sent a second time.", |now| now.retries),
        ("rankd_store_connects_total", "Connection attempts.", |now| now.connects),
        ("rankd_store_breaker_opened_total", "Number of times a breaker opened.", |now| now.opened),
    ];
    for (name, help, of) in counters {
        page.family(name, "counter", help);
        for (endpoint, now) in &all {
            page.sample(name, &[("endpoint", endpoint)], of(now));
        }
    }
    page.family("rankd_store_connections", "gauge", "Connections to an endpoint, by the state of their breaker.");
    for (endpoint, now) in &all {
        for (state, count) in BreakerState::ALL.iter().zip(now.connections) {
            page.sample("rankd_store_connections", &[("endpoint", endpoint), ("breaker", state.name())], count);
        }
    }
    page.family("rankd_store_seconds", "histogram", "Time from sending a pipeline to its complete answer.");
    for (endpoint, now) in &all {
        let mut total = 0;
        for (at, count) in now.latency_buckets.iter().enumerate() {
            total += count;
            let bound = LATENCY_BOUNDS_US.get(at).map_or("+Inf".to_owned(), |us| (*us as f64 / 1e6).to_string());
            page.sample("rankd_store_seconds_bucket", &[("endpoint", endpoint), ("le", &bound)], total);
        }
        page.sample("rankd_store_seconds_sum", &[("endpoint", endpoint)], now.latency_us as f64 / 1e6);
        page.sample("rankd_store_seconds_count", &[("endpoint", endpoint)], total);
    }
}

fn itself(page: &mut MetricsText, app: &App) {
    page.family("rankd_info", "gauge", "Version of this build; always 1.");
    page.sample("rankd_info", &[("version", env!("CARGO_PKG_VERSION"))], 1);
    page.one(
        "rankd_ready",
        "gauge",
        "1 while the server is ready for requests.",
        u8::from(app.readiness.phase() == Phase::Ready),
    );
    page.one(
        "rankd_log_lines_dropped_total",
        "counter",
        "Log lines dropped because the log could not keep up.",
        app.log.dropped(),
    );
    page.one(
        "rankd_log_lines_lost_total",
        "counter",
        "Log lines that could not be written, for example because the disk was full.",
        app.log.lost(),
    );
    page.family(
        "rankd_span_requests_total",
        "counter",
        "Requests whose spans the collector accepted or that were dropped, by result.",
    );
    for (result, of) in [("sent", Collector::sent as fn(&Collector) -> u64), ("dropped", Collector::dropped)] {
        let count = app.collector.as_ref().map_or(0, of);
        page.sample("rankd_span_requests_total", &[("result", result)], count);
    }
    page.family(
        "rankd_feature_log_requests_total",
        "counter",
        "Requests whose rows were to be logged, by result: written, dropped because too much waited, or failed to be written.",
    );
    let none = WriteCounts::default();
    let counts = app.feature_log.as_ref().map_or(&none, |log| log.counts());
    for (result, count) in counts.by_result() {
        page.sample("rankd_feature_log_requests_total", &[("result", result)], count);
    }
    page.one(
        "rankd_started_seconds",
        "gauge",
        "Start time of the process, in seconds since 1970.",
        app.started_ms as f64 / 1e3,
    );
    page.one("rankd_cpu_seconds_total", "counter", "CPU time of the process.", process::cpu_seconds());
    if let Some(bytes) = process::resident_bytes() {
        page.one("rankd_resident_bytes", "gauge", "Resident memory of the process.", bytes);
    }
    if let Some(count) = process::open_descriptors() {
        page.one("rankd_open_descriptors", "gauge", "Open file descriptors.", count);
    }
}
