//! The loops over rows. Each takes slices and row views and gives plain vectors; none knows where its rows came from.
//!
//! Reading order: [`wide`] (one body, compiled for several vector widths), [`gather`], [`compact`], [`sort`], [`top`],
//! [`mod@concat`].

pub mod compact;
pub mod concat;
pub mod gather;
pub mod sort;
pub mod top;
pub mod wide;
