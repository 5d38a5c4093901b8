//! Endpoints and models whose files are read after the engine has started, so that a server answers for its health meanwhile.
//!
//! No plan is served before they are read, so nobody asks them earlier. Should somebody do so, the store is not available yet.

use crate::endpoints::{self, EndpointError};
use crate::models::ModelFiles;
use crate::tables::TableFiles;
use rankd_engine::store::{Answer, Keyed, Open, Opened, ReadBatch, StoreError};
use rankd_plan::Registry;
use rankd_plan::registry::{Backend, EndpointSettings};
use std::cell::OnceCell;
use std::sync::{Arc, OnceLock};

/// An endpoint once its data is there.
type LateSlot = Arc<OnceLock<Arc<dyn Open>>>;

/// The data files that are still to be read.
pub struct LateData {
    /// By the endpoint's position.
    stores: Vec<(usize, LateSlot)>,
    tables: Option<Arc<TableFiles>>,
    models: Option<Arc<ModelFiles>>,
}

/// One store for each endpoint, in registry order, without what takes long.
pub fn open(registry: &Registry, models: Option<ModelFiles>) -> Result<(Vec<Arc<dyn Open>>, LateData), EndpointError> {
    let (tables, models) = (TableFiles::new(registry).map(Arc::new), models.map(Arc::new));
    let (mut stores, mut late) = (Vec::<Arc<dyn Open>>::new(), LateData { stores: Vec::new(), tables, models });
    for (at, endpoint) in registry.endpoints.list().iter().enumerate() {
        let settings = match &endpoint.settings {
            EndpointSettings::Redis(settings) => settings,
            EndpointSettings::Http(settings) => {
                stores.push(Arc::new(endpoints::http(endpoint, settings)?));
                continue;
            }
            EndpointSettings::Table(_) => {
                stores.extend(late.tables.iter().map(|tables| tables.endpoint(&endpoint.name)));
                continue;
            }
        };
        match &settings.backend {
            Backend::Memory { .. } => {
                let slot = LateSlot::default();
                stores.push(Arc::new(LateEndpoint { name: endpoint.name.clone(), slot: slot.clone() }));
                late.stores.push((at, slot));
            }
            Backend::Server { .. } | Backend::Cluster { .. } => {
                stores.push(Arc::new(endpoints::redis(endpoint, settings)?));
            }
        }
    }
    Ok((stores, late))
}

impl LateData {
    /// The tables among them, to be looked after once they are read.
    pub fn tables(&self) -> Option<&Arc<TableFiles>> {
        self.tables.as_ref()
    }

    /// The models, to be looked after once they are read.
    pub fn models(&self) -> Option<&Arc<ModelFiles>> {
        self.models.as_ref()
    }

    /// Reads the files. What is only worth knowing goes to `note`.
    pub fn read(self, registry: &Registry, note: &mut dyn FnMut(String)) -> Result<(), EndpointError> {
        if let Some(tables) = &self.tables {
            tables.load_all(registry, note).map_err(EndpointError::Table)?;
        }
        if let Some(models) = &self.models {
            models.load_all(registry).map_err(EndpointError::Model)?;
        }
        if self.stores.is_empty() {
            return Ok(());
        }
        let stores = endpoints::open_beside(self.tables.as_deref(), registry, note)?;
        for (at, slot) in self.stores {
            // Each is set here and nowhere else.
            let _ = stores.get(at).map(|store| slot.set(store.clone()));
        }
        Ok(())
    }
}

struct LateEndpoint {
    name: String,
    slot: LateSlot,
}

impl Open for LateEndpoint {
    fn open(&self) -> Opened {
        Opened::keyed(LateStore { slot: self.slot.clone(), store: OnceCell::new() })
    }

    fn name(&self) -> &str {
        &self.name
    }
}

struct LateStore {
    slot: LateSlot,
    store: OnceCell<Opened>,
}

impl Keyed for LateStore {
    fn read<'a>(&'a self, step: ReadBatch<'a>) -> Answer<'a> {
        if let (None, Some(endpoint)) = (self.store.get(), self.slot.get()) {
            // It was just seen to be empty, and only this thread fills it.
            let _ = self.store.set(endpoint.open());
        }
        match self.store.get().and_then(|opened| opened.keyed.as_ref()) {
            Some(store) => store.read(step),
            None => Box::pin(async { Err(StoreError::Unavailable("its data is still being read".to_owned())) }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_engine::store::{KeyedRead, Keys};
    use rankd_plan::registry::Text;

    #[test]
    fn a_store_answers_once_its_data_is_read() {
        let path = std::env::temp_dir().join(format!("rankd-late-{}.ndjson", std::process::id()));
        crate::files::write(&path, "{\"key\":\"follow:1\",\"list\":[7,8]}\n").unwrap();
        let endpoints = format!(
            "[[endpoint]]\nendpoint_id = \"ep_1\"\nname = \"here\"\nkind = \"redis\"\nurl = \"memory:{}\"\n",
            path.display()
        );
        let text = |text| Text { file: "", text };
        let (registry, _) = Registry::parse(text(""), text(""), text(&endpoints));
        let (stores, late) = open(&registry, None).unwrap();
        let store = stores[0].open().keyed.unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let read = || {
            let keys = Keys::Numbered { prefix: "follow", ids: &[1] };
            let step = ReadBatch { read: KeyedRead::ListHead(10), keys };
            runtime.block_on(store.read(step)).map(drop)
        };
        assert!(matches!(read(), Err(StoreError::Unavailable(_))));
        late.read(&registry, &mut |_| {}).unwrap();
        assert_eq!(read(), Ok(()));
        std::fs::remove_file(path).unwrap();
        let (_, late) = open(&registry, None).unwrap();
        assert!(
            late.read(&registry, &mut |_| {}).unwrap_err().to_string().contains("No such file"),
            "a file that is not there is reported"
        );
    }
}
