//! Berth's API as a command asks it: behind the API server, with the caller's rights, or at an address of its own.

use anyhow::{Context as _, Result, anyhow, bail};
use clap::{Args, ValueEnum};
use http::{HeaderName, HeaderValue, Request, Uri, header::CONTENT_TYPE};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Status;
use kube::{Client, client::Body};
use serde::{Serialize, de::DeserializeOwned};

use super::cluster::{InspectedArgs, InspectedCluster};
use crate::{
    api::router::PREFIX,
    cli::{
        connection::{ConnectionArgs, not_reached, root},
        manifests::{self, API_SERVICE},
    },
};

/// The port of its Service.
const PORT: u16 = 443;

/// Has the token, since proxies keep `Authorization` to themselves.
const TOKEN: HeaderName = HeaderName::from_static("x-berth-token");

/// The page that tells who may ask.
const PAGE: &str = "docs/api.md";

/// Who answers for a live cluster.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Who answers")]
pub struct ApiArgs {
    /// Read the objects of the cluster, or ask Berth's API, which tells each caller what she may see [default: the API for callers who may not list all nodes and pods]
    #[arg(long, value_enum, default_value_t = Through::Auto, hide_default_value = true, value_name = "WAY", conflicts_with = "file")]
    pub through: Through,
    /// The namespace that Berth is installed in
    #[arg(long, value_name = "NAME", default_value = manifests::NAMESPACE, conflicts_with = "file")]
    pub berth_namespace: String,
    /// Ask Berth's API at this address, such as that of `kubectl port-forward`, instead of behind the API server
    #[arg(long, value_name = "URL", conflicts_with_all = ["file", "through", "berth_namespace"])]
    pub berth_server: Option<Uri>,
    /// The token that tells Berth's API who asks [default: that of the kubeconfig]
    #[arg(long, value_name = "TOKEN", env = "BERTH_TOKEN", hide_env_values = true)]
    pub token: Option<String>,
}

/// Where the answer comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Through {
    /// The objects where the caller may list nodes and pods of the whole cluster, else the API.
    Auto,
    /// Berth's API.
    Api,
    /// The objects of the cluster.
    Objects,
}

/// Who answers a command.
pub(super) enum Answerer {
    /// The scheduler within this program, by the objects of the cluster.
    Objects(InspectedCluster),
    /// A running Berth; and the cluster, unless it is asked at an address of its own.
    Api(BerthApi, Option<InspectedCluster>),
}

/// Berth's API.
pub(super) struct BerthApi {
    client: Client,
    /// Before its own paths.
    prefix: String,
    token: HeaderValue,
    /// For errors.
    place: String,
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub(super) enum BerthApiError {
    /// Berth has answered no.
    #[error("{}", .0.message.as_deref().unwrap_or("refused without a message"))]
    Refused(Box<Status>),
    /// It could not be asked.
    #[error("can't ask Berth's API at {place}")]
    Unasked {
        /// Where it was looked for.
        place: String,
        /// Why.
        source: anyhow::Error,
    },
}

impl ApiArgs {
    /// Whether it is said who answers.
    pub(super) fn is_given(&self) -> bool {
        self.through == Through::Api || self.berth_server.is_some()
    }

    /// Who answers for this cluster.
    pub(super) async fn answerer(&self, inspected: &InspectedArgs) -> Result<Answerer> {
        let at = |way: &str| match inspected.at {
            Some(_) => Err(anyhow!("--at can't be given {way}: Berth's API tells what is now")),
            None => Ok(()),
        };
        if let Some(server) = &self.berth_server {
            at("with --berth-server")?;
            let api = BerthApi::at(server, self.known_token(&inspected.connection).await?)?;
            return Ok(Answerer::Api(api, None));
        }
        let cluster = inspected.inspected().await?;
        let InspectedCluster::Live(client, address) = &cluster else {
            return Ok(Answerer::Objects(cluster));
        };
        let forbidden = match self.through {
            Through::Objects => return Ok(Answerer::Objects(cluster)),
            Through::Auto => match forbidden(client).await.map_err(|error| not_reached(error, address))? {
                None => return Ok(Answerer::Objects(cluster)),
                forbidden => forbidden,
            },
            Through::Api => None,
        };
        let api = async {
            at("where the cluster's objects are not read")?;
            let token = self.known_token(&inspected.connection).await?;
            BerthApi::behind(client.clone(), &self.berth_namespace, token)
        };
        let api = api.await.map_err(|error| match &forbidden {
            Some(forbidden) => error.context(format!("{forbidden}; Berth's API is asked instead")),
            None => error,
        })?;
        Ok(Answerer::Api(api, Some(cluster)))
    }

    /// The token that was given, or that of the kubeconfig.
    async fn known_token(&self, connection: &ConnectionArgs) -> Result<HeaderValue> {
        let given = self.token.clone().filter(|token| !token.is_empty());
        let token = match given {
            Some(token) => Some(token),
            None => connection.token().await?,
        };
        let Some(token) = token else {
            bail!(
                "Berth's API knows callers by a token, and the user of the kubeconfig has none: pass one with --token \"$(kubectl create token ACCOUNT -n NAMESPACE)\""
            );
        };
        let mut token = HeaderValue::try_from(token.trim()).context("--token is no token")?;
        token.set_sensitive(true);
        Ok(token)
    }
}

/// Why the caller can't read the cluster's objects: the API server's words; `None`: she can.
async fn forbidden(client: &Client) -> Result<Option<String>, kube::Error> {
    for list in ["/api/v1/nodes?limit=1", "/api/v1/pods?limit=1"] {
        let request = Request::get(list).body(Vec::new()).map_err(kube::Error::HttpError)?;
        match client.request_text(request).await {
            Err(kube::Error::Api(status)) if status.code == 403 => return Ok(Some(status.message)),
            answer => drop(answer?),
        }
    }
    Ok(None)
}

impl BerthApi {
    /// Behind the API server.
    fn behind(client: Client, namespace: &str, token: HeaderValue) -> Result<Self> {
        let namespace = manifests::namespace(namespace).map_err(|why| anyhow!("--berth-namespace: {why}"))?;
        let prefix = format!("/api/v1/namespaces/{namespace}/services/https:{API_SERVICE}:{PORT}/proxy");
        Ok(Self { client, prefix, token, place: format!("Service {API_SERVICE} in namespace {namespace}") })
    }

