//! The run of a binder: terms as the leader, one after another.
//!
//! It does not decide about pods: each term is one call of [`event_loop::term`], which remembers nothing of the one before.

use std::time::Duration;

use futures::FutureExt;
use tokio::{
    sync::{oneshot, watch},
    task::JoinSet,
};

use super::{
    Binder, ClusterError, Leadership,
    event_loop::{self, Ended},
    standby::stand_by,
    takeover::{self, Beginning},
};
use crate::cluster::{
    election::candidate::{ElectionSettings, LeaseCandidate},
    report::metrics::Leads,
    write::{
        fence::{Fence, LeadershipClaim},
        send,
    },
};

/// Runs until `shutdown`, and then finishes open work: a pod whose lock is taken is still bound. After that, it gives the Lease back.
pub async fn run(binder: Binder, shutdown: impl Future<Output = ()>) -> Result<(), ClusterError> {
    let shutdown = shutdown.shared();
    match binder.leadership.clone() {
        Leadership::Alone => {
            binder.metrics.leader(Leads::Yes);
            let beginning = Beginning::afresh(&binder);
            Box::pin(event_loop::term(binder, beginning, Fence::Alone, shutdown)).await.map(drop)
        }
        Leadership::Elected(settings) => elected(binder, settings, shutdown).await,
    }
}

async fn elected(
    binder: Binder,
    settings: ElectionSettings,
    shutdown: impl Future<Output = ()> + Clone,
) -> Result<(), ClusterError> {
    settings.check()?;
    let (claims, claimed) = watch::channel(None);
    let (done, drained) = oneshot::channel::<()>();
    let (client, metrics, pulse) =
        (binder.client.clone(), binder.metrics.clone(), binder.handoff.pulse().clone());
    let candidate = LeaseCandidate::new(settings, client, binder.clock, metrics, claims, pulse);
    let mut lease = JoinSet::new();
    lease.spawn(candidate.run(async {
        if drained.await.is_err() {
            std::future::pending::<()>().await;
        }
    }));
    let ended = tokio::select! {
        biased;
        ended = Box::pin(terms(binder, claimed, shutdown)) => ended?,
        died = lease.join_next() => return Err(match died {
            Some(Ok(Err(missing))) => ClusterError::NoNamespace(missing),
            died => ClusterError::Lease(died.and_then(Result::err)),
        }),
    };
    // A request that was cut off may still be carried out while the Lease is valid, so the Lease is not given back early.
    if ended == Ended::Drained && done.send(()).is_ok() {
        lease.join_next().await;
    }
    Ok(())
}

/// One term after another until `shutdown`.
async fn terms(
    binder: Binder,
    mut claimed: watch::Receiver<Option<LeadershipClaim>>,
    shutdown: impl Future<Output = ()> + Clone,
) -> Result<Ended, ClusterError> {
    let mut pause = Duration::ZERO;
    loop {
        let called = async {
            tokio::time::sleep(pause).await;
            call(&mut claimed, shutdown.clone()).await
        };
        let (Some(LeadershipClaim { term, .. }), watching) = stand_by(&binder, called).await? else {
            return Ok(Ended::Drained);
        };
        // What was watched is not known to be new enough yet.
        binder.metrics.standby_synced(false);
        let fence = Fence::Claimed { claims: claimed.clone(), term };
        let beginning = tokio::select! {
            biased;
            () = fence.lost() => Beginning::afresh(&binder),
            () = shutdown.clone() => Beginning::afresh(&binder),
            beginning = takeover::begin(&binder, watching) => beginning,
        };
        let ended = Box::pin(event_loop::term(binder.clone(), beginning, fence, shutdown.clone())).await?;
        if ended != Ended::Lost {
            return Ok(ended);
        }
        // Requests that were under way when the claim was lost end before this replica lists, or lets another one lead.
        pause = send::REACH;
    }
}

/// The claim to lead, once there is one; `None` at the shutdown.
async fn call(
    claimed: &mut watch::Receiver<Option<LeadershipClaim>>,
    shutdown: impl Future<Output = ()>,
) -> Option<LeadershipClaim> {
    let claim = tokio::select! {
        biased;
        () = shutdown => return None,
        claim = claimed.wait_for(Option::is_some) => claim.ok().and_then(|claim| *claim),
    };
    match claim {
        Some(claim) => Some(claim),
        // The task that joins the candidate reports a panic.
        None => std::future::pending().await,
    }
}
