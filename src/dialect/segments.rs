//! The pod devices string that HAMi's and Volcano's plugins read: `<uuid>,<type>,<MiB>,<percent>:` for each share, one
//! segment a container, segments parted by `;`.
//!
//! Source: HAMi v2.10 `pkg/device/devices.go` (`EncodePodSingleDevice`, `DecodePodDevices`); Volcano
//! `pkg/scheduler/api/devices/nvidia/vgpu/utils.go`. What we write is positional: a segment for each container, init
//! containers first, empty where it asked nothing; both plugins read that.

use crate::{
    device::{Assignment, ContainerShares, MiB, Percent, Role, Share, Slice},
    object::Pod,
};

/// The vendor word that stands for the type of every NVIDIA share.
pub const NVIDIA: &str = "NVIDIA";

/// One container's segment, without its separator.
pub fn encode_container(container: &ContainerShares, word: &str) -> String {
    let slice = |share: &Share| match &share.slice {
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

/// Reads the whole string of a pod; `asks` tells for each container in starting order whether it asks for a share.
///
/// Three generations are told apart by their number of segments: one for each container, one for each app container, one for
/// each container that asks.
pub fn decode(text: &str, pod: &Pod, asks: &[bool]) -> Result<Assignment, String> {
    let segments = text.split(';').map(shares).collect::<Result<Vec<_>, _>>()?;
    let used = segments.iter().rposition(|shares| !shares.is_empty()).map_or(0, |last| last + 1);
    let stated = segments.len() - usize::from(segments.last().is_some_and(Vec::is_empty));
    let roles: Vec<Role> = roles(pod).collect();
    let positions = positions([stated, segments.len()], used, &roles, asks);
    let mut containers: Vec<_> =
        roles.into_iter().map(|role| ContainerShares { role, shares: Vec::new() }).collect();
    for (at, shares) in segments.into_iter().enumerate().filter(|(_, shares)| !shares.is_empty()) {
        match positions.get(at).and_then(|&position| containers.get_mut(position)) {
            Some(container) => container.shares.extend(shares),
            // More segments than containers: still charged, as if it were an app container's.
            None => containers.push(ContainerShares { role: Role::App, shares }),
        }
    }
    Ok(Assignment { containers, ..Assignment::default() })
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

fn shares(segment: &str) -> Result<Vec<Share>, String> {
    segment.split(':').filter(|part| part.contains(',')).map(share).collect()
}

/// `<uuid>`, or `<uuid>[<group>-<number>]` for a slice of a whole card's cut: Volcano, and HAMi up to v2.9, where the group is the
/// number of a template.
fn card_and_slice(id: &str) -> Result<(&str, Option<Slice>), &'static str> {
    let (card, slice) = match id.split_once('[') {
        Some((card, slice)) => (card, Some(slice)),
        None => (id, None),
    };
    if card.is_empty() {
        return Err("names no card");
    }
    let Some(slice) = slice else {
        return if id.contains(']') { Err("has `]` without `[`") } else { Ok((card, None)) };
    };
    let parts = slice.strip_suffix(']').and_then(|slice| slice.split_once('-'));
    let parts = parts.and_then(|(group, position)| Some((group, position.parse().ok()?)));
    let Some((group, position)) = parts.filter(|(group, _)| !group.is_empty()) else {
        return Err("names no slice `[<group>-<number>]`");
    };
    Ok((card, Some(Slice::Numbered { group: group.into(), position })))
}

fn share(text: &str) -> Result<Share, String> {
    let mut fields = text.split(',');
    let (Some(id), Some(_word), Some(memory), Some(cores)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(format!("share `{text}` has fewer than 4 fields"));
    };
    let (card, slice) = card_and_slice(id).map_err(|message| format!("share `{text}` {message}"))?;
    let number = |field: &str, what| {
        let number =
            field.parse::<u32>().map_err(|_| format!("share `{text}`: {what} `{field}` is not a number"));
        number.and_then(|number| {
            i32::try_from(number)
                .map(|_| number)
                .map_err(|_| format!("share `{text}`: {what} `{field}` is out of range"))
        })
    };
    Ok(Share {
        card: card.into(),
        memory: MiB::new(number(memory, "memory")?.into()),
        cores: Percent::new(number(cores, "cores")?),
        slice,
    })
}
