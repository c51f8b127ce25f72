//! Connections that dawdle, and the server's end.

use std::{
    sync::{Arc, Mutex, mpsc},
    time::Duration,
};

use berth::{admission::Verdict, webhook::Limits};
use http::StatusCode;
use tokio::{io::AsyncReadExt as _, net::TcpStream, sync::Notify, time::timeout};

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
