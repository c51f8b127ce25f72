//! Sums by what users name: a bounded number of rows with names of bounded length.
//!
//! A row that finds no room is counted together with others under [`OTHER`] from the beginning; nothing that was counted under one name is ever
//! moved to another, since each row is a counter.

use std::{collections::BTreeMap, sync::Arc};

use super::HeldSeconds;

/// What rows are called together that have no room of their own. Neither a namespace, a kind nor a label's value can be called so.
pub const OTHER: &str = "__other__";

/// A row that has not grown for so many seconds makes room for another one: its last value was seen by then.
pub const IDLE: i64 = 3_600;

/// The longest name, in bytes.
const LONGEST: usize = 253;

/// A sum.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct UsageRow {
    /// What was held.
    pub held: HeldSeconds,
    /// When it last grew, in seconds since 1970.
    pub grown: i64,
}

/// Sums by names.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsageRows<const N: usize> {
    rows: BTreeMap<[Arc<str>; N], UsageRow>,
    /// How many there may be beside that of all others.
    limit: usize,
}

impl<const N: usize> UsageRows<N> {
    pub(super) const fn new(limit: usize) -> Self {
        Self { rows: BTreeMap::new(), limit }
    }

    /// Adds to the row of these names.
    pub(super) fn add(&mut self, names: [Arc<str>; N], held: HeldSeconds, now: i64) {
        if held == HeldSeconds::default() {
            return;
        }
        let row = self.row(names, now);
        (row.held, row.grown) = (row.held.and(held), now);
    }

    /// Takes a row in that was counted before. Where there are too many, or its names can't be, it is left out.
    pub fn restore(&mut self, names: [Arc<str>; N], row: UsageRow) {
        let fits = self.rows.len() < self.limit || is_other(&names);
        if fits && names.iter().all(|name| is_plain(name)) {
            self.rows.insert(names, row);
        }
    }

    fn row(&mut self, names: [Arc<str>; N], now: i64) -> &mut UsageRow {
        let fits = names.iter().all(|name| is_plain(name));
        let has_room = fits && (self.rows.contains_key(&names) || self.make_room(now));
        self.rows.entry(if has_room { names } else { others() }).or_default()
    }

    /// Whether there is room for one more; the one that has been idle for longest leaves for it, if one is idle.
    fn make_room(&mut self, now: i64) -> bool {
        if self.rows.keys().filter(|names| !is_other(names)).count() < self.limit {
            return true;
        }
        let named = self.rows.iter().filter(|(names, _)| !is_other(names));
        let idle = named.filter(|(_, row)| now - row.grown >= IDLE).min_by_key(|(_, row)| row.grown);
        let Some(idle) = idle.map(|(names, _)| names.clone()) else { return false };
        self.rows.remove(&idle);
        true
    }

    pub(super) fn retain(&mut self, keep: impl Fn(&[Arc<str>; N]) -> bool) {
        self.rows.retain(|names, _| keep(names));
    }

    /// The row of these names.
    pub fn get(&self, names: &[Arc<str>; N]) -> Option<&UsageRow> {
        self.rows.get(names)
    }

    /// Every row, by names.
    pub fn iter(&self) -> impl Iterator<Item = (&[Arc<str>; N], &UsageRow)> {
        self.rows.iter()
    }
}

fn others<const N: usize>() -> [Arc<str>; N] {
    std::array::from_fn(|_| OTHER.into())
}

fn is_other<const N: usize>(names: &[Arc<str>; N]) -> bool {
    names.iter().all(|name| **name == *OTHER)
}

/// Whether a name is as those are that the API server admits, or at least no longer, and written as it is in JSON.
fn is_plain(name: &str) -> bool {
    let is_plain = |byte: u8| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
    name.len() <= LONGEST && name.bytes().all(is_plain)
}
