//! Which versions of Kubernetes Berth runs on.
//!
//! The one place that states the minimum: `berth serve` refuses to start below it, and `berth preflight` reports it.

use std::{fmt, time::Duration};

use k8s_openapi::apimachinery::pkg::version::Info;
use kube::Client;

/// The oldest version that serves all that the manifests install: `ValidatingAdmissionPolicy` of `admissionregistration.k8s.io/v1` and
/// stable match conditions of webhooks (both Kubernetes 1.30); `flowcontrol.apiserver.k8s.io/v1` is older (1.29).
pub const OLDEST: Version = Version { major: 1, minor: 30 };

/// How long the start waits for the version. What is unknown after that does not hold up the start.
const PATIENCE: Duration = Duration::from_secs(5);

/// A minor version of Kubernetes.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Version {
    /// The first number.
    pub major: u32,
    /// The second number.
    pub minor: u32,
}

/// The API server is of a version that Berth can't work with.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "Kubernetes {found} is too old: Berth needs {OLDEST} or newer, the first version with stable ValidatingAdmissionPolicies and webhook match conditions"
)]
pub struct TooOld {
    /// The API server's version, as it writes it.
    pub found: String,
}

impl Version {
    /// The version in an API server's answer, whose minor number may end with a vendor's mark (`30+`); `None`: it has no numbers.
    pub fn read(info: &Info) -> Option<Self> {
        let number = |text: &str| text.trim_end_matches(|c: char| !c.is_ascii_digit()).parse().ok();
        Some(Self { major: number(&info.major)?, minor: number(&info.minor)? })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}", self.major, self.minor)
    }
}

/// The version, if it will do; `None`: it has no numbers, and is taken to.
pub fn judge(info: &Info) -> Result<Option<Version>, TooOld> {
    match Version::read(info) {
        Some(version) if version < OLDEST => Err(TooOld { found: info.git_version.clone() }),
        version => Ok(version),
    }
}

/// Asks the API server for its version and judges it. Where there is no answer, the next request of the start reports that.
pub async fn check(client: &Client) -> Result<Option<Version>, TooOld> {
    match tokio::time::timeout(PATIENCE, client.apiserver_version()).await {
        Ok(Ok(info)) => judge(&info),
        Ok(Err(error)) => {
            tracing::debug!(%error, "the API server's version is unknown");
            Ok(None)
        }
        Err(_) => {
            tracing::debug!("the API server's version is unknown: no answer within {PATIENCE:?}");
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(minor: &str, git_version: &str) -> Info {
        Info {
            major: "1".to_owned(),
            minor: minor.to_owned(),
            git_version: git_version.to_owned(),
            ..Info::default()
        }
    }

    #[test]
    fn a_version_below_the_minimum_is_refused_with_both_versions() {
        let message = judge(&info("29+", "v1.29.4-gke.1")).unwrap_err().to_string();
        assert!(
            message.starts_with("Kubernetes v1.29.4-gke.1 is too old: Berth needs 1.30 or newer"),
            "{message}"
        );
        assert_eq!(
            judge(&info("9", "v1.9.0")).unwrap_err().found,
            "v1.9.0",
            "numbers, not texts, are compared"
        );
    }

    #[test]
    fn the_minimum_and_newer_versions_will_do_whatever_marks_they_bear() {
        for minor in ["30", "30+", "36", "104"] {
            assert_eq!(judge(&info(minor, "v")).unwrap(), Version::read(&info(minor, "v")));
        }
        assert_eq!(judge(&info("", "unknown")).unwrap(), None);
    }
}
