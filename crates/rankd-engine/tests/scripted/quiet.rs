//! Panics that a test asks for are not worth a word on stderr; all others are told as ever.

use std::panic;
use std::sync::Once;

/// What the payload of a panic that was asked for begins with.
pub(crate) const SCRIPTED: &str = "scripted:";

pub(crate) fn scripted_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let tell = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !info.payload_as_str().is_some_and(|message| message.starts_with(SCRIPTED)) {
                tell(info);
            }
        }));
    });
}
