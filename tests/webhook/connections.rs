//! Connections that dawdle, and what becomes of connections when the server ends.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use berth::{admission::Verdict, webhook::Limits};
use http::StatusCode;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::Notify,
    time::timeout,
};
use tokio_rustls::client::TlsStream;

use super::{
    client::{Client, Protocol, handshake, review},
    server::{Server, ignoring},
};

/// After this time nobody has given way.
const LIMIT: Duration = Duration::from_mins(1);
const SOON: Duration = Duration::from_millis(50);

#[tokio::test]
async fn a_connection_that_never_shakes_hands_gives_its_place_back() {
    let limits = Limits { connections: 1, handshake: SOON, ..Limits::default() };
    let server = Server::limited(ignoring(), limits).await;
    let mut silent = TcpStream::connect(server.address).await.unwrap();
    let mut client = Client::connect(&server, Protocol::Http1).await.unwrap();
    assert_eq!(client.post("/mutate", review("p")).await.status, StatusCode::OK);
    assert_eq!(silent.read(&mut [0]).await.unwrap(), 0, "the server has hung up");
}

#[tokio::test]
async fn a_connection_that_asks_nothing_is_closed() {
    let server = Server::limited(ignoring(), Limits { header: SOON, ..Limits::default() }).await;
    let mut silent = handshake(&server, &server.authority, Protocol::Http1).await.unwrap();
    let read = silent.read(&mut [0]).await;
    assert!(read.is_err() || read.is_ok_and(|bytes| bytes == 0), "the server has hung up");
}

