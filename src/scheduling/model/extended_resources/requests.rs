//! The requests of a claim for extended resources. A container that runs beside those after it has a request of its own; an init
//! container that ends uses the devices of those after it first, and of what such containers lack beyond, only the most is requested.

use std::sync::Arc;

use super::{AskedResource, Asking, Served};
use crate::object::{
    pod::RequestMapping,
    resource_claim::{DeviceRequest, RequestedDevices},
};

/// A request that is being put together.
#[derive(Clone, Debug)]
struct DraftRequest {
    name: String,
    count: i64,
    share: Option<Arc<RequestedDevices>>,
}

/// The claim's requests by name, and which of them serves which resource of which container.
pub(super) fn of(containers: &[Asking], served: &[Served<'_>]) -> (Vec<DeviceRequest>, Vec<RequestMapping>) {
    let (mut requests, mut mappings) = (Vec::new(), Vec::new());
    for &(resource, class) in served {
        let (wanted, mapped) = of_resource(containers, resource);
        requests.extend(wanted.into_iter().map(|wanted| wanted.into_request(class)));
        mappings.extend(mapped);
    }
    requests.sort_by(|one, other| one.name.cmp(&other.name));
    (requests, mappings)
}

fn of_resource(containers: &[Asking], resource: &str) -> (Vec<DraftRequest>, Vec<RequestMapping>) {
    let asking = || {
        let asked =
            |container: &Asking| container.resources.iter().position(|asked| &*asked.resource == resource);
        containers.iter().filter_map(move |container| Some((container, asked(container)?)))
    };
    let (mut mappings, mut lasting) = (Vec::new(), Vec::new());
    for (container, place) in asking().filter(|(container, _)| container.stays) {
        let asked = &container.resources[place];
        let wanted =
            DraftRequest { name: name(container, asked), count: asked.count, share: asked.share.clone() };
        mappings.push(mapping(container, asked, &wanted.name));
        lasting.push((container.at, wanted));
    }
    let mut passing = Vec::new();
    // One for each kind of share: each with the names that it stands for.
    let mut most: Vec<(DraftRequest, Vec<String>)> = Vec::new();
    for (container, place) in asking().filter(|(container, _)| !container.stays) {
        let asked = &container.resources[place];
        let mut lacking = asked.count;
        for (_, later) in lasting.iter().filter(|(at, _)| *at >= container.at) {
            if lacking > 0 && later.share == asked.share {
                passing.push(mapping(container, asked, &later.name));
                lacking -= later.count;
            }
        }
        if lacking > 0 {
            let wanted =
                DraftRequest { name: name(container, asked), count: lacking, share: asked.share.clone() };
            passing.push(mapping(container, asked, &wanted.name));
            raise(&mut most, wanted);
        }
    }
    for (most, names) in &most {
        for mapping in passing.iter_mut().filter(|mapping| names.contains(&mapping.request_name)) {
            mapping.request_name.clone_from(&most.name);
        }
    }
    mappings.extend(passing);
    let most = most.into_iter().map(|(most, _)| most);
    (most.chain(lasting.into_iter().map(|(_, wanted)| wanted)).collect(), mappings)
}

/// Takes in what an init container that ends lacks: of equal kinds the most is requested.
fn raise(most: &mut Vec<(DraftRequest, Vec<String>)>, wanted: DraftRequest) {
    let name = wanted.name.clone();
    match most.iter_mut().find(|(most, _)| most.share == wanted.share) {
        Some((most, names)) => {
            if wanted.count > most.count {
                *most = wanted;
            }
            names.push(name);
        }
        None => most.push((wanted, vec![name])),
    }
}

/// The name that upstream gives the request.
fn name(container: &Asking, asked: &AskedResource) -> String {
    format!("container-{}-request-{}", container.at, asked.at)
}

fn mapping(container: &Asking, asked: &AskedResource, request: &str) -> RequestMapping {
    RequestMapping {
        container_name: container.name.to_string(),
        resource_name: asked.resource.to_string(),
        request_name: request.to_owned(),
    }
}

impl DraftRequest {
    fn into_request(self, class: &str) -> DeviceRequest {
        let exactly = RequestedDevices {
            device_class_name: class.to_owned(),
            allocation_mode: Some("ExactCount".to_owned()),
            count: Some(self.count),
            ..self.share.map(Arc::unwrap_or_clone).unwrap_or_default()
        };
        DeviceRequest { name: self.name, exactly: Some(exactly), ..DeviceRequest::default() }
    }
}
