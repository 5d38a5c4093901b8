//! The report as one HTML file that opens offline: no script, and nothing is loaded from anywhere.

use super::labels::QUALITIES;
use super::{BARS, OutputDiff, PlanDiff, RowGroups};
use std::fmt::Write;

/// Room of the picture of overlaps, in its own units.
const WIDTH: usize = 640;
const HEIGHT: usize = 160;

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#1b1f24;--soft:#59636e;--line:#d1d9e0;--paper:#fff;--panel:#f6f8fa;--bar:#2f6feb;--good:#1a7f37;--bad:#b42318}\
@media(prefers-color-scheme:dark){:root{--ink:#e6edf3;--soft:#9198a1;--line:#3d444d;--paper:#0d1117;--panel:#151b23;--bar:#4f8cff;--good:#3fb950;--bad:#f47067}}\
body{font:15px/1.5 system-ui,sans-serif;color:var(--ink);background:var(--paper);max-width:960px;margin:2rem auto;padding:0 1rem}\
h1{font-size:1.5rem;margin:0}h2{font-size:1.1rem;margin:2rem 0 .5rem}p{color:var(--soft);margin:.25rem 0 1rem}\
table{border-collapse:collapse;width:100%}th,td{text-align:left;padding:.35rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}\
th{color:var(--soft);font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}td.about{color:var(--soft)}\
pre{background:var(--panel);border:1px solid var(--line);border-radius:6px;padding:.5rem .75rem;overflow-x:auto;margin:.25rem 0 1rem;font-size:13px}\
svg{width:100%;height:auto;background:var(--panel);border:1px solid var(--line);border-radius:6px}\
svg rect{fill:var(--bar)}svg text{fill:var(--soft);font:12px system-ui,sans-serif}.up{color:var(--good)}.down{color:var(--bad)}";

impl PlanDiff {
    /// All of it, as a page.
    pub fn to_html(&self) -> String {
        let [a, b] = [escaped(&self.asked.plans[0]), escaped(&self.asked.plans[1])];
        let mut out = format!(
            "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{a} → {b}</title>\n<style>{STYLE}</style>\n\
             <h1>{a} → {b}</h1>\n<p>{} requests, {} of which are answered differently.</p>\n",
            self.requests, self.differing
        );
        self.figure_table(&mut out);
        for line in self.left_out_lines() {
            put(&mut out, format_args!("<p>{}</p>\n", escaped(&line)));
        }
        self.label_table(&mut out);
        for (at, output) in self.outputs.iter().enumerate().filter(|(_, output)| output.requests > 0) {
            let name = match self.outputs.len() {
                1 => String::new(),
                _ => format!(" of output {}", escaped(&self.asked.outputs[at])),
            };
            put(&mut out, format_args!("<h2>Overlap@{}{name}</h2>\n", self.asked.k));
            picture(output, &mut out);
            grouped(&name, "source", &output.sources, &mut out);
            if let Some(key) = &self.asked.group {
                grouped(&name, key, &output.groups, &mut out);
            }
        }
        self.requests_that_differ(&mut out);
        out.push_str("</html>\n");
        out
    }

    fn figure_table(&self, out: &mut String) {
        out.push_str("<h2>Figures</h2>\n<table><tr><th>figure<th class=n>first plan<th class=n>second plan<th>\n");
        for figure in self.figures() {
            let first = if figure.of_first.is_some() { figure.shown(figure.of_first) } else { String::new() };
            let (name, second) = (escaped(&figure.name), figure.shown(figure.value));
            let about = figure.about;
            put(out, format_args!("<tr><td>{name}<td class=n>{first}<td class=n>{second}<td class=about>{about}\n"));
        }
        out.push_str("</table>\n");
        for (side, plan) in self.sides.iter().zip(&self.asked.plans) {
            for (code, count) in &side.errors {
                put(out, format_args!("<p>{}: {count} requests failed with {code}.</p>\n", escaped(plan)));
            }
        }
    }

    fn label_table(&self, out: &mut String) {
        if self.asked.labels.is_none() {
            return;
        }
        let (users, without) = (self.qualities.users(), self.qualities.unlabelled);
        put(
            out,
            format_args!(
                "<h2>By the labels</h2>\n<p>{users} users with labels; {without} requests of other users are left out. The interval has 95 of 100 resamples of the users.</p>\n"
            ),
        );
        out.push_str("<table><tr><th>quality<th class=n>first plan<th class=n>second plan<th class=n>difference<th class=n>interval\n");
        for (name, of) in QUALITIES {
            let Some(diff) = self.qualities.diff(of) else { continue };
            let (low, high) = diff.interval;
            let class = if low > 0.0 {
                "up"
            } else if high < 0.0 {
                "down"
            } else {
                ""
            };
            put(
                out,
                format_args!(
                    "<tr><td>{name}@{}<td class=n>{:.4}<td class=n>{:.4}<td class=\"n {class}\">{:+.4}<td class=n>{low:+.4} … {high:+.4}\n",
                    self.asked.k,
                    diff.a,
                    diff.b,
                    diff.b - diff.a
                ),
            );
        }
        out.push_str("</table>\n");
    }

    fn requests_that_differ(&self, out: &mut String) {
        if self.shown.is_empty() {
            return;
        }
        out.push_str("<h2>The requests that differ most</h2>\n");
        for shown in &self.shown {
            let what = match shown.failed {
                Some((code, is_second)) => {
                    format!("{} failed with {code}", escaped(&self.asked.plans[usize::from(is_second)]))
                }
                None => format!("overlap {:.0} %, rbo {:.3}", 100.0 * shown.overlap, shown.rbo),
            };
            put(out, format_args!("<p>Request {}: {what}</p>\n", shown.number));
            let told = shown.why(&self.asked).unwrap_or_else(|| shown.request.clone());
            put(out, format_args!("<pre>{}</pre>\n", escaped(&told)));
        }
    }
}

/// Rows that entered and left, by what they have in common; nothing where there are none.
fn grouped(of: &str, by: &str, groups: &RowGroups, out: &mut String) {
    if groups.is_empty() {
        return;
    }
    let by = escaped(by);
    put(
        out,
        format_args!(
            "<h2>Entered and left{of}, by {by}</h2>\n<table><tr><th>{by}<th class=n>entered<th class=n>left\n"
        ),
    );
    for (group, [entered, left]) in groups {
        put(out, format_args!("<tr><td>{}<td class=n>{entered}<td class=n>{left}\n", escaped(group)));
    }
    out.push_str("</table>\n");
}

/// How many requests have which overlap, as bars.
fn picture(output: &OutputDiff, out: &mut String) {
    let most = output.bars.iter().copied().max().unwrap_or(0).max(1) as usize;
    let step = WIDTH / (BARS + 1);
    put(
        out,
        format_args!("<svg viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"Requests by overlap\">\n", HEIGHT + 24),
    );
    for (bar, &count) in output.bars.iter().enumerate() {
        // A bar that stands for anything can be seen.
        let height = (count as usize * (HEIGHT - 24) / most).max(usize::from(count > 0) * 2);
        let (x, y) = (bar * step + 4, HEIGHT - height);
        put(
            out,
            format_args!(
                "<rect x=\"{x}\" y=\"{y}\" width=\"{}\" height=\"{height}\" rx=\"2\"><title>{} %: {count}</title></rect>\n",
                step - 6,
                100 * bar / BARS
            ),
        );
        if count > 0 {
            put(
                out,
                format_args!(
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{count}</text>\n",
                    x + step / 2 - 3,
                    y - 5
                ),
            );
        }
        if bar.is_multiple_of(5) {
            put(
                out,
                format_args!(
                    "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{} %</text>\n",
                    x + step / 2 - 3,
                    HEIGHT + 16,
                    100 * bar / BARS
                ),
            );
        }
    }
    out.push_str("</svg>\n");
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // A text takes everything.
    let _ = out.write_fmt(text);
}

/// A text as HTML, in elements and in attributes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            _ => out.push(character),
        }
    }
    out
}
