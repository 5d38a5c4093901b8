//! Where `hydrate` and `expand` read: an endpoint that answers keyed reads, or a table.

use rankd_engine::store::{TableEndpoint, table};
use rankd_engine::task::LinkContext;
use rankd_plan::plan::Arg;
use rankd_plan::signature::ParamKind;
use rankd_plan::signature::typed::ParamType;

/// Such an endpoint: a parameter of a task, and its position in the registry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DataEndpoint(pub(crate) u32);

impl DataEndpoint {
    /// The table that it is, if it is one.
    pub(crate) fn table(self, cx: &LinkContext<'_>) -> Option<TableEndpoint> {
        (cx.endpoint_kind(self.0) == table::KIND).then_some(TableEndpoint(self.0))
    }
}

impl ParamType for DataEndpoint {
    type Value = DataEndpoint;
    const KIND: ParamKind = ParamKind::Endpoint(&["redis", "table"]);

    fn read(arg: &Arg) -> Option<DataEndpoint> {
        match arg {
            Arg::Endpoint(at) => Some(DataEndpoint(*at)),
            _ => None,
        }
    }
}
