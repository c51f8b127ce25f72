//! The limit on connections, and the choice of the one that is closed when there is no place for the next.
//!
//! It knows neither TLS nor HTTP: a connection reports when a request is under way on it, and ends when its place is wanted.

use std::{
    collections::BTreeMap,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout},
};

/// If every connection has a request under way, the search for an idle one is repeated after this time.
const PAUSE: Duration = Duration::from_millis(100);

/// The places of a server.
#[derive(Debug)]
pub(super) struct ConnectionPlaces {
    free: Arc<Semaphore>,
    /// A connection without a request for this time may be closed.
    idle: Duration,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    seats: BTreeMap<u64, Seat>,
}

#[derive(Debug)]
struct Seat {
    peer: IpAddr,
    asked: usize,
    since: Instant,
    leave: Arc<Notify>,
}

/// The place of one connection; dropping it frees the place.
#[derive(Debug)]
pub(super) struct ConnectionPlace {
    number: u64,
    leave: Arc<Notify>,
    taken: Arc<Mutex<Taken>>,
    _permit: OwnedSemaphorePermit,
}

/// A request that is under way on a connection: while it exists, the connection is not closed for another.
#[derive(Debug)]
pub(super) struct OpenRequest(Arc<ConnectionPlace>);

impl ConnectionPlaces {
    pub(super) fn new(connections: usize, idle: Duration) -> Self {
        Self { free: Arc::new(Semaphore::new(connections)), idle, taken: Arc::default() }
    }

    /// Waits for a place for a connection of this peer. If none is free, an idle connection is closed: of the peer with the most
    /// connections, the one that has been idle for the longest time.
    pub(super) async fn take(&self, peer: IpAddr) -> Arc<ConnectionPlace> {
        let permit = loop {
            if self.free.available_permits() == 0 {
                lock(&self.taken).send_away(self.idle);
            }
            if let Ok(permit) = timeout(PAUSE, Arc::clone(&self.free).acquire_owned()).await {
                break permit.expect("the semaphore is never closed");
            }
        };
        let leave = Arc::new(Notify::new());
        let seat = Seat { peer, asked: 0, since: Instant::now(), leave: Arc::clone(&leave) };
        let number = lock(&self.taken).seat(seat);
        Arc::new(ConnectionPlace { number, leave, taken: Arc::clone(&self.taken), _permit: permit })
    }
}

impl Taken {
    fn seat(&mut self, seat: Seat) -> u64 {
        self.next += 1;
        self.seats.insert(self.next, seat);
        self.next
    }

    fn send_away(&self, idle: Duration) {
        let mut held: BTreeMap<IpAddr, usize> = BTreeMap::new();
        for seat in self.seats.values() {
            *held.entry(seat.peer).or_default() += 1;
        }
        let idle = self.seats.values().filter(|seat| seat.asked == 0 && seat.since.elapsed() >= idle);
        if let Some(seat) = idle.max_by_key(|seat| (held[&seat.peer], seat.since.elapsed())) {
            seat.leave.notify_one();
        }
    }

    fn asked(&mut self, number: u64, change: impl FnOnce(usize) -> usize) {
        if let Some(seat) = self.seats.get_mut(&number) {
            seat.asked = change(seat.asked);
            seat.since = Instant::now();
        }
    }
}

impl ConnectionPlace {
    /// Marks the connection as busy until the returned value is dropped.
    pub(super) fn ask(self: &Arc<Self>) -> OpenRequest {
        lock(&self.taken).asked(self.number, |asked| asked + 1);
        OpenRequest(Arc::clone(self))
    }

    /// Returns when the connection must be closed to make room for another.
    pub(super) async fn wanted(&self) {
        self.leave.notified().await;
    }
}

impl Drop for ConnectionPlace {
    fn drop(&mut self) {
        lock(&self.taken).seats.remove(&self.number);
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        lock(&self.0.taken).asked(self.0.number, |asked| asked.saturating_sub(1));
    }
}

/// The lock; it is never poisoned, since no code panics while it is held.
fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));
    const OTHER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2));

    fn is_wanted(place: &ConnectionPlace) -> bool {
        use futures::FutureExt as _;
        place.wanted().now_or_never().is_some()
    }

    #[tokio::test(start_paused = true)]
    async fn the_longest_idle_connection_of_the_peer_that_has_most_gives_way() {
        let places = ConnectionPlaces::new(4, Duration::from_secs(1));
        let lonely = places.take(ONE).await;
        let mut held = Vec::new();
        for _ in 0..3 {
            tokio::time::advance(Duration::from_secs(1)).await;
            held.push(places.take(OTHER).await);
        }
        let asked = held[0].ask();
        tokio::time::advance(Duration::from_secs(1)).await;
        let next = tokio::select! {
            _ = places.take(ONE) => panic!("nobody has gone yet"),
            () = held[1].wanted() => 1,
        };
        assert!(!is_wanted(&lonely) && !is_wanted(&held[0]) && !is_wanted(&held[2]));
        drop(held.remove(next));
        drop(asked);
        places.take(ONE).await;
    }

    #[tokio::test(start_paused = true)]
    async fn who_has_just_come_or_is_being_answered_stays() {
        let places = ConnectionPlaces::new(2, Duration::from_secs(10));
        let (busy, fresh) = (places.take(ONE).await, places.take(ONE).await);
        let asked = busy.ask();
        let waited = timeout(Duration::from_secs(9), places.take(ONE)).await;
        assert!(waited.is_err() && !is_wanted(&busy) && !is_wanted(&fresh));
        let came = tokio::select! {
            _ = places.take(ONE) => panic!("nobody has gone yet"),
            () = fresh.wanted() => Instant::now(),
        };
        assert!(came.elapsed() < PAUSE && !is_wanted(&busy));
        drop((asked, fresh));
        places.take(ONE).await;
    }
}
