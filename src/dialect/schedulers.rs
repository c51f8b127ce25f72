//! The schedulers of HAMi and Volcano: how to recognise their own pods, and the names that pods give in `schedulerName`.
//!
//! It must not say whether such a pod runs.

use std::collections::BTreeSet;

/// A scheduler as its chart installs it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Installed {
    /// The label that its pods have, as a label selector.
    pub selector: &'static str,
    /// The name that it serves where its command line has no `--scheduler-name`.
    pub default_name: &'static str,
}

/// HAMi's (`charts/hami/templates/scheduler/deployment.yaml`, v2.4.0 to v2.10.0) and Volcano's
/// (`installer/helm/chart/volcano/templates/scheduler.yaml`; `cmd/scheduler/app/options/options.go` for the default name).
pub const INSTALLED: [Installed; 2] = [HAMI, VOLCANO];

/// HAMi's scheduler.
pub const HAMI: Installed =
    Installed { selector: "app.kubernetes.io/component=hami-scheduler", default_name: "hami-scheduler" };

/// Volcano's scheduler.
pub const VOLCANO: Installed = Installed { selector: "app=volcano-scheduler", default_name: "volcano" };

/// The names of both, as they are installed by default.
pub const NAMES: [&str; 2] = [HAMI.default_name, VOLCANO.default_name];

/// The flag that names a profile; Volcano's may be repeated.
const FLAG: &str = "--scheduler-name";

impl Installed {
    /// The names that a pod of it serves, by the words of its containers' command lines.
    pub fn names<'a>(&self, words: impl IntoIterator<Item = &'a str>) -> BTreeSet<String> {
        let (mut names, mut value_follows) = (BTreeSet::new(), false);
        for word in words {
            if std::mem::take(&mut value_follows) {
                names.insert(word.trim().to_owned());
            } else if word == FLAG {
                value_follows = true;
            } else if let Some(name) = word.strip_prefix(FLAG).and_then(|rest| rest.strip_prefix('=')) {
                names.insert(name.trim().to_owned());
            }
        }
        if names.is_empty() {
            names.insert(self.default_name.to_owned());
        }
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_flag_or_else_the_default() {
        let [hami, volcano] = INSTALLED;
        let cases: [(Installed, &[&str], &[&str]); 6] = [
            (hami, &["scheduler", "--http_bind=0.0.0.0:443", "--scheduler-name=gpu"], &["gpu"]),
            (hami, &["kube-scheduler", "--config=/config/config.yaml"], &["hami-scheduler"]),
            (volcano, &["--logtostderr"], &["volcano"]),
            (volcano, &["--scheduler-name=volcano", "--scheduler-name=batch"], &["batch", "volcano"]),
            (volcano, &["--scheduler-name", "batch", "-v=3"], &["batch"]),
            (hami, &["--scheduler-name-of-nothing=x"], &["hami-scheduler"]),
        ];
        for (installed, words, expected) in cases {
            let names = installed.names(words.iter().copied());
            assert_eq!(names.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{words:?}");
        }
    }
}
