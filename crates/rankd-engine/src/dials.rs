//! Numbers of a plan that follow the load: where they stand in one run.
//!
//! At rest, and where nothing measures the load, each is at its first value. The pressure that admission feels turns them down in eighths,
//! so that requests which come at the same time still share reads. A request may set them itself.

use crate::codes;
use crate::error::RunError;
use rankd_plan::diagnostic::{nearest, quoted};
use rankd_plan::plan::Plan;

/// The most pressure there is.
pub const PRESSURE_MAX: u8 = 8;

/// A dial of a linked plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkedDial {
    /// The node and its parameter: `n2.fanout`.
    pub name: String,
    pub first: i64,
    pub min: i64,
}

impl LinkedDial {
    pub(crate) fn all(plan: &Plan) -> Vec<LinkedDial> {
        let name = |node: u32, param: &str| format!("{}.{param}", plan.nodes[node as usize].id);
        let dials = plan.dials.iter();
        dials.map(|dial| LinkedDial { name: name(dial.node, dial.param), first: dial.first, min: dial.min }).collect()
    }

    /// Where it stands under this pressure, in eighths.
    fn under(&self, pressure: u8) -> i64 {
        let (pressure, most) = (i128::from(pressure.min(PRESSURE_MAX)), i128::from(PRESSURE_MAX));
        let span = i128::from(self.first) - i128::from(self.min);
        // Rounded to the nearest, halves away from the first value.
        let down = (span * pressure * 2 + most) / (most * 2);
        i64::try_from(i128::from(self.first) - down).unwrap_or(self.min)
    }
}

/// Where all dials stand: as the request says, and otherwise by the pressure.
pub(crate) fn values(dials: &[LinkedDial], asked: &[(String, i64)], pressure: u8) -> Vec<i64> {
    let asked_for = |dial: &LinkedDial| asked.iter().find(|(name, _)| *name == dial.name).map(|(_, value)| *value);
    dials.iter().map(|dial| asked_for(dial).unwrap_or_else(|| dial.under(pressure))).collect()
}

/// Refuses a request that sets a dial which there is not, or beyond its ends.
pub(crate) fn check(dials: &[LinkedDial], asked: &[(String, i64)]) -> Result<(), RunError> {
    for (name, value) in asked {
        let Some(dial) = dials.iter().find(|dial| dial.name == *name) else {
            let hint = nearest(name, dials.iter().map(|dial| &*dial.name));
            let hint = hint.map(|near| format!("; did you mean {near:?}?")).unwrap_or_default();
            return Err(RunError::new(codes::WRONG_DIAL, format!("the plan has no dial {}{hint}", quoted(name))));
        };
        if !(dial.min..=dial.first).contains(value) {
            let message = format!("the dial {name:?} goes from {} to {}, not to {value}", dial.first, dial.min);
            return Err(RunError::new(codes::WRONG_DIAL, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dial(first: i64, min: i64) -> LinkedDial {
        LinkedDial { name: "n2.fanout".into(), first, min }
    }

    #[test]
    fn a_dial_goes_down_with_the_pressure() {
        let at = |first, min| (0..=PRESSURE_MAX).map(|pressure| dial(first, min).under(pressure)).collect::<Vec<i64>>();
        assert_eq!(at(100, 20), [100, 90, 80, 70, 60, 50, 40, 30, 20]);
        assert_eq!(at(5, 5), [5; 9]);
        assert_eq!(at(2, 1), [2, 2, 2, 2, 1, 1, 1, 1, 1]);
        assert_eq!(dial(i64::MAX, 0).under(PRESSURE_MAX), 0);
        assert_eq!(dial(100, 20).under(200), 20, "there is no more than all pressure");
    }

    #[test]
    fn a_request_may_set_a_dial_within_its_ends() {
        let dials = [dial(100, 20)];
        let asked = |name: &str, value| [(name.to_owned(), value)];
        assert_eq!(values(&dials, &asked("n2.fanout", 60), PRESSURE_MAX), [60]);
        assert!(check(&dials, &asked("n2.fanout", 20)).is_ok());
        let refused = |name, value| check(&dials, &asked(name, value)).map_err(|error| error.message);
        assert_eq!(refused("n2.fanout", 101), Err("the dial \"n2.fanout\" goes from 100 to 20, not to 101".into()));
        assert_eq!(
            refused("n2.fanuot", 60),
            Err("the plan has no dial \"n2.fanuot\"; did you mean \"n2.fanout\"?".into())
        );
    }
}
