//! The web page: files that the program contains, served below `/ui/`.
//!
//! It knows nothing of the cluster. What the page shows, its scripts ask of the API, with the token of the person who looks.

use std::{
    collections::hash_map::DefaultHasher,
    hash::{Hash, Hasher},
};

use axum::{
    Router,
    response::{IntoResponse, Response},
    routing::get,
};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

/// Where the page is.
pub const UI: &str = "/ui/";

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Every file of the page: its name in the address, its type, and what is in it.
const FILES: &[(&str, &str, &str)] = &[
    ("", "text/html; charset=utf-8", include_str!("page/index.html")),
    ("page.css", "text/css; charset=utf-8", include_str!("page/page.css")),
    ("icon.svg", "image/svg+xml", include_str!("page/icon.svg")),
    ("main.js", SCRIPT, include_str!("page/main.js")),
    ("ask.js", SCRIPT, include_str!("page/ask.js")),
    ("card.js", SCRIPT, include_str!("page/card.js")),
    ("colours.js", SCRIPT, include_str!("page/colours.js")),
    ("element.js", SCRIPT, include_str!("page/element.js")),
    ("fits.js", SCRIPT, include_str!("page/fits.js")),
    ("fleet.js", SCRIPT, include_str!("page/fleet.js")),
    ("keys.js", SCRIPT, include_str!("page/keys.js")),
    ("namespace.js", SCRIPT, include_str!("page/namespace.js")),
    ("node.js", SCRIPT, include_str!("page/node.js")),
    ("picture.js", SCRIPT, include_str!("page/picture.js")),
    ("pod.js", SCRIPT, include_str!("page/pod.js")),
    ("queue.js", SCRIPT, include_str!("page/queue.js")),
    ("words.js", SCRIPT, include_str!("page/words.js")),
];

/// What the browser lets the page do: run and fetch what comes from where the page came from, and make no markup from text.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

/// The headers of every answer.
const HEADERS: &[(HeaderName, &str)] = &[
    (header::CACHE_CONTROL, "no-cache"),
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
];

/// Answers [`UI`] and what is below it. No token is asked for: the files are the same for everyone.
pub fn router() -> Router {
    let moved = || async { (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, "ui/")]) };
    let files = FILES.iter().fold(Router::new(), |router, (name, kind, text)| {
        let tag = tag(text);
        let answer = move |asked: HeaderMap| {
            let tag = tag.clone();
            async move { file(&asked, tag, kind, text) }
        };
        router.route(&format!("{UI}{name}"), get(answer))
    });
    files.route(UI.trim_end_matches('/'), get(moved))
}

/// Names a file by its content, so that a browser fetches it again only when it is another.
fn tag(text: &str) -> HeaderValue {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    HeaderValue::try_from(format!("\"{:016x}\"", hasher.finish()))
        .expect("digits and quotes are visible ASCII")
}

fn file(asked: &HeaderMap, tag: HeaderValue, kind: &'static str, text: &'static str) -> Response {
    let known = asked.get_all(header::IF_NONE_MATCH).iter().filter_map(|header| header.to_str().ok());
    let known = known.flat_map(|header| header.split(',')).any(|one| {
        let one = one.trim();
        one == "*" || one.trim_start_matches("W/").as_bytes() == tag.as_bytes()
    });
    let mut answer = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, kind)], text).into_response()
    };
    answer.headers_mut().insert(header::ETAG, tag);
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

#[cfg(test)]
mod tests {
    use axum::body::Body;
    use http::Request;
    use http_body_util::BodyExt as _;
    use tower::ServiceExt as _;

    use super::*;

    async fn asked(path: &str, known: Option<&HeaderValue>) -> Response {
        let mut request = Request::get(path);
        if let Some(known) = known {
            request = request.header(header::IF_NONE_MATCH, known);
        }
        let request = request.body(Body::empty()).expect("a request");
        router().oneshot(request).await.expect("a router always answers")
    }

    #[tokio::test]
    async fn every_file_is_served_with_the_policy_and_fetched_again_only_when_it_is_another() {
        for (name, kind, text) in FILES {
            let answer = asked(&format!("/ui/{name}"), None).await;
            assert_eq!(answer.status(), StatusCode::OK, "{name}");
            assert_eq!(answer.headers()[header::CONTENT_TYPE], *kind, "{name}");
            for (header, value) in HEADERS {
                assert_eq!(answer.headers()[header], *value, "{name}");
            }
            let tag = answer.headers()[header::ETAG].clone();
            let body = answer.into_body().collect().await.expect("the body is in memory").to_bytes();
            assert_eq!(body, text.as_bytes(), "{name}");
            let again = asked(&format!("/ui/{name}"), Some(&tag)).await;
            assert_eq!(again.status(), StatusCode::NOT_MODIFIED, "{name}");
            let other = asked(&format!("/ui/{name}"), Some(&HeaderValue::from_static("\"other\""))).await;
            assert_eq!(other.status(), StatusCode::OK, "{name}");
        }
    }

    #[tokio::test]
    async fn the_page_is_found_without_its_last_slash_below_any_prefix() {
        let answer = asked("/ui", None).await;
        assert_eq!(answer.status(), StatusCode::PERMANENT_REDIRECT);
        assert_eq!(answer.headers()[header::LOCATION], "ui/");
    }

    #[test]
    fn every_script_that_a_file_names_is_there_and_nothing_comes_from_elsewhere() {
        for (name, _, text) in FILES {
            for (at, _) in text.match_indices("from \"./") {
                let rest = &text[at + "from \"./".len()..];
                let script = rest.split('"').next().expect("split gives at least one part");
                assert!(FILES.iter().any(|(name, _, _)| *name == script), "{name} imports {script}");
            }
            let text = text.replace("http://www.w3.org/", "");
            for elsewhere in
                ["http://", "https://", "innerHTML", "insertAdjacentHTML", "eval(", " style=\"", "onclick="]
            {
                assert!(!text.contains(elsewhere), "{name} has {elsewhere}");
            }
        }
    }
}
