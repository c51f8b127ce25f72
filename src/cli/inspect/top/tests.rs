//! What is counted, drawn and done on a key, with the clusters of files.

use clap::Parser as _;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::{Terminal, backend::TestBackend};

use super::*;
use crate::{
    cli::{
        Cli, Command, documents,
        inspect::screen::{KeyEffect, Reading},
    },
    excerpt::is_obeyed,
};

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cli/cases");

/// What is used in the cluster of a file below the cases, as these arguments count it.
fn usage(file: &str, args: &[&str]) -> ClusterUsage {
    let file = format!("{CASES}/{file}");
    let words = [&["berth", "top", "-f", &file, "--at", "2026-11-20T12:00:00Z"], args].concat();
    let Command::Top(args) = Cli::try_parse_from(words).unwrap().command else { panic!("not top") };
    let (config, _) = Config::load(None).unwrap();
    args.usage(&documents::read(&args.cluster.file).unwrap(), &config).unwrap().0
}

/// A reading that is drawn in these characters.
fn reading_in(glyphs: Glyphs, usage: ClusterUsage) -> Reading<DrawnUsage> {
    let at = "2026-11-20T12:00:00Z".parse().unwrap();
    Reading { seen: Some(DrawnUsage { usage, glyphs }), at: Some(at), trouble: None }
}

fn reading(usage: ClusterUsage) -> Reading<DrawnUsage> {
    reading_in(Glyphs::Ascii, usage)
}

/// A screen of nodes.
fn screen() -> Screen {
    Screen::new::<DrawnUsage>(0, SortBy::Name, Detail::Usual)
}

fn press(screen: &mut Screen, code: KeyCode) -> KeyEffect {
    screen.press(KeyEvent::new(code, KeyModifiers::NONE))
}

fn write(screen: &mut Screen, text: &str) {
    for c in text.chars() {
        press(screen, KeyCode::Char(c));
    }
}

/// The lines of a terminal of this size, without the blanks at their ends.
fn drawn(screen: &mut Screen, reading: &Reading<DrawnUsage>, (width, height): (u16, u16)) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| screen.draw(frame, reading)).unwrap();
    let buffer = terminal.backend().buffer();
    let line = |y: u16| (0..width).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..height).map(|y| line(y).trim_end().to_owned()).collect()
}

/// A usage with so many nodes, each with as much of its card in use as its number says.
fn many(nodes: u64) -> ClusterUsage {
    let one = usage("why_waits/cluster.yaml", &[]).nodes.remove(0);
    let node = |number: u64| {
        let mut node = one.clone();
        node.name = format!("node-{number:02}");
        node.amounts.memory_used = number;
        node
    };
    ClusterUsage { nodes: (0..nodes).map(node).collect(), ..ClusterUsage::default() }
}

#[test]
fn a_screen_shows_tabs_sums_rows_and_what_keys_do() {
    let reading = reading(usage("why_waits/cluster.yaml", &[]));
    let lines = drawn(&mut screen(), &reading, (100, 8));
    assert_eq!(
        lines,
        [
            "berth top   1 nodes   2 models   3 namespaces",
            "nodes 2, cards 3, memory 15 %, compute 17 %, pods with cards 1, waiting pods 2",
            "NODE  CARDS  EACH  MEMORY           MIB          COMPUTE          PODS",
            "a     2      8.    ####......  41%  20000/49152  ###.......  25%  1",
            "b     1      .     ..........   0%  0/81920      ..........   0%  0",
            "",
            "",
            "read at 12:00:00Z  1-2 of 2  by name  [q]uit [Tab] view [s]ort [w]ide [/] search",
        ]
    );
}

