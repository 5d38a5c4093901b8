//! The loops over rows. Each takes slices and row views and gives plain vectors; none knows where its rows came from.
//!
//! Reading order: [`wide`] (one body, compiled for several vector widths), [`gather`], [`compact`], [`sort`], `texts`, [`top`],
//! [`mod@concat`], [`similarity`], [`join`].

pub mod compact;
pub mod concat;
pub mod gather;
pub mod join;
pub mod similarity;
pub mod sort;
mod texts;
pub mod top;
pub mod wide;
