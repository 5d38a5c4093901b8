//! How latencies are spread, as a picture for people and as counts for programs.
//!
//! Steps of 1, 2 and 5: fine enough to see two humps, and few enough lines for a terminal.

use hdrhistogram::Histogram;
use rankd_plan::json::Writer;

/// The counts between two limits, from the first that is not empty to the last. Limits are in nanoseconds; each count is of those
/// below the limit and not below the one before.
fn steps(nanos: &Histogram<u64>) -> Vec<(u64, u64)> {
    let mut steps = Vec::new();
    let mut power = 1u64;
    let mut done = 0;
    while done < nanos.len() && power < u64::MAX / 50 {
        for factor in [1, 2, 5] {
            let limit = power * factor;
            let below = nanos.count_between(0, limit - 1);
            if below > done || (!steps.is_empty() && done < nanos.len()) {
                steps.push((limit, below - done));
            }
            done = below;
        }
        power *= 10;
    }
    // Trailing steps that only fill up a power of ten.
    while steps.last().is_some_and(|(_, count)| *count == 0) {
        steps.pop();
    }
    steps
}

/// One line a step.
pub(crate) fn picture(nanos: &Histogram<u64>) -> String {
    const WIDTH: u64 = 40;
    let steps = steps(nanos);
    let most = steps.iter().map(|(_, count)| *count).max().unwrap_or(0).max(1);
    let mut out = String::new();
    for (limit, count) in steps {
        // What is there is seen, however little it is.
        let length = if count == 0 { 0 } else { (count * WIDTH / most).max(1) };
        let share = 100.0 * count as f64 / nanos.len() as f64;
        let bar = "█".repeat(length as usize);
        out += &format!("{:>9}  {bar:<40}  {share:5.1} %  {count}\n", format!("< {}", time(limit)));
    }
    out
}

/// For programs: an object for each step.
pub(crate) fn write(nanos: &Histogram<u64>, w: &mut Writer) {
    w.array(|w| {
        for (limit, count) in steps(nanos) {
            w.object(|w| {
                w.field("below_us").float(limit as f64 / 1e3).field("count").int(count as i64);
            });
        }
    });
}

/// A limit in the unit that needs no zeros.
fn time(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{} µs", nanos / 1_000),
        1_000_000..1_000_000_000 => format!("{} ms", nanos / 1_000_000),
        _ => format!("{} s", nanos / 1_000_000_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_is_in_one_step() {
        let mut nanos = Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap();
        for (value, count) in [(1_500, 3), (30_000, 1), (31_000, 4), (7_000_000_000, 1)] {
            nanos.record_n(value, count).unwrap();
        }
        let steps = steps(&nanos);
        assert_eq!(steps.iter().map(|(_, count)| count).sum::<u64>(), 9);
        assert_eq!(steps.first(), Some(&(2_000, 3)));
        assert!(steps.contains(&(50_000, 5)));
        assert_eq!(steps.last(), Some(&(10_000_000_000, 1)));
        assert!(steps.windows(2).all(|two| two[0].0 < two[1].0));
        let picture = picture(&nanos);
        assert!(picture.contains("< 50 µs  ████") && picture.contains("55.6 %  5"), "{picture}");
        assert_eq!(super::picture(&Histogram::new_with_bounds(1, 1000, 3).unwrap()), "");
    }
}
