//! Which parameters for drivers an allocation has.

use std::sync::Arc;

use crate::{
    dra::{WaitingClaim, claim::CompiledClass},
    object::resource_claim::{AllocationConfiguration, ConfigurationSource},
};

/// Those of classes first, each class once; then those of the claim that are about a request or an alternative that was taken.
pub(super) fn of(claim: &WaitingClaim, alternatives: &[usize]) -> Vec<AllocationConfiguration> {
    let chosen = claim.requests.iter().zip(alternatives);
    let chosen: Vec<_> = chosen.map(|(request, at)| (request, &request.alternatives[*at])).collect();
    let mut classes: Vec<(&Arc<CompiledClass>, Vec<String>)> = Vec::new();
    for (_, alternative) in &chosen {
        let known = classes.iter_mut().find(|(class, _)| class.name == alternative.class.name);
        match known {
            Some((_, requests)) => requests.push(alternative.full_name.clone()),
            None => classes.push((&alternative.class, vec![alternative.full_name.clone()])),
        }
    }
    let of_classes = classes.into_iter().flat_map(|(class, requests)| {
        class.config.iter().map(move |configuration| AllocationConfiguration {
            source: ConfigurationSource::FromClass,
            requests: requests.clone(),
            opaque: configuration.opaque.clone(),
        })
    });
    let is_named = |requests: &[String],
                    (request, alternative): &(
        &crate::dra::claim::ClaimRequest,
        &crate::dra::claim::Alternative,
    )| { requests.contains(&request.name) || requests.contains(&alternative.full_name) };
    let of_claim = claim.config.iter().filter(|config| {
        config.requests.is_empty() || chosen.iter().any(|one| is_named(&config.requests, one))
    });
    let of_claim = of_claim.map(|config| AllocationConfiguration {
        source: ConfigurationSource::FromClaim,
        requests: config.requests.clone(),
        opaque: config.opaque.clone(),
    });
    let all = of_classes.chain(of_claim).map(|mut config| {
        // No request is named where all are meant.
        if chosen.iter().all(|one| is_named(&config.requests, one)) {
            config.requests.clear();
        }
        config
    });
    all.collect()
}
