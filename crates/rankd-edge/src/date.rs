//! The date, as logs and listings show it. Never used to measure: for that there is the engine's clock.

use std::time::{SystemTime, UNIX_EPOCH};

/// Now, as RFC 3339 in UTC with milliseconds.
pub fn now() -> String {
    rfc3339(millis())
}

/// Nanoseconds since 1970; 0 before that.
#[expect(clippy::disallowed_methods, reason = "the program knows the date")]
pub fn nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

/// Milliseconds since 1970; 0 before that.
pub fn millis() -> u64 {
    nanos() / 1_000_000
}

/// A moment in milliseconds since 1970, as RFC 3339 writes it, in UTC.
pub fn rfc3339(millis: u64) -> String {
    let (seconds, millis) = (millis / 1000, millis % 1000);
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years that begin in March, so that a leap day is the last of its year; eras of 400 years are all alike.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(rfc3339(4_102_444_800_000), "2100-01-01T00:00:00.000Z");
    }
}
