//! Capacities, and how much a request takes of one that is shared (KEP-5075, consumable capacity).

use crate::object::{
    Amount, Quantity,
    resource_slice::{CapacityRange, CapacityRequestPolicy, DeviceCapacity},
};

/// A capacity of a device.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Capacity {
    /// How much there is.
    pub value: WrittenAmount,
    policy: Option<CapacityPolicy>,
}

/// An amount, and how it is written.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct WrittenAmount {
    /// The amount.
    pub amount: Amount,
    /// How it is written.
    pub quantity: Quantity,
}

#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct CapacityPolicy {
    default: Option<WrittenAmount>,
    values: Option<Vec<WrittenAmount>>,
    range: Option<Range>,
}

#[derive(Clone, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
struct Range {
    min: Option<WrittenAmount>,
    max: Option<WrittenAmount>,
    step: Option<WrittenAmount>,
}

impl WrittenAmount {
    /// Reads a quantity; the error says what is wrong.
    pub fn read(quantity: &Quantity) -> Result<Self, String> {
        let amount = quantity.amount().map_err(|error| error.to_string())?;
        Ok(Self { amount, quantity: quantity.clone() })
    }
}

fn optional(quantity: Option<&Quantity>) -> Result<Option<WrittenAmount>, String> {
    quantity.map(WrittenAmount::read).transpose()
}

impl Capacity {
    /// Reads a capacity; the error says what is wrong.
    pub fn read(capacity: &DeviceCapacity) -> Result<Self, String> {
        let policy = capacity.request_policy.as_ref().map(CapacityPolicy::read).transpose()?;
        Ok(Self { value: WrittenAmount::read(&capacity.value)?, policy })
    }

    /// What a request takes: the amount that it names, rounded up to one that the policy allows. Without an amount it is the policy's
    /// default, or all there is.
    pub fn taken(&self, requested: Option<&WrittenAmount>) -> WrittenAmount {
        let policy = self.policy.as_ref();
        let Some(requested) = requested else {
            return policy.and_then(|policy| policy.default.clone()).unwrap_or_else(|| self.value.clone());
        };
        match policy {
            Some(CapacityPolicy { range: Some(Range { min: Some(min), step, .. }), .. }) => {
                rounded_up(requested, min, step.as_ref())
            }
            Some(CapacityPolicy { values: Some(values), .. }) => {
                let next = values.iter().find(|value| value.amount >= requested.amount);
                next.unwrap_or(requested).clone()
            }
            _ => requested.clone(),
        }
    }

    /// Whether the policy refuses the amount. The default is never refused.
    pub fn refuses(&self, amount: Amount) -> bool {
        let Some(policy) = &self.policy else { return false };
        if policy.default.as_ref().is_some_and(|default| default.amount == amount) {
            return false;
        }
        match policy {
            CapacityPolicy { range: Some(range), .. } => range.refuses(amount),
            CapacityPolicy { values: Some(values), .. } => {
                !values.is_empty() && values.iter().all(|value| value.amount != amount)
            }
            _ => false,
        }
    }
}

impl CapacityPolicy {
    fn read(policy: &CapacityRequestPolicy) -> Result<Self, String> {
        let values = policy.valid_values.as_ref();
        Ok(Self {
            default: optional(policy.default.as_ref())?,
            values: values.map(|values| values.iter().map(WrittenAmount::read).collect()).transpose()?,
            range: policy.valid_range.as_ref().map(Range::read).transpose()?,
        })
    }
}

impl Range {
    fn read(range: &CapacityRange) -> Result<Self, String> {
        let step = optional(range.step.as_ref())?;
        if step.as_ref().is_some_and(|step| step.amount <= Amount::default()) {
            return Err("a step must be more than 0".to_owned());
        }
        Ok(Self { min: optional(range.min.as_ref())?, max: optional(range.max.as_ref())?, step })
    }

    fn refuses(&self, amount: Amount) -> bool {
        let above = self.max.as_ref().is_some_and(|max| amount > max.amount);
        let off_step = self.step.as_ref().is_some_and(|step| {
            let min = self.min.as_ref().map(|min| min.amount).unwrap_or_default();
            amount.rounded_up(min, step.amount) != amount
        });
        above || off_step
    }
}

/// So much of so much, in percent, rounded up.
pub fn percent(part: i64, all: i64) -> u32 {
    let (part, all) = (i128::from(part.max(0)), i128::from(all.max(1)));
    let percent = part.saturating_mul(100) / all + i128::from(part.saturating_mul(100) % all != 0);
    u32::try_from(percent).unwrap_or(u32::MAX)
}

/// The least amount that is the minimum or some steps above it. Steps may be parts of a unit, as since 1.37 (`DRAFractionalCapacityRange`); 1.36 rounded
/// them up to whole units before.
fn rounded_up(requested: &WrittenAmount, min: &WrittenAmount, step: Option<&WrittenAmount>) -> WrittenAmount {
    if requested.amount < min.amount {
        return min.clone();
    }
    let Some(step) = step else { return requested.clone() };
    let amount = requested.amount.rounded_up(min.amount, step.amount);
    let quantity = if amount == requested.amount { requested.quantity.clone() } else { amount.exact() };
    WrittenAmount { amount, quantity }
}
