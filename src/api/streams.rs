//! How many streams are open, of all users and of each.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// So many are open at most: each holds a connection, and reviews need some.
const MOST: usize = 128;

/// So many of one user, so that nobody keeps others out.
const MOST_OF_USER: usize = 16;

/// The streams that are open, by user.
#[derive(Debug, Default)]
pub(super) struct Streams(Mutex<HashMap<String, usize>>);

/// The place of one stream; dropping it makes room for another.
#[derive(Debug)]
pub(super) struct StreamPlace {
    streams: Arc<Streams>,
    user: String,
}

impl Streams {
    /// A place for one more stream of the user; `None`: there is no room.
    pub(super) fn enter(self: &Arc<Self>, user: String) -> Option<StreamPlace> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = open.get(&user).copied().unwrap_or_default();
        if own >= MOST_OF_USER || open.values().sum::<usize>() >= MOST {
            return None;
        }
        open.insert(user.clone(), own + 1);
        Some(StreamPlace { streams: Arc::clone(self), user })
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(own) = open.get_mut(&self.user) {
            *own -= 1;
            if *own == 0 {
                open.remove(&self.user);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_takes_the_room_of_others_and_what_ends_leaves_room() {
        let streams = Arc::<Streams>::default();
        let mut places: Vec<_> =
            (0..MOST_OF_USER).map(|_| streams.enter("eve".to_owned()).unwrap()).collect();
        assert!(streams.enter("eve".to_owned()).is_none());
        let others = (MOST_OF_USER..MOST).map(|at| streams.enter(format!("user-{at}")).unwrap());
        places.extend(others);
        assert!(streams.enter("ada".to_owned()).is_none(), "there is no room for anybody");
        places.remove(0);
        assert!(streams.enter("ada".to_owned()).is_some());
        drop(places);
        assert!(streams.0.lock().unwrap().is_empty());
    }
}
