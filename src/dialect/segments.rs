//! The pod devices string that HAMi's and Volcano's plugins read: `<uuid>,<type>,<MiB>,<percent>:` for each share, one
//! segment a container, segments parted by `;`.
//!
//! Source: HAMi v2.10 `pkg/device/devices.go` (`EncodePodSingleDevice`, `DecodePodDevices`); Volcano
//! `pkg/scheduler/api/devices/nvidia/vgpu/utils.go`. What we write is positional: a segment for each container, init
//! containers first, empty where it asked nothing; both plugins read that.

use super::{Carried, Problem, Unreadable};
use crate::{
    device::{Assignment, ContainerShares, Cores, MiB, Role, Share, Slice},
    object::Pod,
};

/// The vendor word that stands for the type of every NVIDIA share.
pub const NVIDIA: &str = "NVIDIA";

/// So many characters of what can't be read are shown.
const MOST_SHOWN: usize = 100;

/// Whether a segment can name a card of this id: the id is not empty and has no separator of shares or slices.
pub fn can_name(card: &str) -> bool {
    !card.is_empty() && !card.contains([',', ':', ';', '[', ']'])
}

/// One container's segment, without its separator.
pub fn encode_container(container: &ContainerShares, word: &str) -> String {
    let slice = |share: &Share| match share.slice.as_deref() {
        Some(slice @ Slice::Numbered { .. }) => format!("[{slice}]"),
        Some(Slice::Placed { .. }) | None => String::new(),
    };
    let share = |share: &Share| {
        format!("{}{},{word},{},{}:", share.card, slice(share), share.memory.get(), share.cores.get())
    };
    container.shares.iter().map(share).collect()
}

/// The roles of a pod's containers, in kubelet's starting order.
pub fn roles(pod: &Pod) -> impl Iterator<Item = Role> + '_ {
    let init = pod.spec.init_containers.iter();
    let init = init.map(|container| if container.is_sidecar() { Role::Sidecar } else { Role::Init });
    init.chain(pod.spec.containers.iter().map(|_| Role::App))
}

/// What can't be read of an assignment: an amount, or which card it is of; and why.
type Unread = (Problem, String);

/// Reads the whole string of a pod, and lists what of it can't be read; `asks` states for each container, in starting order, whether it
/// requests a share. Where a card is named but not how much of it, all of it is held.
///
/// Four generations are distinguished: one that writes blank shares, and the others by the number of segments: one for each container, one for each
/// app container, one for each container that asks.
fn decode(text: &str, pod: &Pod, asks: &[bool]) -> (Assignment, Vec<Unread>) {
    let mut unread = Vec::new();
    let segments: Vec<Vec<Share>> = text.split(';').map(|segment| shares(segment, &mut unread)).collect();
    let used = segments.iter().rposition(|shares| !shares.is_empty()).map_or(0, |last| last + 1);
    let stated = segments.len() - usize::from(segments.last().is_some_and(Vec::is_empty));
    let roles: Vec<Role> = roles(pod).collect();
    let positions = if text.split([';', ':']).any(is_blank) {
        positions_beside_blanks(&segments, &roles, asks)
    } else {
        positions([stated, segments.len()], used, &roles, asks)
    };
    let mut containers: Vec<_> =
        roles.into_iter().map(|role| ContainerShares { role, shares: Vec::new() }).collect();
    for (at, shares) in segments.into_iter().enumerate().filter(|(_, shares)| !shares.is_empty()) {
        match positions.get(at).and_then(|&position| containers.get_mut(position)) {
            Some(container) => container.shares.extend(shares),
            // More segments than containers: still charged, as if it were an app container's.
            None => containers.push(ContainerShares { role: Role::App, shares }),
        }
    }
    (Assignment { containers, ..Assignment::default() }, unread)
}

/// What a pod carries under this key; an error where nothing of it can be read.
pub fn carried(
    (key, text): (&str, &str),
    pod: &Pod,
    asks: &[bool],
    node: Option<String>,
) -> Result<Carried, Unreadable> {
    let (assignment, unread) = decode(text, pod, asks);
    let refuse = |(problem, message)| Unreadable::annotation(problem, key, message);
    let mut unread: Vec<_> = unread.into_iter().map(refuse).collect();
    if assignment.shares().next().is_none() && !unread.is_empty() {
        return Err(unread.swap_remove(0));
    }
    Ok(Carried { assignment, node, unread })
}

