//! One container's share of cards, in the terms of a dialect for count, memory, percentage of memory and compute.
//!
//! HAMi's and Volcano's vGPU requests differ in names and defaults alone. What can't be represented is an error that names the field.

use super::{
    amounts::ResourceReader,
    count,
    unreadable::{Problem, Unreadable},
};
use crate::device::{CoreRequest, Cores, MemoryRequest, MiB, Percent, ShareRequest};

/// By which names a share is requested, and what a container gets that does not say.
pub(super) struct Terms<'a> {
    /// The number of cards.
    pub(super) count: &'a str,
    /// Memory of each card, in units of `memory_factor` MiB.
    pub(super) memory: &'a str,
    /// Memory of each card, in percent.
    pub(super) memory_percentage: &'a str,
    /// Compute of each card, in percent.
    pub(super) cores: &'a str,
    /// MiB of one unit of memory; 0 counts as 1.
    pub(super) memory_factor: u32,
    /// The number of cards where none is stated; `None` or 0: there is no default.
    pub(super) default_count: Option<u32>,
    /// The memory where neither amount nor percentage is stated.
    pub(super) default_memory: MemoryRequest,
    /// The compute where none is stated.
    pub(super) default_cores: Cores,
}

impl Terms<'_> {
    /// What the container requests; `None`: no share.
    pub(super) fn read(&self, read: &ResourceReader<'_>) -> Result<Option<ShareRequest>, Unreadable> {
        let Terms { memory: by_amount, memory_percentage: by_percentage, memory_factor, .. } = *self;
        let memory = read.number(by_amount, "MiB", memory_factor)?;
        let percentage = read.percentage(by_percentage)?;
        let cores = read.percentage(self.cores)?;
        let shares = [by_amount, by_percentage, self.cores];
        let Some(cards) = count::cards(read, self.count, shares, self.default_count)? else {
            return Ok(None);
        };
        let amount = memory.filter(|&memory| memory > 0);
        let part = percentage.filter(|&part| part > 0);
        let memory = match (amount, part) {
            (Some(_), Some(_)) => {
                let message = format!("memory is given twice: `{by_amount}` and `{by_percentage}`");
                return Err(Unreadable::new(Problem::MemoryTwice, read.field(by_amount), message));
            }
            (Some(units), None) => {
                MemoryRequest::Exact(MiB::new(u64::from(units) * u64::from(memory_factor.max(1))))
            }
            (None, Some(part)) => MemoryRequest::Part(Percent::new(part)),
            (None, None) => self.default_memory,
        };
        let cores = CoreRequest::Exact(cores.map_or(self.default_cores, Cores::new));
        Ok(Some(ShareRequest { cards, memory, cores }))
    }
}
