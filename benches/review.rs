//! What one review costs: in the process, and over TLS with connections that stay open; or what it costs a server that runs already.
//!
//! Load and server share the machine's cores. It must not be slower than it says: figures are printed, not judged.
#![expect(clippy::unwrap_used, reason = "what fails in a bench ends the bench")]

#[path = "review/asked.rs"]
mod asked;

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use asked::{body, judge, pod};
use berth::{
    admission::AdmissionStage,
    object::Workloads,
    webhook::{
        Certificates, Judge, Limits, Listener, ServerReadiness, Webhook, WebhookMetrics, answer,
        certificate::mint::{self, Lifetimes, ServingNames},
        router,
    },
};
use clap::Parser;
use prometheus_client::registry::Registry;
use rustls::{
    ClientConfig, RootCertStore,
    crypto::ring,
    pki_types::{CertificateDer, ServerName, pem::PemObject as _},
};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::TcpStream,
    sync::watch,
    task::JoinSet,
    time::Instant,
};
use tokio_rustls::TlsConnector;

/// The program's own.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WARM_UP: Duration = Duration::from_secs(1);
const MEASURED: Duration = Duration::from_secs(5);
const HOST: &str = "berth.berth-system.svc";

/// Prints what reviews cost.
#[derive(Debug, Parser)]
struct Args {
    /// The address of a server that runs already, which is asked instead of one in this process.
    #[arg(long, requires_all = ["process", "ca_file"])]
    server: Option<SocketAddr>,
    /// The process of that server, whose processor time is counted.
    #[arg(long)]
    process: Option<u32>,
    /// The authority (PEM) of that server's certificate, which is for `berth.berth-system.svc`.
    #[arg(long)]
    ca_file: Option<PathBuf>,
    /// Asks for `/healthz` in place of reviews: what TLS, HTTP and the kernel cost by themselves.
    #[arg(long)]
    health: bool,
    /// Connections at a time.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 16, 128])]
    connections: Vec<u32>,
    /// Passed by cargo; means nothing here.
    #[arg(long, hide = true)]
    bench: bool,
}

/// Whose processor time is counted.
#[derive(Clone, Copy)]
enum Counted {
    /// That of this process: load and server together.
    Own,
    /// That of another process: the server's alone.
    Server(u32),
}

/// Processor time of a process so far. On a busy machine it says more than the clock.
fn processor(of: Counted) -> Duration {
    // utime and stime, in hundredths of a second: proc_pid_stat(5).
    let process = match of {
        Counted::Own => "self".to_owned(),
        Counted::Server(process) => process.to_string(),
    };
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks: u64 = fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap();
    Duration::from_millis(ticks * 10)
}

fn in_process(body: &[u8], judge: &Judge) {
    let workloads = &Workloads::default();
    let one = || {
        let answer = answer(body, AdmissionStage::Mutate, judge, workloads).unwrap();
        assert!(answer.review.response.allowed && answer.review.response.patch.is_some());
        serde_json::to_vec(&answer.review).unwrap()
    };
    let (started, worked) = (Instant::now(), processor(Counted::Own));
    let mut reviews = 0_u32;
    while started.elapsed() < MEASURED {
        for _ in 0..100 {
            std::hint::black_box(one());
        }
        reviews += 100;
    }
    println!(
        "in process, one thread      {:>9.0}/s {:>9.1?} a review, {:.1?} of processor",
        f64::from(reviews) / started.elapsed().as_secs_f64(),
        started.elapsed() / reviews,
        processor(Counted::Own).saturating_sub(worked) / reviews,
    );
}

struct Served {
    address: SocketAddr,
    connector: TlsConnector,
    counted: Counted,
    _tasks: JoinSet<()>,
}

async fn serve(judge: Judge) -> Served {
    let names = ServingNames { service: "berth".into(), namespace: "berth-system".into(), extra: Vec::new() };
    let now = berth::cluster::Clock::System.now();
    let bundle = mint::bundle(&names, Lifetimes::default(), now).unwrap();
    let certificates = Certificates::from_pair(&bundle.serving).unwrap();
    let mut registry = Registry::default();
    let metrics = WebhookMetrics::register(&mut registry);
    let (_, readiness) = watch::channel(ServerReadiness::Ready);
    let router = router(Webhook::new(judge, metrics, Arc::new(registry), readiness));
    let bound = Listener::new(Limits::default()).bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let address = bound.local_addr();
    let mut tasks = JoinSet::new();
    tasks.spawn(bound.serve(router, certificates.server_config(), std::future::pending()));
    let connector = connector(bundle.authority.certificate.as_bytes());
    Served { address, connector, counted: Counted::Own, _tasks: tasks }
}

