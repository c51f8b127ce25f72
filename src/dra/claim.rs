//! Claims and classes, read once: selectors are compiled, and what this version does not know is refused.

mod class;
mod derived;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{AllocationError, capacity::WrittenAmount, constraint::Constraint, device::PCIE_ROOT};
use crate::object::{
    ResourceClaim,
    device_class::Opaque,
    resource_claim::{ClaimConfiguration, DeviceRequest, DeviceToleration, RequestedDevices},
};

pub use class::{CompiledClass, CompiledClasses, Selector};
pub(super) use derived::DerivedAttribute;

/// A claim that wants devices.
#[derive(Clone, Debug)]
pub struct WaitingClaim {
    /// Its name, behind its namespace.
    pub name: String,
    /// Its uid; empty where it has none yet.
    pub uid: String,
    pub(super) requests: Vec<ClaimRequest>,
    pub(super) constraints: Vec<Constraint>,
    pub(super) config: Vec<ClaimConfiguration>,
}

/// A request: the first of its alternatives that can be had.
#[derive(Clone, Debug)]
pub(super) struct ClaimRequest {
    pub(super) name: String,
    /// One, unless it is a prioritized list (KEP-4816).
    pub(super) alternatives: Vec<Alternative>,
}

/// Devices that would serve a request.
#[derive(Clone, Debug)]
pub(super) struct Alternative {
    /// The request's name, behind which stands that of the alternative where the request is a list.
    pub(super) full_name: String,
    /// The name that errors have.
    pub(super) name: String,
    pub(super) class: Arc<CompiledClass>,
    pub(super) selectors: Vec<Selector>,
    pub(super) mode: CountMode,
    /// Whether the devices are watched over and not used (KEP-5018).
    pub(super) admin_access: Option<bool>,
    pub(super) tolerations: Vec<DeviceToleration>,
    pub(super) capacity: BTreeMap<String, WrittenAmount>,
    /// Attributes that are computed of each device, for the constraints that are about it.
    pub(super) derived: Vec<DerivedAttribute>,
}

/// How many devices are wanted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum CountMode {
    Exactly(usize),
    All,
}

impl Alternative {
    /// Whether others may use the same devices.
    pub(super) fn is_admin(&self) -> bool {
        self.admin_access == Some(true)
    }
}

impl WaitingClaim {
    /// The attributes of devices, by their full names, that decide which of them it is given; `None`: it may be any.
    pub fn attributes(&self) -> Option<BTreeSet<String>> {
        let mut names: BTreeSet<String> = [PCIE_ROOT.to_owned()].into();
        names.extend(self.constraints.iter().map(|constraint| constraint.attribute.clone()));
        for alternative in self.requests.iter().flat_map(|request| &request.alternatives) {
            let selectors = alternative.class.selectors.iter().chain(&alternative.selectors);
            let derived = alternative.derived.iter().map(DerivedAttribute::attributes);
            for read in selectors.map(Selector::attributes).chain(derived) {
                names.extend(read?.iter().cloned());
            }
        }
        Some(names)
    }

    /// Reads a claim. It is an error if it asks for what this version does not know.
    pub fn read(claim: &ResourceClaim, classes: &CompiledClasses) -> Result<Self, AllocationError> {
        let metadata = &claim.metadata;
        let name = match metadata.namespace.as_str() {
            "" => metadata.name.clone(),
            namespace => format!("{namespace}/{}", metadata.name),
        };
        let devices = &claim.spec.devices;
        let selectors = length_of_selectors(&devices.requests);
        if selectors > LONGEST_SELECTORS {
            let reason =
                format!("its selectors have {selectors} bytes, more than {LONGEST_SELECTORS} in all");
            return Err(AllocationError::Claim {
                claim: name,
                field: "spec.devices.requests".to_owned(),
                reason,
            });
        }
        let requests = devices.requests.iter().enumerate().map(|(at, request)| {
            let reader = RequestReader { claim: &name, classes, request, at };
            reader.request()
        });
        let mut requests: Vec<ClaimRequest> = requests.collect::<Result<_, _>>()?;
        derived::check_cost(&name, &requests)?;
        let constraints = devices.constraints.iter().enumerate().map(|(at, constraint)| {
            Constraint::read(constraint).ok_or_else(|| AllocationError::Claim {
                claim: name.clone(),
                field: format!("spec.devices.constraints[{at}]"),
                reason: "empty constraint (unsupported constraint type?)".to_owned(),
            })
        });
        if let Some(at) = devices.config.iter().position(|config| is_unread(config.opaque.as_ref())) {
            let field = format!("spec.devices.config[{at}].opaque");
            let reason = "it has too many levels to be read".to_owned();
            return Err(AllocationError::Claim { claim: name, field, reason });
        }
        let constraints: Vec<Constraint> = constraints.collect::<Result<_, _>>()?;
        derived::keep_compared(&mut requests, &constraints);
        Ok(Self { uid: metadata.uid.clone(), requests, constraints, config: devices.config.clone(), name })
    }
}

