//! The registry's endpoints as stores that the engine can open.

use crate::files;
use crate::models::ModelError;
use crate::tables::{TableError, TableFiles};
use rankd_engine::store::http::{BadSite, HttpEndpoint, ProbeError, Site};
use rankd_engine::store::memory::{BadLine, Data, MemoryEndpoint};
use rankd_engine::store::redis::{Address, BadAddress, RedisEndpoint, SetUpError};
use rankd_engine::store::tls::{Trust, TrustError};
use rankd_engine::store::{ClosedEndpoint, Open, StoreError};
use rankd_plan::Registry;
use rankd_plan::registry::{Backend, Endpoint, EndpointSettings, Http, Redis};
use std::collections::HashMap;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fmt, io};

/// The largest data file of the embedded store.
const DATA_BYTES_MAX: usize = 1 << 30;
/// The largest file of authorities to trust.
const CA_BYTES_MAX: usize = 1 << 20;

/// Why an endpoint cannot be used.
#[expect(missing_docs, reason = "the line of a variant says what its fields are")]
#[derive(Debug)]
pub enum EndpointError {
    /// The data file of the embedded store cannot be read.
    File { path: PathBuf, error: io::Error },
    /// The data file has a line that cannot be used.
    Data { path: PathBuf, bad: BadLine },
    /// What the registry says about an endpoint on servers cannot be used.
    Settings { endpoint: String, cause: SettingsError },
    /// The servers do not answer as they should.
    Servers(SetUpError),
    /// The store does not answer a read.
    Read(StoreError),
    /// A service cannot be reached.
    Service(ProbeError),
    /// The file of a table cannot be used.
    Table(TableError),
    /// The file of a model cannot be used.
    Model(ModelError),
}

/// What is wrong with the registry's entry of an endpoint on servers.
#[expect(missing_docs, reason = "the line of a variant says what its fields are")]
#[derive(Debug)]
pub enum SettingsError {
    /// The address cannot be read.
    Address(BadAddress),
    /// The url or a header of a service cannot be used.
    Site(BadSite),
    /// The file of certificates cannot be read.
    CaFile { file: String, error: io::Error },
    /// The certificates cannot be used, of a file or of the system.
    Trust { file: Option<String>, error: TrustError },
    /// A cluster has no database numbers.
    ClusterDatabase,
    /// The endpoint is in the process.
    NoServer,
}

impl Error for EndpointError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(match self {
            EndpointError::File { error, .. } => error,
            EndpointError::Data { bad, .. } => bad,
            EndpointError::Settings { cause, .. } => cause,
            EndpointError::Servers(error) => error,
            EndpointError::Read(error) => error,
            EndpointError::Service(error) => error,
            EndpointError::Table(error) => error,
            EndpointError::Model(error) => error,
        })
    }
}

impl fmt::Display for EndpointError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EndpointError::File { path, error } => write!(f, "{}: {error}", path.display()),
            EndpointError::Data { path, bad } => write!(f, "{}:{}: {}", path.display(), bad.line, bad.message),
            EndpointError::Settings { endpoint, cause } => write!(f, "the endpoint {endpoint:?}: {cause}"),
            EndpointError::Servers(error) => error.fmt(f),
            EndpointError::Read(error) => error.fmt(f),
            EndpointError::Service(error) => error.fmt(f),
            EndpointError::Table(error) => error.fmt(f),
            EndpointError::Model(error) => error.fmt(f),
        }
    }
}

impl Error for SettingsError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SettingsError::Address(error) => Some(error),
            SettingsError::Site(error) => Some(error),
            SettingsError::CaFile { error, .. } => Some(error),
            SettingsError::Trust { error, .. } => Some(error),
            SettingsError::ClusterDatabase | SettingsError::NoServer => None,
        }
    }
}