/// A client that trusts this authority.
fn connector(authority: &[u8]) -> TlsConnector {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority).unwrap()).unwrap();
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Arc::new(config).into()
}

/// The bytes of a request for a review with this body.
fn review_request(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /mutate HTTP/1.1\r\nhost: {HOST}\r\ncontent-type: application/json\r\naccept: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The bytes of a request for an answer without work.
fn health_request() -> Vec<u8> {
    format!("GET /healthz HTTP/1.1\r\nhost: {HOST}\r\naccept: application/json\r\n\r\n").into_bytes()
}

/// One connection that asks again as soon as it was answered; the latencies that were seen after the warm-up.
async fn ask(address: SocketAddr, connector: TlsConnector, request: Arc<Vec<u8>>) -> Vec<Duration> {
    let stream = TcpStream::connect(address).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let mut stream = connector.connect(ServerName::try_from(HOST).unwrap(), stream).await.unwrap();
    let mut answer = vec![0; 16 * 1024];
    let mut seen = Vec::new();
    let started = Instant::now();
    while started.elapsed() < WARM_UP + MEASURED {
        let sent = Instant::now();
        stream.write_all(&request).await.unwrap();
        stream.flush().await.unwrap();
        let mut filled = 0;
        while !is_whole(&answer[..filled]) {
            let read = stream.read(&mut answer[filled..]).await.unwrap();
            assert!(read > 0, "the server hung up");
            filled += read;
        }
        assert!(answer.starts_with(b"HTTP/1.1 200 "));
        if started.elapsed() > WARM_UP {
            seen.push(sent.elapsed());
        }
    }
    seen
}

fn is_whole(answer: &[u8]) -> bool {
    let Some(end) = answer.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = std::str::from_utf8(&answer[..end]).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    answer.len() >= end + 4 + length.parse::<usize>().unwrap()
}

async fn over_tls(served: &Served, request: &Arc<Vec<u8>>, connections: u32) {
    let worked = processor(served.counted);
    let mut clients = JoinSet::new();
    for _ in 0..connections {
        clients.spawn(ask(served.address, served.connector.clone(), Arc::clone(request)));
    }
    let mut seen = clients.join_all().await.concat();
    // The warm-up is worked for too, at the same pace.
    let share = MEASURED.as_secs_f64() / (WARM_UP + MEASURED).as_secs_f64();
    let worked =
        processor(served.counted).saturating_sub(worked).mul_f64(share) / u32::try_from(seen.len()).unwrap();
    seen.sort_unstable();
    let at = |part: usize| seen[(seen.len() * part / 100).min(seen.len() - 1)];
    println!(
        "over TLS, {connections:>3} connection{} {:>8}/s       p50 {:>9.1?}   p99 {:>9.1?}   {worked:.1?} of processor, {}",
        if connections == 1 { " " } else { "s" },
        seen.len() / usize::try_from(MEASURED.as_secs()).unwrap(),
        at(50),
        at(99),
        match served.counted {
            Counted::Own => "load and server",
            Counted::Server(_) => "the server's alone",
        },
    );
}

fn main() {
    let args = Args::parse();
    let body = body();
    println!("a pod of {} bytes in a review of {}", pod().to_string().len(), body.len());
    let running = args.server.zip(args.process).zip(args.ca_file);
    let judge = running.is_none().then(judge);
    if let Some(judge) = &judge {
        in_process(&body, judge);
    }
    let request = Arc::new(if args.health { health_request() } else { review_request(&body) });
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let served = match (running, judge) {
            (Some(((address, process), authority)), _) => {
                let connector = connector(&std::fs::read(authority).unwrap());
                Served { address, connector, counted: Counted::Server(process), _tasks: JoinSet::new() }
            }
            (None, judge) => serve(judge.unwrap()).await,
        };
        for &connections in &args.connections {
            over_tls(&served, &request, connections).await;
        }
    });
}
