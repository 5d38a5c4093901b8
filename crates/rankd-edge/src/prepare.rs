//! A request made ready to run, in one way for every caller: `rankd run`, the server, benches, explanations and trial runs.
//!
//! [`crate::input`] reads what a request asks for. Here that is joined with what its caller wants: which plan it runs, and whether the run
//! is traced. Nothing here runs anything.

use crate::experiments::Arming;
use crate::input::{self, Input, RefusedRequest};
use rankd_column::{Id, Key};
use rankd_engine::{Request, RunError, codes};
use rankd_plan::Registry;
use rankd_plan::diagnostic::quoted;

/// The request of a run where the caller has none.
pub const ANY_USER: &[u8] = br#"{"user_id":1}"#;

/// Whether a run is traced. A request that asks for its trace always gets it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tracing {
    /// Only where the request asks for it.
    AsAsked,
    /// The caller needs the trace itself; the answer has it only where the request asks for it.
    Recorded,
    /// The answer has it in any case.
    Shown,
}

/// A request that can run, and what its answer needs.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What runs.
    pub request: Request,
    /// `None` for every key that the output has.
    pub output_keys: Option<Vec<Key>>,
    /// Whether the answer has the trace. It may be recorded without that.
    pub with_trace: bool,
}

/// Reads a request for a plan. It is in no experiment.
pub fn prepare(bytes: &[u8], registry: &Registry, plan: &str, tracing: Tracing) -> Result<Prepared, RefusedRequest> {
    prepare_in_arms(bytes, registry, plan, tracing, &Arming::default()).map(|(prepared, _)| prepared)
}

/// Reads a request for a plan and puts it into its arms of experiments. Gives the plan that answers where that is another one.
pub fn prepare_in_arms<'a>(
    bytes: &[u8],
    registry: &Registry,
    plan: &str,
    tracing: Tracing,
    arming: &Arming<'a>,
) -> Result<(Prepared, Option<&'a str>), RefusedRequest> {
    let mut input = input::read(bytes, registry)?;
    let other = plan_name(Some(plan), &input).map(drop).and_then(|()| arming.assign_input(&mut input));
    match other {
        Ok(other) => Ok((Prepared::new(input, tracing), other)),
        Err(error) => Err(RefusedRequest { request_id: input.request.request_id, error: Box::new(error) }),
    }
}

/// The plan that a request is for: the one that its caller has for it, or the one that it names itself, if any. Where there are both, they
/// must be the same.
pub fn plan_name<'n>(of_caller: Option<&'n str>, input: &'n Input) -> Result<Option<&'n str>, RunError> {
    match (of_caller, &input.plan) {
        (Some(sent_to), Some(named)) if sent_to != named => {
            let message =
                format!("the request is for plan {}, but it was sent to plan {}", quoted(named), quoted(sent_to));
            Err(RunError::new(codes::OTHER_PLAN, message))
        }
        (of_caller, named) => Ok(of_caller.or(named.as_deref())),
    }
}

impl Prepared {
    /// Finishes a request that was read.
    pub fn new(input: Input, tracing: Tracing) -> Prepared {
        let Input { mut request, output_keys, asks_for_trace, .. } = input;
        let with_trace = asks_for_trace || tracing == Tracing::Shown;
        request.trace = with_trace || tracing == Tracing::Recorded;
        Prepared { request, output_keys, with_trace }
    }

    /// The same request once more, for another user where there is one.
    pub fn repeat(&self, user_id: Option<Id>, tracing: Tracing) -> Request {
        let user_id = user_id.unwrap_or_else(|| self.request.user_id.clone());
        Request { user_id, trace: tracing != Tracing::AsAsked, ..self.request.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rankd_plan::registry::Text;

    fn registry() -> Registry {
        let key =
            "[[key]]\nkey_id = 1\nname = \"id\"\ntype = \"int\"\nnullable = false\nallow_write = false\ndoc = \"\"\n";
        let text = |text| Text { file: "", text };
        Registry::parse(text(key), text(""), text("")).0
    }

    #[test]
    fn what_is_recorded_is_not_always_shown() {
        let registry = registry();
        for (text, tracing, recorded, shown) in [
            (r#"{"user_id":1}"#, Tracing::AsAsked, false, false),
            (r#"{"user_id":1}"#, Tracing::Recorded, true, false),
            (r#"{"user_id":1}"#, Tracing::Shown, true, true),
            (r#"{"user_id":1,"trace":true}"#, Tracing::AsAsked, true, true),
            (r#"{"user_id":1,"trace":true}"#, Tracing::Recorded, true, true),
            (r#"{"user_id":1,"trace":null}"#, Tracing::AsAsked, false, false),
        ] {
            let prepared = prepare(text.as_bytes(), &registry, "feed", tracing);
            let prepared = prepared.unwrap_or_else(|refused| panic!("{}", refused.error));
            assert_eq!((prepared.request.trace, prepared.with_trace), (recorded, shown), "{text} {tracing:?}");
        }
    }

    #[test]
    fn a_request_is_strict_where_it_says_so() {
        let registry = registry();
        for (text, strict) in [
            (r#"{"user_id":1}"#, false),
            (r#"{"user_id":1,"strict":null}"#, false),
            (r#"{"user_id":1,"strict":false}"#, false),
            (r#"{"user_id":1,"strict":true}"#, true),
        ] {
            let prepared = prepare(text.as_bytes(), &registry, "feed", Tracing::AsAsked);
            let prepared = prepared.unwrap_or_else(|refused| panic!("{}", refused.error));
            assert_eq!(prepared.request.strict, strict, "{text}");
            assert_eq!(prepared.repeat(None, Tracing::Recorded).strict, strict, "{text}");
        }
    }

    #[test]
    fn a_request_is_for_the_plan_that_it_was_sent_to() {
        let registry = registry();
        let code = |text: &str, plan| {
            let prepared = prepare(text.as_bytes(), &registry, plan, Tracing::AsAsked);
            prepared.map_or_else(|refused| (refused.request_id, refused.error.code.id), |_| (String::new(), ""))
        };
        assert_eq!(code(r#"{"user_id":1,"plan":"feed"}"#, "feed").1, "");
        assert_eq!(code(r#"{"user_id":1,"plan":"feed","request_id":"r"}"#, "other"), ("r".to_owned(), "E108"));
        assert_eq!(code(r#"{"plan":"feed","request_id":"r"}"#, "feed").0, "r");
        let unnamed = input::read(ANY_USER, &registry).unwrap_or_else(|refused| panic!("{}", refused.error));
        assert!(plan_name(None, &unnamed).is_ok_and(|name| name.is_none()));
        assert!(plan_name(Some("feed"), &unnamed).is_ok_and(|name| name == Some("feed")));
    }
}
