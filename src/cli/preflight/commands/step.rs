//! One command, and its place on the way: the part that it belongs to, and the tool.

use serde::Serialize;

/// Where the commands keep the converted settings.
pub const SETTINGS_FILE: &str = "berth.yaml";

/// One command.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Step {
    /// Which part of the way it belongs to.
    pub step: CommandStage,
    /// Which of two ways it belongs to; absent: both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub with: Option<Tool>,
    /// What to run in a POSIX shell.
    pub command: String,
}

/// What an installation is kept with.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Tool {
    /// Charts.
    Helm,
    /// Manifests.
    Kubectl,
}

impl Tool {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Helm => "Helm",
            Self::Kubectl => "kubectl",
        }
    }
}

/// A part of the way.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CommandStage {
    /// Keep the settings in a file, and check it.
    Settings,
    /// Install Berth.
    Install,
    /// Let namespaces in.
    LetIn,
    /// Keep namespaces out that HAMi's webhook does not cover either.
    KeepOut,
    /// Stop what Berth takes the place of.
    Switch,
    /// Once no warnings are left: let the policies deny.
    Protect,
    /// Undo `Protect`.
    BackFromProtect,
    /// Undo `Switch` and `KeepOut`.
    BackFromSwitch,
    /// Undo `LetIn`.
    BackFromLetIn,
    /// Undo `Install`.
    BackFromInstall,
}

impl CommandStage {
    /// The heading above its commands.
    pub fn heading(self) -> &'static str {
        match self {
            Self::Settings => "keep the settings, and check them",
            Self::Install => "install Berth beside what runs",
            Self::LetIn => "label namespaces, one after the other: Berth serves them",
            Self::KeepOut => "keep out what HAMi's webhook leaves alone",
            Self::Switch => "take over: stop what Berth takes the place of",
            Self::Protect => "later, once the policies warn of nothing: let them deny",
            Self::BackFromProtect => "the way back from there: let the policies warn again",
            Self::BackFromSwitch => "the way back from the switch: what ran before serves its pods again",
            Self::BackFromLetIn => "the way back from the labels",
            Self::BackFromInstall => "the way back from the installation, once no pod waits for Berth",
        }
    }
}
