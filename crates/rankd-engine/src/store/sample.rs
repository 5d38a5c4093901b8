//! Keys of an endpoint, read one by one as a run would read them. For checks, never while serving a request.

use crate::store::{KeyBuffer, KeyedRead, Open, ReadBatch, Replies, StoreError};
use std::io;
use tokio::runtime::Builder;

/// Reads each key by itself, so that one that cannot be read costs no other, and hands what came of it to `with`. An endpoint that does
/// not answer keyed reads gives nothing.
pub fn read_each<'k>(
    endpoint: &dyn Open,
    read: KeyedRead<'_>,
    keys: impl IntoIterator<Item = &'k [u8]>,
    mut with: impl FnMut(&'k [u8], Result<Replies, StoreError>),
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build_local(Default::default())?;
    runtime.block_on(async {
        let opened = endpoint.open();
        let Some(store) = &opened.keyed else { return };
        for key in keys {
            let mut buffer = KeyBuffer::default();
            buffer.push(|out| out.extend_from_slice(key));
            with(key, store.read(ReadBatch { read, keys: buffer.keys() }).await);
        }
    });
    Ok(())
}
