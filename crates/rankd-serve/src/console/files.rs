//! The page's files, in the binary as they are in `static`: there is no build step, and nothing is fetched from elsewhere.

use std::hash::Hasher;
use std::sync::OnceLock;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
const IMAGE: &str = "image/svg+xml";

/// One file.
pub(crate) struct ConsoleFile {
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! files {
    ($($name:literal $media_type:ident,)*) => {
        &[$(ConsoleFile { name: $name, media_type: $media_type, bytes: include_bytes!(concat!("static/", $name)) },)*]
    };
}

/// All of them; the first is what a browser asks for first.
pub(crate) const FILES: &[ConsoleFile] = files! {
    "index.html" HTML,
    "style.css" STYLE,
    "icon.svg" IMAGE,
    "app.js" SCRIPT,
    "api.js" SCRIPT,
    "dom.js" SCRIPT,
    "format.js" SCRIPT,
    "plans.js" SCRIPT,
    "plan.js" SCRIPT,
    "picture.js" SCRIPT,
    "figures.js" SCRIPT,
    "request.js" SCRIPT,
    "timeline.js" SCRIPT,
    "why.js" SCRIPT,
    "stores.js" SCRIPT,
};

impl ConsoleFile {
    /// Its version, as a header has it. It is that of all files: a page is never made of those of two builds.
    pub(crate) fn etag(&self) -> String {
        format!("\"{}\"", build_id())
    }
}

/// What tells this build's page from that of any other.
pub(crate) fn build_id() -> &'static str {
    static BUILD: OnceLock<String> = OnceLock::new();
    BUILD.get_or_init(|| {
        let mut hasher = std::hash::DefaultHasher::new();
        for file in FILES {
            hasher.write(file.name.as_bytes());
            hasher.write(file.bytes);
        }
        format!("{}-{:016x}", env!("CARGO_PKG_VERSION"), hasher.finish())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_asks_for_nothing_elsewhere() {
        let bytes: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(bytes < 250 << 10, "{bytes}");
        for file in FILES {
            let text = std::str::from_utf8(file.bytes).unwrap();
            let without_namespaces = text.replace("http://www.w3.org/2000/svg", "");
            for absent in ["http://", "https://", "innerHTML", "outerHTML", "insertAdjacent", "localStorage", "eval("] {
                assert!(!without_namespaces.contains(absent), "{}: {absent}", file.name);
            }
        }
    }

    #[test]
    fn every_file_that_a_file_names_is_there() {
        for file in FILES.iter().filter(|file| file.name.ends_with(".js")) {
            let text = std::str::from_utf8(file.bytes).unwrap();
            for import in text.split("from \"./").skip(1) {
                let name = import.split('"').next().unwrap();
                assert!(FILES.iter().any(|other| other.name == name), "{}: {name}", file.name);
            }
            assert!(text.lines().take(3).any(|line| line == "// @ts-check"), "{}", file.name);
        }
    }
}
