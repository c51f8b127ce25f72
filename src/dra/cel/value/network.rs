//! Addresses and networks of the Internet Protocol, as Kubernetes reads them (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/ip.go` and
//! `cidr.go`): without a zone, and none of IPv4 that is written as one of IPv6.

use std::{
    any::Any,
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use cel::common::{
    types::Type,
    value::{StaticVal, Val},
};

use super::is_value;

/// An address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::dra::cel) struct CelAddress(pub(in crate::dra::cel) IpAddr);

/// An address and how many bits of it name its network.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::dra::cel) struct CelNetwork {
    address: IpAddr,
    bits: u8,
}

impl CelAddress {
    /// Reads an address; `None`: the text is none.
    pub(in crate::dra::cel) fn parse(text: &str) -> Option<Self> {
        let address: IpAddr = text.parse().ok()?;
        let is_mapped = matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some());
        (!is_mapped).then_some(Self(address))
    }

    /// 4 or 6.
    pub(in crate::dra::cel) fn family(self) -> i64 {
        if self.0.is_ipv4() { 4 } else { 6 }
    }

    /// Whether it is sent to a group of a link alone.
    pub(in crate::dra::cel) fn is_link_local_multicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => matches!(address.octets(), [224, 0, 0, _]),
            IpAddr::V6(address) => address.segments()[0] & 0xff0f == 0xff02,
        }
    }

    /// Whether it is known on a link alone.
    pub(in crate::dra::cel) fn is_link_local_unicast(self) -> bool {
        match self.0 {
            IpAddr::V4(address) => address.is_link_local(),
            IpAddr::V6(address) => address.segments()[0] & 0xffc0 == 0xfe80,
        }
    }

    /// Whether one host has it that others reach, be it in a private network.
    pub(in crate::dra::cel) fn is_global_unicast(self) -> bool {
        let address = self.0;
        address != IpAddr::V4(Ipv4Addr::BROADCAST)
            && !(address.is_unspecified() || address.is_loopback() || address.is_multicast())
            && !self.is_link_local_unicast()
    }
}

impl CelNetwork {
    /// Reads a network; `None`: the text is none.
    pub(in crate::dra::cel) fn parse(text: &str) -> Option<Self> {
        let (address, digits) = text.rsplit_once('/')?;
        let CelAddress(address) = CelAddress::parse(address)?;
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        if !is_number || digits.len() > 1 && digits.starts_with('0') {
            return None;
        }
        let bits: u8 = digits.parse().ok()?;
        (bits <= length(address)).then_some(Self { address, bits })
    }

    /// The address, with the bits that do not name the network.
    pub(in crate::dra::cel) fn address(self) -> CelAddress {
        CelAddress(self.address)
    }

    /// How many bits name the network.
    pub(in crate::dra::cel) fn prefix_length(self) -> u8 {
        self.bits
    }

    /// The network, with all other bits 0.
    pub(in crate::dra::cel) fn masked(self) -> Self {
        Self { address: prefix(self.address, self.bits), ..self }
    }

    /// Whether an address is in the network.
    pub(in crate::dra::cel) fn contains(self, CelAddress(address): CelAddress) -> bool {
        address.is_ipv4() == self.address.is_ipv4()
            && prefix(address, self.bits) == prefix(self.address, self.bits)
    }

    /// Whether all addresses of another network are in this one.
    pub(in crate::dra::cel) fn contains_network(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(other.address())
    }
}

fn length(address: IpAddr) -> u8 {
    if address.is_ipv4() { 32 } else { 128 }
}

/// An address with its first bits alone.
fn prefix(address: IpAddr, bits: u8) -> IpAddr {
    let bits = u32::from(bits);
    match address {
        IpAddr::V4(address) => {
            let mask = u32::MAX.checked_shl(32 - bits).unwrap_or(0);
            Ipv4Addr::from_bits(address.to_bits() & mask).into()
        }
        IpAddr::V6(address) => {
            let mask = u128::MAX.checked_shl(128 - bits).unwrap_or(0);
            Ipv6Addr::from_bits(address.to_bits() & mask).into()
        }
    }
}

impl fmt::Display for CelNetwork {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.address, self.bits)
    }
}

is_value!(CelAddress, "net.IP");
is_value!(CelNetwork, "net.CIDR");
