//! What an import means: the DSL itself, or a file inside the plan's folder. Nothing else can be imported.

/// How plans import the DSL.
pub(crate) const RUNTIME_MODULE: &str = "@ranking-dsl/runtime";

/// The longest path inside a plan's folder.
const PATH_BYTES_MAX: usize = 512;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Import {
    Runtime,
    /// A path inside the plan's folder, with `/` between its parts.
    File(String),
}

/// Why an import is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) message: &'static str,
    pub(crate) help: &'static str,
}

const RELATIVE_ONLY: Refused = Refused {
    message: "only the DSL and files of the plan's folder can be imported",
    help: "import from \"@ranking-dsl/runtime\", or from a path that starts with ./",
};
const OUTSIDE: Refused = Refused {
    message: "this path leaves the plan's folder",
    help: "put files that plans share into the plans' folder, or into one below it",
};
const NO_PATH: Refused =
    Refused { message: "this is not the path of a TypeScript file", help: "write ./fragments/score.ts" };

/// What `specifier` means in the file `from`.
pub(crate) fn resolve(from: &str, specifier: &str) -> Result<Import, Refused> {
    if specifier == RUNTIME_MODULE {
        return Ok(Import::Runtime);
    }
    if !specifier.starts_with("./") && !specifier.starts_with("../") {
        return Err(RELATIVE_ONLY);
    }
    if specifier.len() > PATH_BYTES_MAX
        || specifier.chars().any(|c| c.is_control() || matches!(c, '\\' | '?' | '#' | ':'))
    {
        return Err(NO_PATH);
    }
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in specifier.split('/') {
        match part {
            "." => {}
            ".." => {
                parts.pop().ok_or(OUTSIDE)?;
            }
            "" => return Err(NO_PATH),
            part => parts.push(part),
        }
    }
    let path = parts.join("/");
    // TypeScript lets a file be named as it is, as what it is compiled to, or without its ending.
    let stem = path.strip_suffix(".ts").or_else(|| path.strip_suffix(".js")).unwrap_or(&path);
    if stem.is_empty() || stem.ends_with('/') || path.len() > PATH_BYTES_MAX {
        return Err(NO_PATH);
    }
    Ok(Import::File(format!("{stem}.ts")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relative_paths_stay_inside() {
        let file = |from, specifier| match resolve(from, specifier) {
            Ok(Import::File(path)) => path,
            other => format!("{other:?}"),
        };
        assert_eq!(file("feed.plan.ts", "./fragments/score.ts"), "fragments/score.ts");
        assert_eq!(file("feed.plan.ts", "./fragments/score"), "fragments/score.ts");
        assert_eq!(file("fragments/score.ts", "../other.js"), "other.ts");
        assert_eq!(file("a/b/c.ts", ".././../x.ts"), "x.ts");
        assert_eq!(resolve("feed.plan.ts", RUNTIME_MODULE), Ok(Import::Runtime));
    }

    #[test]
    fn everything_else_is_refused() {
        for (specifier, why) in [
            ("/etc/passwd", RELATIVE_ONLY),
            ("fs", RELATIVE_ONLY),
            ("file:///etc/passwd", RELATIVE_ONLY),
            ("https://example.com/x.ts", RELATIVE_ONLY),
            ("", RELATIVE_ONLY),
            ("../x", OUTSIDE),
            ("../../x", OUTSIDE),
            ("./a/../../x.ts", OUTSIDE),
            ("./a//b", NO_PATH),
            ("./..\\x", NO_PATH),
            ("./a\0.ts", NO_PATH),
            ("./", NO_PATH),
        ] {
            assert_eq!(resolve("feed.plan.ts", specifier), Err(why), "{specifier:?}");
        }
    }
}
