//! The templates by which Ascend's driver cuts a card 910B3.

/// One size that the driver cuts a card 910B3 into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    pub(super) name: &'static str,
    pub(super) memory: u64,
}

const SIZES: [Size; 2] =
    [Size { name: "vir05_1c_16g", memory: 16_384 }, Size { name: "vir10_3c_32g", memory: 32_768 }];

/// The smallest size that holds so many MiB; none: a whole card.
pub(super) fn size(memory: u64) -> Option<Size> {
    SIZES.into_iter().find(|size| memory <= size.memory)
}
