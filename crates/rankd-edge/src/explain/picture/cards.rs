//! What is said of a node: a few short lines on its card, and all there is to know for whoever asks.

use super::Ran;
use super::arguments::Arguments;
use crate::explain::{Explanation, micros, remarks, shortcoming};
use crate::layout::BoxSize;
use rankd_engine::task::Task;
use rankd_engine::trace::{End, NodeTrace};
use rankd_plan::plan::NodeIx;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How wide a card is, and how much text a line of it takes, in cells.
const WIDTH_MIN: f64 = 150.0;
const CELLS_MAX: usize = 40;

/// Room around the text of a card, and how high its lines are.
pub(super) const PADDING: f64 = 12.0;
pub(super) const TITLE_HEIGHT: f64 = 19.0;
pub(super) const LINE_HEIGHT: f64 = 16.0;
const TOP: f64 = 7.0;
const BOTTOM: f64 = 9.0;

/// The most that a cell of text takes: titles are bold.
const TITLE_CELL: f64 = 8.3;
const LINE_CELL: f64 = 6.8;

/// How a line of a card looks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Look {
    Label,
    Code,
    Condition,
    Fallback,
    Remark,
    Output,
    Figures,
    Alarm,
}

impl Look {
    pub(super) fn class(self) -> &'static str {
        match self {
            Look::Label => "label",
            Look::Code => "code",
            Look::Condition => "when",
            Look::Fallback => "fallback",
            Look::Remark => "remark",
            Look::Output => "output",
            Look::Figures => "figures",
            Look::Alarm => "alarm",
        }
    }
}

/// A node on the picture.
pub(super) struct Card {
    pub(super) size: BoxSize,
    pub(super) lines: Vec<(Look, String)>,
    /// What is special about it, as classes of the style sheet.
    pub(super) classes: Vec<&'static str>,
    /// Its share of the time that the answer waited for, where it has one.
    pub(super) share: Option<f64>,
    /// What there is to know besides its parameters.
    pub(super) facts: Vec<(&'static str, String)>,
}

impl Card {
    pub(super) fn new(
        told: &Explanation<'_>,
        arguments: &Arguments<'_>,
        ran: &Ran<'_>,
        outputs: &[&str],
        ix: NodeIx,
    ) -> Card {
        let (linked, node) = (told.plan.node(ix), &arguments.plan.nodes[ix as usize]);
        let mut card = Card {
            size: BoxSize { width: 0.0, height: 0.0 },
            lines: Vec::new(),
            classes: Vec::new(),
            share: None,
            facts: Vec::new(),
        };
        card.classes.push(match told.plan.written.step(ix).task {
            Task::Fetch(_) => "reads",
            Task::Compute(_) => "computes",
        });
        if let Some(label) = &linked.label {
            card.say(Look::Label, "label", label.clone());
        }
        let gist = arguments.gist(node);
        if !gist.is_empty() {
            card.lines.push((Look::Code, gist));
        }
        for way in told.ways(told.plan.written.step(ix)) {
            card.lines.push((Look::Remark, way.to_owned()));
            card.facts.push(("note", way.to_owned()));
        }
        if let Some(condition) = &node.condition {
            card.say(Look::Condition, "runs when", arguments.expression(&condition.pred).to_string());
            card.classes.push("conditional");
        }
        if let Some(fallback) = told.fallback(ix) {
            card.say(Look::Fallback, "fallback", fallback);
        }
        if let Some(keys) = told.logs(ix) {
            card.say(Look::Remark, "logs", keys);
        }
        match (linked.needed, linked.lazy) {
            (false, _) => card.remark("never", "never runs: no output needs it"),
            (true, true) => card.remark("lazy", "runs when it is needed"),
            (true, false) => {}
        }
        for name in outputs {
            card.say(Look::Output, "output", (*name).to_owned());
            card.classes.push("is-output");
        }
        card.facts.extend(linked.at().map(|at| ("written at", at.to_owned())));
        if told.analyzed.is_some() {
            card.tell_run(told, ran, ix);
        }
        card.measure(linked.op, &linked.id);
        card
    }

    /// A line that is a fact, too. The line begins with the fact's name, unless its look says it.
    fn say(&mut self, look: Look, name: &'static str, text: String) {
        let line = match look {
            Look::Label => text.clone(),
            Look::Condition => format!("when {text}"),
            Look::Code | Look::Fallback | Look::Remark | Look::Output | Look::Figures | Look::Alarm => {
                format!("{name} {text}").trim_end().to_owned()
            }
        };
        self.lines.push((look, line));
        self.facts.push((name, text));
    }

    fn remark(&mut self, class: &'static str, text: &str) {
        self.lines.push((Look::Remark, text.to_owned()));
        self.facts.push(("note", text.to_owned()));
        self.classes.push(class);
    }

