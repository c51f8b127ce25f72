//! Which cluster a command talks to: kubectl's flags, kubectl's defaults, and the errors that say what is missing.

use std::{future::ready, path::PathBuf};

use anyhow::Context as _;
use clap::Args;
use http::{Request, Response, Uri, header::AUTHORIZATION};
use kube::{
    Client, Config,
    client::{Body, ConfigExt as _},
    config::{KubeConfigOptions, Kubeconfig},
};
use tower::{BoxError, Layer as _, ServiceExt as _, service_fn};

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

    /// The token with which the API server is asked; `None`: it is asked with a certificate, a password, or as nobody.
    pub async fn token(&self) -> anyhow::Result<Option<String>> {
        let Some(authorization) = self.config().await?.auth_layer().context("the user of the kubeconfig")?
        else {
            return Ok(None);
        };
        // What the layer would send says the token, however it comes by it.
        let told = authorization.layer(service_fn(|request: Request<Body>| {
            ready(Ok::<_, BoxError>(Response::new(request.headers().get(AUTHORIZATION).cloned())))
        }));
        let told = told.oneshot(Request::new(Body::empty())).await;
        let told = told.map_err(|error| anyhow::anyhow!("the token of the kubeconfig's user: {error}"))?;
        let told = told.into_body();
        let bearer = told.as_ref().and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
        Ok(bearer.map(str::to_owned))
    }

    async fn config(&self) -> anyhow::Result<Config> {
        if self.file().is_none() && self.context().is_none() {
            return Config::infer().await.map_err(|error| {
                // Of both ways it says why; outside of a cluster the kubeconfig is what matters.
                let why =
                    std::error::Error::source(&error).map_or_else(|| error.to_string(), ToString::to_string);
                anyhow::anyhow!(
                    "no cluster is configured: this is no pod of one, and the kubeconfig can't be read: {why}"
                )
            });
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

/// What is at the root of an error, without the layers of the program that it came through.
pub(super) fn root(error: &(dyn std::error::Error + 'static)) -> String {
    let causes = std::iter::successors(Some(error), |error| error.source());
    causes.last().map(ToString::to_string).unwrap_or_default()
}

/// Names the API server in an error without an answer, and where it does not know the caller.
pub(super) fn not_reached(error: impl Into<anyhow::Error>, cluster: &Uri) -> anyhow::Error {
    let error = error.into();
    match error.chain().find_map(of_client) {
        Some(kube::Error::Service(_) | kube::Error::HyperError(_)) => {
            anyhow::anyhow!("no answer from {cluster}: {}", error.root_cause())
        }
        Some(kube::Error::Api(status)) if status.code == 401 => {
            error.context(format!("{cluster} does not accept the user of the kubeconfig"))
        }
        _ => error,
    }
}

fn of_client<'a>(cause: &'a (dyn std::error::Error + 'static)) -> Option<&'a kube::Error> {
    let boxed = || cause.downcast_ref::<Box<kube::Error>>().map(AsRef::as_ref);
    cause.downcast_ref().or_else(boxed)
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

    #[tokio::test]
    async fn the_token_is_that_of_the_user_and_a_certificate_is_none() {
        let args = |file: &tempfile::NamedTempFile| ConnectionArgs {
            kubeconfig: Some(file.path().to_owned()),
            context: None,
        };
        let with_token = file();
        assert_eq!(args(&with_token).token().await.unwrap().as_deref(), Some("t"));
        let text = std::fs::read_to_string(with_token.path()).unwrap();
        let of = |user: &str| {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(text.replace("{token: t}", user).as_bytes()).unwrap();
            file
        };
        assert_eq!(args(&of("{username: a, password: b}")).token().await.unwrap(), None);
        assert_eq!(args(&of("{}")).token().await.unwrap(), None);
        let mut kept = tempfile::NamedTempFile::new().unwrap();
        kept.write_all(b"kept").unwrap();
        let in_file = of(&format!("{{tokenFile: '{}'}}", kept.path().display()));
        assert_eq!(args(&in_file).token().await.unwrap().as_deref(), Some("kept"));
    }

    #[test]
    fn printed_flags_are_quoted_for_a_shell() {
        let args = ConnectionArgs { kubeconfig: Some("a b".into()), context: Some("x@y".to_owned()) };
        assert_eq!(args.flags(), " --kubeconfig 'a b' --context x@y");
        assert_eq!(ConnectionArgs::default().flags(), "");
    }
}
