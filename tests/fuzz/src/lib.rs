//! What must hold of bytes from outside, one module a kind: libFuzzer runs these, and `cargo test --test pure fuzz` with bytes of its own.
//!
//! A module has `run`, which panics where something does not hold, and `seeds`, the bytes to begin with.

pub mod assignment;
pub mod lock;
pub mod mig;
pub mod object;
pub mod quantity;
pub mod register;
pub mod review;
pub mod selector;
pub mod settings;
pub mod world;

/// One kind of bytes.
pub struct Target {
    /// Its name, as `cargo fuzz run` takes it.
    pub name: &'static str,
    /// Panics where something does not hold of these bytes.
    pub run: fn(&[u8]),
    /// Bytes to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// Every kind.
pub const TARGETS: [Target; 9] = [
    Target { name: "assignment", run: assignment::run, seeds: assignment::seeds },
    Target { name: "lock", run: lock::run, seeds: lock::seeds },
    Target { name: "mig", run: mig::run, seeds: mig::seeds },
    Target { name: "object", run: object::run, seeds: object::seeds },
    Target { name: "quantity", run: quantity::run, seeds: quantity::seeds },
    Target { name: "register", run: register::run, seeds: register::seeds },
    Target { name: "review", run: review::run, seeds: review::seeds },
    Target { name: "selector", run: selector::run, seeds: selector::seeds },
    Target { name: "settings", run: settings::run, seeds: settings::seeds },
];

/// The bytes as text; what is no text is no annotation either.
fn text(data: &[u8]) -> Option<&str> {
    std::str::from_utf8(data).ok()
}

fn owned(texts: &[&str]) -> Vec<Vec<u8>> {
    texts.iter().map(|text| text.as_bytes().to_vec()).collect()
}