#[test]
fn keys_change_view_order_and_columns() {
    let reading = reading(usage("why_waits/cluster.yaml", &[]));
    let mut screen = screen();
    let head = |screen: &mut Screen| drawn(screen, &reading, (160, 8))[2].clone();
    assert_eq!(press(&mut screen, KeyCode::Tab), KeyEffect::Redraw);
    assert!(head(&mut screen).starts_with("MODEL"));
    press(&mut screen, KeyCode::Char('3'));
    assert!(head(&mut screen).starts_with("NAMESPACE  WAIT"));
    press(&mut screen, KeyCode::Char('w'));
    assert!(head(&mut screen).ends_with("QUOTA"));
    press(&mut screen, KeyCode::Right);
    assert!(head(&mut screen).starts_with("NAMESPACE  GPUS"), "the first column stays");
    press(&mut screen, KeyCode::BackTab);
    press(&mut screen, KeyCode::BackTab);
    let by_name = drawn(&mut screen, &reading, (100, 8));
    press(&mut screen, KeyCode::Char('s'));
    let by_memory = drawn(&mut screen, &reading, (100, 8));
    assert!(by_name[3].starts_with('a') && by_memory[7].contains("by memory"), "{by_memory:?}");
    assert_eq!(press(&mut screen, KeyCode::F(1)), KeyEffect::None);
    assert_eq!(press(&mut screen, KeyCode::Char('4')), KeyEffect::None, "there are three views");
}

#[test]
fn rows_are_sorted_by_what_is_used() {
    let mut all = many(3);
    sort(&mut all, SortBy::Memory);
    let names: Vec<_> = all.nodes.iter().map(|node| node.name.as_str()).collect();
    assert_eq!(names, ["node-02", "node-01", "node-00"]);
}

#[test]
fn pages_and_rows_are_scrolled_and_the_last_page_stays_full() {
    let reading = reading(many(20));
    let mut screen = screen();
    let first = |screen: &mut Screen| {
        let lines = drawn(screen, &reading, (100, 9));
        (lines[3].split(' ').next().unwrap().to_owned(), lines[8].split("  ").nth(1).unwrap().to_owned())
    };
    let at = |name: &str, rows: &str| (name.to_owned(), format!("{rows} of 20"));
    assert_eq!(first(&mut screen), at("node-00", "1-5"));
    press(&mut screen, KeyCode::Down);
    assert_eq!(first(&mut screen), at("node-01", "2-6"));
    press(&mut screen, KeyCode::PageDown);
    assert_eq!(first(&mut screen), at("node-06", "7-11"));
    press(&mut screen, KeyCode::End);
    assert_eq!(first(&mut screen), at("node-15", "16-20"));
    press(&mut screen, KeyCode::PageDown);
    assert_eq!(first(&mut screen), at("node-15", "16-20"));
    press(&mut screen, KeyCode::Up);
    assert_eq!(first(&mut screen), at("node-14", "15-19"), "nothing was scrolled beyond the end");
    press(&mut screen, KeyCode::Home);
    press(&mut screen, KeyCode::Up);
    assert_eq!(first(&mut screen), at("node-00", "1-5"));
}

#[test]
fn a_search_leaves_the_names_that_hold_it() {
    let reading = reading(many(20));
    let mut screen = screen();
    press(&mut screen, KeyCode::Char('/'));
    write(&mut screen, "E-1\u{1b}\u{202e}q");
    press(&mut screen, KeyCode::Backspace);
    let lines = drawn(&mut screen, &reading, (100, 9));
    assert_eq!((&*lines[8], &lines[3][..7]), ("/E-1", "node-10"), "letters are no commands while one types");
    press(&mut screen, KeyCode::Enter);
    let lines = drawn(&mut screen, &reading, (100, 9));
    assert!(lines[8].contains("names with `E-1`  1-5 of 10"), "{}", lines[8]);
    assert_eq!(press(&mut screen, KeyCode::Esc), KeyEffect::Redraw, "the search ends first");
    assert!(drawn(&mut screen, &reading, (100, 9))[8].contains("1-5 of 20"));
    write(&mut screen, "/none");
    press(&mut screen, KeyCode::Enter);
    assert_eq!(drawn(&mut screen, &reading, (100, 9))[3], "");
}

