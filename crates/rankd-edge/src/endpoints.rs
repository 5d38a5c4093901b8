//! The registry's endpoints as stores that the engine can open.

use crate::files;
use rankd_engine::store::Open;
use rankd_engine::store::memory::{Data, MemoryEndpoint};
use rankd_engine::store::redis::{Address, RedisEndpoint, Trust};
use rankd_plan::Registry;
use rankd_plan::registry::{Backend, Endpoint, EndpointSettings, Redis};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

/// The largest data file of the embedded store.
const DATA_BYTES_MAX: usize = 1 << 30;
/// The largest file of authorities to trust.
const CA_BYTES_MAX: usize = 1 << 20;

/// One store for each endpoint, in registry order. What is wrong is said in words; what is only worth knowing goes to `note`.
pub fn open(registry: &Registry, note: &mut dyn FnMut(String)) -> Result<Vec<Arc<dyn Open>>, String> {
    let mut files: HashMap<&str, Arc<Data>> = HashMap::new();
    let mut stores: Vec<Arc<dyn Open>> = Vec::new();
    for endpoint in registry.endpoints.list() {
        let EndpointSettings::Redis(settings) = &endpoint.settings;
        match &settings.backend {
            Backend::Memory { path } => {
                let data = match files.get(path.as_str()) {
                    Some(data) => data.clone(),
                    None => {
                        let data = read(Path::new(path))?;
                        if !data.is_closed() && !data.is_empty() {
                            note(format!("{path} has no closing line: damage to it would change answers unnoticed"));
                        }
                        Arc::new(data)
                    }
                };
                files.insert(path, data.clone());
                stores.push(Arc::new(MemoryEndpoint::new(data, settings.inject.clone())));
            }
            Backend::Server { .. } | Backend::Cluster { .. } => stores.push(Arc::new(redis(endpoint, settings)?)),
        }
    }
    Ok(stores)
}

/// An endpoint that is on servers.
pub fn redis(endpoint: &Endpoint, settings: &Redis) -> Result<RedisEndpoint, String> {
    let named = |wrong: String| format!("the endpoint {:?}: {wrong}", endpoint.name);
    let trust = trust(settings).map_err(named)?;
    let parse = |url: &String| Address::parse(url).map_err(named);
    match &settings.backend {
        Backend::Server { url } => Ok(RedisEndpoint::server(&endpoint.name, parse(url)?, settings.policy, trust)),
        Backend::Cluster { urls } => {
            let seeds = urls.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
            if seeds.iter().any(|seed| seed.database != 0) {
                return Err(named("a cluster has no database numbers".into()));
            }
            Ok(RedisEndpoint::cluster(&endpoint.name, seeds, settings.policy, trust))
        }
        Backend::Memory { .. } => Err(named("it is not on a server".into())),
    }
}

/// Whom to believe that a server is what it says, where that is asked.
fn trust(settings: &Redis) -> Result<Option<Trust>, String> {
    if !settings.backend.is_encrypted() {
        return Ok(None);
    }
    let trust = match &settings.ca_file {
        Some(file) => {
            let text = files::read_text(Path::new(file), CA_BYTES_MAX).map_err(|error| format!("{file}: {error}"))?;
            Trust::in_pem(&text).map_err(|wrong| format!("{file}: {wrong}"))?
        }
        // Those that cannot be read are left out; what matters is whether the server's is among the others.
        None => Trust::in_authorities(rustls_native_certs::load_native_certs().certs.iter().map(|der| der.to_vec()))?,
    };
    Ok(Some(trust))
}

/// Reads a data file of the embedded store.
pub fn read(path: &Path) -> Result<Data, String> {
    let shown = path.display();
    let text = files::read_text(path, DATA_BYTES_MAX).map_err(|error| format!("{shown}: {error}"))?;
    Data::parse(&text).map_err(|bad| format!("{shown}:{}: {}", bad.line, bad.message))
}

/// Whether each endpoint can be used right now: its name, and what is wrong in words.
pub fn probe(registry: &Registry) -> Vec<(String, Result<(), String>)> {
    let probed = registry.endpoints.list().iter().map(|endpoint| {
        let EndpointSettings::Redis(settings) = &endpoint.settings;
        let result = match &settings.backend {
            Backend::Memory { path } => read(Path::new(path)).map(drop),
            Backend::Server { .. } | Backend::Cluster { .. } => {
                redis(endpoint, settings).and_then(|redis| redis.probe())
            }
        };
        (endpoint.name.clone(), result)
    });
    probed.collect()
}
