//! What the log holds of a review: of a denial the pod, the user and the broken rules.
//!
//! It must not change the answer. The body is read a second time for a denial only, so that other reviews cost nothing.

use serde::Deserialize;
use serde_json::Value;
use tracing::{debug, info};

use super::{ReviewAnswer, ReviewOutcome};
use crate::{
    admission::AdmissionStage,
    excerpt::{FIELD, excerpt},
};

/// Whose request it was and which pod it is about; what a body does not state as text is empty.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RecordedRequest {
    namespace: Value,
    name: Value,
    operation: Value,
    user_info: User,
    object: RecordedObject,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct User {
    username: Value,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct RecordedObject {
    metadata: RecordedMetadata,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct RecordedMetadata {
    name: Value,
    generate_name: Value,
}

#[derive(Debug, Default, Deserialize)]
struct RecordedReview {
    request: RecordedRequest,
}

impl RecordedRequest {
    fn read(body: &[u8]) -> Self {
        serde_json::from_slice::<RecordedReview>(body).map(|envelope| envelope.request).unwrap_or_default()
    }

    /// The pod's name; of one that the API server is to name, the beginning of it followed by `*`.
    fn pod(&self) -> String {
        let RecordedMetadata { name, generate_name } = &self.object.metadata;
        let named = [name, &self.name].into_iter().map(text).find(|name| !name.is_empty());
        named.unwrap_or_else(|| match text(generate_name) {
            beginning if beginning.is_empty() => beginning,
            beginning => format!("{beginning}*"),
        })
    }
}

/// As much of a text as a log line should hold.
fn text(value: &Value) -> String {
    excerpt(value.as_str().unwrap_or_default(), FIELD).into_owned()
}

/// Logs what came of a review.
pub(in crate::webhook) fn log(stage: AdmissionStage, body: &[u8], answer: &ReviewAnswer) {
    let response = &answer.review.response;
    match answer.outcome {
        ReviewOutcome::Denied | ReviewOutcome::Unreadable => {
            let request = RecordedRequest::read(body);
            let rules: Vec<&str> = answer.rules.iter().map(|rule| rule.0).collect();
            let why = response.status.as_ref().map(|status| status.message.as_str());
            info!(
                namespace = text(&request.namespace),
                name = request.pod(),
                user = text(&request.user_info.username),
                operation = text(&request.operation),
                rules = rules.join(","),
                ?stage,
                uid = response.uid,
                why,
                "denied"
            );
        }
        ReviewOutcome::Admitted | ReviewOutcome::Ignored => {
            debug!(?stage, uid = response.uid, outcome = ?answer.outcome, "allowed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(request: &Value) -> RecordedRequest {
        RecordedRequest::read(&serde_json::to_vec(&json!({"request": request})).unwrap())
    }

    #[test]
    fn a_pod_is_called_by_its_name_or_by_the_beginning_of_it() {
        let user = json!({"username": "eve"});
        let named =
            read(&json!({"namespace": "team", "userInfo": user, "object": {"metadata": {"name": "a"}}}));
        assert_eq!((named.pod(), text(&named.namespace), text(&named.user_info.username)), {
            ("a".to_owned(), "team".to_owned(), "eve".to_owned())
        });
        assert_eq!(read(&json!({"object": {"metadata": {"generateName": "job-"}}})).pod(), "job-*");
        assert_eq!(read(&json!({"name": "b", "object": {}})).pod(), "b");
        assert_eq!(read(&json!({})).pod(), "");
    }

    #[test]
    fn rubbish_is_neither_an_error_nor_a_second_line() {
        let forged = read(
            &json!({"name": "a\nlevel=ERROR", "userInfo": {"username": 7}, "object": {"metadata": {"name": []}}}),
        );
        assert_eq!(
            (forged.pod(), text(&forged.user_info.username)),
            ("a\\nlevel=ERROR".to_owned(), String::new())
        );
        assert_eq!(RecordedRequest::read(b"{\"request\": []").pod(), "");
        assert!(read(&json!({"name": "a".repeat(100_000)})).pod().len() < 1000);
    }
}
