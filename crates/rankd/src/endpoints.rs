//! The registry's endpoints as stores that the engine can open.

use crate::files;
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::store::redis::{Address, RedisEndpoint};
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
                    None => Arc::new(read(Path::new(path))?),
                };
                files.insert(path, data.clone());
                stores.push(Arc::new(MemoryEndpoint::new(data, endpoint.inject.clone())));
            }
            Backend::Server { url } => {
                let address =
                    Address::parse(url).map_err(|wrong| format!("the endpoint {:?}: {wrong}", endpoint.name))?;
                stores.push(Arc::new(RedisEndpoint { address, policy: endpoint.policy }));
            }
            Backend::Cluster { .. } => {
                return Err(format!("the endpoint {:?} is a cluster, which this build cannot read", endpoint.name));
            }
        }
    }
    Ok(stores)
}

/// Reads a data file of the embedded store.
pub(crate) fn read(path: &Path) -> Result<Data, String> {
    let shown = path.display();
    let text = files::read_text(path, DATA_BYTES_MAX).map_err(|error| format!("{shown}: {error}"))?;
    Data::parse(&text).map_err(|bad| format!("{shown}:{}: {}", bad.line, bad.message))
}

/// Whether each endpoint can be used right now: its name, and what is wrong in words.
pub(crate) fn probe(registry: &Registry) -> Vec<(String, Result<(), String>)> {
    let probed = registry.endpoints.list().iter().map(|endpoint| {
        let result = match &endpoint.backend {
            Backend::Memory { path } => read(Path::new(path)).map(drop),
            Backend::Server { url } => Address::parse(url).and_then(|address| {
                let shown = address.shown();
                RedisEndpoint { address, policy: endpoint.policy }.probe().map_err(|why| format!("{shown}: {why}"))
            }),
            Backend::Cluster { .. } => Err("this build cannot read a cluster".into()),
        };
        (endpoint.name.clone(), result)
    });
    probed.collect()
}
