//! An answer's JSON over several lines, for people.

/// The same JSON with each field and each item on a line of its own. Nothing but white space is added.
pub fn pretty(json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(2 * json.len());
    let (mut depth, mut is_text, mut is_escaped) = (0_usize, false, false);
    let mut bytes = json.iter().copied().peekable();
    let line = |out: &mut Vec<u8>, depth: usize| {
        out.push(b'\n');
        out.extend(std::iter::repeat_n(b' ', 2 * depth));
    };
    while let Some(byte) = bytes.next() {
        if is_text {
            is_text = byte != b'"' || is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            out.push(byte);
            continue;
        }
        match byte {
            b'{' | b'[' => {
                out.push(byte);
                match bytes.next_if(|next| matches!(next, b'}' | b']')) {
                    Some(close) => out.push(close),
                    None => {
                        depth += 1;
                        line(&mut out, depth);
                    }
                }
            }
            b'}' | b']' => {
                depth = depth.saturating_sub(1);
                line(&mut out, depth);
                out.push(byte);
            }
            b',' => {
                out.push(byte);
                line(&mut out, depth);
            }
            b':' => out.extend(b": "),
            _ => {
                is_text = byte == b'"';
                out.push(byte);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_and_item_has_a_line() {
        let json = br#"{"a":[1,{"b":"x,\"{y}\\"}],"c":[],"d":{}}"#;
        let lines =
            "{\n  \"a\": [\n    1,\n    {\n      \"b\": \"x,\\\"{y}\\\\\"\n    }\n  ],\n  \"c\": [],\n  \"d\": {}\n}";
        assert_eq!(String::from_utf8(pretty(json)).unwrap(), lines);
    }
}
