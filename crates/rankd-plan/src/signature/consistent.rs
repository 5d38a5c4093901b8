//! Whether a contract holds together: what it refers to is there and of the right kind, and every default is allowed.
//!
//! Everything here can run while the program is built, so that a contract in a constant that does not hold together does not
//! compile. It reports the first problem, not all: it is read by the task's author, with the compiler at hand.

use super::{Contract, Inputs, Literal, Need, Param, ParamKind, ParamRef, ParamUse, RowEffect, TRACE, When, Writes};

impl Contract {
    /// The contract, if it holds together. In a constant, a mistake is an error of the build.
    pub const fn checked(self) -> Contract {
        self.check();
        self
    }

    /// Fails where the contract does not hold together.
    #[expect(clippy::panic, reason = "this is how a mistake in a constant becomes an error of the build")]
    pub const fn check(&self) {
        if let Some(problem) = self.problem() {
            panic!("{}", problem);
        }
    }

    /// What does not hold together, if something does not.
    pub const fn problem(&self) -> Option<&'static str> {
        if matches!(self.inputs, Inputs::None) != matches!(self.rows, RowEffect::Source) {
            return Some("a task without inputs is a source, and a source has no inputs");
        }
        if matches!(self.inputs, Inputs::Optional) && matches!(self.rows, RowEffect::Appended) {
            return Some("a task that appends rows has an input to append them to");
        }
        let mut at = 0;
        while at < self.params.len() {
            if let Some(problem) = self.problem_of(at) {
                return Some(problem);
            }
            at += 1;
        }
        let mut at = 0;
        while at < self.reads.len() {
            match self.kind_of(self.reads[at], self.params.len()) {
                Some(
                    ParamKind::Key(_)
                    | ParamKind::Keys(_)
                    | ParamKind::KeyMap
                    | ParamKind::KeyChoices(_)
                    | ParamKind::Rules
                    | ParamKind::SortKeys
                    | ParamKind::AskedVector
                    | ParamKind::On,
                ) => {}
                Some(_) => return Some("what `reads` refers to does not take a key"),
                None => return Some("`reads` refers to a parameter that is not there"),
            }
            at += 1;
        }
        if let RowEffect::FewerWhere(when) | RowEffect::GroupedWhere(when) = self.rows
            && let Some(problem) = self.problem_of_when(&when)
        {
            return Some(problem);
        }
        if let Writes::Table(table) = self.writes
            && !matches!(self.kind_of(table, self.params.len()), Some(ParamKind::Endpoint(_)))
        {
            return Some("what `writes` refers to is not a table");
        }
        if let Writes::Params(params) | Writes::Named(_, params) = self.writes {
            let mut at = 0;
            while at < params.len() {
                match self.kind_of(params[at], self.params.len()) {
                    Some(
                        ParamKind::Key(_)
                        | ParamKind::Keys(_)
                        | ParamKind::KeyMap
                        | ParamKind::KeyPairs
                        | ParamKind::KeyChoices(_)
                        | ParamKind::Aggregates(_)
                        | ParamKind::KeyPerInput(_)
                        | ParamKind::Exprs
                        | ParamKind::Columns { .. },
                    ) => {}
                    Some(_) => return Some("what `writes` refers to does not take a key"),
                    None => return Some("`writes` refers to a parameter that is not there"),
                }
                at += 1;
            }
        }
        None
    }

    /// What is wrong with the parameter at a position.
    const fn problem_of(&self, at: usize) -> Option<&'static str> {
        let Param { name, kind, need, uses, .. } = self.params[at];
        if let Some(problem) = self.problem_of_uses(uses, &need) {
            return Some(problem);
        }
        if !is_snake_case(name) {
            return Some(
                "the name of a parameter is made of lowercase letters, digits and _, and starts with a letter",
            );
        }
        if is_same(name, TRACE) {
            return Some("every task has the parameter trace already");
        }
        if is_same(name, ParamRef::INPUT.name()) {
            return Some("input is what a parameter may go together with, and no parameter");
        }
        if self.kind_of(ParamRef::named(name), at).is_some() {
            return Some("two parameters have the same name");
        }
        match kind {
            ParamKind::Int { min, max } | ParamKind::Dial { min, max } if min > max => {
                return Some("the range of a number is empty");
            }
            ParamKind::Float { min, max } if min.is_nan() || max.is_nan() || min > max => {
                return Some("the range of a number is empty");
            }
            ParamKind::Choice([]) => return Some("a choice has at least one word"),
            ParamKind::Expr { into: Some(into) } => match self.kind_of(into, at) {
                Some(ParamKind::Key(_)) => {}
                Some(_) => return Some("what an expression is written into does not take a key"),
                None => return Some("what an expression is written into is not a parameter before it"),
            },
            ParamKind::Expr { into: None } => return Some("an expression says which parameter it is written into"),
            ParamKind::Columns { rows: Some(rows) } | ParamKind::Ids { rows: Some(rows) } => {
                match self.kind_of(rows, at) {
                    Some(ParamKind::Int { min: 0.., .. }) => {}
                    Some(_) => return Some("what gives the number of rows is not an int that is never negative"),
                    None => return Some("what gives the number of rows is not a parameter before the columns or ids"),
                }
            }
            _ => {}
        }
        let Need::Default(default) = need else { return None };
        let fits = match (kind, default) {
            (ParamKind::Int { min, max } | ParamKind::Dial { min, max }, Literal::Int(value)) => {
                min <= value && value <= max
            }
            (ParamKind::Float { min, max }, Literal::Float(value)) => min <= value && value <= max,
            (ParamKind::Bool, Literal::Bool(_)) => true,
            (ParamKind::Text, Literal::Text(text)) => is_plain(text),
            (ParamKind::Choice(words), Literal::Text(text)) => is_one_of(text, words),
            _ => false,
        };
        if fits { None } else { Some("a default is not one of the values that its parameter takes") }
    }

    /// What is wrong with what a parameter goes together with.
    const fn problem_of_uses(&self, uses: &[ParamUse], need: &Need) -> Option<&'static str> {
        let mut at = 0;
        while at < uses.len() {
            if uses[at].needed && !matches!(need, Need::Optional) {
                return Some("a parameter that is needed only with others is optional");
            }
            let (mut of, when) = (0, uses[at].when);
            while of < when.len() {
                if let Some(problem) = self.problem_of_when(&when[of]) {
                    return Some(problem);
                }
                of += 1;
            }
            at += 1;
        }
        None
    }

    /// What is wrong with what another parameter has to be.
    const fn problem_of_when(&self, when: &When) -> Option<&'static str> {
        let known = match self.kind_of(when.param, self.params.len()) {
            None if is_same(when.param.name(), ParamRef::INPUT.name()) => &["given"],
            Some(ParamKind::Choice(words) | ParamKind::Endpoint(words)) => words,
            Some(_) => &["given"],
            None => return Some("what a parameter goes together with is not there"),
        };
        let mut word = 0;
        while word < when.words.len() {
            let wanted = when.words[word];
            if !wanted.is_empty() && !is_one_of(wanted, known) {
                return Some("what a parameter goes together with is not one of the choices");
            }
            word += 1;
        }
        None
    }

    /// The kind of a parameter that comes before a position.
    const fn kind_of(&self, param: ParamRef, before: usize) -> Option<ParamKind> {
        let mut at = 0;
        while at < before {
            if is_same(self.params[at].name, param.name()) {
                return Some(self.params[at].kind);
            }
            at += 1;
        }
        None
    }

    /// Whether these are the parameters that the contract declares, in its order.
    pub const fn declares(&self, params: &[Param]) -> bool {
        let mut at = 0;
        while at < params.len() && at < self.params.len() && is_same(params[at].name, self.params[at].name) {
            at += 1;
        }
        at == params.len() && at == self.params.len()
    }
}

