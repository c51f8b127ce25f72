//! What the wire says for each verdict and for each thing that can't be read.

use json_patch::{AddOperation, PatchOperation};
use serde_json::{Value, json};

use super::{
    words::{WARNING_CHARS, WARNINGS_CHARS},
    *,
};

fn answer(body: &[u8], stage: AdmissionStage, judge: &Judge) -> Result<ReviewAnswer, BadReview> {
    super::answer(body, stage, judge, &Workloads::default())
}

fn judge(verdict: Verdict) -> Judge {
    Arc::new(move |_| verdict.clone())
}

fn never() -> Judge {
    Arc::new(|request| panic!("nobody was to judge {request:?}"))
}

fn review(changes: impl FnOnce(&mut Value)) -> Vec<u8> {
    let mut review = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "request": {
            "uid": "u-1",
            "kind": {"group": "", "version": "v1", "kind": "Pod"},
            "resource": {"group": "", "version": "v1", "resource": "pods"},
            "namespace": "train",
            "operation": "CREATE",
            "userInfo": {"username": "someone"},
            "object": {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": []}},
            "oldObject": null,
            "dryRun": false,
        },
    });
    changes(&mut review);
    serde_json::to_vec(&review).unwrap()
}

fn patch() -> Vec<PatchOperation> {
    let path = "/spec/schedulerName".parse().unwrap();
    vec![PatchOperation::Add(AddOperation { path, value: json!("berth") })]
}

fn violation(rule: &'static str, field: &str, message: &str) -> Violation {
    Violation { rule: Rule(rule), field: field.to_owned(), message: message.to_owned() }
}

fn wire(answer: &ReviewAnswer) -> Value {
    serde_json::to_value(&answer.review).unwrap()
}

fn refused(body: &[u8]) -> BadReview {
    answer(body, AdmissionStage::Mutate, &never()).unwrap_err()
}

