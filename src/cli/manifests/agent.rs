//! Accounts beside Berth's own that write assignments, locks and lists of cards: device plugins, and a scheduler that runs beside it.

use serde_json::{Value, json};

use super::namespace;

/// The role that lets an account write them.
const WRITER: &str = "berth:assignment-writer";

/// A ServiceAccount.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Account {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

/// Reads `NAMESPACE/SERVICEACCOUNT`.
pub(super) fn account(text: &str) -> Result<Account, String> {
    let (space, name) = text.split_once('/').ok_or_else(|| {
        format!("`{text}` is not NAMESPACE/SERVICEACCOUNT, such as `kube-system/hami-device-plugin`")
    })?;
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'.';
    let edge = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = name.as_bytes();
    if name.len() > 253 || !bytes.iter().copied().all(fits) || !edge(bytes.first()) || !edge(bytes.last()) {
        return Err(format!("`{name}` is not the name of a ServiceAccount"));
    }
    Ok(Account { namespace: namespace(space)?, name: name.to_owned() })
}

/// What grants these accounts the writes.
pub(super) fn bindings(accounts: &[Account]) -> impl Iterator<Item = Value> {
    accounts.iter().map(|Account { namespace, name }| {
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {
                "name": format!("{WRITER}:{namespace}:{name}"),
                "labels": {"app.kubernetes.io/name": "berth"},
            },
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": WRITER},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": namespace}],
        })
    })
}
