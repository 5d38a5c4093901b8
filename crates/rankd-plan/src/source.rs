//! What a compiler of plans gets and gives: texts of a folder in, an artifact and what is wrong out. The compiler itself is elsewhere.

use crate::check::Checked;
use crate::registry::Registry;
use crate::signatures::Signatures;

/// How the file of a plan in TypeScript is called. What comes before is the plan's name.
pub const SOURCE_SUFFIX: &str = ".plan.ts";
/// The largest source file that is compiled.
pub const SOURCE_BYTES_MAX: usize = 256 << 10;

/// Turns plans in TypeScript into artifacts.
pub trait Compiler: Send + Sync {
    /// Compiles the plan in the file `entry` of a folder.
    fn compile(&self, entry: &str, folder: &dyn Folder, registry: &Registry, tasks: &Signatures) -> Compiled;

    /// Whether this artifact is what compiling the file `entry` of the folder would give. Nothing is compiled to know that.
    fn is_current(&self, artifact: &str, entry: &str, folder: &dyn Folder, registry: &Registry) -> bool;
}

/// Where the texts of a plan come from. Paths are inside the plan's folder; that a link does not lead out of it is for the folder
/// to ensure.
pub trait Folder: Sync {
    /// The text at a path, if it is no larger than [`SOURCE_BYTES_MAX`].
    fn read(&self, path: &str) -> Result<String, Unreadable>;
}

/// Why a text is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreadable {
    TooLarge(u64),
    /// In words, such as "it is not there".
    Because(String),
}

/// What came of compiling a plan.
#[derive(Debug)]
pub struct Compiled {
    /// The artifact's text, whenever the plan could be written down.
    pub artifact: Option<String>,
    pub checked: Checked,
    /// Every file that was read, the plan's own first.
    pub files: Vec<SourceText>,
}

/// A source that was read, under its path inside the plan's folder.
#[derive(Clone, Debug)]
pub struct SourceText {
    pub path: String,
    pub text: String,
}
