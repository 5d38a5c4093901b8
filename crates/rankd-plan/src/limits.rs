//! Every limit of the plan format, in one place. `rankd check --limits` prints this table.

/// One limit as it is shown.
pub struct Limit {
    pub name: &'static str,
    pub value: usize,
    pub about: &'static str,
}

macro_rules! limits {
    ($($name:ident = $value:expr, $about:literal;)*) => {
        $(#[doc = $about] pub const $name: usize = $value;)*

        /// All limits, in the order of this file.
        pub const ALL: &[Limit] = &[$(Limit { name: stringify!($name), value: $name, about: $about }),*];
    };
}

limits! {
    FILE_BYTES_MAX = 16 << 20, "bytes of a plan file";
    NODES_MAX = 10_000, "nodes of a plan";
    INPUTS_MAX = 64, "inputs of a node";
    OUTPUTS_MAX = 64, "outputs of a plan";
    EXPRESSION_DEPTH_MAX = 256, "nesting of an expression or predicate";
    EXPRESSION_NODES_MAX = 10_000, "operations and list items of an expression or predicate";
    TABLE_ENTRIES_MAX = 20_000, "entries of the expression or predicate table";
    PLAN_EXPRESSION_NODES_MAX = 250_000, "operations and list items of all expressions of a plan together";
    NAME_BYTES_MAX = 128, "bytes of a plan name, a node id or a table id";
    LITERAL_ROWS_MAX = 100_000, "rows of data written into a plan";
    DIAGNOSTICS_MAX = 1_000, "diagnostics kept for a plan; further ones are counted";
    REGISTRY_BYTES_MAX = 4 << 20, "bytes of a registry file";
}
