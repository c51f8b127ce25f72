//! What a pod asks: blocks of memory on one card, or whole cards.
//!
//! The node's plugin looks for a pod with one container of just so many, and takes the pod as served after that
//! (`pkg/plugin/nvidia/server.go` `Allocate`): a second container that asks would fail on the node, so it is refused here. It looks at app
//! containers only, so an init container or a sidecar that asks would fail as well.

use std::num::NonZeroU32;

use super::{GpuShareSettings, ShareUnit};
use crate::{
    device::{
        CardChoice, CardPolicy, ContainerRequest, CoreRequest, Cores, Marks, MemoryRequest, MiB, NodePolicy,
        Percent, PodRequest, Role, Selection, ShareRequest,
    },
    dialect::{Problem, Unreadable, amounts::ResourceReader, segments},
    object::{Container, Pod},
};

/// What the pod asks; `None` where no container asks.
pub(super) fn read(
    settings: &GpuShareSettings,
    resource: &str,
    pod: &Pod,
) -> Result<Option<PodRequest>, Vec<Unreadable>> {
    let mut containers = Vec::new();
    let mut asking = Vec::new();
    let mut troubles = Vec::new();
    for ((path, container), role) in pod.containers().zip(segments::roles(pod)) {
        match share(settings, resource, container, &path) {
            Ok(share) => {
                if share.is_some() && role != Role::App {
                    let message = "Volcano's plugin does not serve init containers and sidecars";
                    troubles.push(Unreadable::new(Problem::Unserved, &path, message));
                }
                asking.extend(share.map(|_| path));
                containers.push(ContainerRequest { role, share });
            }
            Err(trouble) => troubles.push(trouble),
        }
    }
    troubles.extend(asking.get(1).map(|path| {
        let message = "Volcano's plugin serves one container of a pod; it would fail the second on the node";
        Unreadable::new(Problem::Unserved, path, message)
    }));
    if !troubles.is_empty() {
        return Err(troubles);
    }
    Ok((!asking.is_empty()).then(|| PodRequest {
        containers,
        selection: Selection::default(),
        // Upstream takes the lowest number that fits, whatever the policy.
        choice: CardChoice { order: Vec::new(), ..CardPolicy::Binpack.into() },
        node_policy: NodePolicy::Indifferent,
        marks: Marks::default(),
        shuns: Marks::default(),
    }))
}

/// What one container asks.
pub(super) fn share(
    settings: &GpuShareSettings,
    resource: &str,
    container: &Container,
    path: &str,
) -> Result<Option<ShareRequest>, Unreadable> {
    let read = ResourceReader::new(container, path);
    Ok(match settings.unit {
        ShareUnit::Memory => {
            let blocks = read.number(resource, "MiB", settings.memory_factor)?.filter(|&blocks| blocks > 0);
            blocks.map(|blocks| ShareRequest {
                cards: NonZeroU32::MIN,
                memory: MemoryRequest::Exact(MiB::new(
                    u64::from(blocks) * u64::from(settings.memory_factor.max(1)),
                )),
                cores: CoreRequest::NONE,
            })
        }
        ShareUnit::Cards => {
            read.number(resource, "cards", 1)?.and_then(NonZeroU32::new).map(|cards| ShareRequest {
                cards,
                memory: MemoryRequest::Part(Percent::WHOLE),
                cores: CoreRequest::Exact(Cores::WHOLE),
            })
        }
    })
}