/// Which container each segment belongs to. The last segment may be a container's or stand for nothing: both counts are given.
fn positions([stated, parted]: [usize; 2], used: usize, roles: &[Role], asks: &[bool]) -> Vec<usize> {
    let apps_from = roles.iter().position(|&role| role == Role::App).unwrap_or(roles.len());
    let asking: Vec<usize> = (0..roles.len()).filter(|&at| asks.get(at) == Some(&true)).collect();
    if stated == roles.len() {
        (0..roles.len()).collect()
    } else if stated == asking.len() || used == asking.len() {
        asking
    } else if [stated, parted].contains(&(roles.len() - apps_from)) {
        (apps_from..roles.len()).collect()
    } else {
        (0..roles.len()).collect()
    }
}

/// Which container each segment belongs to where some shares are blank: the filled segments are of the app containers that ask, in order.
/// Plain containers add nothing before the first filled segment and one or two segments after it.
fn positions_beside_blanks(segments: &[Vec<Share>], roles: &[Role], asks: &[bool]) -> Vec<usize> {
    let is_asking_app = |at: &usize| roles[*at] == Role::App && asks.get(*at) == Some(&true);
    let mut apps = (0..roles.len()).filter(is_asking_app);
    let position = |shares: &Vec<Share>| (!shares.is_empty()).then(|| apps.next()).flatten();
    segments.iter().map(position).map(|position| position.unwrap_or(roles.len())).collect()
}

/// Whether a share is the empty one that HAMi v2.4 to v2.5.3 writes for a plain container after one with a card (`pkg/scheduler/score.go`
/// `calcScore`): no card, no type, no memory, no compute. It holds nothing. A type without a card is a card that can't be identified.
fn is_blank(share: &str) -> bool {
    share.trim() == ",,0,0"
}

/// As much of a text as a person wants to see of it; an annotation may have 256 KiB.
pub fn shown(text: &str) -> &str {
    text.char_indices().nth(MOST_SHOWN).map_or(text, |(end, _)| &text[..end])
}

fn shares(segment: &str, unread: &mut Vec<Unread>) -> Vec<Share> {
    let parts = segment.split(':').filter(|part| !part.trim().is_empty() && !is_blank(part));
    parts.filter_map(|part| share(part, unread)).collect()
}

/// `<uuid>`, or `<uuid>[<group>-<number>]` for a slice of a whole card's cut: Volcano, and HAMi up to v2.9, where the group is the
/// number of a template. A slice that can't be read is reported beside its card.
fn card_and_slice(id: &str) -> (&str, Result<Option<Slice>, &'static str>) {
    let Some((card, slice)) = id.split_once('[') else {
        return (id, if id.contains(']') { Err("has `]` without `[`") } else { Ok(None) });
    };
    let parts = slice.strip_suffix(']').and_then(|slice| slice.split_once('-'));
    let parts = parts.and_then(|(group, position)| Some((group, position.parse().ok()?)));
    let slice = parts.filter(|(group, _)| !group.is_empty());
    let slice = slice.map(|(group, position)| Slice::Numbered { group: group.into(), position });
    (card, slice.map(Some).ok_or("names no slice `[<group>-<number>]`"))
}

