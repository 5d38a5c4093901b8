//! What is asked and answered: rows of an id, a float, a word and an int, as a plan for rankd and as columns for the floor.

use rankd_plan::json::{push_float, push_int, push_string};
use std::path::Path;

pub const FIFTY: &str = "fifty";
pub const TINY: &str = "tiny";
pub const BODY: &str = r#"{"user_id":1}"#;

const COUNTRIES: [&str; 4] = ["US", "DE", "BR", "JP"];

pub struct Rows {
    ids: Vec<i64>,
    scores: Vec<f64>,
    countries: Vec<&'static str>,
    likes: Vec<i64>,
}

impl Rows {
    /// Scores with as many digits as real ones have; the same every time.
    pub fn new(count: usize) -> Rows {
        let score = |at: u64| (at.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1u64 << 53) as f64;
        Rows {
            ids: (1..=count as i64).collect(),
            scores: (1..=count as u64).map(score).collect(),
            countries: COUNTRIES.iter().copied().cycle().take(count).collect(),
            likes: (0..count as i64).map(|at| 100 + 37 * at).collect(),
        }
    }

    /// The body of an answer, as `rankd serve` gives it.
    pub fn push_answer(&self, plan: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(br#"{"request_id":"019a8a3e-7b7c-7000-8000-000000000000","plan":"#);
        push_string(out, plan);
        out.extend_from_slice(br#","candidates":["#);
        for at in 0..self.ids.len() {
            let before: &[u8] = if at == 0 { b"{\"id\":" } else { b",{\"id\":" };
            out.extend_from_slice(before);
            push_int(out, self.ids[at]);
            out.extend_from_slice(b",\"score\":");
            push_float(out, self.scores[at]);
            out.extend_from_slice(b",\"country\":");
            push_string(out, self.countries[at]);
            out.extend_from_slice(b",\"likes\":");
            push_int(out, self.likes[at]);
            out.push(b'}');
        }
        out.extend_from_slice(b"]}");
    }

    pub fn plan(&self, name: &str) -> String {
        let Rows { ids, scores, countries, likes } = self;
        let columns = format!(r#"{{"score":{scores:?},"country":{countries:?},"likes":{likes:?}}}"#);
        let params = format!(r#"{{"row_count":{},"columns":{columns}}}"#, ids.len());
        format!(
            r#"{{"schema_version":1,"plan_name":"{name}","nodes":[{{"node_id":"n0","op":"fixed_source","inputs":[],"params":{params}}}],"outputs":["n0"]}}"#
        )
    }
}

pub fn rows(plan: &str) -> Rows {
    Rows::new(if plan == FIFTY { 50 } else { 1 })
}

/// A plan of the size that others publish figures for: a hundred rows, scored, sorted and cut.
pub const SMALL: &str = "small";
/// And a thousand: two static sources, merged; a copy, a discount and a normalised score; filtered, sorted, cut to 500.
pub const TEN_OPERATORS: &str = "ten_operators";

const SMALL_PLAN: &str = r#"import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({
  name: "small",
  build: (ctx) =>
    ctx
      .fixedSource({ rowCount: 100, columns: { score: { hash: { seed: 1 } }, likes: { sequence: { start: 100, step: 37 } } } })
      .vm({ outKey: Key.final_score, expr: Key.score * 0.7 + Key.likes * 0.001 })
      .sort({ key: Key.final_score, order: "desc" })
      .take({ count: 20 }),
});
"#;

const TEN_OPERATORS_PLAN: &str = r#"import { definePlan } from "@ranking-dsl/runtime";
export default definePlan({
  name: "ten_operators",
  build: (ctx) => {
    const source = (seed) =>
      ctx.fixedSource({
        rowCount: 500,
        columns: { score: { hash: { seed } }, age_hours: { hash: { seed: seed + 9 } }, likes: { hash: { seed, modulus: 1000 } } },
      });
    return source(1)
      .concat({ rhs: source(2) })
      .vm({ outKey: Key.final_score, expr: Key.score })
      .vm({ outKey: Key.score, expr: Key.final_score * (1 - Key.age_hours * 0.5) })
      .vm({ outKey: Key.quality, expr: Key.score / (1 + Key.score) })
      .filter({ pred: Key.quality >= 0.05 })
      .sort({ key: Key.quality, order: "desc" })
      .take({ count: 500 });
  },
});
"#;

/// Puts those of our own size into a folder.
pub fn write_plans(folder: &Path) {
    for plan in [FIFTY, TINY] {
        let written = std::fs::write(folder.join(format!("{plan}.plan.json")), rows(plan).plan(plan));
        written.expect("a plan can be written");
    }
}

/// Puts those of others' sizes into a folder.
pub fn write_shapes(folder: &Path) {
    for (plan, text) in [(SMALL, SMALL_PLAN), (TEN_OPERATORS, TEN_OPERATORS_PLAN)] {
        std::fs::write(folder.join(format!("{plan}.plan.ts")), text).expect("a plan can be written");
    }
}
