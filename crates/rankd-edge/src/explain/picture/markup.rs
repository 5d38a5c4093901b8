//! Text inside XML and HTML. Whatever a plan's author typed is written by this file only, and never as markup.

use std::fmt::Write;

/// Adds text, for between tags and inside quoted attributes. What XML cannot have is shown as `\u{fffd}`.
pub(super) fn push_text(out: &mut String, text: &str) {
    for char in text.chars() {
        match char {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' | '\r' => out.push(' '),
            '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            char => out.push(char),
        }
    }
}

/// The same as a value.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    push_text(&mut out, text);
    out
}

/// JSON that may stand inside a script element: nothing in it ends the element or begins a comment.
pub(super) fn embedded_json(json: &str) -> String {
    // In JSON these stand in strings only, where they may be written so.
    json.replace('<', "\\u003c").replace('>', "\\u003e").replace('&', "\\u0026")
}

/// A length in a picture: at most one digit after the point.
pub(super) fn push_length(out: &mut String, length: f64) {
    let tenths = (length * 10.0).round();
    let _ = match tenths % 10.0 == 0.0 {
        true => write!(out, "{}", tenths / 10.0),
        false => write!(out, "{:.1}", tenths / 10.0),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_stays_markup() {
        assert_eq!(
            escaped("<img src=x onerror='a()'> ]]> & \"\u{0}\u{1b}\u{ffff}\n"),
            "&lt;img src=x onerror=&#39;a()&#39;&gt; ]]&gt; &amp; &quot;\u{fffd}\u{fffd}\u{fffd} "
        );
        assert_eq!(embedded_json(r#"{"a":"</script><!--&"}"#), r#"{"a":"\u003c/script\u003e\u003c!--\u0026"}"#);
    }

    #[test]
    fn lengths_are_short() {
        for (length, text) in [(3.0, "3"), (-0.04, "-0"), (2.25, "2.3"), (1e6, "1000000"), (7.96, "8")] {
            let mut out = String::new();
            push_length(&mut out, length);
            assert_eq!(out, text);
        }
    }
}
