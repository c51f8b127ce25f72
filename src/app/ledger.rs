//! The permission to read the ledger: the API server authenticates the user and authorizes the path; the binder's loop makes the page.
//!
//! It decides no permission itself: roles do, as for every path of the API server.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use k8s_openapi::api::{
    authentication::v1::{TokenReview, TokenReviewSpec, UserInfo},
    authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec},
};
use kube::{Api, Client, api::PostParams};

use super::{Options, leader::leader};
use crate::{
    cluster::ledger::{NoAnswer, Questions},
    webhook::debug::{Debug, Denial, LEDGER},
};

/// A request that takes longer is answered 503.
const PATIENCE: Duration = Duration::from_secs(10);

/// What the path needs.
pub(super) fn debug(options: &Options, questions: Questions) -> Debug {
    let (client, leadership) = (options.client.clone(), options.leadership.clone());
    let leases = client.clone();
    Debug {
        access: Arc::new(move |token| Box::pin(in_time(admit(client.clone(), token)))),
        page: Arc::new(move || {
            let (questions, client, leadership) = (questions.clone(), leases.clone(), leadership.clone());
            Box::pin(in_time(async move {
                match questions.ask().await {
                    Ok(page) => Ok(serde_json::to_vec(&page).expect("a ledger has string keys only")),
                    Err(NoAnswer::NotLeading) => {
                        Err(Denial::Elsewhere { leader: leader(&client, &leadership).await })
                    }
                    Err(error @ NoAnswer::Busy) => Err(Denial::Unavailable(error.to_string())),
                }
            }))
        }),
    }
}

async fn in_time<T>(asked: impl Future<Output = Result<T, Denial>>) -> Result<T, Denial> {
    let late = || Err(Denial::Unavailable(format!("no answer within {PATIENCE:?}")));
    tokio::time::timeout(PATIENCE, asked).await.unwrap_or_else(|_| late())
}

/// Authenticates the token and authorizes its user to get the path, as controller-runtime's metrics server does
/// (`pkg/metrics/filters/filters.go`).
async fn admit(client: Client, token: String) -> Result<(), Denial> {
    let user = bearer(client.clone(), token).await?;
    let name = user.username.clone().unwrap_or_default();
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: user.username,
            groups: user.groups,
            uid: user.uid,
            extra: user.extra.map(BTreeMap::from_iter),
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some(LEDGER.to_owned()),
                verb: Some("get".to_owned()),
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let reviewed = Api::<SubjectAccessReview>::all(client).create(&PostParams::default(), &review).await;
    let allowed = reviewed.map_err(|error| unanswered(&error))?.status.is_some_and(|status| status.allowed);
    if allowed { Ok(()) } else { Err(Denial::Forbidden { user: name }) }
}

async fn bearer(client: Client, token: String) -> Result<UserInfo, Denial> {
    let review = TokenReview {
        spec: TokenReviewSpec { token, ..TokenReviewSpec::default() },
        ..TokenReview::default()
    };
    let reviewed = Api::<TokenReview>::all(client).create(&PostParams::default(), &review).await;
    let status = reviewed.map_err(|error| unanswered(&error))?.status.unwrap_or_default();
    status.user.filter(|_| status.authenticated == Some(true)).ok_or(Denial::Unknown)
}

fn unanswered(error: &kube::Error) -> Denial {
    let error = crate::excerpt::brief(error);
    tracing::warn!(%error, "the API server could not check who may read the ledger");
    Denial::Unavailable("the API server could not check who may read the ledger".to_owned())
}
