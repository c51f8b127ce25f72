//! Who may call the API server of a test, and the certificate and keys that this needs.
//!
//! It must not hold roles: a test grants those through the API.

use std::fmt::Write as _;
use std::path::Path;

/// A caller whom the API server knows by a static token.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its user name, for a ServiceAccount `system:serviceaccount:<namespace>:<name>`.
    pub user: String,
    /// Its groups; `system:masters` may do anything.
    pub groups: Vec<String>,
}

impl Identity {
    pub fn new(user: &str, groups: &[&str]) -> Self {
        let groups = groups.iter().map(|&group| group.to_owned()).collect();
        Self { user: user.to_owned(), groups }
    }

    pub fn service_account(namespace: &str, name: &str) -> Self {
        let of_namespace = format!("system:serviceaccounts:{namespace}");
        let user = format!("system:serviceaccount:{namespace}:{name}");
        Self::new(&user, &["system:serviceaccounts", &of_namespace, "system:authenticated"])
    }

    /// Its bearer token.
    pub fn token(&self) -> String {
        format!("token-of-{}", self.user.replace(':', "-"))
    }
}

/// The serving certificate, the key that signs ServiceAccount tokens, and the static tokens.
pub fn write_credentials(directory: &Path, identities: &[Identity]) -> Result<(), String> {
    let serving = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned(), "localhost".to_owned()]);
    let serving = serving.map_err(|error| format!("serving certificate: {error}"))?;
    let signer = rcgen::KeyPair::generate().map_err(|error| format!("service account key: {error}"))?;
    let mut tokens = String::new();
    for identity in identities {
        let (token, user, groups) = (identity.token(), &identity.user, identity.groups.join(","));
        writeln!(tokens, "{token},{user},uid-{user},\"{groups}\"").expect("a String takes any text");
    }
    let files: [(&str, Vec<u8>); 6] = [
        ("serving.crt", serving.cert.pem().into()),
        ("serving.der", serving.cert.der().to_vec()),
        ("serving.key", serving.signing_key.serialize_pem().into()),
        ("sa.key", signer.serialize_pem().into()),
        ("sa.pub", signer.public_key_pem().into()),
        ("tokens.csv", tokens.into()),
    ];
    for (name, content) in files {
        std::fs::write(directory.join(name), content).map_err(|error| format!("{name}: {error}"))?;
    }
    Ok(())
}
