//! The permission to get a path of the process: the API server authenticates the token and authorizes its user.
//!
//! It decides no permission itself: roles do, as for every path of the API server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};
use tokio::sync::{Semaphore, watch};

use super::{Options, Parts};
use crate::{
    config::{Authentication, Config},
    webhook::{
        page::bearer::{Access, Denial},
        router::METRICS,
    },
};

/// A check that takes longer is answered 503.
const PATIENCE: Duration = Duration::from_secs(10);

/// So many tokens are checked at a time, of each path: each costs the API server two requests, and whoever reaches the port can send some.
const AT_ONCE: usize = 4;

/// Whether the bearer of a token may get this path.
pub(super) fn to(path: &'static str, client: Client) -> Access {
    let room = Arc::new(Semaphore::new(AT_ONCE));
    Arc::new(move |token| {
        let (client, room) = (client.clone(), Arc::clone(&room));
        Box::pin(in_time(async move {
            let token = token.ok_or(Denial::Unknown)?;
            let _turn = room.acquire().await.expect("it is never closed");
            admit(client, token, path).await
        }))
    })
}

/// Whether a client may get the metrics, as the settings in force want it.
pub(super) fn to_metrics(options: &Options, settings: watch::Receiver<Arc<Config>>) -> Access {
    let checked = to(METRICS, options.client.clone());
    let writes_nothing = matches!(options.parts, Parts::Shadow { .. });
    Arc::new(move |token| {
        let authentication = settings.borrow().metrics.authentication;
        match authentication {
            Authentication::None => Box::pin(async { Ok(()) }),
            Authentication::Token if writes_nothing => Box::pin(async {
                let why = "a shadow has no right to have tokens checked; set metrics.authentication to none";
                Err(Denial::Unavailable(why.to_owned()))
            }),
            Authentication::Token => checked(token),
        }
    })
}

pub(super) async fn in_time<T>(asked: impl Future<Output = Result<T, Denial>>) -> Result<T, Denial> {
    let late = || Err(Denial::Unavailable(format!("no answer within {PATIENCE:?}")));
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| late())
}

/// Authenticates the token and authorizes its user to get the path, as controller-runtime's metrics server does
/// (`pkg/metrics/filters/filters.go`).
async fn admit(client: Client, token: String, path: &'static str) -> Result<(), Denial> {
    let user = bearer(client.clone(), token, path).await?;
    let name = user.username.clone().unwrap_or_default();
    let allowed = may(client, user, path, |spec| SubjectAccessReviewSpec {
        non_resource_attributes: Some(NonResourceAttributes {
            path: Some(path.to_owned()),
            verb: Some("get".to_owned()),
        }),
        ..spec
    });
    let allowed = allowed.await?;
    if allowed { Ok(()) } else { Err(Denial::Forbidden { user: name, path }) }
}

/// Whether the user may do what `asked` adds to the review; `path` is what is asked for, for the log.
pub(super) async fn may(
    client: Client,
    user: UserInfo,
    path: &str,
    asked: impl FnOnce(SubjectAccessReviewSpec) -> SubjectAccessReviewSpec,
) -> Result<bool, Denial> {
    let UserInfo { username, groups, uid, extra } = user;
    let extra = extra.map(BTreeMap::from_iter);
    let spec = asked(SubjectAccessReviewSpec {
        user: username,
        groups,
        uid,
        extra,
        ..SubjectAccessReviewSpec::default()
    });
    let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
    let reviewed = Api::<SubjectAccessReview>::all(client).create(&PostParams::default(), &review).await;
    let status = reviewed.map_err(|error| unanswered(&error, path))?.status;
    Ok(status.is_some_and(|status| status.allowed))
}

/// Whose token it is; `path` is what is asked for, for the log.
pub(super) async fn bearer(client: Client, token: String, path: &str) -> Result<UserInfo, Denial> {
    let review = TokenReview {
        spec: TokenReviewSpec { token, ..TokenReviewSpec::default() },
        ..TokenReview::default()
    };
    let reviewed = Api::<TokenReview>::all(client).create(&PostParams::default(), &review).await;
    let status = reviewed.map_err(|error| unanswered(&error, path))?.status.unwrap_or_default();
    status.user.filter(|_| status.authenticated == Some(true)).ok_or(Denial::Unknown)
}

fn unanswered(error: &kube::Error, path: &str) -> Denial {
    let error = crate::excerpt::brief(error);
    tracing::warn!(%error, path, "the API server could not check who may get the path");
    Denial::Unavailable(format!("the API server could not check who may get {path}"))
}
