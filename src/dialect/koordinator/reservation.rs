//! Reservations: which devices they hold, which one a pod uses, and which one it wants.
//!
//! Source: koordinator a7a1b76 `apis/extension/reservation.go`.

use serde::{Deserialize, Serialize};

use super::{names, record};
use crate::{
    device::{DeviceAllocations, ReservationName},
    dialect::{Problem, Unreadable},
    object::{Pod, Reservation, reservation::ReservationAffinity},
};

/// `reservation-allocated`, as it is written.
#[derive(Deserialize, Serialize)]
struct Allocated {
    #[serde(default)]
    name: String,
    #[serde(default)]
    uid: String,
}

/// Whether it is on a node and holds something there.
pub fn is_available(reservation: &Reservation) -> bool {
    reservation.status.phase == "Available" && !reservation.status.node_name.is_empty()
}

/// Which of several a pod uses first: the one with the lowest. Koordinator takes 0, and what is no number, for none.
pub fn order(reservation: &Reservation) -> Option<i64> {
    let text = reservation.metadata.label(names::RESERVATION_ORDER)?;
    text.parse().ok().filter(|order| *order != 0)
}

/// The devices that it holds.
pub fn devices(reservation: &Reservation) -> Result<DeviceAllocations, Unreadable> {
    let Some(text) = reservation.metadata.annotation(names::ALLOCATED) else {
        return Ok(DeviceAllocations::new());
    };
    record::decode(text).map_err(|error| Unreadable::annotation(Problem::Assignment, names::ALLOCATED, error))
}

/// The Reservation that the pod uses; `None`: none, or what is written names none.
pub fn allocated(pod: &Pod) -> Option<ReservationName> {
    let text = pod.metadata.annotation(names::RESERVATION_ALLOCATED)?;
    let Allocated { name, uid } = serde_json::from_str(text).ok()?;
    (!uid.is_empty()).then_some(ReservationName { name, uid })
}

/// The annotation that says which Reservation a pod uses.
pub(super) fn written(reservation: &ReservationName) -> (String, String) {
    let ReservationName { name, uid } = reservation.clone();
    let text = serde_json::to_string(&Allocated { name, uid });
    (names::RESERVATION_ALLOCATED.to_owned(), text.expect("two texts have a JSON form"))
}

/// The Reservations that the pod wants; `None`: it may go anywhere.
pub fn affinity(pod: &Pod) -> Result<Option<ReservationAffinity>, Unreadable> {
    let text = pod.metadata.annotation(names::RESERVATION_AFFINITY);
    let Some(text) = text.filter(|text| !text.is_empty()) else { return Ok(None) };
    serde_json::from_str(text).map(Some).map_err(|error| {
        Unreadable::annotation(Problem::Hint, names::RESERVATION_AFFINITY, error.to_string())
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pod(key: &str, text: &str) -> Pod {
        serde_json::from_value(json!({"metadata": {"annotations": {key: text}}})).unwrap()
    }

    #[test]
    fn what_is_written_reads_as_the_same() {
        let used = ReservationName { name: "r".to_owned(), uid: "1-2".to_owned() };
        let (key, text) = written(&used);
        assert_eq!(text, r#"{"name":"r","uid":"1-2"}"#);
        assert_eq!(allocated(&pod(&key, &text)), Some(used));
        for none in ["{}", r#"{"name":"r"}"#, "[", ""] {
            assert_eq!(allocated(&pod(&key, none)), None, "{none}");
        }
    }

    #[test]
    fn a_wish_that_is_no_json_names_the_annotation() {
        let read = |text| affinity(&pod(names::RESERVATION_AFFINITY, text));
        assert_eq!(read("").unwrap(), None);
        let wanted = read(r#"{"name":"r","tolerations":[]}"#).unwrap().unwrap();
        assert_eq!(wanted, ReservationAffinity { name: "r".to_owned(), ..ReservationAffinity::default() });
        let error = read("[").unwrap_err().to_string();
        assert!(
            error.starts_with("metadata.annotations[scheduling.koordinator.sh/reservation-affinity]: "),
            "{error}"
        );
    }
}