impl fmt::Display for SettingsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SettingsError::Address(error) => error.fmt(f),
            SettingsError::Site(error) => error.fmt(f),
            SettingsError::CaFile { file, error } => write!(f, "{file}: {error}"),
            SettingsError::Trust { file: Some(file), error } => write!(f, "{file}: {error}"),
            SettingsError::Trust { file: None, error } => error.fmt(f),
            SettingsError::ClusterDatabase => f.write_str("a cluster has no database numbers"),
            SettingsError::NoServer => f.write_str("it is not on a server"),
        }
    }
}

/// One store for each endpoint, in registry order, with its tables loaded. What is only worth knowing goes to `note`.
pub fn open(registry: &Registry, note: &mut dyn FnMut(String)) -> Result<Vec<Arc<dyn Open>>, EndpointError> {
    let tables = TableFiles::new(registry);
    if let Some(tables) = &tables {
        tables.load_all(registry, note).map_err(EndpointError::Table)?;
    }
    open_beside(tables.as_ref(), registry, note)
}

/// The same for tables that are looked after elsewhere.
pub fn open_beside(
    tables: Option<&TableFiles>,
    registry: &Registry,
    note: &mut dyn FnMut(String),
) -> Result<Vec<Arc<dyn Open>>, EndpointError> {
    let mut files: HashMap<&str, Arc<Data>> = HashMap::new();
    let mut stores: Vec<Arc<dyn Open>> = Vec::new();
    for endpoint in registry.endpoints.list() {
        let settings = match &endpoint.settings {
            EndpointSettings::Redis(settings) => settings,
            EndpointSettings::Http(settings) => {
                stores.push(Arc::new(http(endpoint, settings)?));
                continue;
            }
            EndpointSettings::Table(_) => {
                stores.extend(tables.map(|tables| tables.endpoint(&endpoint.name)));
                continue;
            }
        };
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
                stores.push(Arc::new(MemoryEndpoint::new(&endpoint.name, data, settings.inject.clone())));
            }
            Backend::Server { .. } | Backend::Cluster { .. } => stores.push(Arc::new(redis(endpoint, settings)?)),
        }
    }
    Ok(stores)
}

/// The same endpoints once more, with connections and counters of their own. What is in the process is shared.
pub fn open_again(stores: &[Arc<dyn Open>], registry: &Registry) -> Result<Vec<Arc<dyn Open>>, EndpointError> {
    let again = |(endpoint, store): (&Endpoint, &Arc<dyn Open>)| -> Result<Arc<dyn Open>, EndpointError> {
        Ok(match &endpoint.settings {
            EndpointSettings::Http(settings) => Arc::new(http(endpoint, settings)?),
            EndpointSettings::Table(_) => store.clone(),
            EndpointSettings::Redis(settings) => match &settings.backend {
                Backend::Server { .. } | Backend::Cluster { .. } => Arc::new(redis(endpoint, settings)?),
                Backend::Memory { .. } => store.clone(),
            },
        })
    };
    registry.endpoints.list().iter().zip(stores).map(again).collect()
}

/// The same for runs that read what others recorded: the tables, and no store and no service.
pub fn closed(tables: Option<&TableFiles>, registry: &Registry) -> Vec<Arc<dyn Open>> {
    let open = |endpoint: &Endpoint| match (&endpoint.settings, tables) {
        (EndpointSettings::Table(_), Some(tables)) => tables.endpoint(&endpoint.name),
        (EndpointSettings::Table(_) | EndpointSettings::Redis(_) | EndpointSettings::Http(_), _) => {
            Arc::new(ClosedEndpoint(endpoint.name.clone())) as Arc<dyn Open>
        }
    };
    registry.endpoints.list().iter().map(open).collect()
}

/// Whether the file of a table can be used right now.
fn probe_table(registry: &Registry, name: &str) -> Result<(), EndpointError> {
    let tables = TableFiles::new(registry);
    let source = tables.iter().flat_map(TableFiles::sources).find(|source| source.name() == name);
    source.map_or(Ok(()), |source| source.load(&mut |_| {}).map(drop).map_err(EndpointError::Table))
}