    /// At an address of its own.
    fn at(server: &Uri, token: HeaderValue) -> Result<Self> {
        let host = server.host().unwrap_or_default().trim_matches(['[', ']']);
        let is_local = host == "localhost" || host.parse().is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
        let is_safe = match server.scheme_str() {
            Some("https") => true,
            Some("http") => is_local,
            _ => false,
        };
        if !is_safe {
            bail!(
                "--berth-server {server}: not an https URL; http would show the token to others than this machine"
            );
        }
        let mut config = kube::Config::new(server.clone());
        config.default_retry = false;
        // On this machine a tunnel of kubectl listens, which the certificate does not name and which has checked whom it talks to.
        config.accept_invalid_certs = is_local;
        let client = Client::try_from(config).with_context(|| format!("--berth-server {server}"))?;
        Ok(Self { client, prefix: String::new(), token, place: server.to_string() })
    }

    /// The answer for this path, each part of which stands for itself, and this query.
    pub(super) async fn get<T: DeserializeOwned>(
        &self,
        path: &[&str],
        query: &str,
    ) -> Result<T, BerthApiError> {
        let path: String = path.iter().flat_map(|part| ["/".to_owned(), escaped(part)]).collect();
        self.ask(Request::get(format!("{}{PREFIX}{path}{query}", self.prefix)), Body::empty()).await
    }

    /// The answer for this path to a question that is longer than a query may be.
    pub(super) async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        question: &impl Serialize,
    ) -> Result<T, BerthApiError> {
        let question = serde_json::to_vec(question);
        let question = question
            .map_err(|error| BerthApiError::Unasked { place: self.place.clone(), source: error.into() })?;
        let request = Request::post(format!("{}{PREFIX}/{path}", self.prefix));
        self.ask(request.header(CONTENT_TYPE, "application/json"), question.into()).await
    }

    async fn ask<T: DeserializeOwned>(
        &self,
        request: http::request::Builder,
        body: Body,
    ) -> Result<T, BerthApiError> {
        let unasked = |source: anyhow::Error| BerthApiError::Unasked { place: self.place.clone(), source };
        let request = request.header(TOKEN, &self.token).body(body);
        let response = self.client.send(request.map_err(|error| unasked(error.into()))?).await;
        let response = response.map_err(|error| unasked(anyhow!("no answer: {}", root(&error))))?;
        let code = response.status();
        let body = response.into_body().collect_bytes().await.map_err(|error| unasked(error.into()))?;
        if code.is_success() {
            return serde_json::from_slice(&body)
                .map_err(|error| unasked(anyhow!("its answer can't be read: {error}")));
        }
        let Ok(status) = serde_json::from_slice::<Status>(&body) else {
            return Err(unasked(anyhow!("it answers {code}")));
        };
        let status = Box::new(status);
        // The API server names the Service that can't be asked; Berth names what it is asked about.
        let kind = status.details.as_ref().and_then(|of| of.kind.as_deref());
        let is_of_service = kind.is_some_and(|kind| matches!(kind, "services" | "endpoints"));
        let said = status.message.clone().unwrap_or_default();
        if is_of_service && code == http::StatusCode::FORBIDDEN {
            return Err(unasked(anyhow!("{said}; the Role berth:viewer allows it ({PAGE})")));
        }
        if code == http::StatusCode::NOT_FOUND && !said.ends_with("not found") {
            return Err(unasked(anyhow!(
                "{said}; an older Berth has no such answer, and the webhook of an installation apart has none"
            )));
        }
        if is_of_service || code.is_server_error() {
            return Err(unasked(anyhow!("{said}")));
        }
        Err(BerthApiError::Refused(status))
    }
}

impl BerthApiError {
    /// Whether Berth knows no such thing.
    pub(super) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == Some(404))
    }
}

/// A part of a path, in which nothing has a meaning of its own.
fn escaped(part: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    let one = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    part.bytes().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(server: &str) -> Result<String, String> {
        let api = BerthApi::at(&server.parse().unwrap(), HeaderValue::from_static("t"));
        api.map(|api| api.place).map_err(|error| error.to_string())
    }

    #[tokio::test]
    async fn a_token_goes_over_no_network_in_the_clear() {
        for server in
            ["https://berth.example", "http://localhost:8443", "http://[::1]:8443", "https://10.0.0.1"]
        {
            assert!(at(server).is_ok(), "{server}");
        }
        for server in ["http://berth.example", "http://10.0.0.1:8443", "ftp://localhost", "localhost:8443"] {
            assert!(at(server).unwrap_err().contains("not an https URL"), "{server}");
        }
    }

    #[test]
    fn a_name_is_one_part_of_a_path() {
        assert_eq!(escaped("a-b.c_9"), "a-b.c_9");
        assert_eq!(escaped("../x?y#z ä"), "..%2Fx%3Fy%23z%20%C3%A4");
    }
}
