//! The device strings of both plugins: which container gets how much of which card.
//!
//! It must not judge whether a share is right.

use std::fmt::Write as _;

/// A part of one card, given to one container.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Share {
    pub(super) uuid: String,
    /// The vendor's word.
    pub(super) kind: String,
    /// MiB.
    pub(crate) memory: i32,
    /// Percent.
    pub(crate) cores: i32,
}

/// The resource names by which containers ask a plugin for shares.
#[derive(Clone, Copy, Debug)]
pub(super) struct Names {
    /// How many cards, a share of each.
    pub(super) count: &'static str,
    /// MiB of each.
    pub(super) memory: &'static str,
    /// Percent of each card's memory, where it can be asked for so.
    pub(super) percentage: Option<&'static str>,
    /// Percent of each card's multiprocessors.
    pub(super) cores: &'static str,
}

impl Share {
    /// The uuid of the card, without the slice.
    pub(crate) fn card(&self) -> &str {
        self.uuid.split_once('[').map_or(&self.uuid, |(card, _)| card)
    }

    /// Group and number of a slice `<uuid>[<group>-<number>]`.
    pub(super) fn slice(&self) -> Option<(&str, u32)> {
        let (group, number) = self.uuid.split_once('[')?.1.strip_suffix(']')?.split_once('-')?;
        Some((group, number.parse().ok()?))
    }
}

/// One list of shares for each segment; a trailing separator gives one empty segment more.
pub(crate) fn decode(text: &str) -> Result<Vec<Vec<Share>>, String> {
    text.split(';').map(decode_segment).collect()
}

fn decode_segment(segment: &str) -> Result<Vec<Share>, String> {
    segment.split(':').filter(|device| device.contains(',')).map(decode_share).collect()
}

fn decode_share(device: &str) -> Result<Share, String> {
    let mut fields = device.split(',');
    let (Some(uuid), Some(kind), Some(memory), Some(cores)) =
        (fields.next(), fields.next(), fields.next(), fields.next())
    else {
        return Err(format!("`{device}` has fewer than four fields"));
    };
    let number = |text: &str| text.parse().map_err(|error| format!("`{text}` in `{device}`: {error}"));
    Ok(Share { uuid: uuid.to_owned(), kind: kind.to_owned(), memory: number(memory)?, cores: number(cores)? })
}

/// The shares of one segment, without a separator after it.
pub(super) fn encode_segment(shares: &[Share]) -> String {
    shares.iter().fold(String::new(), |mut text, Share { uuid, kind, memory, cores }| {
        write!(text, "{uuid},{kind},{memory},{cores}:").expect("a String takes any text");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_segments_keep_their_place() {
        let segments = decode(";GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:;;").unwrap();
        assert_eq!(segments.iter().map(Vec::len).collect::<Vec<_>>(), [0, 2, 0, 0]);
        assert_eq!(encode_segment(&segments[1]), "GPU-a,NVIDIA,3000,30:GPU-b,NVIDIA,3000,30:");
    }

    #[test]
    fn a_share_that_is_cut_off_is_an_error() {
        assert!(decode("GPU-a,NVIDIA,3000").is_err());
        assert!(decode("GPU-a,NVIDIA,x,0").is_err());
        assert!(decode("GPU-a,NVIDIA,2147483648,0").is_err());
    }
}
