//! The users of each card, in order of uuid: a short list, since nodes have few cards and each node is folded anew after each change.

use super::{CardId, Users};

/// What is known of the users of each card; a card without users is absent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct UsersOfCards(Box<[(CardId, Users)]>);

impl UsersOfCards {
    /// Of cards in order of uuid, each once.
    pub(super) fn in_order(users: Vec<(CardId, Users)>) -> Self {
        debug_assert!(users.is_sorted_by(|(one, _), (other, _)| one < other));
        Self(users.into())
    }

    /// With these as well, in any order.
    #[must_use]
    pub(super) fn and(self, more: impl IntoIterator<Item = (CardId, Users)>) -> Self {
        let mut all = self.0.into_vec();
        let before = all.len();
        all.extend(more);
        if all.len() > before {
            all.sort_by(|(one, _), (other, _)| one.cmp(other));
            all.dedup_by(|(id, users), (kept, all)| {
                let is_same = id == kept;
                if is_same {
                    *all = std::mem::take(all).and(std::mem::take(users));
                }
                is_same
            });
        }
        Self(all.into())
    }

    /// With these users of cards of these names, whatever was known of them before.
    #[must_use]
    pub(super) fn replaced<'a>(self, names: impl Iterator<Item = &'a CardId>, users: &Users) -> Self {
        let mut all = self.0.into_vec();
        for name in names {
            match all.binary_search_by(|(id, _)| id.cmp(name)) {
                Ok(at) => all[at].1 = users.clone(),
                Err(at) => all.insert(at, (name.clone(), users.clone())),
            }
        }
        Self(all.into())
    }

    pub(super) fn for_each(&mut self, change: impl FnMut(&mut Users)) {
        self.0.iter_mut().map(|(_, users)| users).for_each(change);
    }

    pub(super) fn get(&self, uuid: &str) -> Option<&Users> {
        let at = self.0.binary_search_by(|(id, _)| id.as_str().cmp(uuid)).ok()?;
        Some(&self.0[at].1)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &(CardId, Users)> {
        self.0.iter()
    }
}

impl IntoIterator for UsersOfCards {
    type Item = (CardId, Users);
    type IntoIter = std::vec::IntoIter<(CardId, Users)>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_vec().into_iter()
    }
}
