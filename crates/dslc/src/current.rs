//! Whether an artifact is what its sources compile to, without compiling them: by the digests that are in it.

use crate::emit::{BUILT_BY, registry_digest};
use crate::places::hex;
use rankd_plan::Registry;
use rankd_plan::json::{Fault, Reader};
use rankd_plan::source::Folder;
use sha2::{Digest, Sha256};

/// Deeper than an artifact nests.
const DEPTH_MAX: usize = 1024;

/// What an artifact says about how it was made.
#[derive(Default)]
struct Made {
    files: Vec<(String, String)>,
    tool: String,
    version: String,
    registry: String,
    content: String,
}

/// Whether this artifact was made by this version of the compiler, from the file `entry` of the folder and all that it imports as
/// they are now, with an equal registry, and was not changed since.
pub(crate) fn is_current(artifact: &str, entry: &str, folder: &dyn Folder, registry: &Registry) -> bool {
    let Ok(made) = made(artifact) else { return false };
    let Some(above) = artifact.rfind(BUILT_BY).and_then(|at| artifact.get(..at)) else { return false };
    made.tool == "dslc"
        && made.version == env!("CARGO_PKG_VERSION")
        && made.files.first().is_some_and(|(path, _)| path == entry)
        && made.registry == registry_digest(registry)
        && made.content == hex(&Sha256::digest(above.as_bytes()))
        && are_same(&made.files, folder)
}

/// Whether all these files are what their digests say.
fn are_same(files: &[(String, String)], folder: &dyn Folder) -> bool {
    files
        .iter()
        .all(|(path, sha256)| folder.read(path).is_ok_and(|text| hex(&Sha256::digest(text.as_bytes())) == *sha256))
}

fn made(artifact: &str) -> Result<Made, Fault> {
    let mut made = Made::default();
    let mut reader = Reader::new(artifact, DEPTH_MAX);
    let mut fields = reader.open_object()?;
    while let Some((field, _)) = reader.field(&mut fields)? {
        match &*field {
            "sources" => made.files = files(&mut reader)?,
            "built_by" => {
                let mut inner = reader.open_object()?;
                while let Some((name, _)) = reader.field(&mut inner)? {
                    let text = reader.string()?.into_owned();
                    match &*name {
                        "tool" => made.tool = text,
                        "version" => made.version = text,
                        "registry" => made.registry = text,
                        "content" => made.content = text,
                        _ => {}
                    }
                }
            }
            _ => reader.skip()?,
        }
    }
    Ok(made)
}

fn files(reader: &mut Reader<'_>) -> Result<Vec<(String, String)>, Fault> {
    let mut files = Vec::new();
    let mut fields = reader.open_object()?;
    while let Some((field, _)) = reader.field(&mut fields)? {
        if field != "files" {
            reader.skip()?;
            continue;
        }
        let mut items = reader.open_array()?;
        while reader.item(&mut items)? {
            let (mut path, mut sha256) = Default::default();
            let mut inner = reader.open_object()?;
            while let Some((name, _)) = reader.field(&mut inner)? {
                match &*name {
                    "path" => path = reader.string()?.into_owned(),
                    "sha256" => sha256 = reader.string()?.into_owned(),
                    _ => reader.skip()?,
                }
            }
            files.push((path, sha256));
        }
    }
    Ok(files)
}
