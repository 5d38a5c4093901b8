//! Whether a file is a shared library of ONNX Runtime for this machine, as far as its own tables tell. Nothing of it is loaded or run: a wrong
//! file, once loaded, may crash the process or hang for ever.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// What every such library exports.
const SYMBOL: &str = "OrtGetApiBase";
/// A table of names or symbols that is larger is none.
const TABLE_BYTES_MAX: u64 = 256 << 20;
const SECTIONS_MAX: u64 = 65_536;

const SECTION_BYTES: u64 = 64;
const SYMBOL_BYTES: usize = 24;
const DYNAMIC_SYMBOLS: u32 = 11;
const VERSIONS_DEFINED: u32 = 0x6fff_fffd;
const VERSIONS_OF_SYMBOLS: u32 = 0x6fff_ffff;
const NO_BITS: u32 = 8;

/// The number of this machine in an ELF header, and its name.
const MACHINE: Option<(u64, &str)> = match () {
    () if cfg!(target_arch = "x86_64") => Some((62, "x86_64")),
    () if cfg!(target_arch = "aarch64") => Some((183, "aarch64")),
    () => None,
};

/// Why a file is not the library, in a short sentence without a full stop.
pub(crate) type NotTheLibrary = String;

/// The version that the library says it has in its table of symbols, such as "1.31.1"; nothing where it says none.
pub(crate) fn version(path: &Path) -> Result<Option<String>, NotTheLibrary> {
    let elf = Elf::open(path)?;
    let sections = elf.sections()?;
    let symbols = sections.iter().find(|section| section.kind == DYNAMIC_SYMBOLS);
    let no_symbol = || format!("it is a shared library, but does not export {SYMBOL}");
    let symbols = symbols.ok_or_else(no_symbol)?;
    let names = elf.linked(symbols, &sections)?;
    let table = elf.table(symbols)?;
    let is_meant = |symbol: &&[u8]| {
        let (name, section) = (number(symbol, 0, 4), number(symbol, 6, 2));
        section != 0 && text(&names, name) == Some(SYMBOL)
    };
    let at = table.chunks_exact(SYMBOL_BYTES).position(|symbol| is_meant(&symbol)).ok_or_else(no_symbol)?;
    let of_symbols = sections.iter().find(|section| section.kind == VERSIONS_OF_SYMBOLS);
    let defined = sections.iter().find(|section| section.kind == VERSIONS_DEFINED);
    let (Some(of_symbols), Some(defined)) = (of_symbols, defined) else { return Ok(None) };
    // The highest bit says whether the version is hidden.
    let wanted = number(&elf.table(of_symbols)?, at * 2, 2) & 0x7fff;
    let names = elf.linked(defined, &sections)?;
    Ok(version_name(&elf.table(defined)?, wanted, &names)
        .and_then(|name| name.strip_prefix("VERS_").map(str::to_owned)))
}

/// The name of a version in the table of those that a library defines.
fn version_name<'n>(table: &[u8], wanted: u64, names: &'n [u8]) -> Option<&'n str> {
    let mut at = 0;
    // Each entry leads on by at least a byte, so this ends.
    while at + 20 <= table.len() {
        if number(table, at + 4, 2) == wanted {
            let first_name = at.checked_add(number(table, at + 12, 4) as usize)?;
            return text(names, number(table, first_name, 4));
        }
        match number(table, at + 16, 4) as usize {
            0 => break,
            next => at += next,
        }
    }
    None
}

struct Elf {
    file: File,
    bytes: u64,
    header: [u8; 64],
}

struct Section {
    kind: u32,
    offset: u64,
    bytes: u64,
    link: usize,
}

impl Elf {
    #[expect(clippy::disallowed_methods, reason = "parts of a large file are read, before it is loaded")]
    fn open(path: &Path) -> Result<Elf, NotTheLibrary> {
        let in_words = |error: io::Error| error.to_string();
        let file = File::open(path).map_err(in_words)?;
        let about = file.metadata().map_err(in_words)?;
        if !about.is_file() {
            return Err("it is not a file".to_owned());
        }
        let mut header = [0; 64];
        let is_elf = file.read_exact_at(&mut header, 0).is_ok() && header.starts_with(b"\x7fELF");
        if !is_elf {
            return Err("it is not a shared library: it does not begin as an ELF file does".to_owned());
        }
        if header[4] != 2 || header[5] != 1 {
            return Err("it is for another machine: not an ELF file of 64 bits, lowest byte first".to_owned());
        }
        let machine = number(&header, 18, 2);
        if let Some((_, name)) = MACHINE.filter(|(ours, _)| machine != *ours) {
            return Err(format!("it is for another machine: this one is {name}, number {machine} is not"));
        }
        if number(&header, 16, 2) != 3 {
            return Err("it is an ELF file, but not a shared library".to_owned());
        }
        Ok(Elf { file, bytes: about.len(), header })
    }

    fn sections(&self) -> Result<Vec<Section>, NotTheLibrary> {
        let (offset, each, count) =
            (number(&self.header, 40, 8), number(&self.header, 58, 2), number(&self.header, 60, 2));
        if offset == 0 || each != SECTION_BYTES || count > SECTIONS_MAX {
            return Err("it is a shared library without a table of sections".to_owned());
        }
        let table = self.part(offset, count * SECTION_BYTES)?;
        let section = |section: &[u8]| Section {
            kind: number(section, 4, 4) as u32,
            offset: number(section, 24, 8),
            bytes: number(section, 32, 8),
            link: number(section, 40, 4) as usize,
        };
        let sections: Vec<Section> = table.chunks_exact(SECTION_BYTES as usize).map(section).collect();
        let is_whole = |section: &Section| {
            section.kind == NO_BITS || section.offset.checked_add(section.bytes).is_some_and(|end| end <= self.bytes)
        };
        if sections.iter().all(is_whole) { Ok(sections) } else { Err(cut_off()) }
    }

    fn table(&self, section: &Section) -> Result<Vec<u8>, NotTheLibrary> {
        self.part(section.offset, section.bytes)
    }

    /// The table that another refers to.
    fn linked(&self, section: &Section, sections: &[Section]) -> Result<Vec<u8>, NotTheLibrary> {
        let linked = sections.get(section.link).ok_or("its table of sections is damaged")?;
        self.table(linked)
    }

    fn part(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, NotTheLibrary> {
        if bytes > TABLE_BYTES_MAX || offset.checked_add(bytes).is_none_or(|end| end > self.bytes) {
            return Err(cut_off());
        }
        let mut part = vec![0; bytes as usize];
        self.file.read_exact_at(&mut part, offset).map_err(|error| error.to_string())?;
        Ok(part)
    }
}

fn cut_off() -> NotTheLibrary {
    "it is cut off: its tables are beyond its end".to_owned()
}

/// The number of so many bytes at a place; 0 beyond the end.
fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let bytes = at.checked_add(len).and_then(|end| bytes.get(at..end)).unwrap_or_default();
    bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte))
}

/// The text at a place in a table of names.
fn text(names: &[u8], at: u64) -> Option<&str> {
    let name = names.get(usize::try_from(at).ok()?..)?;
    std::str::from_utf8(name.split(|byte| *byte == 0).next()?).ok()
}
