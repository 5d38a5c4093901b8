//! Cases as Markdown: found, and rewritten in place.

use std::ops::Range;
use std::path::{Path, PathBuf};

pub(crate) struct Document {
    path: PathBuf,
    text: String,
    changed: bool,
    pub(crate) cases: Vec<Case>,
}

#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) title: String,
    pub(crate) blocks: Vec<Block>,
    file: String,
    line: usize,
}

#[derive(Clone)]
pub(crate) struct Block {
    /// What the block is written in.
    pub(crate) language: String,
    /// What it is for: the second word after the fence.
    pub(crate) role: String,
    pub(crate) text: String,
    bytes: Range<usize>,
}

impl Case {
    pub(crate) fn block(&self, role: &str) -> Option<&str> {
        self.blocks.iter().find(|block| block.role == role).map(|block| block.text.as_str())
    }

    pub(crate) fn place(&self) -> String {
        format!("{}:{} {}", self.file, self.line, self.title)
    }
}

impl Block {
    /// A block that stands in no file.
    pub(crate) fn new(language: &str, role: &str, text: String) -> Block {
        Block { language: language.to_owned(), role: role.to_owned(), text, bytes: 0..0 }
    }
}

impl Document {
    pub(crate) fn read(path: &Path) -> Document {
        let text = std::fs::read_to_string(path).expect("a case file can be read");
        let cases = cases(&text, &path.file_name().expect("it has a name").to_string_lossy());
        Document { path: path.to_owned(), text, changed: false, cases }
    }

    pub(crate) fn is(&self, name: &str) -> bool {
        self.path.ends_with(name)
    }

    /// Puts another text into a block and finds all cases anew.
    pub(crate) fn replace(&mut self, case: usize, role: &str, text: &str) {
        let block = self.cases[case].blocks.iter().find(|block| block.role == role).expect("the case has the block");
        self.text.replace_range(block.bytes.clone(), &format!("{}\n", text.trim_end()));
        self.changed = true;
        self.cases = cases(&self.text, &self.cases[case].file.clone());
    }

    pub(crate) fn save_if_changed(&self) {
        if self.changed {
            std::fs::write(&self.path, &self.text).expect("a case file can be written");
        }
    }
}

fn cases(text: &str, file: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    // Blocks before the first heading are for every case; a case's own come after them, and so in their place.
    let mut of_all: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    let mut at = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = at;
        at += line.len();
        match &mut open {
            Some(block) if line.trim_end() == "```" => {
                block.bytes.end = start;
                block.text = text[block.bytes.clone()].to_owned();
                let blocks = cases.last_mut().map_or(&mut of_all, |case| &mut case.blocks);
                blocks.extend(open.take());
            }
            Some(_) => {}
            None => {
                if let Some(info) = line.strip_prefix("```") {
                    let mut words = info.split_whitespace().map(str::to_owned);
                    let (language, role) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
                    open = Some(Block { language, role, text: String::new(), bytes: at..at });
                } else if let Some(title) = line.strip_prefix("## ") {
                    let (title, file, line) = (title.trim().to_owned(), file.to_owned(), number + 1);
                    cases.push(Case { title, blocks: of_all.clone(), file, line });
                }
            }
        }
    }
    assert!(open.is_none(), "{file}: a block is never closed");
    cases
}
