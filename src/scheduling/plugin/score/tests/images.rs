//! Images: what a node that has some scores, and what a change of them moves.

use super::*;

#[test]
fn a_node_that_has_the_images_scores_by_their_size_and_spread() {
    let images = ScoreWeights::each(|plugin| u32::from(plugin == Plugin::ImageLocality));
    let cluster = Cluster::new(ZONES)
        .with_images("a", &[("cuda:latest", 2000), ("tools:1", 40)])
        .with_images("b", &[("cuda:latest", 2000)])
        .with_images("d", &[("tools:1", 40)]);
    let scores = |pod: &str| cluster.weighed(&demand(pod), Plugin::ImageLocality, &images);
    // Half of the nodes have 2000 MiB: 1000 of at most 1000. For two containers it is (1000 - 23) of (2000 - 23).
    let full = [Some(100), Some(100), Some(0), Some(0)];
    assert_eq!(scores(r#"{"spec":{"containers":[{"image":"cuda"}]}}"#), full);
    let half = [Some(49), Some(49), Some(0), Some(0)];
    assert_eq!(scores(r#"{"spec":{"containers":[{"image":"cuda"},{"image":"other"}]}}"#), half);
    assert_eq!(
        scores(r#"{"spec":{"containers":[{"image":"other"}],"initContainers":[{"image":"cuda"}]}}"#),
        half
    );
    let mounted =
        r#"{"spec":{"containers":[{"image":"other"}],"volumes":[{"image":{"reference":"cuda:latest"}}]}}"#;
    assert_eq!(scores(mounted), full);
    let newer = Cluster::following(KubeScheduler::V1_37, ZONES)
        .with_images("a", &[("cuda:latest", 2000)])
        .with_images("b", &[("cuda:latest", 2000)]);
    assert_eq!(
        newer.weighed(&demand(mounted), Plugin::ImageLocality, &images),
        half,
        "a mounted image counts as one"
    );
    // 20 MiB are too few to count; no node has the last.
    assert_eq!(scores(r#"{"spec":{"containers":[{"image":"tools:1"}]}}"#), [Some(0); 4]);
    assert_eq!(scores(r#"{"spec":{"containers":[{"image":"absent"}]}}"#), [None; 4]);
    let pod = demand(r#"{"spec":{"containers":[{"image":"cuda:latest"}]}}"#);
    let away = cluster.scores(&pod, Plugin::ImageLocality);
    assert_eq!(away, [None; 4], "the default weight is 0");
    let late = Cluster::new(ZONES).with_images("d", &[("cuda:latest", 9000)]);
    assert_eq!(&*late.place(&pod, images), "d");
}

#[test]
fn images_that_change_move_no_generation() {
    let mut snapshot = Cluster::new(ZONES).with_images("a", &[("x:1", 1)]).0;
    let generation = snapshot.generation();
    let mut info = (*snapshot.node("a").unwrap().info).clone();
    info.images = NodeImages::new([("x:1", 1), ("y:1", 1)]);
    assert!(info.fits_as(&snapshot.node("a").unwrap().info));
    snapshot.refresh_node(info);
    assert_eq!((snapshot.nodes.images().nodes("y:1"), snapshot.generation()), (1, generation));
    snapshot.remove_node("a");
    assert_eq!(snapshot.nodes.images().nodes("x:1"), 0);
}
