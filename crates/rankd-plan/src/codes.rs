//! The numbered codes of diagnostics: one row a code, with its severity, what it means and what to do. A number is never used
//! again, and each has a case under `cases/`, from which `rankd code` and `docs/errors.md` take their example.
//!
//! P0 the file as JSON · P1 the artifact's shape · P2 limits · P3 names · P4 task parameters · P5 expressions · P6 the graph ·
//! P7 the flow of keys · P8 fallbacks and conditions · D plans in TypeScript · R registries.

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
    ($($code:ident $name:ident $severity:ident $about:literal $help:literal;)*) => {
        /// What kind of problem a diagnostic reports.
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

            /// What it means, in one sentence without a full stop.
            pub fn about(self) -> &'static str {
                match self { $(Code::$name => $about),* }
            }

            /// What to do about it.
            pub fn help(self) -> &'static str {
                match self { $(Code::$name => $help),* }
            }
        }
    };
}

codes! {
    P001 FileTooLarge Error "the file is larger than a plan may be"
        "Split the plan, or move literal data out of it into a store. `rankd check --limits` prints the limits.";
    P002 NotUtf8 Error "the file is not UTF-8"
        "Save the file as UTF-8.";
    P003 Syntax Error "the file is not JSON"
        "Correct the JSON at the place that is shown. Plans are usually written in TypeScript and compiled with `rankd compile`.";
    P004 DuplicateField Error "an object has the same field twice"
        "Keep one of the two fields.";
    P005 NumberOutOfRange Error "a number does not fit 64 bits"
        "Use a number that fits: integers from -2^63 to 2^63-1, or a finite float.";

    P101 WrongJsonType Error "a field holds the wrong JSON type"
        "Write a value of the type that the message names.";
    P102 UnknownField Error "a field that the format does not have"
        "Correct the name of the field, or remove it.";
    P103 MissingField Error "a field that the format requires"
        "Add the field that the message names.";
    P104 UnsupportedVersion Error "a schema_version that this build does not read"
        "Compile the plan again with this version of `dslc`, or run it with a version of rankd that reads it.";
    P105 BadName Error "a plan name, node id, table id or name of an output that is empty, too long or has invalid characters"
        "Use letters, digits and `_`, within the length that `rankd check --limits` prints; the name of an output starts with a letter, and its letters are small.";
    P106 DuplicateNode Error "two nodes have the same id"
        "Give each node an id of its own.";
    P107 NoOutputs Error "the plan has no output"
        "Give at least one node in `outputs`; in TypeScript, return rows from `build`.";
    P108 BadSource Error "a place that the sources table does not have"
        "Compile the plan again: the artifact was edited or is damaged.";
    P109 DuplicateOutput Error "the same node is an output twice"
        "Give each output once, under one name.";
    P110 WrongFileName Error "a plan in a file that is not named after it"
        "Name the file after the plan, NAME.plan.json or NAME.plan.ts, or rename the plan.";
    P111 StaleArtifact Warning "an artifact whose sources have changed since it was built"
        "Compile the plan again with `rankd compile`.";

    P201 TooManyNodes Error "more nodes than a plan may have"
        "Split the plan, or do more in one node.";
    P202 TooManyInputs Error "more inputs or outputs than a node or plan may have"
        "Combine inputs in several steps, for example with `concat`.";
    P203 ExpressionTooDeep Error "an expression nested deeper than the limit"
        "Compute a part of the expression in a node of its own (`vm`) and read the key that it writes.";
    P204 ExpressionTooLarge Error "an expression, or all of them together, larger than the limit"
        "Compute parts of the expression in nodes of their own, or shorten its lists.";

    P301 UnknownOp Error "a task that does not exist"
        "Correct the name; `rankd tasks` lists the tasks.";
    P302 UnknownNode Error "a node id that no node has"
        "Correct the id, or add the node.";
    P303 UnknownKey Error "a key that the registry does not have"
        "Correct the name, or add the key to registry/keys.toml.";
    P304 UnknownParam Error "a parameter that the registry does not have"
        "Correct the name, or add the parameter to registry/params.toml.";
    P305 UnknownEndpoint Error "an endpoint that the registry does not have"
        "Correct the name, or add the endpoint to every registry/endpoints.ENV.toml.";
    P306 UnknownTable Error "an expression or predicate id that its table does not have"
        "Correct the id, or add the expression to `expr_table` or the predicate to `pred_table`.";
    P307 WrongEndpointKind Error "an endpoint with a different protocol than the task's"
        "Use an endpoint of the kind that the task reads; `rankd tasks NAME` shows it.";
    P308 Blocked Error "a key or parameter that the registry blocks"
        "Use another key or parameter; `replaced_by` in the registry names one if there is one.";
    P309 Deprecated Warning "a key or parameter that the registry deprecates"
        "Use the replacement that the message names. The plan still runs.";
    P310 NotReadable Error "a read of a key or parameter whose registry entry forbids it"
        "Read another key or parameter, or set `allow_read` in the registry.";
    P311 NotWritable Error "a write to id or to a key whose registry entry forbids it"
        "Write to another key, or set `allow_write` in the registry. `id` is never written.";

    P312 UnknownModel Error "a model that the registry does not have"
        "Correct the name, or add the model to registry/models.toml.";

    P401 WrongInputs Error "a task with the wrong number of inputs"
        "Give the task as many inputs as it takes; `rankd tasks NAME` shows it.";
    P402 UnknownTaskParam Error "a parameter that the task does not have"
        "Correct the name, or remove the parameter; `rankd tasks NAME` lists the parameters.";
    P403 MissingTaskParam Error "a parameter that the task requires"
        "Set the parameter; `rankd tasks NAME` shows what it takes.";
    P404 WrongParamType Error "a task parameter of the wrong type"
        "Give a value of the type that the message names.";
    P405 ParamOutOfRange Error "a task parameter outside its range or choices"
        "Give a value within the range, or one of the choices, that the message names.";
    P406 ParamOutOfPlace Error "a task parameter that does not go together with the others of its node"
        "Remove the parameter, or change the one that the message names; `rankd tasks NAME` shows what goes together.";
    P407 BadTemplate Error "a template that cannot be used"
        "Correct the template: `{id}`, `{user_id}`, `{param.NAME}` and `{key.NAME}` are filled in, and braces are written `{{` and `}}`.";

    P408 BadDial Error "a dial whose least value is more than its first"
        "Give a `min` that is at most the first value: a dial goes down under load, and up again.";

    P409 WrongOutputs Error "as many keys as the model does not give numbers for"
        "Give `out_keys` one key for each number that the model gives a row, in the order of its classes, or `out_key` where it gives one; `rankd models` shows how many it gives.";

    P410 WrongDimension Error "vectors of different dimensions that are compared with each other"
        "Compare vectors of the same type: a key or parameter of type vector<N> goes with a column of type vector<N>.";
    P412 NoTrees Error "a parameter of models of trees, given for a model that is none"
        "Remove `iterations` and `output: \"raw\"`: an ONNX model gives what its graph gives, always all of it.";

    P413 LoggedTwice Error "a key that a node logs twice"
        "Name each key once in `log`. `id` is in every row of the feature log by itself.";
    P414 LogLacksKey Error "a node logs a key that its rows cannot have"
        "Log one of the keys that the message lists, or write the key in this node or one before it, for example with `hydrate` or `vm`.";
    P415 LogsNothing Error "a log of a node that no output needs, which never has rows"
        "Remove the `log`, or let an output need the node.";

    P501 UnknownOperation Error "an operation that expressions do not have"
        "Correct the name; docs/expressions.md lists the operations.";
    P502 TypeMismatch Error "an operation on operands of the wrong type"
        "Compare and compute with operands of the same type; numbers are int and float.";
    P503 BadRegex Error "a regular expression that cannot be used"
        "Correct the pattern. Patterns run in linear time, so there are no backreferences and no look-around, and their size is limited.";
    P504 BadList Error "the list of `in` is empty or mixes types"
        "Give `in` at least one literal, all of one type.";
    P505 WrongResult Error "an expression whose result does not fit the key it is written to"
        "Write to a key of the type of the result, or convert it, for example with `floor` and `round`.";
    P506 ConstantPredicate Warning "a predicate that is the same for every row and every request"
        "Remove the predicate, or compare with a key or a parameter. The plan still runs.";

    P601 Cycle Error "nodes that wait for each other"
        "Remove one of the inputs, fallbacks or otherwises in the circle that the message shows.";
    P602 Unreachable Warning "a node that no output needs"
        "Remove the node, or add it to the outputs. It is not run.";
    P603 UnusedTable Warning "an expression or predicate that no node uses"
        "Remove it from its table, or use it. The plan still runs.";
    P604 WrongPage Error "a node that pages and is no output, or is not the only one"
        "Let the plan return what `page` gives, and page once.";
    P605 NoSuchCursor Error "a node goes by a cursor that no node pages by"
        "Give it the parameter that `page` has as its `cursor`, or leave it out.";

    P701 NeverWritten Error "a node reads a key that nothing upstream can have written"
        "Write the key in a node before this one, for example with `hydrate` or `vm`, or read another key.";
    P702 MayLackValue Warning "a node may have no value for a key that is not nullable and has no default"
        "Give the key a `default`, or make it nullable, in registry/keys.toml; or make sure that every row has a value. The plan runs as long as the data is complete.";
    P703 NoColumn Error "a column that the table does not have"
        "Correct the name; the message has the nearest one. A column has the name of its key: `columns` in the registry renames it.";

    P801 BadSubstitute Error "a fallback or otherwise that is neither \"none\", \"input\" nor a node"
        "Write `\"none\"` for no rows, `\"input\"` for the rows of the first input, or `{\"node\": id}` for the rows of another node.";
    P802 BadReason Error "a fail_open that says nothing, or too much"
        "Write in one sentence why rows may pass a filter here; `rankd check` lists these reasons.";
    P803 NothingToReplace Error "an otherwise without a when, or a fail_open without a fallback or a when"
        "Add the field that the message names, or remove this one.";
    P804 KeyInWhen Error "a when that reads a key"
        "Use parameters, `U.id` and `nowMs()` only: whether a node runs is decided before there are rows. To drop rows, use `filter`.";
    P805 NoRowsOfInput Error "a fallback or otherwise \"none\" of a task that works on rows"
        "Write `\"input\"`, with which the rows of the input go on, or name a node. `\"none\"` is for sources and fan-outs.";
    P806 InputOfSource Error "a fallback or otherwise \"input\" of a task that makes rows of its own"
        "Write `\"none\"`, or name a node whose rows can take the place of these.";
    P807 FailsOpen Error "a fallback \"input\" with which rows pass a task that drops rows"
        "Remove the fallback, or write in `fail_open` (in TypeScript `failOpen`) why rows may pass.";
    P808 LeavesNoValue Error "a fallback or otherwise \"input\" that leaves a key without the value that it has to have"
        "Give the key a `default`, or make it nullable, in registry/keys.toml; or name a node that writes the key.";
    P809 SubstituteLacksKey Error "a fallback or otherwise whose rows cannot have a key that is read of them"
        "Write the key in a node before the one that stands in, for example with `hydrate` or `vm`, or name another node.";
    P810 OpensFilter Error "a node drops rows by what a fallback or otherwise before it may leave out"
        "Give the key a `default` in registry/keys.toml with which the filter does what is right; or write in `fail_open` (in TypeScript `failOpen`), on the node that the message names, why rows may pass.";
    P811 DoubledRows Warning "rows that may be doubled, because one node stands in for several that meet again"
        "Give one of them another fallback, or `\"none\"`. The plan still runs.";

    D001 SourceTooLarge Error "a TypeScript file, or all that a plan imports, larger than the limit"
        "Import less, and move large data into a store.";
    D002 SourceSyntax Error "the file is not TypeScript"
        "Correct the syntax at the place that is shown.";
    D003 SourceNesting Error "TypeScript that is nested too deeply"
        "Nest less deeply: name parts of the code with `const`.";
    D004 BadImport Error "an import that leaves the plan's folder, or of a file that does not exist"
        "Import from \"@ranking-dsl/runtime\", or a file in the folder of the plan or below it, by a path that starts with ./.";
    D005 NotInPlans Error "a part of the language that plans do not have"
        "Write it another way. Plans run once, to their end, without waiting: no async code, no generated code, no decorators.";
    D006 PlanThrew Error "the code of the plan failed"
        "Correct what the message says; the place is where the code threw. Plan code has no clock, no network and no files.";
    D007 OutOfTime Error "the code of the plan ran for too long"
        "Look for a loop that does not end. Plan code only builds the plan; rows are computed when it runs.";
    D008 OutOfMemory Error "the code of the plan needed too much memory"
        "Build less: plan code only describes the plan. Large data belongs in a store.";
    D009 OutOfStack Error "the code of the plan recursed too deeply"
        "Use a loop, or end the recursion.";
    D010 NotAPlan Error "the file does not export a plan by default, or definePlan was not given what it needs"
        "Write `export default definePlan({ name: \"...\", build: (ctx) => ... })` and return rows, a list of rows, or rows by name, from `build`.";
    D011 UnknownNow Error "a value that is known only in a run, where JavaScript needs it when the plan is compiled"
        "Keep the value in the expression: use `coalesce`, `E.if` and the functions of the DSL instead of `if`, `typeof` or `Math` of JavaScript.";
    D012 NoExpression Error "something that cannot be part of an expression or predicate"
        "Use keys, parameters, literals and the operations of docs/expressions.md.";
    D013 UnknownName Error "a key, parameter, endpoint, model or function of the DSL that does not exist"
        "Correct the name; the message has the nearest one. Keys, parameters, endpoints and models come from the registry.";
    D014 UnknownMethod Error "a task that does not exist, or not on this object"
        "Correct the name; `rankd tasks` lists the tasks. Sources are methods of `ctx`, other tasks are methods of rows.";
    D015 UnknownOption Error "an option that a task or definePlan does not have"
        "Correct the name of the option; options are in camelCase, and `rankd tasks NAME` lists them.";
    D016 MissingOption Error "an option that a task requires"
        "Set the option; `rankd tasks NAME` shows what it takes.";
    D017 WrongOption Error "an option of the wrong type, or undefined"
        "Give a value of the type that the message names; leave an option out instead of passing `undefined`.";
    D018 ForeignRows Error "rows of another plan, or used after the plan was built"
        "Use rows only inside the `build` that made them.";

    R001 BadToml Error "a registry file is not TOML"
        "Correct the TOML at the place that is shown.";
    R002 UnknownRegistryField Error "a field that a registry entry does not have"
        "Correct the name of the field, or remove it; docs/registry.md lists the fields.";
    R003 MissingRegistryField Error "a field that a registry entry requires"
        "Add the field that the message names; docs/registry.md lists the fields.";
    R004 BadRegistryValue Error "a registry field with a value it cannot have"
        "Give the field one of the values that the message names.";
    R005 DuplicateEntry Error "two registry entries with the same name or id"
        "Give each entry a name and an id of its own. Ids stay with their entries and are not used again.";
    R006 BadIdKey Error "the id key is missing or wrong, or parent_id has another type"
        "Keep `id` as key 1: an int or a string, not nullable, without a default and never written. `parent_id` has the type of `id`.";
    R007 BadDefault Error "a default that is not of the entry's type"
        "Give a default of the type of the entry.";
    R008 BadReplacement Error "a replacement that does not exist or is itself retired"
        "Name an entry that exists and is in use itself.";
    R009 BadEndpoint Error "an endpoint whose address or policy cannot be used"
        "Correct the address or the option that the message names; docs/registry.md, docs/redis.md and docs/data.md list the options.";
    R010 UnreadableFile Error "a file that cannot be read"
        "Create the file, or name the right folder with --registry and --plan_dir.";
    R011 EnvironmentsDiffer Error "two environments with different endpoints"
        "Give every environment the same endpoints, with the same ids and kinds.";
    R012 UnknownKind Error "an endpoint of a kind that there is not"
        "Give the endpoint one of the kinds that the message lists, or remove it.";
    R013 BadDataFile Error "a data file that is missing or cannot be used"
        "Correct what the message names; for the embedded store `rankd seed` can make a data file.";
    R014 NoPlans Warning "a plan folder without a plan"
        "Add a plan to the folder, or name another folder with --plan_dir.";
    R015 NoProject Error "a folder that is in no project"
        "Change to a folder of a project, which has rankd.toml or registry/keys.toml, or create a project with `rankd init NAME`.";
    R016 MissingReference Error "an environment variable or a file that an endpoint refers to and that is not there"
        "Set the variable, or create the file, or correct its name in the registry. Values are never shown.";
    R017 UnknownFormat Error "a model of a format that is not read"
        "Give the model one of the formats that the message lists, or remove it.";
    R018 BadModelFile Error "a model whose file is missing or cannot be used"
        "Correct what the message names: the path in `file`, the `format`, the `sha256`, or export the model again; docs/models.md says how.";
    R019 BadFeature Error "a feature of a model that no key can be"
        "Name its key in `features`, add a key of its name and type to registry/keys.toml, or train the model without it.";
    R021 NoTableFile Warning "a table whose file is not there"
        "Create the file, or correct the path in `url`. Until then plans are checked as if the table had every key, and none of them runs.";
    R022 TableUnread Warning "columns or cells of a table that are not read"
        "Add a key of the column's name to registry/keys.toml, name its key in `columns`, or correct the cells. The rest of the table is used.";
    R023 UnknownCopy Error "a copy of vectors of a kind that there is not"
        "Write \"f16\" or \"i8\"; leave the key out of `vectors` where searches are to be exact.";
    R024 NotAVector Error "a copy of the vectors of a key that has none"
        "Name a key of type vector<N> that the table has a column for.";
    R025 NoOnnxRuntime Error "an ONNX model, but no ONNX Runtime to score rows with"
        "Build rankd with `cargo build --release --features onnx`, and name the shared library with --onnxruntime or RANKD_ONNXRUNTIME; docs/models.md says where to get it.";
    R026 PrivateId Error "the key id is marked as personal"
        "Remove `pii` from `id`: nothing that is written down can do without it.";
    R030 UnknownLayer Error "an experiment or a holdout of a layer that there is not"
        "Correct the name, or add the layer as [[layer]] to registry/experiments.toml.";
    R031 OverlappingBuckets Error "two experiments, or an experiment and a holdout, of one layer with the same buckets"
        "Move or shorten one of them; the message has the free buckets, and `rankd experiments check` prints those of all layers.";
    R032 BadBuckets Error "a range of buckets that ends before it begins"
        "Write `from` and `to` so that `from` is not larger. `to` is not part of the range.";
    R033 BadOverride Error "an arm that overrides a parameter that does not exist or may not be used"
        "Correct the name in `set`, or add the parameter to registry/params.toml.";
    R034 IllTypedOverride Error "a value in an arm that is not of its parameter's type"
        "Give a value of the type that the parameter has in registry/params.toml.";
    R035 InTwoLayers Error "a parameter or a plan that experiments of two layers change"
        "Put the experiments into one layer, where no user is in two of them, or let one of them change something else.";
    R036 BadArms Error "an experiment whose arms nobody can get, or two of which have one name"
        "Give each arm a name of its own, and at least one of them a weight of more than 0.";
    R037 BadArmPlan Error "an arm that names a plan which cannot answer in place of another"
        "Name a plan of the plan folder, and list the plans that it answers for in `plans` of the experiment.";
    R038 UnreadExperiment Warning "an experiment that changes no plan"
        "Let a plan read one of the parameters that its arms override, correct `plans`, or remove the experiment.";
    R039 TooManyExperiments Error "more layers, experiments, holdouts or arms than there may be"
        "Remove experiments that are over. `rankd check --limits` prints the limits.";
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

    #[test]
    fn every_code_is_documented() {
        for code in Code::ALL {
            assert!(!code.about().is_empty() && !code.about().ends_with('.'), "{code}: {}", code.about());
            assert!(code.help().ends_with('.'), "{code}: {}", code.help());
        }
    }
}