/// So many bytes may the selectors of a claim have in all, and the expressions of its derived attributes: they are compiled at once when the claim is seen. The API has no limit but that of an
/// object, 1.5 MB; what claims ask for by hand has some hundred bytes.
const LONGEST_SELECTORS: usize = 128 * 1024;

fn length_of_selectors(requests: &[DeviceRequest]) -> usize {
    let devices = requests.iter().flat_map(|request| request.exactly.iter().chain(&request.first_available));
    let length = |devices: &RequestedDevices| {
        let selectors = devices.selectors.iter().filter_map(|selector| selector.cel.as_ref());
        let selectors = selectors.map(|cel| cel.expression.len());
        let derived = devices.derived_attributes.iter().map(|derived| derived.expression.len());
        selectors.chain(derived).sum::<usize>()
    };
    devices.map(length).sum()
}

/// Whether there are parameters that can't be handed on.
fn is_unread(opaque: Option<&Opaque>) -> bool {
    opaque.is_some_and(|opaque| !opaque.is_read())
}

/// Reads one request.
struct RequestReader<'a> {
    claim: &'a str,
    classes: &'a CompiledClasses,
    request: &'a DeviceRequest,
    /// Its place among the claim's.
    at: usize,
}

impl RequestReader<'_> {
    fn request(&self) -> Result<ClaimRequest, AllocationError> {
        let DeviceRequest { name, exactly, first_available } = self.request;
        let field = format!("spec.devices.requests[{}]", self.at);
        let alternatives = if first_available.is_empty() {
            let none = RequestedDevices::default();
            let exactly = exactly.as_ref().unwrap_or(&none);
            vec![self.alternative(name, name.clone(), exactly, &format!("{field}.exactly"))?]
        } else {
            let alternatives = first_available.iter().enumerate().map(|(at, devices)| {
                let full_name = format!("{name}/{}", devices.name);
                self.alternative(&devices.name, full_name, devices, &format!("{field}.firstAvailable[{at}]"))
            });
            alternatives.collect::<Result<_, _>>()?
        };
        Ok(ClaimRequest { name: name.clone(), alternatives })
    }

    fn alternative(
        &self,
        name: &str,
        full_name: String,
        devices: &RequestedDevices,
        field: &str,
    ) -> Result<Alternative, AllocationError> {
        let unserved = |reason: String| AllocationError::Request {
            claim: self.claim.to_owned(),
            request: name.to_owned(),
            reason,
        };
        let object = format!("claim {}", self.claim);
        let selectors = Selector::read_all(
            &object,
            &format!("{field}.selectors"),
            &devices.selectors,
            self.classes.functions(),
        )?;
        if devices.device_class_name.is_empty() {
            return Err(unserved("missing device class name (unsupported request type?)".to_owned()));
        }
        let class = self.classes.named(&devices.device_class_name)?;
        let class = class.ok_or_else(|| AllocationError::ClassMissing {
            claim: self.claim.to_owned(),
            request: name.to_owned(),
            class: devices.device_class_name.clone(),
        })?;
        if class.config.iter().any(|config| is_unread(config.opaque.as_ref())) {
            let reason = "its spec.config has too many levels to be read";
            return Err(unserved(format!("device class {}: {reason}", class.name)));
        }
        let capacity =
            devices.capacity.iter().flat_map(|capacity| &capacity.requests).map(|(capacity, quantity)| {
                let measure = WrittenAmount::read(quantity);
                let field = format!("{field}.capacity.requests.{capacity}");
                let error = |reason| AllocationError::Claim { claim: self.claim.to_owned(), field, reason };
                Ok((capacity.clone(), measure.map_err(error)?))
            });
        Ok(Alternative {
            full_name,
            name: name.to_owned(),
            class,
            selectors,
            mode: mode(devices).map_err(unserved)?,
            admin_access: devices.admin_access,
            tolerations: devices.tolerations.clone(),
            capacity: capacity.collect::<Result<_, _>>()?,
            derived: DerivedAttribute::read_all(
                self.claim,
                &format!("{field}.derivedAttributes"),
                &devices.derived_attributes,
                self.classes.functions(),
            )?,
        })
    }
}

fn mode(devices: &RequestedDevices) -> Result<CountMode, String> {
    match devices.allocation_mode.as_deref().unwrap_or_default() {
        "" | "ExactCount" => {
            let count = devices.count.unwrap_or(1);
            let count = usize::try_from(count).ok().filter(|count| *count > 0);
            count.map(CountMode::Exactly).ok_or_else(|| "count must be greater than 0".to_owned())
        }
        "All" => Ok(CountMode::All),
        other => Err(format!("unsupported count mode {other}")),
    }
}
