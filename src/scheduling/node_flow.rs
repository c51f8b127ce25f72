//! What goes on at one node: the line of pods that wait for its lock.

pub mod line;
