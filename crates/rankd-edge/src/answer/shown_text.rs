//! A text from a plan or a store, made fit for somebody's terminal.

/// So many characters are shown of a text.
const TEXT_SHOWN: usize = 40;

/// A text on one line, with what would steer a terminal made visible.
pub(crate) fn shown_text(text: &str) -> String {
    let mut shown = String::new();
    for (at, char) in text.chars().enumerate() {
        if at == TEXT_SHOWN {
            shown.push('…');
            break;
        }
        match char.is_control() {
            true => shown.extend(char.escape_default()),
            false => shown.push(char),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_cut_and_never_steer_a_terminal() {
        assert_eq!(shown_text("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\n");
        assert_eq!(shown_text(&"é".repeat(41)), "é".repeat(40) + "…");
    }
}
