//! A candidate of the leader election: reads, watches, takes, renews and gives back one Lease, and publishes its claim to lead.
//!
//! [`lease`] makes the decisions. Every write carries the resource version that was read.

use std::{sync::Arc, time::Duration};

use futures::{StreamExt, stream::BoxStream};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::{
    Api, Client,
    api::{ObjectMeta, PostParams},
};
use tokio::{
    sync::watch,
    time::{Instant, sleep_until, timeout},
};

use super::{
    lease::{self, LeaseStep, Observed},
    sightings,
};
use crate::cluster::{
    binder::pulse::Pulse,
    clock::Clock,
    report::metrics::{Leads, Metrics},
    write::{fence::LeadershipClaim, send},
};

/// The pause before the holder reads its own Lease again after a conflict.
const AFTER_CONFLICT: Duration = Duration::from_millis(100);

/// The Lease, the identity of this replica, and the times of the election.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ElectionSettings {
    /// The Lease's namespace.
    pub namespace: String,
    /// The Lease's name.
    pub name: String,
    /// The identity of this process. No other process may have it, not even this one after a restart.
    pub identity: Arc<str>,
    /// How long other candidates respect a Lease after its last renewal.
    pub lease_duration: Duration,
    /// How long a holder tries to renew before it gives up the lead.
    pub renew_deadline: Duration,
    /// How often the Lease is renewed or read.
    pub retry_period: Duration,
}

/// Why the times of an election can't work.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum SettingsError {
    /// The holder would give up only after another replica may lead.
    #[error("the lease duration ({lease:?}) must be longer than the renew deadline ({renew:?})")]
    LeaseTooShort {
        /// The lease duration.
        lease: Duration,
        /// The renew deadline.
        renew: Duration,
    },
    /// The holder would give up before its next attempt.
    #[error("the renew deadline ({renew:?}) must be longer than the retry period ({retry:?})")]
    DeadlineTooShort {
        /// The renew deadline.
        renew: Duration,
        /// The retry period.
        retry: Duration,
    },
    /// The claim would be too short for any Binding.
    #[error("the lease duration ({lease:?}) must be longer than {needed:?}, or nothing could be bound")]
    NoRoomToBind {
        /// The lease duration.
        lease: Duration,
        /// The retry period and the longest time that a Binding can take.
        needed: Duration,
    },
}

/// The namespace of the Lease does not exist, so that nobody can ever lead.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "namespace {namespace} does not exist, so the Lease {name} can't be kept there; create it: kubectl create namespace {namespace}"
)]
pub struct NoNamespace {
    /// The namespace.
    pub namespace: String,
    /// The Lease.
    pub name: String,
}

impl ElectionSettings {
    /// Settings with kube-scheduler's times: Lease 15 s, renew deadline 10 s, retry period 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.into(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
        }
    }

    /// Checks that a holder with these times can work, and that no two replicas lead at the same time.
    pub fn check(&self) -> Result<(), SettingsError> {
        let (lease, renew, retry) = (self.lease_duration, self.renew_deadline, self.retry_period);
        let needed = retry + send::REACH;
        if lease <= renew {
            return Err(SettingsError::LeaseTooShort { lease, renew });
        }
        if renew <= retry {
            return Err(SettingsError::DeadlineTooShort { renew, retry });
        }
        if lease <= needed {
            return Err(SettingsError::NoRoomToBind { lease, needed });
        }
        Ok(())
    }

    /// The time-out of one attempt: two attempts fit before the holder gives up.
    fn patience(&self) -> Duration {
        self.renew_deadline / 2
    }
}

/// A candidate.
pub struct LeaseCandidate {
    settings: ElectionSettings,
    leases: Api<Lease>,
    clock: Clock,
    metrics: Metrics,
    claims: watch::Sender<Option<LeadershipClaim>>,
    /// Whether the loop that the claims are for goes on.
    pulse: Pulse,
    /// When the claim of a loop that stands still was ended, whose Lease is still to be given back.
    given_up: Option<Instant>,
    /// The Lease as this candidate wrote it last.
    written: Option<Lease>,
    observed: Option<Observed>,
    /// When the newest renewal that succeeded was sent.
    renewed: Instant,
    terms: u64,
}

/// Whether the API server refused to create an object since its namespace does not exist (apiserver
/// `pkg/admission/plugin/namespace/lifecycle`).
fn lacks_namespace(status: &kube::core::Status) -> bool {
    let kind = status.details.as_ref().map_or("", |details| details.kind.as_str());
    status.code == 404 && kind == "namespaces"
}

