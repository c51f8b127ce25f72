//! Reviews over HTTPS.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use berth::{
    admission::{AdmissionStage, Rule, Verdict, Violation},
    webhook::Judge,
};
use http::StatusCode;
use json_patch::{AddOperation, PatchOperation};
use serde_json::{Value, json};

use super::{
    client::{Client, Protocol, handshake, review},
    server::{Server, bundle},
};

/// Mutating: names the scheduler. For pods without a share: names another. Validating: denies. A pod named `trap` makes it panic.
fn judge() -> Judge {
    Arc::new(|request| {
        assert_ne!(request.pod.metadata.name, "trap", "the judge fell into the trap");
        let path = "/spec/schedulerName".parse().unwrap();
        match request.stage {
            AdmissionStage::Mutate => Verdict::Admitted {
                patch: vec![PatchOperation::Add(AddOperation { path, value: "berth".into() })],
                warnings: vec![Violation {
                    rule: Rule("near"),
                    field: "metadata".to_owned(),
                    message: "a warning".to_owned(),
                }],
            },
            AdmissionStage::Adopt => Verdict::Admitted {
                patch: vec![PatchOperation::Add(AddOperation { path, value: "adopter".into() })],
                warnings: Vec::new(),
            },
            AdmissionStage::Validate => Verdict::Denied {
                violations: vec![Violation {
                    rule: Rule("too-much"),
                    field: "spec.containers[0]".to_owned(),
                    message: "asks for too much".to_owned(),
                }],
                warnings: Vec::new(),
            },
        }
    })
}

#[tokio::test]
async fn each_path_answers_over_both_protocols() {
    let server = Server::start(judge()).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = Client::connect(&server, protocol).await.unwrap();
        let mutated = client.post("/mutate?timeout=3s", review("p")).await;
        assert_eq!(mutated.status, StatusCode::OK, "{protocol:?}");
        let response = &mutated.json()["response"];
        assert_eq!((&response["uid"], &response["allowed"]), (&json!("uid-of-p"), &json!(true)));
        let patch = |response: &Value| -> Value {
            let decoded = STANDARD.decode(response["patch"].as_str().unwrap()).unwrap();
            serde_json::from_slice(&decoded).unwrap()
        };
        assert_eq!(patch(response), json!([{"op": "add", "path": "/spec/schedulerName", "value": "berth"}]));

        let adopted = client.post("/adopt?timeout=2s", review("p")).await;
        let named = json!([{"op": "add", "path": "/spec/schedulerName", "value": "adopter"}]);
        assert_eq!(patch(&adopted.json()["response"]), named, "{protocol:?}");

        let validated = client.post("/validate", review("p")).await;
        assert_eq!(validated.status, StatusCode::OK, "a denial is a good answer");
        let status = &validated.json()["response"]["status"];
        assert_eq!(status["message"], "spec.containers[0]: asks for too much (too-much)");
    }
}

#[tokio::test]
async fn an_authority_of_somebody_else_does_not_vouch_for_the_server() {
    let server = Server::start(judge()).await;
    let stranger = bundle().authority.certificate;
    let error = handshake(&server, &stranger, Protocol::Http1).await.unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}

#[tokio::test]
async fn a_panic_ends_its_own_review_and_no_other() {
    let server = Server::start(judge()).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let mut client = Client::connect(&server, protocol).await.unwrap();
        let fallen = client.post("/mutate", review("trap")).await;
        assert_eq!(fallen.status, StatusCode::INTERNAL_SERVER_ERROR);
        assert_eq!(fallen.json()["message"], json!("an internal error ended the review"));
        assert_eq!(
            client.post("/mutate", review("p")).await.status,
            StatusCode::OK,
            "on the same connection"
        );
    }
}

#[tokio::test]
async fn reviews_are_counted_by_path_and_outcome_and_violations_by_rule() {
    let server = Server::start(judge()).await;
    let mut client = Client::connect(&server, Protocol::Http1).await.unwrap();
    client.post("/mutate", review("p")).await;
    client.post("/mutate", review("trap")).await;
    client.post("/mutate", "nonsense").await;
    client.post("/adopt", review("p")).await;
    client.post("/validate", review("p")).await;
    client.post("/validate", review("q")).await;
    let page = String::from_utf8(client.get("/metrics").await.body.to_vec()).unwrap();
    for line in [
        r#"berth_admission_reviews_total{path="mutate",outcome="admitted"} 1"#,
        r#"berth_admission_reviews_total{path="mutate",outcome="panicked"} 1"#,
        r#"berth_admission_reviews_total{path="mutate",outcome="refused"} 1"#,
        r#"berth_admission_reviews_total{path="adopt",outcome="admitted"} 1"#,
        r#"berth_admission_reviews_total{path="validate",outcome="denied"} 2"#,
        r#"berth_admission_violations_total{rule="too-much"} 2"#,
        r#"berth_admission_review_duration_seconds_count{path="validate"} 2"#,
        "# TYPE berth_webhook_certificate_expiry_seconds gauge",
    ] {
        assert!(page.lines().any(|found| found == line), "{line} in\n{page}");
    }
}