#[test]
fn q_escape_and_control_c_end_it() {
    for key in [KeyCode::Char('q'), KeyCode::Esc] {
        assert_eq!(press(&mut screen(), key), KeyEffect::Quit);
    }
    let interrupt = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
    let mut typing = screen();
    press(&mut typing, KeyCode::Char('/'));
    assert_eq!(typing.press(interrupt), KeyEffect::Quit, "whatever one types");
    let control = KeyEvent::new(KeyCode::Char('q'), KeyModifiers::CONTROL);
    assert_eq!(screen().press(control), KeyEffect::None);
}

#[test]
fn a_list_that_fails_is_told_and_what_was_read_before_stays() {
    let nothing = Reading::default();
    let lines = drawn(&mut screen(), &nothing, (100, 6));
    assert!(lines[5].starts_with("reading the cluster ..."), "{lines:?}");
    let trouble = Some("can't list /api/v1/pods: no\u{1b}[2J answer".to_owned());
    let failed = Reading { trouble: trouble.clone(), ..nothing };
    let lines = drawn(&mut screen(), &failed, (120, 6));
    assert!(lines[5].starts_with(r"can't list /api/v1/pods: no\u{1b}[2J answer  by name"), "{lines:?}");
    let later = Reading { trouble, ..reading(many(2)) };
    let lines = drawn(&mut screen(), &later, (160, 6));
    assert!(lines[5].contains("answer  read at 12:00:00Z") && lines[3].starts_with("node-00"), "{lines:?}");
}

#[test]
fn a_terminal_of_any_size_is_drawn() {
    let reading = reading(usage("why_waits/cluster.yaml", &[]));
    for size in [(1, 1), (10, 3), (400, 2), (3, 60)] {
        let mut screen = screen();
        write(&mut screen, "w3");
        press(&mut screen, KeyCode::PageDown);
        assert_eq!(drawn(&mut screen, &reading, size).len(), usize::from(size.1));
    }
}

#[test]
fn no_cell_of_the_screen_holds_a_character_that_a_terminal_obeys() {
    let reading = reading_in(Glyphs::Unicode, usage("top_escapes/input.yaml", &[]));
    let mut screen = Screen::new::<DrawnUsage>(0, SortBy::Name, Detail::Wide);
    let mut text = String::new();
    for view in ["1", "2", "3"] {
        write(&mut screen, view);
        text += &drawn(&mut screen, &reading, (400, 10)).concat();
    }
    assert!(!text.contains(is_obeyed), "{text}");
    for said in [r"node\u{1b}[2J\nnode-b", r"A\u{202e}10\u{2066}", r"team\u{2066}\u{200f}"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

#[test]
fn only_what_the_pods_of_one_namespace_hold_is_counted_where_that_is_asked_for() {
    let all = usage("why_waits/cluster.yaml", &["-n", "team"]);
    assert_eq!(all.nodes.iter().map(|node| (&*node.name, node.pods)).collect::<Vec<_>>(), [("a", 1)]);
    assert_eq!((all.models.len(), all.namespaces.len(), all.namespaces[0].waiting), (1, 1, 2));
    assert_eq!(all.nodes[0].amounts.memory_used, 20_000);
    let none = usage("why_waits/cluster.yaml", &["-n", "other"]);
    assert!(none.nodes.is_empty() && none.models.is_empty() && none.namespaces.is_empty());
}

#[test]
fn a_long_list_in_a_cell_is_counted() {
    let mut all = usage("why_waits/cluster.yaml", &[]);
    all.namespaces[0].models =
        (0..10).map(|number| format!("{}{number}", "model-".repeat(5)).into()).collect();
    let row = rows::table(&all, TopView::Namespaces, Detail::Wide, Glyphs::Ascii).rows.remove(0);
    let models = &row[row.len() - 2].text;
    assert!(models.ends_with("model-7 and 2 more"), "{models}");
}
