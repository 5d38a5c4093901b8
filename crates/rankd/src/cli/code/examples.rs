//! Examples of diagnostics, taken from the cases: what every case gives is tested, so these are what the program really says.

/// The case files that have diagnostics. A test fails if a code has no example in them.
const CASES: &[&str] = &[
    include_str!("../../../../../cases/absent.md"),
    include_str!("../../../../../cases/experiments.md"),
    include_str!("../../../../../cases/expressions.md"),
    include_str!("../../../../../cases/fallbacks.md"),
    include_str!("../../../../../cases/file.md"),
    include_str!("../../../../../cases/graph.md"),
    include_str!("../../../../../cases/limits.md"),
    include_str!("../../../../../cases/logs.md"),
    include_str!("../../../../../cases/models.md"),
    include_str!("../../../../../cases/names.md"),
    include_str!("../../../../../cases/nearest.md"),
    include_str!("../../../../../cases/parameters.md"),
    include_str!("../../../../../cases/registry.md"),
    include_str!("../../../../../cases/shape.md"),
    include_str!("../../../../../cases/shelf.md"),
    include_str!("../../../../../cases/stored.md"),
    include_str!("../../../../../cases/tables.md"),
    include_str!("../../../../../cases/typescript.md"),
];

/// A part of an example: a file, or what the program says about it.
pub(super) struct Block {
    /// The file's path; empty for what the program says.
    pub(super) title: String,
    pub(super) text: String,
}

/// The smallest case in which a code is reported: its files, then the lines with that code.
pub(super) fn find(id: &str) -> Vec<Block> {
    let cases = CASES.iter().flat_map(|file| file.split("\n## ").skip(1));
    let found = cases.filter_map(|case| example(case, id));
    found.min_by_key(|(others, blocks)| (*others, size(blocks))).map(|(_, blocks)| blocks).unwrap_or_default()
}

fn size(blocks: &[Block]) -> usize {
    blocks.iter().map(|block| block.text.len()).sum()
}

/// What a case shows of a code, and how many other codes it reports.
fn example(case: &str, id: &str) -> Option<(usize, Vec<Block>)> {
    let mut blocks = Vec::new();
    let mut said = None;
    // Fences come in pairs, so what lies between the first and the second is a block, and so on.
    for fenced in case.split("```").skip(1).step_by(2) {
        let (info, text) = fenced.split_once('\n')?;
        let (language, role) = info.split_once(' ')?;
        match role {
            "diagnostics" => {
                let (own, others): (Vec<&str>, Vec<&str>) =
                    text.lines().partition(|line| line.split(' ').next() == Some(id));
                said = (!own.is_empty()).then(|| (others.len(), own.join("\n")));
            }
            _ => blocks.push(Block { title: file(language, role), text: text.trim_end().into() }),
        }
    }
    let (others, text) = said?;
    blocks.push(Block { title: String::new(), text });
    Some((others, blocks))
}

/// The file that a block of a case is.
fn file(language: &str, role: &str) -> String {
    match (language, role) {
        ("ts", "plan") => "plans/case.plan.ts".into(),
        (_, "plan") => "plans/case.plan.json".into(),
        ("remove", path) => format!("without {path}"),
        (_, path) => path.into(),
    }
}
