//! The bodies of the fuzz targets (`tests/fuzz`) under `cargo test`: every seed, and a bounded number of changed ones.
//!
//! `BERTH_MUTATIONS=1000000` makes it longer. With `BERTH_SEEDS=tests/fuzz/corpus` the seeds are written there, for `cargo fuzz`.
#![expect(clippy::disallowed_methods, reason = "how long it runs is said in the environment")]
#![expect(clippy::unwrap_used, reason = "what fails in a test ends the test")]

#[path = "fuzz/src/lib.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets use it as a library")]
mod targets;

use std::{env, fs, path::Path};

use proptest::{
    prelude::*,
    sample::Index,
    test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner},
};
use serde::Deserialize;
use serde_json::Value;
use targets::{TARGETS, Target, review};

/// Changed seeds of each kind, where the environment does not say.
const MUTATIONS: u32 = 2_000;

/// What decoders branch on.
const WORDS: [&str; 24] = [
    ",",
    ":",
    ";",
    "_",
    "/",
    "-",
    "[",
    "]",
    "{",
    "}",
    "\"",
    "\n",
    "null",
    "true",
    "0",
    "-1",
    "2147483648",
    "4294967296",
    "18446744073709551616",
    "1e999",
    "nvidia.com/gpu",
    "GPU-1",
    "\u{b5}",
    "9999-12-31T23:59:59Z",
];

/// One change of some bytes.
#[derive(Clone, Debug)]
enum Change {
    /// Another byte.
    Set(Index, u8),
    /// More bytes.
    Insert(Index, Vec<u8>),
    /// Fewer bytes.
    Remove(Index, usize),
    /// Bytes from elsewhere among them, again.
    Repeat(Index, Index, usize),
}

impl Change {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let end = |at: usize, length: usize| bytes.len().min(at + length);
        match self {
            Self::Set(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Remove(at, length) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes.drain(at..end(at, *length));
            }
            Self::Repeat(from, to, length) if !bytes.is_empty() => {
                let from = from.index(bytes.len());
                let part = bytes[from..end(from, *length)].to_vec();
                let to = to.index(bytes.len());
                bytes.splice(to..to, part);
            }
            Self::Insert(at, more) => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, more.iter().copied());
            }
            Self::Set(..) | Self::Remove(..) | Self::Repeat(..) => {}
        }
    }
}

fn change() -> impl Strategy<Value = Change> {
    let word = prop::sample::select(&WORDS[..]).prop_map(|word| word.as_bytes().to_vec());
    let bytes = prop_oneof![3 => word, 1 => prop::collection::vec(any::<u8>(), 1..4)];
    prop_oneof![
        (any::<Index>(), prop_oneof![Just(b'0'), Just(b','), b' '..b'~', any::<u8>()])
            .prop_map(|(at, byte)| Change::Set(at, byte)),
        (any::<Index>(), bytes).prop_map(|(at, more)| Change::Insert(at, more)),
        (any::<Index>(), 1..24_usize).prop_map(|(at, length)| Change::Remove(at, length)),
        (any::<Index>(), any::<Index>(), 1..64_usize)
            .prop_map(|(from, to, length)| Change::Repeat(from, to, length)),
    ]
}

/// The seeds of a target; reviews also of every pod among the cases of admission.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let mut seeds = (target.seeds)();
    if target.name == "review" {
        seeds.extend(cases());
    }
    seeds
}

#[derive(Deserialize)]
struct Case {
    old: Option<Value>,
    pod: Value,
}

fn cases() -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/admission/cases");
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let case = |path| serde_saphyr::from_str::<Case>(&fs::read_to_string(path).unwrap()).unwrap();
    let body = |Case { old, pod }: Case| {
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        review::body(operation, &pod, &old.unwrap_or_default())
    };
    paths.iter().map(case).map(body).collect()
}

fn mutations() -> u32 {
    env::var("BERTH_MUTATIONS").map_or(MUTATIONS, |number| number.parse().unwrap())
}

/// Runs a target with its seeds, then with changed ones: the same ones each time.
fn hold(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = seeds(target);
    write(name, &seeds);
    for seed in &seeds {
        (target.run)(seed);
    }
    let config = Config { cases: mutations(), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let changed = (prop::sample::select(seeds), prop::collection::vec(change(), 1..8));
    let outcome = runner.run(&changed, |given| {
        (target.run)(&mutant(given));
        Ok(())
    });
    match outcome {
        Ok(()) => {}
        Err(TestError::Fail(reason, given)) => panic!("{reason}: \"{}\"", mutant(given).escape_ascii()),
        Err(aborted) => panic!("{aborted}"),
    }
}

fn mutant((mut bytes, changes): (Vec<u8>, Vec<Change>)) -> Vec<u8> {
    for change in changes {
        change.apply(&mut bytes);
    }
    bytes
}

/// Leaves the seeds where libFuzzer looks for them, if it is told where.
fn write(name: &str, seeds: &[Vec<u8>]) {
    let Some(folder) = env::var_os("BERTH_SEEDS") else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder).join(name);
    fs::create_dir_all(&folder).unwrap();
    for (at, seed) in seeds.iter().enumerate() {
        fs::write(folder.join(format!("seed-{at:03}")), seed).unwrap();
    }
}

#[test]
fn assignments() {
    hold("assignment");
}

#[test]
fn locks() {
    hold("lock");
}

#[test]
fn slices() {
    hold("mig");
}

#[test]
fn objects_of_other_projects() {
    hold("object");
}

#[test]
fn quantities() {
    hold("quantity");
}

#[test]
fn registrations() {
    hold("register");
}

#[test]
fn reviews() {
    hold("review");
}

#[test]
fn selectors() {
    hold("selector");
}

#[test]
fn settings() {
    hold("settings");
}

#[test]
fn every_target_has_its_binary() {
    let manifest =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/Cargo.toml")).unwrap();
    for Target { name, .. } in &TARGETS {
        assert!(manifest.contains(&format!("path = \"fuzz_targets/{name}.rs\"")), "{name}");
    }
}
