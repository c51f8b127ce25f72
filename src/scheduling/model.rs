//! Values: pods, nodes and what they ask for and have. They import nothing else of `scheduling`.

pub mod change;
pub mod devices;
pub mod extended_resources;
pub mod footprint;
pub mod images;
pub mod measure;
pub mod node;
pub mod origin;
pub mod pod;
pub mod pod_selector;
pub mod prebind_step;
pub mod reason;
pub mod reservation;
pub mod resources;
pub mod steps;
pub mod tdm;