#[tokio::test]
async fn connections_that_ask_nothing_shut_nobody_out() {
    for protocol in [Protocol::Http1, Protocol::Http2] {
        let limits = Limits { connections: 2, idle: Duration::ZERO, ..Limits::default() };
        let server = Server::limited(ignoring(), limits).await;
        let mut held = Vec::new();
        for _ in 0..2 {
            let mut client = Client::connect(&server, protocol).await.unwrap();
            assert_eq!(client.get("/healthz").await.status, StatusCode::OK);
            held.push(client);
        }
        for _ in 0..3 {
            let connected = timeout(LIMIT, Client::connect(&server, Protocol::Http1)).await;
            let mut client = connected.expect("somebody gives way").unwrap();
            assert_eq!(client.post("/mutate", review("p")).await.status, StatusCode::OK);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn a_review_under_way_is_answered_before_the_server_ends() {
    let entered = Arc::new(Notify::new());
    let (release, released) = mpsc::channel::<()>();
    let (enters, released) = (Arc::clone(&entered), Mutex::new(released));
    let judge = Arc::new(move |_: &berth::admission::Request<'_>| {
        enters.notify_one();
        released.lock().unwrap().recv().unwrap();
        Verdict::Ignored
    });
    let server = Server::start(judge).await;
    let address = server.address;
    let mut idle = Client::connect(&server, Protocol::Http1).await.unwrap();
    assert_eq!(idle.get("/healthz").await.status, StatusCode::OK);
    let mut client = Client::connect(&server, Protocol::Http1).await.unwrap();
    let asking = async { client.post("/mutate", review("p")).await };
    let ending = async {
        entered.notified().await;
        let task = server.stop();
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
        release.send(()).unwrap();
        task
    };
    let (answer, mut task) = tokio::join!(asking, ending);
    assert_eq!(answer.status, StatusCode::OK);
    task.join_next().await.unwrap().unwrap();
}

/// Has the server end; returns once it accepts no more connections.
async fn ending(server: Server) -> tokio::task::JoinSet<()> {
    let address = server.address;
    let task = server.stop();
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    task
}

/// A review over HTTP/1.1, as a client writes it.
fn written() -> Vec<u8> {
    let body = review("p");
    let head = "POST /mutate HTTP/1.1\r\nhost: berth.berth-system.svc\r\ncontent-type: application/json";
    [format!("{head}\r\ncontent-length: {}\r\n\r\n", body.len()).as_bytes(), &body].concat()
}

/// What the server writes until it closes its side.
async fn rest(stream: &mut TlsStream<TcpStream>) -> String {
    let mut text = Vec::new();
    stream.read_to_end(&mut text).await.unwrap();
    String::from_utf8_lossy(&text).into_owned()
}

/// kube-apiserver's client repeats a review that was answered in this way, and none that was not answered
/// (`k8s.io/client-go/rest/with_retry.go`).
#[tokio::test]
async fn a_review_that_meets_the_end_of_an_idle_connection_is_to_be_repeated() {
    let server = Server::start(ignoring()).await;
    let mut stream = handshake(&server, &server.authority, Protocol::Http1).await.unwrap();
    stream.write_all(&written()).await.unwrap();
    let mut answer = vec![0; 4096];
    let length = stream.read(&mut answer).await.unwrap();
    assert!(answer[..length].starts_with(b"HTTP/1.1 200 OK"), "the connection is idle now");

    let mut task = ending(server).await;
    for _ in 0..3 {
        stream.write_all(&written()).await.expect("the server does not reset the connection");
        tokio::task::yield_now().await;
    }
    let answer = rest(&mut stream).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 503 ") && answer.contains("\r\nretry-after: 1\r\n"), "{answer}");
    stream.shutdown().await.unwrap();
    task.join_next().await.unwrap().unwrap();
}

#[tokio::test]
async fn the_first_review_of_a_new_connection_is_answered_when_the_server_ends() {
    let server = Server::start(ignoring()).await;
    let mut stream = handshake(&server, &server.authority, Protocol::Http1).await.unwrap();
    let mut task = ending(server).await;
    for _ in 0..100 {
        // The server gets every chance to close the connection first.
        tokio::task::yield_now().await;
    }
    stream.write_all(&written()).await.unwrap();
    let answer = rest(&mut stream).await.to_lowercase();
    assert!(answer.starts_with("http/1.1 200 ") && answer.contains("\r\nconnection: close\r\n"), "{answer}");
    assert!(!answer.contains("http/1.1 503"), "{answer}");
    drop(stream);
    task.join_next().await.unwrap().unwrap();
}

/// The type of a frame and its payload (RFC 9113, 4.1).
async fn frame(stream: &mut TlsStream<TcpStream>) -> Option<(u8, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head).await.ok()?;
    let mut payload = vec![0; usize::from(head[2]) | usize::from(head[1]) << 8];
    stream.read_exact(&mut payload).await.unwrap();
    Some((head[3], payload))
}

/// A client that has not read the GOAWAY yet goes on to write; a reset would keep it from reading it.
#[tokio::test]
async fn a_client_of_http2_can_write_until_it_has_read_that_the_server_ends() {
    const SETTINGS: [u8; 9] = [0, 0, 0, 4, 0, 0, 0, 0, 0];
    const ANSWERED_PING: [u8; 9] = [0, 0, 8, 6, 1, 0, 0, 0, 0];
    const PING: u8 = 6;
    const GOAWAY: u8 = 7;
    let server = Server::start(ignoring()).await;
    let mut stream = handshake(&server, &server.authority, Protocol::Http2).await.unwrap();
    stream.write_all(&[b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", &SETTINGS[..]].concat()).await.unwrap();
    frame(&mut stream).await.expect("the server's settings");

    let mut task = ending(server).await;
    let mut last_streams = Vec::new();
    while let Some((kind, payload)) = frame(&mut stream).await {
        match kind {
            PING => stream.write_all(&[&ANSWERED_PING[..], &payload].concat()).await.unwrap(),
            GOAWAY => last_streams.push(payload[..4].to_vec()),
            _ => {}
        }
    }
    assert_eq!(last_streams.last().unwrap(), &[0, 0, 0, 0], "a later request is known not to be begun");
    for _ in 0..3 {
        stream.write_all(&SETTINGS).await.expect("the server does not reset the connection");
        tokio::task::yield_now().await;
    }
    stream.shutdown().await.unwrap();
    task.join_next().await.unwrap().unwrap();
}
