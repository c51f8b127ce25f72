//! Names that are put together from a family's word and live as long as the process, like those that are written in the code.
//!
//! Each distinct name is kept once, however often settings are read: their number is that of the words ever configured.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// The name, kept for good.
pub fn interned(name: &str) -> &'static str {
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return known;
    }
    let kept: &'static str = Box::leak(name.into());
    names.insert(kept);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        assert!(std::ptr::eq(interned("hami-some-word"), interned(&format!("hami-{}", "some-word"))));
    }
}
