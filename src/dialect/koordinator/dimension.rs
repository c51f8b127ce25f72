//! Koordinator's resources as named dimensions: their units, and quantities as whole numbers of them.

use std::sync::Arc;

use super::names;
use crate::{
    device::{Amounts, CardDimensions, DeviceType, NamedDimension, Proportion, Unit},
    object::{Amount, Quantity, container::ResourceMap},
};

/// The dimension of a resource. A name that is not Koordinator's is counted.
pub fn dimension(resource: &str) -> NamedDimension {
    let unit = match resource {
        names::GPU_MEMORY => Unit::Bytes,
        names::GPU
        | names::GPU_CORE
        | names::GPU_MEMORY_RATIO
        | names::NPU_DVPP
        | names::RDMA
        | names::FPGA => Unit::Percent,
        _ => Unit::Count,
    };
    let known = names::known(resource);
    known.map_or_else(|| NamedDimension::new(resource, unit), |known| NamedDimension::known(known, unit))
}

/// What of a GPU is that of a card. Its memory is asked in bytes or in percent and always held in both.
pub fn card() -> CardDimensions {
    let memory =
        Proportion { amount: dimension(names::GPU_MEMORY), percent: dimension(names::GPU_MEMORY_RATIO) };
    CardDimensions { memory, cores: dimension(names::GPU_CORE) }
}

/// By which dimensions devices are compared: `pkg/scheduler/apis/config/v1/defaults.go`.
pub fn weights() -> Arc<[(NamedDimension, u64)]> {
    let counted = [names::GPU_MEMORY_RATIO, names::GPU_MEMORY, names::RDMA, names::FPGA];
    counted.into_iter().map(|name| (dimension(name), 1)).collect()
}

/// The type whose devices a resource asks for.
pub fn kind_of(resource: &str) -> Option<DeviceType> {
    match resource {
        names::RDMA => Some(DeviceType::Rdma),
        names::FPGA => Some(DeviceType::Fpga),
        _ => names::GPU_RESOURCES.contains(&resource).then_some(DeviceType::Gpu),
    }
}

/// The quantity as a whole number of units; an error says why it is none.
pub fn whole(quantity: &Quantity) -> Result<u64, String> {
    let amount = quantity.amount().map_err(|error| error.to_string())?;
    let whole = Amount::whole(amount).ok_or_else(|| format!("`{quantity}` is not a whole number"))?;
    u64::try_from(whole).map_err(|_| format!("`{quantity}` is negative"))
}

/// The amounts of a list of resources; an error names the resource and the reason.
pub fn amounts(resources: &ResourceMap) -> Result<Amounts, (String, String)> {
    let amount = |(name, quantity): (&String, &Quantity)| {
        let amount = whole(quantity).map_err(|reason| (name.clone(), reason))?;
        Ok((dimension(name), amount))
    };
    resources.iter().map(amount).collect()
}

/// An amount as a quantity: bytes in the largest binary unit that divides them, everything else in digits.
pub fn quantity(dimension: &NamedDimension, amount: u64) -> String {
    let mut rest = amount;
    let mut suffix = "";
    if dimension.unit() == Unit::Bytes {
        for larger in ["Ki", "Mi", "Gi", "Ti", "Pi"] {
            if rest == 0 || !rest.is_multiple_of(1024_u64) {
                break;
            }
            (rest, suffix) = (rest / 1024, larger);
        }
    }
    format!("{rest}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantity_is_written_so_that_it_reads_as_the_same_amount() {
        let bytes = dimension(names::GPU_MEMORY);
        for (amount, text) in
            [(0, "0"), (1, "1"), (16 << 30, "16Gi"), (83_201_216 << 10, "83201216Ki"), (1 << 60, "1024Pi")]
        {
            assert_eq!(quantity(&bytes, amount), text);
            assert_eq!(whole(&Quantity::from(text)), Ok(amount));
        }
        assert_eq!(quantity(&dimension(names::NPU_CORE), 1024), "1024");
    }

    #[test]
    fn what_is_no_whole_number_is_refused() {
        for text in ["0.5", "-1", "many", "1e30"] {
            assert!(whole(&Quantity::from(text)).is_err(), "{text}");
        }
    }
}
