//! Maps and sets in order of their keys, of which a copy takes no time: it shares all with the original but the way to what changes in one of them.
//!
//! What is published of the cluster is such a copy. With other maps, the first change after that would copy every claim of the cluster.

/// A map of which a copy takes no time.
pub type PersistentMap<K, V> = rpds::RedBlackTreeMapSync<K, V>;

/// A set of which a copy takes no time.
pub type PersistentSet<K> = rpds::RedBlackTreeSetSync<K>;

/// The value of this key, which is the default where there was none.
pub fn value_of<'m, K, V>(map: &'m mut PersistentMap<K, V>, key: &K) -> &'m mut V
where
    K: Clone + Ord,
    V: Clone + Default,
{
    if !map.contains_key(key) {
        map.insert_mut(key.clone(), V::default());
    }
    map.get_mut(key).expect("it was just inserted")
}