#[test]
fn an_admitted_pod_gets_its_patch_in_base64() {
    let verdict = Verdict::Admitted { patch: patch(), warnings: vec![violation("gap", "", "mind the gap")] };
    let answer = answer(&review(|_| {}), AdmissionStage::Mutate, &judge(verdict)).unwrap();
    let expected = STANDARD.encode(r#"[{"op":"add","path":"/spec/schedulerName","value":"berth"}]"#);
    let golden = json!({
        "apiVersion": "admission.k8s.io/v1",
        "kind": "AdmissionReview",
        "response": {
            "uid": "u-1", "allowed": true, "patchType": "JSONPatch", "patch": expected, "warnings": ["mind the gap (gap)"], "auditAnnotations": {"warnings": "gap"},
        },
    });
    assert_eq!(wire(&answer), golden);
    assert_eq!(answer.outcome, ReviewOutcome::Admitted);
}

#[test]
fn no_patch_and_no_patch_type_come_with_nothing_to_change_or_at_the_validating_stage() {
    let nothing = Verdict::Admitted { patch: Vec::new(), warnings: Vec::new() };
    let something = Verdict::Admitted { patch: patch(), warnings: Vec::new() };
    for (stage, verdict) in [(AdmissionStage::Mutate, nothing), (AdmissionStage::Validate, something)] {
        let answer = answer(&review(|_| {}), stage, &judge(verdict)).unwrap();
        assert_eq!(wire(&answer)["response"], json!({"uid": "u-1", "allowed": true}));
    }
}

#[test]
fn a_denial_says_field_message_and_rule() {
    let verdict = Verdict::Denied {
        violations: vec![
            violation("count-invalid", "spec.containers[0].resources.limits", "`x` is not a number"),
            violation("mode-conflict", "", "two modes\nat once"),
        ],
        warnings: vec![violation("w", "spec", "careful")],
    };
    let answer = answer(&review(|_| {}), AdmissionStage::Validate, &judge(verdict)).unwrap();
    let golden = json!({
        "uid": "u-1",
        "allowed": false,
        "status": {
            "code": 403,
            "reason": "Forbidden",
            "message": "spec.containers[0].resources.limits: `x` is not a number (count-invalid); two modes at once (mode-conflict)",
        },
        "warnings": ["spec: careful (w)"],
        "auditAnnotations": {"violations": "count-invalid,mode-conflict", "warnings": "w"},
    });
    assert_eq!(wire(&answer)["response"], golden);
    assert_eq!(answer.rules, [Rule("count-invalid"), Rule("mode-conflict")]);
}

#[test]
fn the_audit_log_keeps_the_rules_that_only_warned() {
    let warnings = vec![
        violation("preset-node", "spec.nodeName", "is set (to node-1)"),
        violation("hint-key", "metadata", "near"),
    ];
    let admitted = Verdict::Admitted { patch: Vec::new(), warnings: warnings.clone() };
    let answered = answer(&review(|_| {}), AdmissionStage::Validate, &judge(admitted)).unwrap();
    assert_eq!(wire(&answered)["response"]["auditAnnotations"], json!({"warnings": "preset-node,hint-key"}));
    let denied = Verdict::Denied { violations: vec![violation("quantity", "", "x")], warnings };
    let answered = answer(&review(|_| {}), AdmissionStage::Validate, &judge(denied)).unwrap();
    let both = json!({"violations": "quantity", "warnings": "preset-node,hint-key"});
    assert_eq!(wire(&answered)["response"]["auditAnnotations"], both);
}

#[test]
fn the_judge_sees_stage_operation_and_the_namespace_of_the_request() {
    let seeing: Judge = Arc::new(|request| {
        assert_eq!(request.stage, AdmissionStage::Validate);
        assert!(matches!(request.operation, Operation::Update(old) if old.metadata.name == "before"));
        assert_eq!(request.namespace, "train");
        assert_eq!(request.pod.metadata.name, "p");
        Verdict::Ignored
    });
    let body = review(|review| {
        review["request"]["operation"] = "UPDATE".into();
        review["request"]["oldObject"] = json!({"metadata": {"name": "before"}});
        review["request"]["object"]["metadata"]["namespace"] = "other".into();
    });
    assert_eq!(answer(&body, AdmissionStage::Validate, &seeing).unwrap().outcome, ReviewOutcome::Ignored);
}

#[test]
fn a_pod_that_cannot_be_read_is_refused_with_its_field() {
    let body = review(|review| {
        review["request"]["object"]["spec"]["containers"] = json!([{"resources": {"limits": 3}}]);
    });
    let answer = answer(&body, AdmissionStage::Mutate, &never()).unwrap();
    let response = answer.review.response;
    let status = response.status.unwrap();
    assert_eq!((answer.outcome, response.allowed, status.code), (ReviewOutcome::Unreadable, false, 422));
    assert!(
        status.message.starts_with("spec.containers[0].resources.limits: invalid type"),
        "{}",
        status.message
    );
}

#[test]
fn no_pod_is_refused_where_the_scheduler_is_named_alone() {
    let body = review(|review| review["request"]["object"]["spec"]["containers"] = json!([3]));
    let unread = answer(&body, AdmissionStage::Adopt, &never()).unwrap();
    assert_eq!((unread.outcome, unread.review.response.allowed), (ReviewOutcome::Ignored, true));
    let verdict = Verdict::Admitted { patch: patch(), warnings: Vec::new() };
    let named = answer(&review(|_| {}), AdmissionStage::Adopt, &judge(verdict)).unwrap();
    assert_eq!(named.review.response.patch_type, Some("JSONPatch"));
    assert_eq!(named.entrant, None, "the binder is told of a pod by the validating stage alone");
}

#[test]
fn what_is_not_a_pod_being_written_is_allowed_unread() {
    let cases: [fn(&mut Value); 5] = [
        |request| request["resource"]["resource"] = "deployments".into(),
        |request| request["resource"]["group"] = "metrics.k8s.io".into(),
        |request| request["subResource"] = "status".into(),
        |request| {
            request["operation"] = "DELETE".into();
            request["object"] = Value::Null;
        },
        |request| request["operation"] = "CONNECT".into(),
    ];
    for change in cases {
        let body = review(|review| change(&mut review["request"]));
        let answer = answer(&body, AdmissionStage::Mutate, &never()).unwrap();
        assert_eq!(wire(&answer)["response"], json!({"uid": "u-1", "allowed": true}));
    }
}

#[test]
fn an_envelope_that_cannot_be_read_is_named_by_its_field() {
    type Case = (fn(&mut Value), &'static str);
    let cases: [Case; 8] = [
        (|review| review["apiVersion"] = "admission.k8s.io/v1beta1".into(), "apiVersion"),
        (|review| review["kind"] = "Pod".into(), "kind"),
        (|review| review["request"] = Value::Null, "request"),
        (|review| review["request"]["uid"] = "".into(), "request.uid"),
        (|review| review["request"]["uid"] = 7.into(), "request.uid"),
        (|review| review["request"]["operation"] = "PATCH".into(), "request.operation"),
        (|review| review["request"]["resource"] = Value::Null, "request.resource"),
        (|review| review["request"]["object"] = Value::Null, "request.object"),
    ];
    for (change, field) in cases {
        assert_eq!(refused(&review(change)).field(), Some(field));
    }
}

#[test]
fn bytes_that_are_not_one_json_document_are_no_review() {
    let deep = [b"[".repeat(200), b"]".repeat(200)].concat();
    for body in [&b""[..], b"nonsense", b"\xff", b"{} {}"] {
        assert!(matches!(refused(body), BadReview::NotJson { .. }), "{body:?}");
    }
    assert_ne!(refused(&deep).to_string(), "");
}

#[test]
fn what_is_no_object_is_called_by_its_json_name() {
    let cases = [
        ("[]", "an array"),
        (r#" ["admission.k8s.io/v1", "AdmissionReview", null]"#, "an array"),
        ("\"x\"", "a string"),
        ("-1", "a number"),
        ("true", "a boolean"),
        ("null", "null"),
    ];
    for (body, found) in cases {
        let told = refused(body.as_bytes()).to_string();
        assert_eq!(told, format!("the body is {found}; an AdmissionReview object is expected"));
    }
    let head = r#""apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview""#;
    for (request, field) in [("[]", "request"), (r#"{"resource": []}"#, "request.resource")] {
        let bad = refused(format!("{{{head}, \"request\": {request}}}").as_bytes());
        assert_eq!(bad.field(), Some(field), "{bad}");
        let told = bad.to_string();
        assert!(told.contains("expected") && !told.contains("struct"), "{told}");
    }
}

#[test]
fn depth_that_nobody_reads_is_skipped_without_a_stack() {
    let text = String::from_utf8(review(|_| {})).unwrap();
    let (open, close) = ("[".repeat(500_000), "]".repeat(500_000));
    let deep = text.replace("\"containers\":[]", &format!("\"containers\":[],\"unknown\":{open}{close}"));
    assert!(deep.len() > 1_000_000);
    let answer = answer(deep.as_bytes(), AdmissionStage::Mutate, &judge(Verdict::Ignored)).unwrap();
    assert!(answer.review.response.allowed);
}

#[test]
fn warnings_are_short_lines_within_what_the_api_server_passes_on() {
    let mut warnings = vec!["two\r\nlines\u{7}".to_owned(), "\n".to_owned(), "é".repeat(300)];
    warnings.extend((0..40).map(|_| "x".repeat(250)));
    let shown = presentable(&warnings, &[]);
    assert_eq!(shown[0], "two lines");
    assert!(
        shown[1].ends_with("é… (193 more characters)") && shown[1].chars().count() <= WARNING_CHARS,
        "{}",
        shown[1]
    );
    assert!(shown.iter().map(|line| line.chars().count()).sum::<usize>() <= WARNINGS_CHARS);
    assert_eq!(shown.len(), 2 + 15 + 1);
    assert_eq!(shown.last().unwrap(), "and 25 more warnings");
    let more = presentable(&warnings, &shown);
    assert_eq!(more.last().unwrap(), "and 41 more warnings");
    let both = [shown, more].concat();
    assert!(both.iter().map(|line| line.chars().count()).sum::<usize>() <= WARNINGS_CHARS, "{both:?}");
}

#[test]
fn a_pod_without_metadata_is_refused_and_not_patched_where_nothing_is() {
    let body = review(|review| {
        review["request"]["object"].as_object_mut().unwrap().remove("metadata");
    });
    let answer = answer(&body, AdmissionStage::Mutate, &never()).unwrap();
    assert_eq!(answer.outcome, ReviewOutcome::Unreadable);
    assert_eq!(answer.review.response.status.unwrap().message, "metadata: is missing");
    let nameless = review(|review| review["request"]["object"]["metadata"] = json!({}));
    assert!(
        self::answer(&nameless, AdmissionStage::Mutate, &judge(Verdict::Ignored))
            .unwrap()
            .review
            .response
            .allowed
    );
}

#[test]
fn what_cannot_be_read_is_quoted_in_short_on_one_line() {
    let long = || Value::from(format!("a\nb{}", "x".repeat(1_000_000)));
    let pods: [fn(&mut Value, Value); 2] = [
        |pod, long| pod["spec"]["containers"] = json!([{"resources": {"limits": long}}]),
        |pod, long| pod["spec"]["containers"] = long,
    ];
    for change in pods {
        let body = review(|review| change(&mut review["request"]["object"], long()));
        let response = answer(&body, AdmissionStage::Mutate, &never()).unwrap().review.response;
        let message = response.status.unwrap().message;
        assert!(message.len() < 1300 && !message.contains(char::is_control), "{} bytes", message.len());
        assert!(message.ends_with(" more characters)"), "{message}");
    }
    let envelopes: [fn(&mut Value, Value); 5] = [
        |review, long| review["apiVersion"] = long,
        |review, long| review["kind"] = long,
        |review, long| review["request"] = long,
        |review, long| review["request"]["operation"] = long,
        |review, long| review["request"]["uid"] = long,
    ];
    for change in envelopes {
        let told = refused(&review(|review| change(review, long()))).to_string();
        assert!(told.len() < 1300, "{} bytes", told.len());
    }
}
