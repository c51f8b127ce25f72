//! What the screen shows of who holds which card, from files and as Berth's API tells it.

use clap::Parser as _;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{Terminal, backend::TestBackend};
use serde_json::json;

use super::*;
use crate::cli::{
    Cli, Command, documents,
    inspect::screen::{KeyEffect, Reading},
};

const CLUSTER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/cases/why_waits/cluster.yaml");

fn of_files(args: &[&str]) -> CardHolders {
    let words = [&["berth", "who", "-f", CLUSTER, "--at", "2026-11-20T12:00:00Z"], args].concat();
    let Command::Who(args) = Cli::try_parse_from(words).unwrap().command else { panic!("not who") };
    let (config, _) = Config::load(None).unwrap();
    args.holders(&documents::read(&args.cluster.file).unwrap(), &config).unwrap().0
}

/// Two cards: one with a pod by name and two that are not told, one that has no uuid.
fn told() -> CardHolders {
    let card = |id: &str, index: u32, shares: serde_json::Value| {
        json!({"id": id, "index": index, "model": "A10", "healthy": true, "memory": 1000, "memoryUsed": 700, "cores": 100,
            "coresUsed": 30, "slots": 10, "slotsUsed": 3, "stranded": "cpu", "shares": shares})
    };
    let shares = json!([
        {"namespace": "team", "pod": "p", "memory": 300, "cores": 10, "since": "2026-11-20T08:00:00Z"},
        {"others": 2, "memory": 400, "cores": 20},
    ]);
    let cards = [card("GPU-1", 0, shares), card("n/1", 1, json!([]))];
    let fleet: ToldFleet = serde_json::from_value(json!({"nodes": [{"name": "n", "cards": cards}]})).unwrap();
    CardHolders { nodes: fleet.nodes.into_iter().map(HeldNode::from).collect() }
}

/// The lines of a terminal, without the blanks at their ends.
fn drawn(screen: &mut Screen, holders: &CardHolders, (width, height): (u16, u16)) -> Vec<String> {
    let at = "2026-11-20T12:00:00Z".parse().unwrap();
    let reading = Reading { seen: Some(holders.clone()), at: Some(at), trouble: None };
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame, &reading)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

fn press(screen: &mut Screen, key: KeyCode) -> KeyEffect {
    screen.press(KeyEvent::new(key, KeyModifiers::NONE))
}

fn write(screen: &mut Screen, text: &str) {
    for c in text.chars() {
        press(screen, KeyCode::Char(c));
    }
}

fn screen() -> Screen {
    Screen::new::<CardHolders>(0, SortBy::Name, Detail::Usual)
}

#[test]
fn a_screen_says_the_card_in_each_row() {
    let lines = drawn(&mut screen(), &told(), (110, 7));
    assert_eq!(
        lines,
        [
            "berth who",
            "nodes 1, cards 2, 1 of them held by pods",
            "NODE  CARD   MEMORY (MIB)  COMPUTE  POD         HOLDS                  SINCE",
            "n     GPU-1  700/1000      30/100   team/p      300 MiB, 10 % compute  2026-11-20T08:00:00Z",
            "n     GPU-1  700/1000      30/100   (2 others)  400 MiB, 20 % compute",
            "n     1      700/1000      30/100   -",
            "read at 12:00:00Z  1-3 of 3  by name  [q]uit [s]ort [w]ide [/] search",
        ]
    );
}

#[test]
fn nodes_cards_and_pods_are_searched_and_the_fullest_card_comes_first() {
    let (holders, mut screen) = (of_files(&[]), screen());
    let first = |screen: &mut Screen| drawn(screen, &holders, (120, 8))[3].clone();
    assert!(first(&mut screen).starts_with("a     GPU-a-0"), "{}", first(&mut screen));
    for text in ["/HOLDER", "/gpu-a-0", "/a"] {
        write(&mut screen, text);
        press(&mut screen, KeyCode::Enter);
        assert!(first(&mut screen).contains("team/holder"), "{text}");
        press(&mut screen, KeyCode::Esc);
    }
    press(&mut screen, KeyCode::Char('w'));
    write(&mut screen, "/holder");
    assert!(first(&mut screen).contains("NVIDIA-A10"), "with all columns pods are searched too");
    press(&mut screen, KeyCode::Esc);
    assert_eq!(press(&mut screen, KeyCode::Tab), KeyEffect::Redraw);
    assert_eq!(press(&mut screen, KeyCode::Char('2')), KeyEffect::None, "there is one view");
    press(&mut screen, KeyCode::Char('s'));
    assert!(first(&mut screen).contains("team/holder"));
}

#[test]
fn what_is_told_has_the_shape_of_what_is_read() {
    let keys = |holders: &CardHolders| {
        let json = serde_json::to_value(holders).unwrap();
        let card = json["nodes"][0]["cards"][0].as_object().unwrap().clone();
        let holder = card["holders"][0].as_object().unwrap().clone();
        card.keys().chain(holder.keys()).cloned().collect::<Vec<_>>()
    };
    assert_eq!(keys(&told()), keys(&of_files(&[])));
    let json = serde_json::to_value(told()).unwrap();
    let cards = &json["nodes"][0]["cards"];
    assert_eq!((&cards[0]["pods"], &cards[1]["index"]), (&json!(["team/p"]), &json!(1)), "{json}");
    assert_eq!(cards[0]["holders"][1], json!({"others": 2, "memory": 400, "cores": 20}));
}
