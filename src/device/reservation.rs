//! The Reservation that a pod uses.

/// A Reservation, by its name and its uid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ReservationName {
    /// Its name.
    pub name: String,
    /// Its uid: another Reservation of this name is another one.
    pub uid: String,
}
