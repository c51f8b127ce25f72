//! Values: pods, nodes and what they ask for and have. They import nothing else of `scheduling`.

pub mod change;
pub mod claim_use;
pub mod devices;
pub mod extended_resources;
pub mod feature;
pub mod footprint;
pub mod gang;
pub mod images;
pub mod kind;
pub mod measure;
pub mod message;
pub mod name;
pub mod node;
pub mod node_affinity;
pub mod origin;
pub mod outcome;
pub mod plugin_arguments;
pub mod pod;
pub mod pod_reservation;
pub mod pod_selector;
pub mod prebind_step;
pub mod prebind_write;
pub mod resources;
pub mod steps;
pub mod tdm;
