//! Functions of addresses and networks (kubernetes `staging/src/k8s.io/apiserver/pkg/cel/library/ip.go` and `cidr.go`).

use cel::{
    DeclarationError, Env, ExecutionError, add_member_overload, add_overload,
    common::types::{CelBool, CelInt, CelString},
};

use super::unreadable;
use crate::dra::cel::value::{CelAddress, CelNetwork};

pub(super) fn extension(env: &mut Env) -> Result<(), DeclarationError> {
    add_overload!(env, fn ip: (CelString) -> Result<CelAddress>)?;
    add_overload!(env, fn is_ip: (CelString) -> CelBool, name = "isIP")?;
    add_overload!(env, fn is_canonical: (CelString) -> Result<CelBool>, name = "ip.isCanonical")?;
    add_member_overload!(env, fn family: (CelAddress) -> CelInt)?;
    add_member_overload!(env, fn is_unspecified: (CelAddress) -> CelBool)?;
    add_member_overload!(env, fn is_loopback: (CelAddress) -> CelBool)?;
    add_member_overload!(env, fn is_link_local_multicast: (CelAddress) -> CelBool)?;
    add_member_overload!(env, fn is_link_local_unicast: (CelAddress) -> CelBool)?;
    add_member_overload!(env, fn is_global_unicast: (CelAddress) -> CelBool)?;
    add_overload!(env, fn cidr: (CelString) -> Result<CelNetwork>)?;
    add_overload!(env, fn is_cidr: (CelString) -> CelBool, name = "isCIDR")?;
    add_member_overload!(env, fn contains_address: (CelNetwork, CelAddress) -> CelBool, name = "containsIP")?;
    add_member_overload!(env, fn contains_written_address: (CelNetwork, CelString) -> Result<CelBool>,
        name = "containsIP")?;
    add_member_overload!(env, fn contains_network: (CelNetwork, CelNetwork) -> CelBool, name = "containsCIDR")?;
    add_member_overload!(env, fn contains_written_network: (CelNetwork, CelString) -> Result<CelBool>,
        name = "containsCIDR")?;
    add_member_overload!(env, fn address: (CelNetwork) -> CelAddress, name = "ip")?;
    add_member_overload!(env, fn prefix_length: (CelNetwork) -> CelInt)?;
    add_member_overload!(env, fn masked: (CelNetwork) -> CelNetwork)
}

fn ip(text: &CelString<'_>) -> Result<CelAddress, ExecutionError> {
    CelAddress::parse(text.inner()).ok_or_else(|| unreadable("ip", "the text is no IP address"))
}

fn is_ip(text: &CelString<'_>) -> CelBool {
    CelAddress::parse(text.inner()).is_some().into()
}

fn is_canonical(text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok((ip(text)?.0.to_string() == text.inner()).into())
}

fn family(this: &CelAddress) -> CelInt {
    CelAddress::family(*this).into()
}

fn is_unspecified(this: &CelAddress) -> CelBool {
    this.0.is_unspecified().into()
}

fn is_loopback(this: &CelAddress) -> CelBool {
    this.0.is_loopback().into()
}

fn is_link_local_multicast(this: &CelAddress) -> CelBool {
    CelAddress::is_link_local_multicast(*this).into()
}

fn is_link_local_unicast(this: &CelAddress) -> CelBool {
    CelAddress::is_link_local_unicast(*this).into()
}

fn is_global_unicast(this: &CelAddress) -> CelBool {
    CelAddress::is_global_unicast(*this).into()
}

fn cidr(text: &CelString<'_>) -> Result<CelNetwork, ExecutionError> {
    CelNetwork::parse(text.inner()).ok_or_else(|| unreadable("cidr", "the text is no CIDR block"))
}

fn is_cidr(text: &CelString<'_>) -> CelBool {
    CelNetwork::parse(text.inner()).is_some().into()
}

fn contains_address(this: &CelNetwork, address: &CelAddress) -> CelBool {
    this.contains(*address).into()
}

fn contains_written_address(this: &CelNetwork, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(this.contains(ip(text)?).into())
}

fn contains_network(this: &CelNetwork, other: &CelNetwork) -> CelBool {
    CelNetwork::contains_network(*this, *other).into()
}

fn contains_written_network(this: &CelNetwork, text: &CelString<'_>) -> Result<CelBool, ExecutionError> {
    Ok(CelNetwork::contains_network(*this, cidr(text)?).into())
}

fn address(this: &CelNetwork) -> CelAddress {
    CelNetwork::address(*this)
}

fn prefix_length(this: &CelNetwork) -> CelInt {
    i64::from(CelNetwork::prefix_length(*this)).into()
}

fn masked(this: &CelNetwork) -> CelNetwork {
    CelNetwork::masked(*this)
}
