//! The protocol of calls: a path of a service is asked, with a body or without, and what it answers comes back whole.
//!
//! What answers is a backend that implements [`Calls`]. What a task sees is [`crate::task::ServiceCalls`].

use crate::store::StoreError;
use bytes::Bytes;
use rankd_plan::plan::Arg;
use rankd_plan::signature::ParamKind;
use rankd_plan::signature::typed::ParamType;
use std::future::Future;
use std::pin::Pin;

/// An endpoint that answers calls: a parameter of a task, and its position in the registry.
#[derive(Clone, Copy, Debug)]
pub struct CallsEndpoint(pub u32);

impl ParamType for CallsEndpoint {
    type Value = CallsEndpoint;
    const KIND: ParamKind = ParamKind::Endpoint(&["http"]);

    fn read(arg: &Arg) -> Option<CallsEndpoint> {
        match arg {
            Arg::Endpoint(at) => Some(CallsEndpoint(*at)),
            _ => None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallMethod {
    /// Asks without changing anything: it may be shared and sent again.
    Get,
    Post,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: CallMethod,
    /// What stands behind the endpoint's url, with its query, percent-encoded. It starts with `/`.
    pub path: String,
    /// JSON. A GET has none.
    pub body: Option<Bytes>,
}

/// What a call brings: the body of the answer, or nothing where the service has nothing under the path.
pub type Called<'a> = Pin<Box<dyn Future<Output = Result<Option<Bytes>, StoreError>> + 'a>>;

/// A service that answers calls, as one event loop sees it.
pub trait Calls {
    fn call(&self, call: Call) -> Called<'_>;
}

/// The longest path of a call, the endpoint's own part included.
pub(crate) const PATH_BYTES_MAX: usize = 8 << 10;
