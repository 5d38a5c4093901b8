//! The numbered codes of diagnostics. A number is never reused, and each has a case under `cases/`.
//!
//! P0 the file as JSON · P1 the artifact's shape · P2 limits · P3 names · P4 task parameters · P5 expressions · P6 the graph ·
//! P7 the flow of keys · D plans in TypeScript · R registries.

use std::fmt;

/// Whether a plan can still run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    Error,
    Warning,
}

impl Severity {
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
        }
    }
}

macro_rules! codes {
    ($($code:ident $name:ident $severity:ident $about:literal;)*) => {
        /// What kind of problem a diagnostic tells of.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $about] $name),* }

        impl Code {
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// The stable number.
            pub fn id(self) -> &'static str {
                match self { $(Code::$name => stringify!($code)),* }
            }

            pub fn severity(self) -> Severity {
                match self { $(Code::$name => Severity::$severity),* }
            }

            pub fn about(self) -> &'static str {
                match self { $(Code::$name => $about),* }
            }
        }
    };
}

codes! {
    P001 FileTooLarge Error "the file is larger than a plan may be";
    P002 NotUtf8 Error "the file is not UTF-8";
    P003 Syntax Error "the file is not JSON";
    P004 DuplicateField Error "an object has the same field twice";
    P005 NumberOutOfRange Error "a number does not fit 64 bits";

    P101 WrongJsonType Error "a field holds the wrong JSON type";
    P102 UnknownField Error "a field that the format does not have";
    P103 MissingField Error "a field that the format requires";
    P104 UnsupportedVersion Error "a schema_version that this build does not read";
    P105 BadName Error "a plan name, node id or table id that is empty, too long or has invalid characters";
    P106 DuplicateNode Error "two nodes have the same id";
    P107 NoOutputs Error "the plan has no output";
    P108 BadSource Error "a place that the sources table does not have";
    P109 DuplicateOutput Error "the same node is listed as an output twice";
    P110 WrongFileName Error "a plan in a file that is not named after it";
    P111 StaleArtifact Warning "an artifact whose sources have changed since it was built";

    P201 TooManyNodes Error "more nodes than a plan may have";
    P202 TooManyInputs Error "more inputs or outputs than a node or plan may have";
    P203 ExpressionTooDeep Error "an expression nested deeper than the limit";
    P204 ExpressionTooLarge Error "an expression, or all of them together, larger than the limit";

    P301 UnknownOp Error "a task that does not exist";
    P302 UnknownNode Error "a node id that no node has";
    P303 UnknownKey Error "a key that the registry does not have";
    P304 UnknownParam Error "a parameter that the registry does not have";
    P305 UnknownEndpoint Error "an endpoint that the registry does not have";
    P306 UnknownTable Error "an expression or predicate id that its table does not have";
    P307 WrongEndpointKind Error "an endpoint with a different protocol than the task's";
    P308 Blocked Error "a key or parameter that the registry blocks";
    P309 Deprecated Warning "a key or parameter that the registry deprecates";
    P310 NotReadable Error "a read of a key or parameter whose registry entry forbids it";
    P311 NotWritable Error "a write to id or to a key whose registry entry forbids it";

    P401 WrongInputs Error "a task with the wrong number of inputs";
    P402 UnknownTaskParam Error "a parameter that the task does not have";
    P403 MissingTaskParam Error "a parameter that the task requires";
    P404 WrongParamType Error "a task parameter of the wrong type";
    P405 ParamOutOfRange Error "a task parameter outside its range or choices";

    P501 UnknownOperation Error "an operation that expressions do not have";
    P502 TypeMismatch Error "an operation on operands of the wrong type";
    P503 BadRegex Error "a regular expression that cannot be used";
    P504 BadList Error "the list of `in` is empty or mixes types";
    P505 WrongResult Error "an expression whose result does not fit the key it is written to";
    P506 ConstantPredicate Warning "a predicate that is the same for every row and every request";

    P601 Cycle Error "nodes that wait for each other";
    P602 Unreachable Warning "a node that no output needs";
    P603 UnusedTable Warning "an expression or predicate that no node uses";

    P701 NeverWritten Error "a node reads a key that nothing upstream can have written";
    P702 MayLackValue Warning "a node may have no value for a key that is not nullable and has no default";

    D001 SourceTooLarge Error "a TypeScript file, or all that a plan imports, larger than the limit";
    D002 SourceSyntax Error "the file is not TypeScript";
    D003 SourceNesting Error "TypeScript that is nested too deeply";
    D004 BadImport Error "an import that leaves the plan's folder, or of a file that does not exist";
    D005 NotInPlans Error "a part of the language that plans do not have";
    D006 PlanThrew Error "the code of the plan failed";
    D007 OutOfTime Error "the code of the plan ran for too long";
    D008 OutOfMemory Error "the code of the plan needed too much memory";
    D009 OutOfStack Error "the code of the plan recursed too deeply";
    D010 NotAPlan Error "the file does not export a plan by default, or definePlan was not given what it needs";
    D011 UnknownNow Error "a value that is known only in a run, where JavaScript needs it when the plan is compiled";
    D012 NoExpression Error "something that cannot be part of an expression or predicate";
    D013 UnknownName Error "a key, parameter, endpoint or function of the DSL that does not exist";
    D014 UnknownMethod Error "a task that does not exist, or not on this object";
    D015 UnknownOption Error "an option that a task or definePlan does not have";
    D016 MissingOption Error "an option that a task requires";
    D017 WrongOption Error "an option of the wrong type, or undefined";
    D018 ForeignRows Error "rows of another plan, or used after the plan was built";

    R001 BadToml Error "a registry file is not TOML";
    R002 UnknownRegistryField Error "a field that a registry entry does not have";
    R003 MissingRegistryField Error "a field that a registry entry requires";
    R004 BadRegistryValue Error "a registry field with a value it cannot have";
    R005 DuplicateEntry Error "two registry entries with the same name or id";
    R006 BadIdKey Error "the id key is missing or wrong";
    R007 BadDefault Error "a default that is not of the entry's type";
    R008 BadReplacement Error "a replacement that does not exist or is itself retired";
    R009 BadEndpoint Error "an endpoint whose address or policy cannot be used";
    R010 UnreadableFile Error "a file that cannot be read";
    R011 EnvironmentsDiffer Error "two environments with different endpoints";
    R012 UnknownKind Warning "an endpoint of a kind that no task supports";
    R013 BadDataFile Error "a data file of the embedded store that is missing or cannot be read";
    R014 NoPlans Warning "a plan folder without a plan";
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_is_used_twice() {
        let mut ids: Vec<&str> = Code::ALL.iter().map(|code| code.id()).collect();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), Code::ALL.len());
    }
}
