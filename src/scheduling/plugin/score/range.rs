//! From what to what scores go, and how they are rounded.

/// The highest score that a plugin gives a node.
pub(in crate::scheduling) const MOST: i64 = 100;

#[expect(clippy::cast_precision_loss, reason = "amounts and scores are far below 2^52, or compared roughly")]
#[inline]
pub(in crate::scheduling) fn float(whole: i64) -> f64 {
    whole as f64
}

/// Makes of each of these scores what `normalised` says. Those of neighbouring slots are often equal, and a division takes longer than to see that.
pub(in crate::scheduling) fn for_each_different(scores: &mut [i64], normalised: impl Fn(i64) -> i64) {
    let mut known: Option<(i64, i64)> = None;
    for score in scores {
        let (_, made) = match known {
            Some(known) if known.0 == *score => known,
            _ => *known.insert((*score, normalised(*score))),
        };
        *score = made;
    }
}

/// The whole part.
#[expect(clippy::cast_possible_truncation, reason = "scores are far below 2^52")]
#[inline]
pub(in crate::scheduling) fn whole(score: f64) -> i64 {
    score as i64
}
