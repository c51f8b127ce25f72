//! What an account counts, and how many rows it has at most.

use super::{rows::IDLE, *};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

const HELD: HeldParts = HeldParts { memory: 1000, cores: 30, gpus: 300 };

fn span(pod: &str, from: i64, until: i64) -> UsageSpan {
    UsageSpan {
        pod: pod.into(),
        namespace: "team-a".into(),
        workload: Workload { kind: "Job".into(), name: pod.into() },
        labels: vec![["team".into(), "a".into()]],
        held: HELD,
        from: at(from),
        until: at(until),
    }
}

fn seconds(account: &UsageAccount) -> u64 {
    let row = account.namespaces.get(&["team-a".into()]).copied().unwrap_or_default();
    assert_eq!(row.held.memory * 3, row.held.cores * 100, "all amounts are counted for the same time");
    row.held.memory / HELD.memory
}

#[test]
fn a_span_counts_from_where_the_account_ends_to_its_own_end() {
    let account = UsageAccount::begin(at(100));
    let cases = [
        ("held before and after", span("a", 0, 1000), 60),
        ("bound meanwhile", span("a", 120, 1000), 40),
        ("ended meanwhile", span("a", 0, 130), 30),
        ("both", span("a", 120, 130), 10),
        ("over before", span("a", 0, 100), 0),
        ("not yet bound", span("a", 160, 200), 0),
        ("bound after it ended", span("a", 150, 120), 0),
    ];
    for (case, span, expected) in cases {
        assert_eq!(seconds(&account.advance(at(160), vec![span], &[])), expected, "{case}");
    }
}

#[test]
fn a_pod_counts_once_at_each_moment() {
    let account = UsageAccount::begin(at(0));
    let spans = vec![span("a", 0, 100), span("a", 0, 40), span("a", 30, 60), span("b", 0, 100)];
    assert_eq!(seconds(&account.advance(at(100), spans, &[])), 200);
}

#[test]
fn an_account_that_was_not_kept_is_counted_again_and_one_that_was_is_not() {
    let begun = UsageAccount::begin(at(0));
    let running = || vec![span("a", 0, 10_000)];
    let lost = begun.advance(at(60), running(), &[]);
    assert_eq!(seconds(&lost), 60);
    let kept = begun.advance(at(120), running(), &[]);
    assert_eq!(seconds(&kept), 120);
    assert_eq!(kept.advance(at(120), running(), &[]), kept, "the same time again");
    assert_eq!(kept.advance(at(90), running(), &[]), kept, "a clock that is behind");
    assert_eq!(seconds(&kept.advance(at(180), running(), &[])), 180);
}

#[test]
fn parts_of_seconds_are_neither_lost_nor_counted_twice() {
    let mut account = UsageAccount::begin(at(0));
    for tenth in 1..=100 {
        let now = Timestamp::from_millisecond(tenth * 100).unwrap();
        account = account.advance(now, vec![span("a", 0, 10_000)], &[]);
    }
    assert_eq!(seconds(&account), 10);
}

#[test]
fn what_is_stranded_counts_for_as_long_as_it_was_looked_at() {
    let stranded = [StrandedAmount { model: "A100".into(), reason: "cpu".into(), gpus: 1500 }];
    let account = UsageAccount::begin(at(0)).advance(at(60), Vec::new(), &stranded);
    let row =
        |account: &UsageAccount| account.stranded.get(&["A100".into(), "cpu".into()]).unwrap().held.gpus;
    assert_eq!(row(&account), 60 * 1500);
    let away = account.advance(at(100_000), Vec::new(), &stranded);
    assert_eq!(row(&away), (60 + STRANDED_FOR.unsigned_abs()) * 1500, "nobody looked for a day");
}

#[test]
fn the_rows_are_bounded_and_those_that_are_idle_for_longest_make_room() {
    let mut rows = UsageRows::<1>::new(2);
    let held = HeldSeconds { memory: 1, cores: 1, gpus: 1 };
    let names = |rows: &UsageRows<1>| rows.iter().map(|(names, _)| names[0].to_string()).collect::<Vec<_>>();
    rows.add(["a".into()], held, 0);
    rows.add(["b".into()], held, 10);
    rows.add(["c".into()], held, 20);
    assert_eq!(names(&rows), [OTHER, "a", "b"], "none is idle");
    rows.add(["a".into()], held, IDLE);
    rows.add(["c".into()], held, IDLE + 10);
    assert_eq!(names(&rows), [OTHER, "a", "c"], "b was idle for longest");
    assert_eq!(rows.get(&[OTHER.into()]).unwrap().held, held, "what was counted for others stays there");
    for name in ["quote\"", "back\\slash", "line\nbreak", "grün", &"x".repeat(254)] {
        rows.add([name.into()], held, 4 * IDLE);
    }
    assert_eq!(names(&rows), [OTHER, "a", "c"], "no hostile name has a row");
    assert_eq!(rows.get(&[OTHER.into()]).unwrap().held.memory, 6);
}