/// The longest text that a parameter takes.
pub(crate) const TEXT_BYTES_MAX: usize = 64;

/// Whether a text is one that a parameter takes: letters, digits, `_`, `:` and `-`.
pub(crate) const fn is_plain(text: &str) -> bool {
    let bytes = text.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !bytes[at].is_ascii_alphanumeric() && !matches!(bytes[at], b'_' | b':' | b'-') {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty() && bytes.len() <= TEXT_BYTES_MAX
}

const fn is_snake_case(name: &str) -> bool {
    let bytes = name.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        if !matches!(bytes[at], b'a'..=b'z' | b'0'..=b'9' | b'_') {
            return false;
        }
        at += 1;
    }
    !bytes.is_empty() && bytes[0].is_ascii_lowercase()
}

const fn is_one_of(word: &str, words: &[&str]) -> bool {
    let mut at = 0;
    while at < words.len() {
        if is_same(word, words[at]) {
            return true;
        }
        at += 1;
    }
    false
}

const fn is_same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::signature::{Cost, KeyTypes};

    const fn param(name: &'static str, kind: ParamKind) -> Param {
        Param { name, kind, need: Need::Required, doc: "", uses: &[] }
    }

    const fn contract(params: &'static [Param], reads: &'static [ParamRef], writes: Writes) -> Contract {
        Contract { inputs: Inputs::One, rows: RowEffect::Same, reads, writes, params, cost: Cost::Unknown }
    }

    const fn of(params: &'static [Param]) -> Contract {
        contract(params, &[], Writes::Nothing)
    }

    const KEY: Param = param("key", ParamKind::Key(KeyTypes::Any));
    const COUNT: ParamKind = ParamKind::Int { min: 1, max: 9 };
    const INTO_KEY: ParamKind = ParamKind::Expr { into: Some(ParamRef::named("key")) };
    const OF_KEY: ParamKind = ParamKind::Columns { rows: Some(ParamRef::named("key")) };
    const THERE: &[ParamRef] = &[ParamRef::named("key")];
    const NOT_THERE: &[ParamRef] = &[ParamRef::named("kye")];

    #[test]
    fn what_a_contract_refers_to_is_there_and_of_the_right_kind() {
        const GOOD: Contract = contract(&[KEY, param("expr", INTO_KEY)], THERE, Writes::Params(THERE)).checked();
        assert_eq!(GOOD.problem(), None);
        const BAD: &[(Contract, &str)] = &[
            (contract(&[KEY], NOT_THERE, Writes::Nothing), "`reads` refers to a parameter that is not there"),
            (contract(&[KEY], &[], Writes::Params(NOT_THERE)), "`writes` refers to a parameter that is not there"),
            (contract(&[param("key", COUNT)], THERE, Writes::Nothing), "what `reads` refers to does not take a key"),
            (
                contract(&[param("key", COUNT)], &[], Writes::Params(THERE)),
                "what `writes` refers to does not take a key",
            ),
            (of(&[param("expr", INTO_KEY), KEY]), "what an expression is written into is not a parameter before it"),
            (
                of(&[param("key", COUNT), param("expr", INTO_KEY)]),
                "what an expression is written into does not take a key",
            ),
            (
                of(&[param("expr", ParamKind::Expr { into: None })]),
                "an expression says which parameter it is written into",
            ),
            (
                of(&[KEY, param("columns", OF_KEY)]),
                "what gives the number of rows is not an int that is never negative",
            ),
            (
                of(&[param("columns", OF_KEY)]),
                "what gives the number of rows is not a parameter before the columns or ids",
            ),
            (
                Contract { inputs: Inputs::None, ..of(&[]) },
                "a task without inputs is a source, and a source has no inputs",
            ),
        ];
        BAD.iter().for_each(|(bad, problem)| assert_eq!(bad.problem(), Some(*problem)));
    }

    #[test]
    fn names_are_snake_case_and_none_is_there_twice() {
        const NAME: &str =
            "the name of a parameter is made of lowercase letters, digits and _, and starts with a letter";
        const BAD: &[(Contract, &str)] = &[
            (of(&[param("outKey", ParamKind::Key(KeyTypes::Any))]), NAME),
            (of(&[param("", ParamKind::Key(KeyTypes::Any))]), NAME),
            (of(&[param("1st", ParamKind::Key(KeyTypes::Any))]), NAME),
            (of(&[param("trace", ParamKind::Key(KeyTypes::Any))]), "every task has the parameter trace already"),
            (of(&[KEY, param("key", COUNT)]), "two parameters have the same name"),
        ];
        BAD.iter().for_each(|(bad, problem)| assert_eq!(bad.problem(), Some(*problem)));
    }

    #[test]
    fn what_goes_together_is_there_and_can_be_chosen() {
        const ASC: &[When] = &[When { param: ParamRef::named("order"), words: &["asc"] }];
        const ABSENT: &[When] = &[When { param: ParamRef::named("order"), words: &[""] }];
        const UP: &[When] = &[When { param: ParamRef::named("order"), words: &["up"] }];
        const OF_KEY: &[When] = &[When { param: ParamRef::named("key"), words: &["asc"] }];
        const OF_NOTHING: &[When] = &[When { param: ParamRef::named("kye"), words: &["asc"] }];
        const fn with(when: &'static [When], needed: bool) -> ParamUse {
            ParamUse { when, needed, types: KeyTypes::Any }
        }
        const ORDER: Param = param("order", ParamKind::Choice(&["asc", "desc"]));
        const fn used(need: Need, uses: &'static [ParamUse]) -> Param {
            Param { name: "x", kind: ParamKind::Bool, need, doc: "", uses }
        }
        const CONTRACTS: [(Contract, Option<&str>); 6] = [
            (of(&[KEY, ORDER, used(Need::Optional, &[with(ASC, true), with(ABSENT, false)])]), None),
            (of(&[ORDER, used(Need::Required, &[with(ASC, false)])]), None),
            (
                of(&[ORDER, used(Need::Required, &[with(ASC, true)])]),
                Some("a parameter that is needed only with others is optional"),
            ),
            (
                of(&[ORDER, used(Need::Optional, &[with(UP, true)])]),
                Some("what a parameter goes together with is not one of the choices"),
            ),
            (
                of(&[KEY, used(Need::Optional, &[with(OF_KEY, true)])]),
                Some("what a parameter goes together with is not one of the choices"),
            ),
            (
                of(&[KEY, used(Need::Optional, &[with(OF_NOTHING, true)])]),
                Some("what a parameter goes together with is not there"),
            ),
        ];
        CONTRACTS.iter().for_each(|(contract, problem)| assert_eq!(contract.problem(), *problem));
    }

    #[test]
    fn rows_are_fewer_by_a_word_that_can_be_chosen() {
        const HOW: Param = param("how", ParamKind::Choice(&["left", "inner"]));
        const fn where_how_is(word: &'static [&'static str]) -> RowEffect {
            RowEffect::FewerWhere(When { param: ParamRef::named("how"), words: word })
        }
        const CONTRACTS: [(Contract, Option<&str>); 3] = [
            (Contract { rows: where_how_is(&["inner"]), ..of(&[HOW]) }, None),
            (
                Contract { rows: where_how_is(&["outer"]), ..of(&[HOW]) },
                Some("what a parameter goes together with is not one of the choices"),
            ),
            (
                Contract { rows: where_how_is(&["inner"]), ..of(&[KEY]) },
                Some("what a parameter goes together with is not there"),
            ),
        ];
        CONTRACTS.iter().for_each(|(contract, problem)| assert_eq!(contract.problem(), *problem));
    }

    #[test]
    fn a_default_is_one_of_the_values_that_its_parameter_takes() {
        const WORDS: ParamKind = ParamKind::Choice(&["asc", "desc"]);
        const HALF: ParamKind = ParamKind::Float { min: 0.0, max: 0.5 };
        const RIGHT: [Contract; 5] = [
            of(&[param("x", HALF).or(Literal::Float(0.5))]),
            of(&[param("x", COUNT).or(Literal::Int(9))]),
            of(&[param("x", WORDS).or(Literal::Text("desc"))]),
            of(&[param("x", ParamKind::Text).or(Literal::Text("user:1"))]),
            of(&[param("x", ParamKind::Bool).or(Literal::Bool(true))]),
        ];
        RIGHT.iter().for_each(|contract| assert_eq!(contract.problem(), None));
        const WRONG: [Contract; 8] = [
            of(&[param("x", HALF).or(Literal::Float(0.6))]),
            of(&[param("x", HALF).or(Literal::Float(f64::NAN))]),
            of(&[param("x", HALF).or(Literal::Int(0))]),
            of(&[param("x", COUNT).or(Literal::Int(10))]),
            of(&[param("x", COUNT).or(Literal::Bool(true))]),
            of(&[param("x", WORDS).or(Literal::Text("up"))]),
            of(&[param("x", ParamKind::Text).or(Literal::Text("a b"))]),
            of(&[KEY.or(Literal::Text("id"))]),
        ];
        let problem = "a default is not one of the values that its parameter takes";
        WRONG.iter().for_each(|contract| assert_eq!(contract.problem(), Some(problem)));
    }
}
