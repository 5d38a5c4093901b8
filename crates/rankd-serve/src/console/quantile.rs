//! Quantiles of times that were counted in buckets.

/// The time that this share took at most, as if those of a bucket were spread evenly; `None` where there are none. The last bucket, beyond all
/// bounds, counts as its lower end.
pub(crate) fn quantile<const N: usize>(buckets: &[u64], bounds: [f64; N], share: f64) -> Option<f64> {
    let wanted = buckets.iter().sum::<u64>() as f64 * share;
    let (mut below, mut from) = (0.0, 0.0);
    for (count, to) in buckets.iter().zip(bounds.iter().chain(bounds.last())) {
        let count = *count as f64;
        if count > 0.0 && below + count >= wanted {
            return Some(from + (to - from) * ((wanted - below) / count).clamp(0.0, 1.0));
        }
        below += count;
        from = *to;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_in_their_buckets() {
        let bounds = [1.0, 2.0, 4.0];
        assert_eq!(quantile(&[0; 4], bounds, 0.5), None);
        assert_eq!(quantile(&[0, 100, 0, 0], bounds, 0.5), Some(1.5));
        assert_eq!(quantile(&[0, 100, 0, 0], bounds, 1.0), Some(2.0));
        assert_eq!(quantile(&[0, 100, 0, 100], bounds, 0.99), Some(4.0));
    }
}
