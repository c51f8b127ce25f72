//! Attacks that the webhook has withstood from outside, to stay so: a review of somebody else is answered beside each of them.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};

use berth::{
    admission::{Request, Verdict},
    webhook::Judge,
};
use http::StatusCode;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    time::timeout,
};

use super::{
    client::{Client, Protocol, handshake, post, review},
    server::{Server, ignoring},
};

/// After this time nobody is answered any more; a review that fails earlier fails the pod that it is about.
const LIMIT: Duration = Duration::from_mins(1);

/// A judge that counts what it is asked.
fn counting() -> (Judge, Arc<AtomicUsize>) {
    let asked = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&asked);
    let judge = move |_: &Request<'_>| {
        counts.fetch_add(1, Relaxed);
        Verdict::Ignored
    };
    (Arc::new(judge), asked)
}

/// The answer to a review by somebody who has no connection yet.
async fn somebody_else(server: &Server) -> StatusCode {
    let asking = async {
        let mut client = Client::connect(server, Protocol::Http2).await.unwrap();
        client.post("/mutate", review("probe")).await.status
    };
    timeout(LIMIT, asking).await.expect("an answer")
}

#[tokio::test]
async fn thousands_of_silent_connections_do_not_keep_a_review_from_being_answered() {
    let server = Server::start(ignoring()).await;
    let mut silent = Vec::new();
    for _ in 0..2000 {
        silent.push(TcpStream::connect(server.address).await.unwrap());
    }
    assert_eq!(somebody_else(&server).await, StatusCode::OK);
    drop(silent);
}

#[tokio::test]
async fn bodies_of_three_megabytes_on_many_connections_do_not_either() {
    const MEGABYTES: usize = 1024 * 1024;
    let (judge, asked) = counting();
    let server = Server::start(judge).await;
    let large = async {
        let mut answers = Vec::new();
        for _ in 0..32 {
            let mut client = Client::connect(&server, Protocol::Http2).await.unwrap();
            let mut body = review("large");
            body.resize(3 * MEGABYTES, b' ');
            answers.push(client.post("/mutate", body).await.status);
        }
        answers
    };
    let small = async {
        for _ in 0..8 {
            assert_eq!(somebody_else(&server).await, StatusCode::OK);
        }
    };
    let (answers, ()) = tokio::join!(large, small);
    assert!(
        answers.iter().all(|status| *status == StatusCode::OK),
        "the API server sends up to 3 MB: {answers:?}"
    );
    assert_eq!(asked.load(Relaxed), 40);
}

/// The review is a good one, compressed: if it were unpacked it would be answered, and so would a body that unpacks to gigabytes.
#[tokio::test]
async fn a_compressed_body_is_refused_and_not_unpacked() {
    const COMPRESSED: &[u8] = include_bytes!("review.json.gz");
    let (judge, asked) = counting();
    let server = Server::start(judge).await;
    for protocol in [Protocol::Http1, Protocol::Http2] {
        for encoding in ["gzip", "x-gzip", "gzip, gzip"] {
            let mut client = Client::connect(&server, protocol).await.unwrap();
            let mut request = post("/mutate", "application/json", COMPRESSED);
            request.headers_mut().insert("content-encoding", encoding.parse().unwrap());
            let answer = client.send(request).await.unwrap();
            assert!(answer.status.is_client_error(), "{encoding}: {}", answer.status);
        }
    }
    assert_eq!(asked.load(Relaxed), 0);
    assert_eq!(somebody_else(&server).await, StatusCode::OK);
}

/// A frame of HTTP/2 (RFC 9113, 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// A POST of a review whose body is still to come, in HPACK without a dynamic table (RFC 7541, appendix A).
fn headers() -> Vec<u8> {
    let literal =
        |name: &[u8], value: &str| [name, &[u8::try_from(value.len()).unwrap()], value.as_bytes()].concat();
    let (path, authority) = (literal(&[0x04], "/mutate"), literal(&[0x01], "berth.berth-system.svc"));
    let media_type = literal(&[0x0f, 0x10], "application/json");
    [&[0x83, 0x87][..], &path, &authority, &media_type].concat()
}

/// `CVE-2023-44487`: requests that are taken back as soon as they are made.
#[tokio::test]
async fn requests_that_are_reset_at_once_do_not_keep_a_review_from_being_answered() {
    const HEADERS: u8 = 1;
    const RST_STREAM: u8 = 3;
    const SETTINGS: u8 = 4;
    const END_HEADERS: u8 = 4;
    const CANCEL: [u8; 4] = [0, 0, 0, 8];
    let (judge, asked) = counting();
    let server = Server::start(judge).await;
    let stream = handshake(&server, &server.authority, Protocol::Http2).await.unwrap();
    let (mut answers, mut requests) = tokio::io::split(stream);
    let begin = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(SETTINGS, 0, 0, &[])].concat();
    requests.write_all(&begin).await.unwrap();
    let attack = async {
        for at in 0..20_000_u32 {
            let stream = 2 * at + 1;
            let pair =
                [frame(HEADERS, END_HEADERS, stream, &headers()), frame(RST_STREAM, 0, stream, &CANCEL)];
            // The server may end the connection, which ends the attack.
            if requests.write_all(&pair.concat()).await.is_err() {
                return;
            }
        }
    };
    let read = async {
        let mut read = vec![0; 64 * 1024];
        while answers.read(&mut read).await.is_ok_and(|length| length > 0) {}
    };
    let probes = async {
        for _ in 0..20 {
            assert_eq!(somebody_else(&server).await, StatusCode::OK);
        }
    };
    tokio::select! {
        ((), ()) = async { tokio::join!(attack, probes) } => {}
        ((), ()) = async { tokio::join!(read, std::future::pending::<()>()) } => {}
    }
    assert_eq!(somebody_else(&server).await, StatusCode::OK);
    assert_eq!(asked.load(Relaxed), 21, "nobody judges a review that was taken back");
}
