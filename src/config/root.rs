//! The keys at the root of the file, and what must hold between its sections.

use std::collections::BTreeMap;

use super::{
    AdmissionScope, Config, DialectsConfig, Notice, Protection, UnmanagedPods, guards, hami, koordinator,
    messages, metrics, scheduling,
    section::{Field, Section},
    trouble::Trouble,
    volcano, workloads,
};
use crate::object::pod::DEFAULT_SCHEDULER;

/// Where Kubernetes' own programs run: who creates pods there can do anything in the cluster already.
const KUBE_SYSTEM: &str = "kube-system";

/// The settings of a file, and what of them has no effect.
pub(super) fn read(file: &Field, notices: &mut Vec<Notice>) -> Result<Config, Trouble> {
    let mut root = Section::of(file)?;
    let scheduler_name = match root.take("schedulerName") {
        Some(field) => own_name(&field)?,
        None => "berth".to_owned(),
    };
    let scope = root.choice(
        "scope",
        AdmissionScope::OptIn,
        &[("opt-in", AdmissionScope::OptIn), ("opt-out", AdmissionScope::OptOut)],
    )?;
    let adopt_schedulers = match root.take("adoptSchedulers") {
        Some(field) => field.list()?.iter().map(dns_name).collect::<Result<Vec<_>, _>>()?,
        None => Vec::new(),
    };
    let scheduler_namespaces = match root.take("schedulerNamespaces") {
        Some(field) => field.list()?.iter().map(namespace).collect::<Result<Vec<_>, _>>()?,
        None => vec![KUBE_SYSTEM.to_owned()],
    };
    let choices =
        [("warn", UnmanagedPods::Warn), ("deny", UnmanagedPods::Deny), ("allow", UnmanagedPods::Allow)];
    let unmanaged_pods = root.choice("unmanagedPods", UnmanagedPods::Warn, &choices)?;
    let modes = [("auto", Protection::Auto), ("warn", Protection::Warn), ("deny", Protection::Deny)];
    let protection = root.choice("protection", Protection::Auto, &modes)?;
    let guards = guards::read(root.section("guards")?)?;
    let scheduling = scheduling::read(root.section("scheduling")?)?;
    let workloads = workloads::read(root.take("workloads"))?;
    let metrics = metrics::read(root.section("metrics")?)?;
    let messages = messages::read(root.section("messages")?)?;
    let mut dialects = root.section("dialects")?;
    let config = DialectsConfig {
        hami: hami::read(dialects.section("hami")?, notices)?,
        volcano: volcano::read(dialects.section("volcano")?, notices)?,
        koordinator: koordinator::read(dialects.section("koordinator")?)?,
    };
    dialects.finish()?;
    root.none_of(&hami::SECTIONS, "a section of HAMi's file, which belongs below `dialects.hami`")?;
    root.finish()?;
    let config = Config {
        scheduler_name,
        scope,
        adopt_schedulers,
        scheduler_namespaces,
        unmanaged_pods,
        protection,
        guards,
        scheduling,
        workloads,
        metrics,
        messages,
        dialects: config,
    };
    each_resource_is_of_one_mode(&config, file)?;
    Ok(config)
}

/// Checks that each resource belongs to one mode, since the resources of a pod tell its mode; of whole cards that are Koordinator's too, the pod's
/// other resources do.
fn each_resource_is_of_one_mode(config: &Config, file: &Field) -> Result<(), Trouble> {
    let dialects = config.dialects();
    let mut modes = BTreeMap::new();
    for dialect in dialects.iter() {
        let whole = dialect.whole_cards();
        for name in dialect.resources().into_iter().filter(|name| !whole.contains(name)) {
            let other = modes.insert(name, dialect.mode()).filter(|other| *other != dialect.mode());
            if let Some(other) = other {
                let message = format!("`{name}` would be a resource of both {other} and {}", dialect.mode());
                return Err(file.saying(name).unwrap_or_else(|| file.clone()).trouble(message));
            }
        }
    }
    Ok(())
}

/// The name of Berth itself, which pods that name no scheduler must not get from the API server.
fn own_name(field: &Field) -> Result<String, Trouble> {
    match dns_name(field)?.as_str() {
        DEFAULT_SCHEDULER => Err(field.trouble(format!(
            "`{DEFAULT_SCHEDULER}` is kube-scheduler's, whose pods Berth can't serve all; choose another name"
        ))),
        name => Ok(name.to_owned()),
    }
}

/// A scheduler's name. The API server does not check `spec.schedulerName`, but it does check the names of Leases and the reporters of Events.
fn dns_name(field: &Field) -> Result<String, Trouble> {
    dns_text(field, "a scheduler's name")
}

fn namespace(field: &Field) -> Result<String, Trouble> {
    dns_text(field, "a namespace's name")
}

fn dns_text(field: &Field, what: &str) -> Result<String, Trouble> {
    let text = field.text()?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
    let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    if text.chars().all(fits) && text.starts_with(ends) && text.ends_with(ends) && text.len() <= 253 {
        return Ok(text);
    }
    Err(field.trouble(format!("`{text}` is not {what}: lower case letters, digits, `-` and `.`")))
}