/// One share; `None` where it names no card.
fn share(text: &str, unread: &mut Vec<Unread>) -> Option<Share> {
    if !text.contains(',') || text.starts_with([',', '[']) {
        unread.push((Problem::Card, format!("share `{}` names no card", shown(text))));
        return None;
    }
    let mut complain =
        |what: String| unread.push((Problem::Assignment, format!("share `{}` {what}", shown(text))));
    let mut fields = text.split(',');
    let (card, slice) = card_and_slice(fields.next().unwrap_or_default());
    if fields.clone().count() < 3 {
        complain("has fewer than 4 fields".to_owned());
    }
    let mut amount = |what: &str, field: Option<&str>| {
        let field = field?;
        let number = field.parse::<u32>().map_err(|_| "is not a number");
        let number = number
            .and_then(|number| i32::try_from(number).map(i32::unsigned_abs).map_err(|_| "is out of range"));
        number.map_err(|why| complain(format!("{what} `{}` {why}", shown(field)))).ok()
    };
    let _word = fields.next();
    let (memory, cores) = (amount("memory", fields.next()), amount("cores", fields.next()));
    let (memory, slice) = match slice {
        Ok(slice) => (memory, slice),
        Err(why) => {
            complain(why.to_owned());
            (None, None)
        }
    };
    Some(Share {
        card: card.into(),
        memory: memory.map_or(MiB::UNREAD, |memory| MiB::new(memory.into())),
        cores: cores.map_or(Cores::UNREAD, Cores::new),
        slice: slice.map(Box::new),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_read_is_held_and_the_rest_is_reported() {
        let read = |text| {
            let (assignment, unread) = decode(text, &Pod::default(), &[]);
            let held = |share: &Share| (share.card.to_string(), share.memory.get(), share.cores.get());
            (assignment.shares().map(held).collect::<Vec<_>>(), unread)
        };
        let words = |unread: Vec<Unread>| unread.into_iter().map(|(_, words)| words).collect::<Vec<_>>();
        let all = MiB::UNREAD.get();
        let (held, unread) =
            read("GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,lots,30:GPU-c,NVIDIA,1:,NVIDIA,1,1:GPU-d[x,NVIDIA,5,5:");
        let wanted =
            [("GPU-a", 3000, 30), ("GPU-b", all, 30), ("GPU-c", 1, Cores::UNREAD.get()), ("GPU-d", all, 5)];
        assert_eq!(held, wanted.map(|(card, memory, cores)| (card.to_owned(), memory, cores)));
        let wanted = [
            "share `GPU-b,NVIDIA,lots,30` memory `lots` is not a number",
            "share `GPU-c,NVIDIA,1` has fewer than 4 fields",
            "share `,NVIDIA,1,1` names no card",
            "share `GPU-d[x,NVIDIA,5,5` names no slice `[<group>-<number>]`",
        ];
        assert_eq!(words(unread), wanted);
        for text in ["gibberish", ",", ",NVIDIA,1,1:;", "[0-1],NVIDIA,1,1"] {
            let (held, unread) = read(text);
            assert!(held.is_empty() && matches!(unread[..], [(Problem::Card, _)]), "{text}: {unread:?}");
        }
        assert_eq!(read(" ; :;"), (vec![], vec![]));
        let (_, unread) = read(&"ü".repeat(100_000));
        assert_eq!(unread[0].1, format!("share `{}` names no card", "ü".repeat(MOST_SHOWN)));
    }

    /// A pod with these containers, init containers first, and whether each asks.
    fn pod(init: usize, apps: usize) -> Pod {
        let containers = |count| vec![serde_json::json!({"name": "c"}); count];
        let spec = serde_json::json!({"initContainers": containers(init), "containers": containers(apps)});
        serde_json::from_value(serde_json::json!({"spec": spec})).unwrap()
    }

    #[test]
    fn a_blank_share_of_an_older_hami_holds_nothing_and_shifts_no_segment() {
        let (yes, no) = (true, false);
        for (text, init, asks, wanted) in [
            ("GPU-a,NVIDIA,3000,30:;,,0,0:;", 0, vec![yes, no], vec![1, 0]),
            ("GPU-a,NVIDIA,3000,30:;;,,0,0:;", 0, vec![no, yes, no], vec![0, 1, 0]),
            ("GPU-a,NVIDIA,1,1:;;,,0,0:;GPU-b,NVIDIA,1,1:;", 0, vec![no, yes, no, yes], vec![0, 1, 0, 1]),
            ("GPU-a,NVIDIA,3000,30:;,,0,0:;", 1, vec![no, yes, no], vec![0, 1, 0]),
            ("GPU-a,NVIDIA,3000,30:;,,0,0:;", 1, vec![yes, yes, no], vec![0, 1, 0]),
            // More filled segments than containers that ask: charged all the same.
            ("GPU-a,NVIDIA,1,1:;GPU-b,NVIDIA,1,1:;,,0,0:;", 0, vec![yes, no, no], vec![1, 0, 0, 1]),
        ] {
            let pod = pod(init, asks.len() - init);
            let (assignment, unread) = decode(text, &pod, &asks);
            let held: Vec<_> = assignment.containers.iter().map(|container| container.shares.len()).collect();
            assert_eq!((held, unread), (wanted, vec![]), "{text}");
        }
    }

    #[test]
    fn only_a_share_without_card_type_memory_and_compute_is_blank() {
        for text in [",NVIDIA,0,0:;", ",,1,0:;", ",,0,1:;", ",,,:;"] {
            let (_, unread) = decode(text, &pod(0, 1), &[true]);
            assert!(matches!(unread[..], [(Problem::Card, _)]), "{text}: {unread:?}");
        }
    }
}
