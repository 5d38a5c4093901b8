//! The header `accept`: whether rows should come as Arrow. JSON is the default, and what every error is.

use crate::reply::JSON;
use hyper::HeaderMap;
use hyper::header::ACCEPT;
use rankd_edge::arrow;

/// Whether a caller prefers Arrow to JSON: only one that names it does. Where both are named with the same quality, JSON wins.
pub(crate) fn arrow(headers: &HeaderMap) -> bool {
    if !headers.contains_key(ACCEPT) {
        return false;
    }
    let given = headers.get_all(ACCEPT);
    let ranges: Vec<(&str, u16)> =
        given.iter().filter_map(|value| value.to_str().ok()).flat_map(|value| value.split(',')).map(range).collect();
    let quality = |media: &str| {
        ranges.iter().filter(|(name, _)| name.eq_ignore_ascii_case(media)).map(|(_, quality)| *quality).max()
    };
    let Some(arrow) = quality(arrow::MEDIA_TYPE) else { return false };
    // The closest range says it, as the standard has it.
    let json = match quality(JSON) {
        Some(quality) => (quality, true),
        None => (quality("application/*").or_else(|| quality("*/*")).unwrap_or(0), false),
    };
    arrow > 0 && (arrow, true) > json
}

/// A media range and how much it is wanted, in thousandths.
fn range(text: &str) -> (&str, u16) {
    let mut parts = text.split(';').map(str::trim);
    let name = parts.next().unwrap_or("");
    let quality = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    // A quality that is none is as good as not said.
    let quality = quality.and_then(|text| text.parse::<f32>().ok()).filter(|quality| (0.0..=1.0).contains(quality));
    (name, quality.map_or(1000, |quality| (quality * 1000.0).round() as u16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::header::HeaderValue;

    fn wants_arrow(values: &[&'static str]) -> bool {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(ACCEPT, HeaderValue::from_static(value));
        }
        arrow(&headers)
    }

    #[test]
    fn arrow_is_for_those_who_name_it_and_want_it_more() {
        for yes in [
            &["application/vnd.apache.arrow.stream"][..],
            &["Application/Vnd.Apache.Arrow.Stream; q=0.1"],
            &["application/vnd.apache.arrow.stream, */*"],
            &["application/vnd.apache.arrow.stream;q=0.9, application/json;q=0.8, */*"],
            &["text/html", "application/vnd.apache.arrow.stream"],
            &["application/vnd.apache.arrow.stream;q=much"],
        ] {
            assert!(wants_arrow(yes), "{yes:?}");
        }
        for no in [
            &[][..],
            &["*/*"],
            &["application/*"],
            &["application/json"],
            &["text/html"],
            &["application/vnd.apache.arrow.file"],
            &["application/vnd.apache.arrow.stream;q=0"],
            &["application/vnd.apache.arrow.stream, application/json"],
            &["application/vnd.apache.arrow.stream;q=0.5, */*"],
            &["application/vnd.apache.arrow.stream;q=0.5", "application/json;q=0.6"],
        ] {
            assert!(!wants_arrow(no), "{no:?}");
        }
    }
}
