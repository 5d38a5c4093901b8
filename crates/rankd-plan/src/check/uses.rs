//! Which parameters of a node go together: by the word of a choice, by the kind of an endpoint, or by whether another is given.

use crate::codes::Code;
use crate::diagnostic::{Diagnostic, Diagnostics};
use crate::plan::Arg;
use crate::registry::{Entry, Registry};
use crate::signature::{KeyTypes, Param, ParamKind, ParamRef, ParamUse, Signature, When};
use rankd_column::Key;

/// Reports what is given and must not be, and what is not given and must be. `args` are in the order of the signature.
pub(super) fn check(
    signature: Signature,
    args: &[Option<Arg>],
    is_given: impl Fn(&str) -> bool,
    has_input: bool,
    registry: &Registry,
    base: &str,
    found: &mut Diagnostics,
) {
    let Signature { op, contract, .. } = signature;
    // The word that another parameter has; nothing where its value is wrong, which was reported.
    let word = |when: &When| {
        if when.param == ParamRef::INPUT {
            return Some(if has_input { "given" } else { "" });
        }
        let (at, _) = contract.param(when.param)?;
        match args.get(at)?.as_ref()? {
            Arg::Text(word) if matches!(contract.params[at].kind, ParamKind::Choice(_)) => Some(word.as_ref()),
            Arg::Endpoint(at) => Some(registry.endpoints.get(*at).kind.as_str()),
            Arg::Absent => Some(""),
            _ => Some("given"),
        }
    };
    for (param, arg) in contract.params.iter().zip(args).filter(|(param, _)| !param.uses.is_empty()) {
        if param.uses.iter().flat_map(|of| of.when).any(|when| word(when).is_none()) {
            continue;
        }
        let holds =
            |of: &&ParamUse| of.when.iter().all(|when| word(when).is_some_and(|word| when.words.contains(&word)));
        match (is_given(param.name), param.uses.iter().find(holds)) {
            (false, Some(of)) if of.needed => {
                let when: Vec<String> =
                    of.when.iter().map(|when| contract.in_words(when, &[word(when).unwrap_or("")])).collect();
                let message = format!(
                    "{op} needs the parameter {:?} ({}) where {}",
                    param.name,
                    param.kind.name(),
                    when.join(" and ")
                );
                found.push(Diagnostic::new(Code::MissingTaskParam, base, message));
            }
            (true, None) => {
                let uses = contract.uses_in_words(param, |_| true).unwrap_or_default();
                let message = format!("{op} takes the parameter {:?} only where {uses}", param.name);
                found.push(Diagnostic::new(Code::ParamOutOfPlace, format!("{base}/{}", param.name), message));
            }
            (true, Some(of)) => check_types(param, arg.as_ref(), of, registry, base, found),
            (false, _) => {}
        }
    }
}

fn check_types(
    param: &Param,
    arg: Option<&Arg>,
    of: &ParamUse,
    registry: &Registry,
    base: &str,
    found: &mut Diagnostics,
) {
    for key in arg.map(Arg::keys).unwrap_or_default() {
        let entry = registry.key(key);
        if !of.types.takes(entry.type_of, registry.key(Key::ID).type_of) {
            let message = wrong_key_type(param, of.types, entry);
            found.push(Diagnostic::new(Code::WrongParamType, format!("{base}/{}", param.name), message));
        }
    }
}

/// Says that a key is of another type than a parameter takes.
pub(super) fn wrong_key_type(param: &Param, types: KeyTypes, entry: &Entry) -> String {
    format!("{} takes a {} here, and {:?} is {}", param.name, types.of("key"), entry.name, entry.type_of)
}
