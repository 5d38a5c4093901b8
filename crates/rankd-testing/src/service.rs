//! A service that answers calls with what the example of a task says.

use bytes::Bytes;
use rankd_engine::store::{Call, Called, Calls, Open, Opened};

/// Its entry in the registry.
pub(crate) const ENDPOINT: &str = "
[[endpoint]]
endpoint_id = \"ep_service\"
name = \"service\"
kind = \"http\"
url = \"http://service.example\"
";

#[derive(Clone)]
pub(crate) struct Service {
    name: String,
    answers: Vec<(String, String)>,
}

impl Service {
    pub(crate) fn new(name: &str, answers: Vec<(String, String)>) -> Service {
        Service { name: name.to_owned(), answers }
    }
}

impl Open for Service {
    fn open(&self) -> Opened {
        Opened::calls(self.clone())
    }

    fn name(&self) -> &str {
        &self.name
    }
}

impl Calls for Service {
    fn call(&self, call: Call) -> Called<'_> {
        Box::pin(async move {
            let answer = self.answers.iter().find(|(path, _)| *path == call.path);
            Ok(answer.map(|(_, body)| Bytes::from(body.clone())))
        })
    }
}
