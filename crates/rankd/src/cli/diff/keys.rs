//! The keys that rows are compared by, and answers as they are compared.

use crate::cli::command_error::CommandError;
use crate::cli::diff::DiffArgs;
use rankd_column::{Key, Type};
use rankd_edge::diff::Answered;
use rankd_edge::diff::lists::ranked_rows;
use rankd_engine::Outcome;
use rankd_plan::Registry;
use rankd_plan::diagnostic::nearest;

pub(super) struct CompareKeys {
    pub(super) score: Option<Key>,
    group: Option<Key>,
}

impl CompareKeys {
    pub(super) fn find(args: &DiffArgs, registry: &Registry) -> Result<CompareKeys, CommandError> {
        let find = |name: &str| match registry.keys.named(name) {
            Some(at) if registry.keys.get(at).pii => {
                Err(CommandError::Wrong(format!("rows are not compared by {name}: the registry marks it with pii")))
            }
            Some(at) => Ok(Key(at)),
            None => {
                let near = nearest(name, registry.keys.list().iter().map(|entry| &*entry.name));
                let hint = near.map_or(String::new(), |near| format!("; did you mean {near:?}?"));
                Err(CommandError::Wrong(format!("there is no key {name:?}{hint}")))
            }
        };
        let is_number = |key: &Key| matches!(registry.key(*key).type_of, Type::Int | Type::Float);
        let score = match &args.score {
            Some(name) => {
                let key = find(name)?;
                if !is_number(&key) {
                    return Err(CommandError::Wrong(format!(
                        "--score takes a key that is a number, which {name} is not"
                    )));
                }
                Some(key)
            }
            None => registry.keys.named("score").map(Key).filter(|key| is_number(key) && !registry.key(*key).pii),
        };
        Ok(CompareKeys { score, group: args.by.as_deref().map(find).transpose()? })
    }

    pub(super) fn answered(&self, outcome: &Outcome) -> Answered {
        let outputs = match &outcome.result {
            Ok(outputs) => Ok(outputs.iter().map(|rows| ranked_rows(rows, self.score, self.group)).collect()),
            Err(error) => Err(error.code.id),
        };
        Answered { outputs, is_degraded: !outcome.degraded.is_empty() }
    }
}
