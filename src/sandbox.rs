//! An API server inside the process, as real as the program and its tests need it.

pub mod agent;