impl LeaseCandidate {
    /// A candidate that publishes its claims to `claims`.
    pub fn new(
        settings: ElectionSettings,
        client: Client,
        clock: Clock,
        metrics: Metrics,
        claims: watch::Sender<Option<LeadershipClaim>>,
        pulse: Pulse,
    ) -> Self {
        let leases = Api::namespaced(client, &settings.namespace);
        let renewed = Instant::now();
        let (written, observed, given_up, terms) = (None, None, None, 0);
        Self { settings, leases, clock, metrics, claims, pulse, given_up, written, observed, renewed, terms }
    }

    /// Stands until `done`, and then gives the Lease back. `done` must not come before the last Binding is answered. Ends at once
    /// where there is no namespace for the Lease.
    pub async fn run(mut self, done: impl Future<Output = ()>) -> Result<(), NoNamespace> {
        let stands = async {
            let mut sightings = None;
            loop {
                match self.attempt().await {
                    Ok(next) => self.rest(next, &mut sightings).await,
                    Err(missing) => return missing,
                }
            }
        };
        tokio::select! {
            biased;
            () = done => {}
            missing = stands => return Err(missing),
        }
        self.give_back().await;
        Ok(())
    }

    /// Tries once; when to try again.
    async fn attempt(&mut self) -> Result<Instant, NoNamespace> {
        self.lapse_if_due();
        let retry = Instant::now() + self.settings.retry_period;
        if self.pulse.has_stopped() {
            self.give_up().await;
            return Ok(retry);
        }
        self.given_up = None;
        let next = match timeout(self.settings.patience(), self.advance(retry)).await {
            Ok(Ok(next)) => next,
            Ok(Err(kube::Error::Api(status))) if lacks_namespace(&status) => {
                self.publish(None);
                let ElectionSettings { namespace, name, .. } = &self.settings;
                return Err(NoNamespace { namespace: namespace.clone(), name: name.clone() });
            }
            Ok(Err(error)) => self.failed(&error, retry),
            Err(elapsed) => self.failed(&elapsed, retry),
        };
        self.lapse_if_due();
        Ok(self.gives_up_at().map_or(next, |at| next.min(at)))
    }

    /// Ends the claim of a loop that stands still, and clears the Lease once no write of this process can arrive any more, so that another
    /// replica leads before the Lease expires.
    async fn give_up(&mut self) {
        if self.claims.borrow().is_some() {
            tracing::error!("the binder's loop stands still: giving up the lead");
            self.publish(None);
            self.written = None;
            self.given_up = Some(Instant::now() + send::REACH);
        }
        if self.given_up.is_some_and(|at| at <= Instant::now()) {
            self.given_up = None;
            self.clear_in_time().await;
        }
    }

    /// Waits until this time; a follower stops waiting when it sees that the Lease is free.
    ///
    /// It records each renewal when it sees it, so that the end of the Lease is not counted from a later read.
    async fn rest(&mut self, until: Instant, sightings: &mut Option<BoxStream<'static, LeaseSpec>>) {
        if self.claims.borrow().is_some() {
            *sightings = None;
            return sleep_until(until).await;
        }
        let (leases, name) = (&self.leases, &self.settings.name);
        let sightings = sightings.get_or_insert_with(|| sightings::of(leases.clone(), name).boxed());
        loop {
            tokio::select! {
                biased;
                () = sleep_until(until) => return,
                Some(spec) = sightings.next() => {
                    self.observed = Some(Observed::after(self.observed.take(), &spec, Instant::now()));
                    if lease::holder(&spec).is_none() {
                        return;
                    }
                }
            }
        }
    }

    fn failed(&mut self, error: &dyn std::fmt::Display, retry: Instant) -> Instant {
        let ElectionSettings { namespace, name, .. } = &self.settings;
        let error = crate::excerpt::brief(error);
        tracing::warn!(%namespace, %name, %error, "reading or writing the Lease failed, trying again");
        self.written = None;
        retry
    }

    async fn advance(&mut self, retry: Instant) -> Result<Instant, kube::Error> {
        let found = match self.written.take() {
            Some(written) => Some(written),
            None => self.leases.get_opt(&self.settings.name).await?,
        };
        let spec = found.as_ref().and_then(|lease| lease.spec.clone()).unwrap_or_default();
        let (me, ours, now) = (&self.settings.identity, self.settings.lease_duration, Instant::now());
        let observed = Observed::after(self.observed.take(), &spec, now);
        let turn = lease::decide(&spec, me, &observed, ours, now);
        let seen_first = observed.at == now;
        self.observed = Some(observed);
        let next = match turn {
            LeaseStep::Acquire => lease::acquired(&spec, me, ours, self.clock.now()),
            LeaseStep::Renew => lease::renewed(&spec, ours, self.clock.now()),
            LeaseStep::Wait(until) => {
                if seen_first {
                    tracing::debug!(holder = lease::holder(&spec), "another replica leads");
                }
                self.publish(None);
                return Ok(until.min(retry));
            }
        };
        match self.write(found, next).await {
            Err(kube::Error::Api(status)) if status.code == 409 && turn == LeaseStep::Renew => {
                Ok(Instant::now() + AFTER_CONFLICT)
            }
            Err(kube::Error::Api(status)) if status.code == 409 => Ok(retry),
            outcome => outcome.map(|()| retry),
        }
    }

