//! What a scrape of a large cluster costs, and that the number of series is what docs/metrics.md says.
//!
//! `BERTH_SCRAPE_NODES=10000 cargo test --test repository metrics::scale -- --nocapture` prints the figures.

use berth::cluster::report::scrape::Holdings;
use prometheus_client::encoding::text::encode;
use tokio::time::Instant;

use crate::{
    metrics::{
        machine::Machine,
        world::{config, gpu_node, holder, samples},
    },
    support::server::say,
};

const CARDS: usize = 8;

fn nodes() -> usize {
    std::env::var_os("BERTH_SCRAPE_NODES").map_or(20, |text| text.to_str().unwrap().parse().unwrap())
}

#[test]
fn a_scrape_has_as_many_series_as_documented() {
    let (config, nodes) = (config("metrics: {hamiNames: true}"), nodes());
    let uuid = |node: usize, card: usize| format!("GPU-{node:05}-{card}");
    let cluster: Vec<_> = (0..nodes)
        .map(|node| {
            let cards: Vec<_> = (0..CARDS).map(|card| uuid(node, card)).collect();
            gpu_node(
                &format!("n{node}"),
                &cards.iter().map(String::as_str).collect::<Vec<_>>(),
                "NVIDIA A100",
            )
        })
        .collect();
    let pods: Vec<_> = (0..nodes * CARDS)
        .map(|at| {
            let (node, card) = (at / CARDS, at % CARDS);
            let devices = format!("{},NVIDIA,4000,30:;", uuid(node, card));
            holder(&format!("team-{}", at % 10), &format!("p{at}"), &format!("n{node}"), &devices)
        })
        .collect();
    let machine = Machine::new(&config, &cluster, &pods);
    let began = Instant::now();
    let holdings = Holdings::of(machine.scheduler(), &config.dialects()).unwrap();
    let copied = began.elapsed();
    let mut page = String::new();
    encode(&mut page, &holdings.registry(config.shown())).unwrap();
    let took = began.elapsed();
    let series =
        |prefix: &str| samples(&page).iter().filter(|(series, _)| series.starts_with(prefix)).count();
    let cards = nodes * CARDS;
    assert_eq!((series("berth_card_"), series("berth_pod_")), (7 * cards, 3 * cards));
    assert_eq!(series("berth_namespace_"), 30.min(3 * cards));
    assert_eq!(series("berth_gpus_"), 16);
    assert_eq!((series("hami_gpu_") + series("hami_node_"), series("hami_vgpu_")), (7 * cards, 2 * cards));
    let size = page.len() / 1024;
    say(&format!(
        "{cards} cards: the loop copies for {copied:?}; with rendering it takes {took:?}; {size} KiB"
    ));
}
