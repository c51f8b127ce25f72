//! Which cluster a command talks to: kubectl's flags, kubectl's defaults, and the errors that say what is missing.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use http::Uri;
use kube::{
    Client, Config,
    config::{KubeConfigOptions, Kubeconfig},
};

use super::preflight::shell::quoted;

/// kubectl's flags for the cluster; an empty value counts as not given, as with kubectl.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Cluster")]
pub struct ConnectionArgs {
    /// The kubeconfig file [default: the files of KUBECONFIG, else ~/.kube/config, else the ServiceAccount of the pod]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig [default: its current-context]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
}

impl ConnectionArgs {
    fn file(&self) -> Option<&PathBuf> {
        self.kubeconfig.as_ref().filter(|file| !file.as_os_str().is_empty())
    }

    fn context(&self) -> Option<&String> {
        self.context.as_ref().filter(|context| !context.is_empty())
    }

    /// The flags as a POSIX shell takes them, each with a space before it; empty where none was given.
    pub fn flags(&self) -> String {
        let file = self.file().map(|file| format!(" --kubeconfig {}", quoted(&file.display().to_string())));
        let context = self.context().map(|context| format!(" --context {}", quoted(context)));
        file.into_iter().chain(context).collect()
    }

    /// A client of the cluster without kube's retries, since a Binding that is sent twice is in doubt; and the address of the API server.
    pub async fn client(&self) -> anyhow::Result<(Client, Uri)> {
        let mut config = self.config().await?;
        config.default_retry = false;
        let cluster = config.cluster_url.clone();
        Ok((Client::try_from(config).context("can't create a client from the cluster's settings")?, cluster))
    }

    async fn config(&self) -> anyhow::Result<Config> {
        if self.file().is_none() && self.context().is_none() {
            let none = "no cluster is configured: there are neither in-cluster settings nor a kubeconfig";
            return Config::infer().await.context(none);
        }
        let (kubeconfig, place) = match self.file() {
            Some(file) => {
                let place = file.display().to_string();
                (Kubeconfig::read_from(file).with_context(|| place.clone())?, place)
            }
            None => (Kubeconfig::read()?, "the kubeconfig".to_owned()),
        };
        if let Some(context) = self.context() {
            known(&kubeconfig, context, &place)?;
        }
        let options = KubeConfigOptions { context: self.context().cloned(), ..KubeConfigOptions::default() };
        Config::from_custom_kubeconfig(kubeconfig, &options).await.context(place)
    }
}

/// An error that lists the contexts, unless this one is among them.
fn known(kubeconfig: &Kubeconfig, context: &str, place: &str) -> anyhow::Result<()> {
    let names: Vec<_> = kubeconfig.contexts.iter().map(|known| known.name.as_str()).collect();
    if names.contains(&context) {
        return Ok(());
    }
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    anyhow::bail!("context `{context}` does not exist in {place}; its contexts: {there}")
}

/// Adds the address of the API server to an error without an answer.
pub(super) fn not_reached(error: impl Into<anyhow::Error>, cluster: &Uri) -> anyhow::Error {
    let error = error.into();
    let unanswered = |cause: &(dyn std::error::Error + 'static)| {
        let kube = cause.downcast_ref::<kube::Error>();
        let kube = kube.or_else(|| cause.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref));
        matches!(kube, Some(kube::Error::Service(_) | kube::Error::HyperError(_)))
    };
    if error.chain().any(unanswered) { error.context(format!("no answer from {cluster}")) } else { error }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    /// A kubeconfig of two clusters, `a` being the current one.
    fn file() -> tempfile::NamedTempFile {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        let text = "apiVersion: v1\nkind: Config\ncurrent-context: a\nusers: [{name: u, user: {token: t}}]\n\
            clusters: [{name: a, cluster: {server: 'https://a.example'}}, {name: b, cluster: {server: 'https://b.example'}}]\n\
            contexts: [{name: a, context: {cluster: a, user: u}}, {name: b/c, context: {cluster: b, user: u}}]\n";
        file.write_all(text.as_bytes()).unwrap();
        file
    }

    async fn server(kubeconfig: Option<PathBuf>, context: Option<&str>) -> Result<String, String> {
        let args = ConnectionArgs { kubeconfig, context: context.map(str::to_owned) };
        let config = args.config().await.map_err(|error| format!("{error:#}"))?;
        Ok(config.cluster_url.host().unwrap_or_default().to_owned())
    }

    #[tokio::test]
    async fn the_flags_choose_file_and_context_as_kubectl_does() {
        let file = file();
        let path = Some(file.path().to_owned());
        assert_eq!(server(path.clone(), None).await.unwrap(), "a.example");
        assert_eq!(server(path.clone(), Some("")).await.unwrap(), "a.example", "an empty flag is not given");
        assert_eq!(server(path.clone(), Some("b/c")).await.unwrap(), "b.example");
        let unknown = server(path, Some("B")).await.unwrap_err();
        let place = file.path().display();
        assert_eq!(unknown, format!("context `B` does not exist in {place}; its contexts: a, b/c"));
    }

    #[tokio::test]
    async fn a_file_that_is_no_kubeconfig_is_named() {
        let missing = server(Some("/no/such/file".into()), None).await.unwrap_err();
        assert!(missing.contains("/no/such/file"), "{missing}");
        let mut rubbish = tempfile::NamedTempFile::new().unwrap();
        rubbish.write_all(b"[1, 2").unwrap();
        let unread = server(Some(rubbish.path().to_owned()), None).await.unwrap_err();
        assert!(unread.contains(&rubbish.path().display().to_string()), "{unread}");
        let empty = tempfile::NamedTempFile::new().unwrap();
        let nothing = server(Some(empty.path().to_owned()), None).await.unwrap_err();
        assert!(nothing.contains(&empty.path().display().to_string()), "{nothing}");
    }

    #[test]
    fn printed_flags_are_quoted_for_a_shell() {
        let args = ConnectionArgs { kubeconfig: Some("a b".into()), context: Some("x@y".to_owned()) };
        assert_eq!(args.flags(), " --kubeconfig 'a b' --context x@y");
        assert_eq!(ConnectionArgs::default().flags(), "");
    }
}
