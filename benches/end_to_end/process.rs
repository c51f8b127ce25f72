//! What processes use of the machine, as `/proc` tells.

use std::{collections::BTreeMap, path::Path, time::Duration};

use anyhow::{Context as _, bail};

/// Clock ticks in a second: fixed for user space on Linux.
const TICKS: u64 = 100;

/// What the machine does beside: a figure that was taken while it did much is worth little.
const OTHERS: &str = "others";

/// Memory of a process in KiB.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct Memory {
    /// Resident now.
    pub(crate) rss_kib: u64,
    /// The most that was resident.
    pub(crate) peak_kib: u64,
}

/// The memory of a process.
pub(crate) fn memory(pid: u32) -> anyhow::Result<Memory> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim_start_matches(':').trim().trim_end_matches(" kB").parse().ok()
    };
    let memory = || Some(Memory { rss_kib: field("VmRSS")?, peak_kib: field("VmHWM")? });
    memory().with_context(|| format!("{path} tells no memory"))
}

/// Processor time so far: of this process (agents, load and observer), of each child, and of everybody else on this machine.
pub(crate) fn times() -> anyhow::Result<BTreeMap<String, Duration>> {
    let own = std::process::id();
    let mut times = BTreeMap::new();
    for entry in std::fs::read_dir("/proc").context("/proc")? {
        let path = entry.context("/proc")?.path();
        let Some(stat) = std::fs::read_to_string(path.join("stat")).ok() else { continue };
        let Some((parent, used)) = read(&stat) else { continue };
        let is_own = path.file_name().is_some_and(|name| name.to_str() == Some(&own.to_string()));
        if is_own {
            times.insert("agents and load".to_owned(), used);
        } else if parent == own {
            times.insert(name(&path), used);
        }
    }
    let ours: Duration = times.values().sum();
    times.insert(OTHERS.to_owned(), busy()?.saturating_sub(ours));
    Ok(times)
}

/// Processor time of the whole machine since it was started, idle and waiting time aside.
fn busy() -> anyhow::Result<Duration> {
    let stat = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let line = stat.lines().next().and_then(|line| line.strip_prefix("cpu ")).context("/proc/stat")?;
    let fields: Vec<u64> = line.split_whitespace().filter_map(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _wait, interrupts, soft_interrupts, ..] = fields[..] else {
        bail!("/proc/stat begins with `{line}`");
    };
    let ticks = user + nice + system + interrupts + soft_interrupts;
    Ok(Duration::from_millis(ticks * 1000 / TICKS))
}

/// Parent and processor time; the command's name, in brackets, may hold anything.
fn read(stat: &str) -> Option<(u32, Duration)> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
    let used = Duration::from_millis((number(11)? + number(12)?) * 1000 / TICKS);
    Some((fields.get(1)?.parse().ok()?, used))
}

fn name(process: &Path) -> String {
    let line = std::fs::read_to_string(process.join("cmdline")).unwrap_or_default();
    let known = ["etcd", "kube-apiserver", "kube-scheduler", "binder"];
    let own = line.split('\0').take(2).filter_map(|part| part.rsplit('/').next());
    own.filter(|part| known.contains(part)).last().unwrap_or("other").to_owned()
}
