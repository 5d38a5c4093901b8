//! Floors: the pipeline written by hand for exactly this query, as fast as we can.
//!
//! Nothing of rankd is used. Where a node hands a column or a list of rows on, the floor allocates it anew for each call,
//! as any node must; what is only working space is kept. Reading order: [`vm`], [`filter`], [`top`], [`sort`], [`fused`]; [`trees`] for models.

pub mod filter;
pub mod fused;
pub mod multiply_adds;
pub mod sort;
pub mod top;
pub mod trees;
pub mod vm;

use crate::data::Table;

/// The widest vectors that this processor has. `Avx512` and `Avx2` are only made after detection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    Avx512,
    Avx2,
    Plain,
}

pub fn width() -> Width {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            return Width::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("popcnt") {
            return Width::Avx2;
        }
    }
    Width::Plain
}

/// The least a pass over the inputs can cost: their sum.
pub fn read(table: &Table) -> f64 {
    sum(&table.a) + sum(&table.b) + sum(&table.c)
}

fn sum(values: &[f64]) -> f64 {
    let mut sums = [0.0; 16];
    let (blocks, rest) = values.as_chunks::<16>();
    for block in blocks {
        for (sum, value) in sums.iter_mut().zip(block) {
            *sum += value;
        }
    }
    sums.iter().chain(rest).sum()
}

/// U: node by node, the best rows picked without sorting the rest.
pub fn node_by_node(table: &Table, width: Width, best: &mut top::Best) -> Vec<u32> {
    let scores = vm::scores(table, width);
    let rows = filter::at_least(&scores, table.x, width);
    top::top(&scores, &rows, table.take, width, best)
}

/// S: node by node with a full stable sort.
pub fn full_sort(table: &Table, width: Width, space: &mut sort::Space) -> Vec<u32> {
    let scores = vm::scores(table, width);
    let rows = filter::at_least(&scores, table.x, width);
    let mut sorted = sort::sort(&scores, &rows, width, space);
    sorted.truncate(table.take);
    sorted
}
