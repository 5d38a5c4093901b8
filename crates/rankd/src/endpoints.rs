//! The registry's endpoints as stores that the engine can open.

use crate::files;
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_plan::Registry;
use rankd_plan::registry::Backend;
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The largest data file of the embedded store.
const DATA_BYTES_MAX: usize = 1 << 30;

/// One store for each endpoint, in registry order. What is wrong is said in words.
pub(crate) fn open(registry: &Registry) -> Result<Vec<Arc<dyn Open>>, String> {
    let mut files: HashMap<&str, Arc<Data>> = HashMap::new();
    let mut stores: Vec<Arc<dyn Open>> = Vec::new();
    for endpoint in registry.endpoints.list() {
        match &endpoint.backend {
            Backend::Memory { path } => {
                let data = match files.get(path.as_str()) {
                    Some(data) => data.clone(),
                    None => Arc::new(read(path)?),
                };
                files.insert(path, data.clone());
                stores.push(Arc::new(MemoryEndpoint::new(data, endpoint.inject.clone())));
            }
            Backend::Server { url } => return Err(not_yet(&endpoint.name, url)),
            Backend::Cluster { urls } => return Err(not_yet(&endpoint.name, &urls.join(", "))),
        }
    }
    Ok(stores)
}

fn not_yet(name: &str, url: &str) -> String {
    format!("the endpoint {name:?} is at {url}; this build can only read memory: endpoints (use --env local)")
}

fn read(path: &str) -> Result<Data, String> {
    let text = files::read_text(Path::new(path), DATA_BYTES_MAX).map_err(|error| format!("{path}: {error}"))?;
    Data::parse(&text).map_err(|bad| format!("{path}:{}: {}", bad.line, bad.message))
}
