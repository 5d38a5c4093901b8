//! The loops over rows. Each takes slices and row views and gives plain vectors; none knows where its rows came from.
//!
//! Reading order: [`wide`] (one body, compiled for several vector widths), [`gather`], [`compact`], [`sort`], `texts`, [`top`],
//! [`mod@concat`], [`merge`], [`similarity`] with [`mod@nearest`] and [`vector_copy`], [`join`], [`numbers`], [`groups`] and what is made of them: [`aggregate`], [`cap`], [`combine`], [`diversify`],
//! [`ensure`], [`fuse`], [`mod@page`], [`scores`], [`mod@slots`], [`row_vectors`] with [`mod@mmr`] and [`mod@dpp`]; and [`draws`], the random numbers of rows, with
//! [`sample`] and [`explore`].

pub mod aggregate;
pub mod cap;
pub mod combine;
pub mod compact;
pub mod concat;
pub mod diversify;
pub mod dpp;
pub mod draws;
pub mod ensure;
pub mod explore;
pub mod fuse;
pub mod gather;
pub mod groups;
pub mod join;
pub mod merge;
pub mod mmr;
pub mod nearest;
pub mod numbers;
pub mod page;
pub mod row_vectors;
pub mod sample;
pub mod scores;
pub mod similarity;
pub mod slots;
pub mod sort;
mod texts;
pub mod top;
pub mod vector_copy;
pub mod wide;
