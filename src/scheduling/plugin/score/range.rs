//! From what to what scores go, and how they are rounded.

/// The highest score that a plugin gives a node.
pub(in crate::scheduling) const MOST: i64 = 100;

#[expect(clippy::cast_precision_loss, reason = "amounts and scores are far below 2^52, or compared roughly")]
#[inline]
pub(in crate::scheduling) fn float(whole: i64) -> f64 {
    whole as f64
}

/// So many different scores are known at once, each in the place that its lowest bits name.
const KNOWN: usize = 64;

/// Makes of each of these scores what `normalised` says. There are few different ones, and a division takes longer than to look one up.
pub(in crate::scheduling) fn for_each_different(scores: &mut [i64], normalised: impl Fn(i64) -> i64) {
    let Some(first) = scores.first() else { return };
    let mut known = [(*first, normalised(*first)); KNOWN];
    for score in scores {
        let known = &mut known[usize::from(score.to_le_bytes()[0]) % KNOWN];
        if known.0 != *score {
            *known = (*score, normalised(*score));
        }
        *score = known.1;
    }
}

/// The whole part.
#[expect(clippy::cast_possible_truncation, reason = "scores are far below 2^52")]
#[inline]
pub(in crate::scheduling) fn whole(score: f64) -> i64 {
    score as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn scores_with_equal_last_bits_are_told_apart(
            scores in prop::collection::vec(prop_oneof![-3_i64..3, (0_i64..4).prop_map(|times| times * 64), any::<i64>()], 0..200),
        ) {
            let normalised = |score: i64| score / 3 - 1;
            let mut made = scores.clone();
            for_each_different(&mut made, normalised);
            prop_assert_eq!(made, scores.into_iter().map(normalised).collect::<Vec<_>>());
        }
    }
}
