//! The account as a ConfigMap holds it: one text of JSON that people can read too.

use std::sync::Arc;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::scheduling::showback::{HeldSeconds, UsageAccount, UsageRow, UsageRows};

/// The key of the ConfigMap.
pub(super) const KEY: &str = "account.json";

/// Why the text is no account.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoAccount {
    #[error("it has no key {KEY}")]
    Missing,
    #[error("{KEY}: {0}")]
    Text(#[from] serde_json::Error),
    #[error("{KEY}: {rows}[{at}] must be {names} name(s) and 4 numbers")]
    Row { rows: &'static str, at: usize, names: usize },
    #[error("{KEY}: countedUntil {0} is in the future")]
    Ahead(Timestamp),
}

/// The text. Each row has its names, MiB-seconds, percent-seconds of compute, milliseconds of GPUs, and when it last grew.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct AccountText {
    counted_until: Timestamp,
    namespaces: Vec<Vec<Value>>,
    workloads: Vec<Vec<Value>>,
    labels: Vec<Vec<Value>>,
    stranded: Vec<Vec<Value>>,
}

/// The text of an account.
pub(super) fn write(account: &UsageAccount) -> String {
    let text = AccountText {
        counted_until: account.counted_until,
        namespaces: texts(&account.namespaces),
        workloads: texts(&account.workloads),
        labels: texts(&account.labels),
        stranded: texts(&account.stranded),
    };
    serde_json::to_string(&text).expect("an account has string keys only")
}

/// The account of a text that was written before `latest`.
pub(super) fn read(text: Option<&str>, latest: Timestamp) -> Result<UsageAccount, NoAccount> {
    let text: AccountText = serde_json::from_str(text.ok_or(NoAccount::Missing)?)?;
    if text.counted_until > latest {
        return Err(NoAccount::Ahead(text.counted_until));
    }
    let mut account = UsageAccount::begin(text.counted_until);
    restore(&mut account.namespaces, "namespaces", &text.namespaces)?;
    restore(&mut account.workloads, "workloads", &text.workloads)?;
    restore(&mut account.labels, "labels", &text.labels)?;
    restore(&mut account.stranded, "stranded", &text.stranded)?;
    Ok(account)
}

fn texts<const N: usize>(rows: &UsageRows<N>) -> Vec<Vec<Value>> {
    let text = |(names, row): (&[Arc<str>; N], &UsageRow)| {
        let HeldSeconds { memory, cores, gpus } = row.held;
        let numbers = [json!(memory), json!(cores), json!(gpus), json!(row.grown)];
        names.iter().map(|name| json!(name)).chain(numbers).collect()
    };
    rows.iter().map(text).collect()
}

fn restore<const N: usize>(
    rows: &mut UsageRows<N>,
    called: &'static str,
    texts: &[Vec<Value>],
) -> Result<(), NoAccount> {
    for (at, text) in texts.iter().enumerate() {
        let (names, row) = row(text).ok_or(NoAccount::Row { rows: called, at, names: N })?;
        rows.restore(names, row);
    }
    Ok(())
}

fn row<const N: usize>(text: &[Value]) -> Option<([Arc<str>; N], UsageRow)> {
    let (names, numbers) = text.split_at_checked(N)?;
    let names = names.iter().map(|name| name.as_str().map(Arc::from)).collect::<Option<Vec<Arc<str>>>>()?;
    let [memory, cores, gpus, grown] = numbers else { return None };
    let held = HeldSeconds { memory: memory.as_u64()?, cores: cores.as_u64()?, gpus: gpus.as_u64()? };
    Some((names.try_into().ok()?, UsageRow { held, grown: grown.as_i64()? }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::{
        model::workload::Workload,
        showback::{HeldParts, StrandedAmount, UsageSpan},
    };

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    /// As many rows as there may be, with the longest names and the largest numbers.
    fn largest() -> UsageAccount {
        let name = |number: usize, length: usize| format!("{number:0length$}");
        let spans = (0..3_000).map(|pod| UsageSpan {
            pod: name(pod, 36).as_str().into(),
            namespace: name(pod, 63).into(),
            workload: Workload { kind: name(pod, 63).into(), name: name(pod, 253).into() },
            labels: (0..8).map(|label| [name(label, 253).into(), name(pod, 63).into()]).collect(),
            held: HeldParts { memory: u64::MAX / 2, cores: u64::MAX / 2, gpus: u64::MAX / 2 },
            from: at(0),
            until: at(60),
        });
        let stranded = |number| StrandedAmount {
            model: name(number, 253).into(),
            reason: "partlyUsed".into(),
            gpus: u64::MAX / 2,
        };
        let stranded: Vec<_> = (0..200).map(stranded).collect();
        UsageAccount::begin(at(0)).advance(at(60), spans.collect(), &stranded)
    }

    #[test]
    fn what_is_written_is_read_again_as_it_was() {
        let account = largest();
        assert_eq!(read(Some(&write(&account)), at(60)).unwrap(), account);
    }

    #[test]
    fn the_largest_account_fits_into_a_config_map() {
        let length = write(&largest()).len();
        assert!(length < 1 << 20, "{length} bytes are more than the API server takes");
        assert!(length > 800_000, "{length} bytes are not the largest account");
    }

    #[test]
    fn what_is_no_account_says_why() {
        let said = |text: Option<&str>| read(text, at(1_000_000_000)).unwrap_err().to_string();
        assert_eq!(said(None), "it has no key account.json");
        assert!(said(Some("{")).starts_with("account.json: EOF while parsing"), "{}", said(Some("{")));
        let text = |until: &str, row: &str| {
            format!(
                r#"{{"countedUntil":"{until}","namespaces":[{row}],"workloads":[],"labels":[],"stranded":[]}}"#
            )
        };
        let past = "2001-01-01T00:00:00Z";
        for row in [r#"["a",1,2,3]"#, r#"["a",1,2,-3,4]"#, "[1,1,2,3,4]", r#"["a","b",1,2,3,4]"#, "[]"] {
            let message = "account.json: namespaces[0] must be 1 name(s) and 4 numbers";
            assert_eq!(said(Some(&text(past, row))), message, "{row}");
        }
        let ahead = "account.json: countedUntil 2101-01-01T00:00:00Z is in the future";
        assert_eq!(said(Some(&text("2101-01-01T00:00:00Z", ""))), ahead);
    }
}