    /// Writes the Lease with the resource version that was read, and publishes the resulting claim.
    async fn write(&mut self, found: Option<Lease>, spec: LeaseSpec) -> Result<(), kube::Error> {
        let (name, parameters) = (self.settings.name.clone(), PostParams::default());
        let sent = Instant::now();
        let written = if let Some(found) = found {
            let lease = Lease { spec: Some(spec), ..found };
            self.leases.replace(&name, &parameters, &lease).await?
        } else {
            let metadata = ObjectMeta { name: Some(name), ..ObjectMeta::default() };
            self.leases.create(&parameters, &Lease { metadata, spec: Some(spec) }).await?
        };
        self.written = Some(written);
        self.renewed = sent;
        let expiry = sent + self.settings.lease_duration;
        self.publish(Some(expiry));
        Ok(())
    }

    /// Publishes a claim until this time, or its end.
    fn publish(&mut self, expiry: Option<Instant>) {
        let held = self.claims.borrow().is_some();
        match (held, expiry) {
            (false, None) => return,
            (false, Some(_)) => {
                self.terms += 1;
                tracing::info!(identity = %self.settings.identity, "leading");
                self.metrics.leader(Leads::Yes);
            }
            (true, None) => {
                tracing::info!(identity = %self.settings.identity, "no longer leading");
                self.metrics.leader(Leads::No);
            }
            (true, Some(_)) => {}
        }
        let claim = expiry.map(|expiry| LeadershipClaim { term: self.terms, expiry });
        self.claims.send_replace(claim);
    }

    /// The time at which a holder that can't renew gives up.
    fn gives_up_at(&self) -> Option<Instant> {
        self.claims.borrow().map(|_| self.renewed + self.settings.renew_deadline)
    }

    fn lapse_if_due(&mut self) {
        if self.gives_up_at().is_some_and(|at| at <= Instant::now()) {
            self.publish(None);
        }
    }

    /// Ends the claim and then clears the Lease, if the API server still shows this candidate as its holder.
    async fn give_back(mut self) {
        self.publish(None);
        self.clear_in_time().await;
    }

    async fn clear_in_time(&self) {
        let why = match timeout(self.settings.patience(), self.clear()).await {
            Ok(Ok(())) => return,
            Ok(Err(error)) => crate::excerpt::brief(&error),
            Err(elapsed) => elapsed.to_string(),
        };
        tracing::warn!(error = why, "giving the Lease back failed; the next leader waits until it expires");
    }

    /// A renewal that the shutdown cut off may arrive in between; its Lease is then read and cleared.
    async fn clear(&self) -> Result<(), kube::Error> {
        let name = &self.settings.name;
        loop {
            let Some(found) = self.leases.get_opt(name).await? else { return Ok(()) };
            let spec = found.spec.clone().unwrap_or_default();
            if lease::holder(&spec) != Some(&*self.settings.identity) {
                return Ok(());
            }
            let lease = Lease { spec: Some(lease::released(&spec, self.clock.now())), ..found };
            match self.leases.replace(name, &PostParams::default(), &lease).await {
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                outcome => return outcome.map(drop),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_that_would_not_be_safe_or_never_bind_are_refused() {
        let settings = |lease: u64, renew: u64, retry: u64| ElectionSettings {
            lease_duration: Duration::from_secs(lease),
            renew_deadline: Duration::from_secs(renew),
            retry_period: Duration::from_secs(retry),
            ..ElectionSettings::new("default", "berth", "a")
        };
        assert_eq!(ElectionSettings::new("default", "berth", "a").check(), Ok(()));
        let refused = |settings: ElectionSettings| settings.check().unwrap_err().to_string();
        let lease = "the lease duration (10s) must be longer than the renew deadline (10s)";
        assert_eq!(refused(settings(10, 10, 2)), lease);
        let renew = "the renew deadline (2s) must be longer than the retry period (2s)";
        assert_eq!(refused(settings(15, 2, 2)), renew);
        let room = "the lease duration (8s) must be longer than 8s, or nothing could be bound";
        assert_eq!(refused(settings(8, 5, 2)), room);
    }
}
