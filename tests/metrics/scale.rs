//! What a scrape of a large cluster costs, and that the number of series is what docs/metrics.md says.
//!
//! `BERTH_SCRAPE_NODES=10000 cargo test --test repository metrics::scale -- --nocapture` prints the figures.

use std::time::Duration;

use berth::{
    cluster::report::scrape::{Holdings, SeriesDetail, ShownSeries},
    config::Config,
};
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

/// Nodes of eight cards, and five pods for each four cards.
fn large(config: &Config) -> (Machine, usize, usize) {
    let nodes = nodes();
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
    let (cards, held) = (nodes * CARDS, nodes * CARDS * 5 / 4);
    let pods: Vec<_> = (0..held)
        .map(|at| {
            let (node, card) = (at % cards / CARDS, at % CARDS);
            let devices = format!("{},NVIDIA,4000,30:;", uuid(node, card));
            holder(&format!("team-{}", at % 10), &format!("p{at}"), &format!("n{node}"), &devices)
        })
        .collect();
    (Machine::new(config, &cluster, &pods), cards, held)
}

/// The page, how long the loop copies for it, and how long all of it takes.
fn page(machine: &Machine, config: &Config, asked: Option<SeriesDetail>) -> (String, [Duration; 2]) {
    let began = Instant::now();
    let holdings = Holdings::of(machine.scheduler(), &config.dialects()).unwrap();
    let copied = began.elapsed();
    let mut page = String::new();
    encode(&mut page, &holdings.registry(ShownSeries { asked, ..config.shown() })).unwrap();
    (page, [copied, began.elapsed()])
}

#[expect(clippy::cast_precision_loss, reason = "a number of cards or of pods, or MiB")]
fn as_number(count: usize) -> f64 {
    count as f64
}

fn series(page: &str, prefix: &str) -> usize {
    samples(page).iter().filter(|(series, _)| series.starts_with(prefix)).count()
}

#[test]
fn a_scrape_has_as_many_series_as_documented() {
    let config = config("metrics: {hamiNames: true}");
    let (machine, cards, held) = large(&config);
    let (all, all_took) = page(&machine, &config, Some(SeriesDetail::Pods));
    let series = |prefix: &str| series(&all, prefix);
    assert_eq!((series("berth_card_"), series("berth_pod_")), (7 * cards, 3 * held));
    assert_eq!((series("berth_node_cards"), series("berth_namespace_")), (cards, 30.min(3 * held)));
    assert_eq!(series("berth_gpus_"), 16);
    assert_eq!((series("hami_gpu_") + series("hami_node_"), series("hami_vgpu_")), (7 * cards, 2 * held));
    let (usual, usual_took) = page(&machine, &config, None);
    for (what, page, [copied, took]) in [("all series", &all, all_took), ("by default", &usual, usual_took)] {
        let size = page.len() / 1024;
        say(&format!(
            "{cards} cards, {held} pods, {what}: the loop copies for {copied:?}; with rendering it takes {took:?}; {size} KiB"
        ));
    }
}

#[test]
fn what_would_be_too_many_series_is_summed_up_and_counted_unless_it_is_asked_for() {
    let all = config("metrics: {hamiNames: true}");
    let (machine, cards, held) = large(&all);
    // HAMi's names are 14 for a card and 4 for a share of one.
    let (of_cards, of_pods) = (cards * (7 + 14), held * (3 + 4));
    for (limit, asked, shown) in [
        (of_cards + of_pods, None, SeriesDetail::Pods),
        (of_cards + of_pods - 1, None, SeriesDetail::Cards),
        (of_cards, None, SeriesDetail::Cards),
        (of_cards - 1, None, SeriesDetail::Nodes),
        (0, Some(SeriesDetail::Cards), SeriesDetail::Cards),
        (0, Some(SeriesDetail::Pods), SeriesDetail::Pods),
        (usize::MAX, Some(SeriesDetail::Nodes), SeriesDetail::Nodes),
    ] {
        let limit = limit.min(100_000_000);
        let config = config(&format!("metrics: {{hamiNames: true, seriesLimit: {limit}}}"));
        let (page, _) = page(&machine, &config, asked);
        let (with_cards, with_pods) = (shown >= SeriesDetail::Cards, shown >= SeriesDetail::Pods);
        let of = |shown: bool, series: usize| if shown { series } else { 0 };
        assert_eq!(series(&page, "berth_card_"), of(with_cards, 7 * cards), "{limit} {asked:?}");
        assert_eq!(series(&page, "hami_gpu_memory_limit_bytes"), of(with_cards, cards));
        assert_eq!(series(&page, "berth_pod_"), of(with_pods, 3 * held), "{limit} {asked:?}");
        assert_eq!(series(&page, "vGPUCoreAllocated"), of(with_pods, held));
        for (of_what, is_shown, series) in [("cards", with_cards, of_cards), ("pods", with_pods, of_pods)] {
            let left_out = of(!is_shown, series);
            let line = format!(r#"berth_scrape_left_out_series{{of="{of_what}"}} {left_out}"#);
            assert!(page.lines().any(|shown| shown == line), "{limit} {asked:?}: {line}");
        }
        // The sums are always there.
        let sum = |name: &str| {
            let values = samples(&page).into_iter().filter(|(series, _)| series.starts_with(name));
            values.map(|(_, value)| value.parse::<f64>().unwrap()).sum::<f64>()
        };
        let mib = |number: usize| as_number(number * 4000) * 1_048_576.0;
        assert!((sum("berth_node_cards_memory_allocated_bytes{") - mib(held)).abs() < 1.0);
        assert!((sum("berth_namespace_memory_allocated_bytes{") - mib(held)).abs() < 1.0);
        assert!((sum("berth_node_cards_slots_allocated{") - as_number(held)).abs() < 0.1);
        assert!((sum("berth_node_cards{") - as_number(cards)).abs() < 0.1);
    }
}
