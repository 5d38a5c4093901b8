//! The functions of numbers against a reference of 256 bits, against values that another program computed, and against themselves
//! on other machines.

mod bounds;
mod functions;
mod golden;
mod reference;
mod same_bits;
mod single;
mod special;
