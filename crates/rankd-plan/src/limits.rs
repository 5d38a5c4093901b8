//! Every limit of the plan format, in one place. `rankd check --limits` prints this table.

use rankd_column::expr::pattern;
use rankd_column::value;

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
    PLAN_EXPRESSION_NODES_MAX = 100_000, "operations and list items of all expressions of a plan together";
    PLAN_TEXT_BYTES_MAX = 4 << 20, "bytes of all texts in the expressions of a plan together";
    PATTERN_BYTES_MAX = pattern::LITERAL.text, "bytes of a regular expression in a plan";
    PATTERNS_COST_MAX = pattern::LITERALS_MAX, "estimated bytes to compile all regular expressions of a plan";
    REQUEST_PATTERN_BYTES_MAX = pattern::REQUEST.text, "bytes of a regular expression in a request";
    REQUEST_PATTERN_COST_MAX = pattern::REQUEST.estimate, "estimated bytes to compile a regular expression in a request";
    NAME_BYTES_MAX = 128, "bytes of a plan name, a node id or a table id";
    LABEL_BYTES_MAX = 256, "bytes of a node's label for the trace";
    REASON_BYTES_MAX = 512, "bytes of the reason why a node fails open";
    LITERAL_ROWS_MAX = 100_000, "rows of data written into a plan";
    LITERAL_VALUES_MAX = 250_000, "values written into the columns of a plan together, elements of lists and vectors included";
    LIST_ELEMENTS_MAX = value::ELEMENTS_MAX, "elements of a list";
    VECTOR_NUMBERS_MAX = value::DIMENSION_MAX as usize, "numbers of a vector";
    MADE_CELLS_MAX = 2_000_000, "cells of all rows that a plan makes by itself, ids included";
    SOURCE_FILES_MAX = 1_000, "source files that a plan names";
    SOURCE_PATH_BYTES_MAX = 512, "bytes of the path of a source file";
    SOURCE_SPANS_MAX = 300_000, "places in source files that a plan names";
    DIAGNOSTICS_MAX = 1_000, "diagnostics kept for a plan; further ones are counted";
    REGISTRY_BYTES_MAX = 4 << 20, "bytes of a registry file";
    LAYERS_MAX = 32, "layers of experiments; a request takes a hash for each that its plan is in";
    EXPERIMENTS_MAX = 5_000, "experiments, and also holdouts";
    EXPERIMENT_ARMS_MAX = 64, "arms of an experiment";
}

/// The weight of an input.
pub const WEIGHT_MIN: f64 = 1e-9;
pub const WEIGHT_MAX: f64 = 1e9;

/// Texts of one list-valued task parameter.
pub const TEXTS_MAX: usize = 1_000;

/// Rules about groups of rows in one task parameter, and the numbers of rows in a rule.
pub const RULES_MAX: usize = 16;
pub const RULE_ROWS_MAX: i64 = 1_000_000;

/// Nodes that a task may ask for one after the other.
pub const RESERVES_MAX: usize = 16;

/// Nodes whose rows get places in one task parameter, and how many places the rows of one may be given.
pub const FILLS_MAX: usize = 16;
pub const PLACES_MAX: usize = 1_000;

/// Bytes of a template in a task parameter.
pub const TEMPLATE_BYTES_MAX: usize = 1_024;

/// Bytes of a name in a task parameter that gives keys by name, or of a JSON pointer.
pub const MAP_NAME_BYTES_MAX: usize = 256;

/// Expressions that one node computes.
pub const EXPRS_MAX: usize = 32;
