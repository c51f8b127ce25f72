//! The fence around the writes of a term: a write that could outlast the claim to lead is not sent, or is cut off.
//!
//! It does not know how the claim is made; it reads the claim that was published last.

use std::{future::poll_fn, pin::pin, task::Poll, time::Duration};

use tokio::{
    sync::watch,
    time::{Instant, sleep_until},
};

/// This process's claim to lead.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LeadershipClaim {
    /// The number of the term. A claim that was lost and won again begins another term.
    pub term: u64,
    /// Until this time no other replica can lead; counted from before the renewal was sent.
    pub expiry: Instant,
}

/// Keeps the writes of a term inside its claim.
#[derive(Clone, Debug)]
pub enum Fence {
    /// There is no other replica, so the fence is always open.
    Alone,
    /// Writes go out only while the claim of this term outlasts them.
    Claimed {
        /// The newest claim.
        claims: watch::Receiver<Option<LeadershipClaim>>,
        /// The term.
        term: u64,
    },
}

impl Fence {
    /// Sends a write that can take effect for at most `reach` after it was sent. It waits while the claim is shorter than that.
    /// `None`: the claim became too short, and the write was cut off; it can still take effect until `reach` has passed.
    pub async fn within<T>(&self, reach: Duration, write: impl Future<Output = T>) -> Option<T> {
        self.until(|| self.outlasts(reach), Duration::ZERO).await;
        let mut write = pin!(write);
        // The clock itself is asked each time, since a timer can be late.
        let write = poll_fn(
            |context| {
                if self.outlasts(reach) { write.as_mut().poll(context) } else { Poll::Pending }
            },
        );
        let cut = tokio::select! {
            biased;
            () = self.until(|| !self.outlasts(reach), reach) => None,
            answer = write => Some(answer),
        };
        if cut.is_none() {
            tokio::time::sleep(reach).await;
        }
        cut
    }

    /// Returns when the term is over.
    pub async fn lost(&self) {
        self.until(|| !self.outlasts(Duration::ZERO), Duration::ZERO).await;
    }

    /// Whether the claim lasts for longer than this from now on.
    fn outlasts(&self, reach: Duration) -> bool {
        match self {
            Self::Alone => true,
            Self::Claimed { .. } => self.expiry().is_some_and(|expiry| Instant::now() + reach < expiry),
        }
    }

    fn expiry(&self) -> Option<Instant> {
        match self {
            Self::Alone => None,
            Self::Claimed { claims, term } => {
                claims.borrow().filter(|claim| claim.term == *term).map(|claim| claim.expiry)
            }
        }
    }

    /// Returns when the condition is met, which can change with each new claim and `ahead` of a claim's end.
    async fn until(&self, met: impl Fn() -> bool, ahead: Duration) {
        let mut claims = match self {
            Self::Alone => None,
            Self::Claimed { claims, .. } => Some(claims.clone()),
        };
        loop {
            if let Some(claims) = &mut claims {
                claims.mark_unchanged();
            }
            if met() {
                return;
            }
            let edge = self.expiry().and_then(|expiry| expiry.checked_sub(ahead));
            tokio::select! {
                biased;
                () = changed(claims.as_mut()) => {}
                () = reached(edge) => {}
            }
        }
    }
}

/// Returns at the next claim; never, when there will be none.
async fn changed(claims: Option<&mut watch::Receiver<Option<LeadershipClaim>>>) {
    if let Some(claims) = claims
        && claims.changed().await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}

async fn reached(edge: Option<Instant>) {
    match edge {
        // An edge that has passed can't be waited for again.
        Some(edge) if edge > Instant::now() => sleep_until(edge).await,
        _ => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicBool, Ordering};

    use crate::cluster::write::send::REACH;

    fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn claim(term: u64, lasts: u64) -> LeadershipClaim {
        LeadershipClaim { term, expiry: Instant::now() + seconds(lasts) }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_that_fits_is_answered() {
        let (_claims, seen) = watch::channel(Some(claim(1, 15)));
        let fence = Fence::Claimed { claims: seen, term: 1 };
        let write = tokio::time::sleep(seconds(8));
        assert_eq!(fence.within(REACH, write).await, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_is_cut_off_where_its_claim_no_longer_outlasts_it() {
        let (_claims, seen) = watch::channel(Some(claim(1, 15)));
        let fence = Fence::Claimed { claims: seen, term: 1 };
        let began = Instant::now();
        assert_eq!(fence.within(REACH, std::future::pending::<()>()).await, None);
        assert_eq!(began.elapsed().as_secs(), 9 + 6, "cut off after 9 s, then nothing for the reach");
    }

    #[tokio::test(start_paused = true)]
    async fn a_renewal_carries_a_write_on() {
        let (claims, seen) = watch::channel(Some(claim(1, 15)));
        let fence = Fence::Claimed { claims: seen, term: 1 };
        let renew = async {
            tokio::time::sleep(seconds(8)).await;
            claims.send_replace(Some(claim(1, 15)));
            std::future::pending::<()>().await;
        };
        tokio::select! {
            answer = fence.within(REACH, tokio::time::sleep(seconds(12))) => assert_eq!(answer, Some(())),
            () = renew => {}
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_write_waits_for_a_claim_that_outlasts_it() {
        let (claims, seen) = watch::channel(Some(claim(1, 5)));
        let fence = Fence::Claimed { claims: seen, term: 1 };
        let sent = AtomicBool::new(false);
        let write = async { sent.store(true, Ordering::Relaxed) };
        let mut within = pin!(fence.within(REACH, write));
        assert!(tokio::time::timeout(seconds(4), &mut within).await.is_err());
        assert!(!sent.load(Ordering::Relaxed));
        claims.send_replace(Some(claim(1, 15)));
        assert_eq!(within.await, Some(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_claim_won_again_is_not_the_one_that_was_lost() {
        let (claims, seen) = watch::channel(Some(claim(1, 15)));
        let fence = Fence::Claimed { claims: seen, term: 1 };
        claims.send_replace(None);
        claims.send_replace(Some(claim(2, 15)));
        fence.lost().await;
        let waits = tokio::time::timeout(seconds(60), fence.within(REACH, async {}));
        assert!(waits.await.is_err(), "a write of the lost term is never sent");
    }

    #[tokio::test(start_paused = true)]
    async fn a_term_ends_with_its_claim_though_nobody_says_so() {
        let (claims, seen) = watch::channel(Some(claim(1, 15)));
        drop(claims);
        let began = Instant::now();
        Fence::Claimed { claims: seen, term: 1 }.lost().await;
        assert_eq!(began.elapsed().as_secs(), 15);
    }
}