/// An endpoint that is on servers.
pub fn redis(endpoint: &Endpoint, settings: &Redis) -> Result<RedisEndpoint, EndpointError> {
    let named = |cause| EndpointError::Settings { endpoint: endpoint.name.clone(), cause };
    let trust = trust(settings.backend.is_encrypted(), settings.ca_file.as_ref()).map_err(named)?;
    let parse = |url: &String| {
        let mut address = Address::parse(url).map_err(|error| named(SettingsError::Address(error)))?;
        if let Some(password) = &settings.password {
            address.password = Some(password.clone());
        }
        Ok(address)
    };
    match &settings.backend {
        Backend::Server { url } => Ok(RedisEndpoint::server(&endpoint.name, parse(url)?, settings.policy, trust)),
        Backend::Cluster { urls } => {
            let seeds = urls.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
            if seeds.iter().any(|seed| seed.database != 0) {
                return Err(named(SettingsError::ClusterDatabase));
            }
            Ok(RedisEndpoint::cluster(&endpoint.name, seeds, settings.policy, trust))
        }
        Backend::Memory { .. } => Err(named(SettingsError::NoServer)),
    }
}

/// An endpoint that is an HTTP service.
pub fn http(endpoint: &Endpoint, settings: &Http) -> Result<HttpEndpoint, EndpointError> {
    let named = |cause| EndpointError::Settings { endpoint: endpoint.name.clone(), cause };
    let trust = trust(settings.is_encrypted(), settings.ca_file.as_ref()).map_err(named)?;
    let headers: Vec<(String, String)> =
        settings.headers.iter().map(|(name, value)| (name.clone(), value.0.clone())).collect();
    let site = Site::new(&settings.url, &headers, settings.policy, trust.as_ref());
    Ok(HttpEndpoint::new(&endpoint.name, site.map_err(|error| named(SettingsError::Site(error)))?))
}

/// Whom to believe that a server is what it says, where that is asked.
fn trust(is_encrypted: bool, ca_file: Option<&String>) -> Result<Option<Trust>, SettingsError> {
    if !is_encrypted {
        return Ok(None);
    }
    let trust = match ca_file {
        Some(file) => {
            let text = files::read_text(Path::new(file), CA_BYTES_MAX)
                .map_err(|error| SettingsError::CaFile { file: file.clone(), error })?;
            Trust::in_pem(&text).map_err(|error| SettingsError::Trust { file: Some(file.clone()), error })?
        }
        // Those that cannot be read are left out; what matters is whether the server's is among the others.
        None => Trust::in_authorities(rustls_native_certs::load_native_certs().certs.iter().map(|der| der.to_vec()))
            .map_err(|error| SettingsError::Trust { file: None, error })?,
    };
    Ok(Some(trust))
}

/// Reads a data file of the embedded store.
pub fn read(path: &Path) -> Result<Data, EndpointError> {
    let text =
        files::read_text(path, DATA_BYTES_MAX).map_err(|error| EndpointError::File { path: path.to_owned(), error })?;
    Data::parse(&text).map_err(|bad| EndpointError::Data { path: path.to_owned(), bad })
}

/// Whether each endpoint can be used right now, by its name.
pub fn probe(registry: &Registry) -> Vec<(String, Result<(), EndpointError>)> {
    let probed = registry.endpoints.list().iter().map(|endpoint| {
        let result = match &endpoint.settings {
            EndpointSettings::Redis(settings) => match &settings.backend {
                Backend::Memory { path } => read(Path::new(path)).map(drop),
                Backend::Server { .. } | Backend::Cluster { .. } => {
                    redis(endpoint, settings).and_then(|redis| redis.probe().map_err(EndpointError::Servers))
                }
            },
            EndpointSettings::Http(settings) => {
                http(endpoint, settings).and_then(|http| http.probe().map_err(EndpointError::Service))
            }
            EndpointSettings::Table(_) => probe_table(registry, &endpoint.name),
        };
        (endpoint.name.clone(), result)
    });
    probed.collect()
}
