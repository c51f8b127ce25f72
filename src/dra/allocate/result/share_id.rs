//! The id of a share of a device.

use crate::dra::{WaitingClaim, device::DeviceId};

/// A UUID of version 8 (RFC 9562) made of the claim, the place among its devices, and the device: no two shares that exist at one time
/// have the same, and the same decision has the same id however often it is made. Upstream draws a random one.
pub(super) fn of(claim: &WaitingClaim, number: usize, device: &DeviceId) -> String {
    let text = format!("{}\n{}\n{number}\n{device}", claim.name, claim.uid);
    let hash = hash(text.as_bytes());
    let hash = hash & !(0xf << 76) | 0x8 << 76;
    let hash = hash & !(0x3 << 62) | 0x2 << 62;
    let digits = format!("{hash:032x}");
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// FNV-1a with 128 bits (RFC 9923).
fn hash(bytes: &[u8]) -> u128 {
    const BASIS: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    bytes.iter().fold(BASIS, |hash, byte| (hash ^ u128::from(*byte)).wrapping_mul(PRIME))
}