    fn tell_run(&mut self, told: &Explanation<'_>, ran: &Ran<'_>, ix: NodeIx) {
        match ran.records.get(&ix) {
            Some(record) => self.tell_record(told, record, ran.critical_ns),
            None if told.plan.node(ix).needed => {
                self.lines.push((Look::Remark, "did not start".to_owned()));
                self.facts.push(("run", "did not start".to_owned()));
                self.classes.push("idle");
            }
            None => {}
        }
        if let Some(taken) = ran.taken.get(&ix) {
            let words = shortcoming(*taken);
            self.lines.push((Look::Alarm, words.clone()));
            self.facts.push(("degraded", words));
            self.classes.push("degraded");
        }
    }

    fn tell_record(&mut self, told: &Explanation<'_>, record: &NodeTrace, critical_ns: u64) {
        let took_ns = record.end_ns.saturating_sub(record.start_ns);
        let mut figures = format!("{} → {} · {}", record.rows_in, record.rows_out, duration(took_ns));
        let share = (record.critical && critical_ns > 0).then(|| took_ns as f64 / critical_ns as f64);
        if let Some(share) = share {
            let percent = if share < 0.01 { "<1".to_owned() } else { format!("{:.0}", share * 100.0) };
            figures = format!("{figures} · {percent} %");
            self.facts.push(("share of the critical path", format!("{:.1} %", share * 100.0)));
        }
        self.share = share;
        self.lines.push((Look::Figures, figures));
        self.facts.push(("rows", format!("{} → {}", record.rows_in, record.rows_out)));
        self.facts.push(("took", duration(took_ns)));
        self.facts.push(("began after", duration(record.start_ns)));
        self.facts.extend(record.queue_ns().map(|queue_ns| ("queued for", duration(queue_ns))));
        self.facts.push(("ran on", record.on.name()));
        self.facts.extend(record.fused_into.map(|last| ("in one pass with", told.name(last).to_owned())));
        if record.commands > 0 {
            self.facts.push(("reads", format!("{} commands, {} bytes", record.commands, record.bytes)));
        }
        let remarks = remarks(record).collect::<Vec<_>>().join(", ");
        if !remarks.is_empty() {
            self.lines.push((Look::Remark, remarks.clone()));
            self.facts.push(("rows besides", remarks));
        }
        match record.end {
            End::Done => {}
            End::Skipped => self.end("idle", Look::Remark, record.end),
            End::Failed | End::Abandoned => self.end("failed", Look::Alarm, record.end),
        }
    }

    fn end(&mut self, class: &'static str, look: Look, end: End) {
        self.lines.push((look, end.name().to_owned()));
        self.facts.push(("run", end.name().to_owned()));
        self.classes.push(class);
    }

    /// Makes room for one line of this width that is not known yet.
    pub(super) fn make_room(&mut self, width: f64) {
        self.size = BoxSize { width: self.size.width.max(width), height: self.size.height + LINE_HEIGHT };
    }

    /// Cuts lines that are too long, and finds the size of the card.
    fn measure(&mut self, op: &str, id: &str) {
        let title = (cells(op) + cells(&cut(id, 16)) + 2) as f64 * TITLE_CELL;
        for (_, line) in &mut self.lines {
            *line = cut(line, CELLS_MAX);
        }
        let widest = self.lines.iter().map(|(_, line)| cells(line) as f64 * LINE_CELL).fold(title, f64::max);
        let lines = self.lines.len() as f64 * LINE_HEIGHT;
        let width = (widest + 2.0 * PADDING).max(WIDTH_MIN).ceil();
        self.size = BoxSize { width, height: TOP + TITLE_HEIGHT + lines + BOTTOM };
    }
}

/// The room that the caption of a pass takes.
pub(super) fn caption_width(caption: &str) -> f64 {
    cells(caption) as f64 * LINE_CELL
}

/// A text of so many cells at most.
pub(super) fn cut(text: &str, cells_max: usize) -> String {
    if cells(text) <= cells_max {
        return text.to_owned();
    }
    let mut room = cells_max.saturating_sub(1);
    let fits = |char: &char| {
        let wide = char.width().unwrap_or(1);
        let fits = wide <= room;
        room = room.saturating_sub(wide);
        fits
    };
    text.chars().take_while(fits).chain(['…']).collect()
}

fn cells(text: &str) -> usize {
    text.width()
}

/// A time in a unit that suits it.
pub(super) fn duration(nanos: u64) -> String {
    match nanos {
        0..1_000_000 => format!("{:.1} µs", micros(nanos)),
        1_000_000..10_000_000_000 => format!("{:.1} ms", micros(nanos) / 1e3),
        _ => format!("{:.1} s", micros(nanos) / 1e6),
    }
}
