//! Whether other schedulers of a protocol may run, which take its node locks too.

use jiff::Timestamp;

/// What is known of other schedulers that take node locks.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum OtherSchedulers {
    /// One may run, or may have run a moment ago.
    #[default]
    MayRun,
    /// None runs, as was found out not long ago; from then on that is too old to rely on.
    NoneUntil(Timestamp),
}
