//! Certificates from files that change under a running server.

use std::{
    fs,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use berth::webhook::{
    Certificates, Files, Limits,
    certificate::{
        mint::{Bundle, Pair},
        tls::Refreshed,
    },
};
use http::StatusCode;
use rustls::pki_types::{CertificateDer, pem::PemObject as _};
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinSet};

use super::{
    client::{Client, Protocol, review},
    server::{Server, another, bundle, ignoring},
};

/// A folder as kubelet mounts a Secret: the files are links through `..data`, which is exchanged as one.
struct Mount {
    dir: TempDir,
}

impl Mount {
    fn new(pair: &Pair) -> Self {
        let mount = Self { dir: TempDir::new().unwrap() };
        mount.put("1", pair);
        for name in ["tls.crt", "tls.key"] {
            std::os::unix::fs::symlink(Path::new("..data").join(name), mount.dir.path().join(name)).unwrap();
        }
        mount
    }

    fn put(&self, version: &str, pair: &Pair) {
        let folder = self.dir.path().join(version);
        fs::create_dir(&folder).unwrap();
        fs::write(folder.join("tls.crt"), &pair.certificate).unwrap();
        fs::write(folder.join("tls.key"), &pair.key).unwrap();
        std::os::unix::fs::symlink(version, self.dir.path().join("..data_tmp")).unwrap();
        fs::rename(self.dir.path().join("..data_tmp"), self.dir.path().join("..data")).unwrap();
    }

    fn files(&self) -> Files {
        Files::new(self.dir.path().join("tls.crt"), self.dir.path().join("tls.key"))
    }
}

fn der(pair: &Pair) -> Vec<u8> {
    CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap().to_vec()
}

async fn serve(certificates: &Arc<Certificates>, authority: &Pair) -> Server {
    Server::with(ignoring(), Limits::default(), certificates, authority.certificate.clone()).await
}

/// Opens connections and sends reviews on each until told to stop; fails with the first that fails.
async fn load(server: Arc<Server>, protocol: Protocol, stop: watch::Receiver<bool>, done: Arc<AtomicUsize>) {
    while !*stop.borrow() {
        let mut client = Client::connect(&server, protocol).await.unwrap();
        for _ in 0..3 {
            assert_eq!(client.post("/mutate", review("p")).await.status, StatusCode::OK);
            done.fetch_add(1, Ordering::Relaxed);
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_change_under_load_without_a_failed_review() {
    let Bundle { authority, serving } = bundle();
    let mount = Mount::new(&serving);
    let mut files = mount.files();
    let certificates = files.load().await.unwrap();
    let server = Arc::new(serve(&certificates, &authority).await);
    let mut follower = JoinSet::new();
    follower.spawn(files.follow(Arc::clone(&certificates), Duration::from_millis(1)));
    let (stop, stopping) = watch::channel(false);
    let done = Arc::new(AtomicUsize::new(0));
    let mut clients = JoinSet::new();
    for protocol in [Protocol::Http1, Protocol::Http2] {
        clients.spawn(load(Arc::clone(&server), protocol, stopping.clone(), Arc::clone(&done)));
    }
    let mut old = Client::connect(&server, Protocol::Http1).await.unwrap();
    let mut exchanged = certificates.not_after();
    for version in ["2", "3", "4", "5"] {
        let next = another(&authority);
        mount.put(version, &next);
        exchanged.changed().await.unwrap();
        let fresh = Client::connect(&server, Protocol::Http1).await.unwrap();
        assert_eq!(fresh.certificate, der(&next));
    }
    assert_eq!(old.certificate, der(&serving));
    assert_eq!(old.post("/mutate", review("p")).await.status, StatusCode::OK, "an open connection goes on");
    stop.send_replace(true);
    while let Some(client) = clients.join_next().await {
        client.unwrap();
    }
    assert!(done.load(Ordering::Relaxed) > 0);
}

#[tokio::test]
async fn bad_new_files_keep_the_old_certificate() {
    let Bundle { authority, serving } = bundle();
    let mount = Mount::new(&serving);
    let mut files = mount.files();
    let certificates = files.load().await.unwrap();
    let server = serve(&certificates, &authority).await;
    let other = another(&authority);
    let torn = Pair { certificate: other.certificate.clone(), key: serving.key.clone() };
    let garbage = Pair { certificate: "garbage".to_owned(), key: serving.key.clone() };
    let keyless = Pair { certificate: other.certificate.clone(), key: String::new() };
    let cases = [
        ("2", torn, "do not belong together"),
        ("3", garbage, "tls.crt: not a"),
        ("4", keyless, "tls.key: not a"),
    ];
    for (version, pair, reason) in cases {
        mount.put(version, &pair);
        let error = files.refresh(&certificates).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert_eq!(files.refresh(&certificates).await.unwrap(), Refreshed::Unchanged, "told once");
        let mut client = Client::connect(&server, Protocol::Http1).await.unwrap();
        assert_eq!(client.certificate, der(&serving));
        assert_eq!(client.post("/mutate", review("p")).await.status, StatusCode::OK);
    }
    mount.put("5", &other);
    assert_eq!(files.refresh(&certificates).await.unwrap(), Refreshed::Exchanged);
    assert_eq!(Client::connect(&server, Protocol::Http1).await.unwrap().certificate, der(&other));
}

#[tokio::test]
async fn files_that_are_missing_are_named() {
    let error = Files::new("/nonexistent/tls.crt", "/nonexistent/tls.key").load().await.unwrap_err();
    assert_eq!(error.to_string(), "/nonexistent/tls.crt");
}
