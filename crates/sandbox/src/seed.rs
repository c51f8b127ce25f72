//! Where names and uids come from: a seeded sequence (SplitMix64), never the machine's randomness.

/// The characters of generated names (those of Kubernetes, which spell no words).
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

/// A deterministic sequence of numbers.
#[derive(Debug)]
pub(super) struct Sequence(u64);

impl Sequence {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// A version 4 UUID.
    pub(super) fn uid(&mut self) -> String {
        let bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        let bits = (bits & !(0xF << 76) & !(0b11 << 62)) | (0x4 << 76) | (0b10 << 62);
        let hex = format!("{bits:032x}");
        format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }

    /// The five characters that follow `metadata.generateName`.
    pub(super) fn suffix(&mut self) -> String {
        let mut bits = self.next();
        let mut suffix = String::new();
        let count = SUFFIX.len() as u64;
        for _ in 0..5 {
            let index = usize::try_from(bits % count).expect("an index below 27 fits");
            suffix.push(char::from(SUFFIX[index]));
            bits /= count;
        }
        suffix
    }
}

#[cfg(test)]
mod tests {
    use super::Sequence;

    #[test]
    fn uids_are_version_4_and_follow_the_seed() {
        let uid = Sequence::new(7).uid();
        assert_eq!(uid, Sequence::new(7).uid());
        assert_ne!(uid, Sequence::new(8).uid());
        assert_eq!((uid.len(), &uid[14..15]), (36, "4"));
        assert!("89ab".contains(&uid[19..20]), "{uid}");
    }
}
