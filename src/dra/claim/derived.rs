//! Attributes that a claim computes of devices in CEL, for its constraints (KEP-6080).
//!
//! Source: kubernetes 1.37 `api/resource/v1/types.go`, `DeviceDerivedAttribute`, and
//! `dynamic-resource-allocation/structured/internal/experimental/allocator_experimental.go`, `lookupAttribute`.

use std::{collections::BTreeSet, sync::Arc};

use super::{ClaimRequest, Selector};
use crate::{
    dra::{
        AllocationError,
        cel::{ESTIMATE_LIMIT, EvaluationError, Functions},
        constraint::Constraint,
        device::{AttributeValues, PoolDevice},
    },
    object::{
        device_class::{CelSelector, DeviceSelector},
        resource_claim,
    },
};

/// How many a request may have (kubernetes 1.37 `api/resource/v1`, `DeviceDerivedAttributesMaxSize`).
const MOST: usize = 32;

/// What an expression makes of a device, as an attribute of this name.
#[derive(Clone, Debug)]
pub(in crate::dra) struct DerivedAttribute {
    name: Arc<str>,
    expression: Selector,
}

impl DerivedAttribute {
    /// Reads the derived attributes of a field.
    pub(super) fn read_all(
        claim: &str,
        field: &str,
        derived: &[resource_claim::DerivedAttribute],
        functions: &Functions,
    ) -> Result<Vec<Self>, AllocationError> {
        let error =
            |field: String, reason: String| AllocationError::Claim { claim: claim.to_owned(), field, reason };
        if derived.len() > MOST {
            let reason = format!("there are {}, and {MOST} are allowed", derived.len());
            return Err(error(field.to_owned(), reason));
        }
        let expressions = derived.iter().map(|one| {
            let cel = CelSelector { expression: one.expression.clone() };
            DeviceSelector { cel: Some(cel) }
        });
        let expressions: Vec<_> = expressions.collect();
        let read = Selector::read_all(&format!("claim {claim}"), field, &expressions, functions)?;
        for (at, one) in derived.iter().enumerate() {
            if one.name.is_empty() || derived[..at].iter().any(|other| other.name == one.name) {
                let reason = format!("{:?} is empty or the name of another", one.name);
                return Err(error(format!("{field}[{at}].name"), reason));
            }
        }
        let both = derived.iter().zip(read);
        Ok(both.map(|(one, expression)| Self { name: one.name.as_str().into(), expression }).collect())
    }

    /// What one evaluation may cost, as it was estimated.
    pub(in crate::dra) fn cost(&self) -> u64 {
        self.expression.cost()
    }

    /// The attributes of devices that the expression can read, by their full names; `None`: it may be any.
    pub(super) fn attributes(&self) -> Option<&BTreeSet<String>> {
        self.expression.attributes()
    }

    /// The attribute of a device.
    pub(in crate::dra) fn of(
        &self,
        device: &PoolDevice,
    ) -> Result<(Arc<str>, AttributeValues), AllocationError> {
        let value = self.expression.value(device)?;
        let mixed = || {
            self.expression.error(device, EvaluationError::NoAttribute("list of different types".to_owned()))
        };
        Ok((self.name.clone(), AttributeValues::of(value).ok_or_else(mixed)?))
    }
}

/// Fails where the derived attributes of a claim may cost more in all than one selector may, as Kubernetes has it.
pub(super) fn check_cost(claim: &str, requests: &[ClaimRequest]) -> Result<(), AllocationError> {
    let alternatives = requests.iter().flat_map(|request| &request.alternatives);
    let derived = alternatives.flat_map(|alternative| &alternative.derived);
    let cost = derived.map(DerivedAttribute::cost).fold(0, u64::saturating_add);
    if cost <= ESTIMATE_LIMIT {
        return Ok(());
    }
    Err(AllocationError::Claim {
        claim: claim.to_owned(),
        field: "spec.devices.requests".to_owned(),
        reason: format!(
            "its derived attributes could cost up to {cost} in all, and {ESTIMATE_LIMIT} is allowed"
        ),
    })
}

/// Leaves out what no constraint compares: it need not be evaluated.
pub(super) fn keep_compared(requests: &mut [ClaimRequest], constraints: &[Constraint]) {
    for request in requests {
        let name = request.name.clone();
        for alternative in &mut request.alternatives {
            let full_name = alternative.full_name.clone();
            let compares = |constraint: &Constraint, attribute: &str| {
                constraint.attribute == attribute && constraint.is_about(&name, &full_name)
            };
            alternative.derived.retain(|derived| constraints.iter().any(|one| compares(one, &derived.name)));
        }
    }
}
