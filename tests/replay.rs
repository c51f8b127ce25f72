//! `berth replay` from outside: tables and objects, policies side by side, ends of pods, and the same bytes on every run.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::{Value, json};
use tempfile::TempDir;

const NODES: &str =
    "sn,cpu_milli,memory_mib,gpu,model\nn1,16000,65536,2,A10\nn2,16000,65536,2,T4\ncpu,8000,32768,0,\n";
const PODS: &str = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n\
    half,1000,1024,1,500,,LS,Running,0,,0\n\
    whole,1000,1024,1,1000,T4,LS,Running,10,,10\n\
    both,1000,1024,2,1000,A10,LS,Running,20,,20\n\
    plain,2000,1024,0,0,,LS,Running,30,,30\n";

fn berth(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.arg("replay").args(args).env_remove("BERTH_CONFIG").output().unwrap()
}

/// What is printed as JSON, without what deciding took.
fn replayed(args: &[&str]) -> Value {
    let output = berth(&[args, &["-o", "json"]].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let mut replay: Value = serde_json::from_slice(&output.stdout).unwrap();
    for policy in replay["policies"].as_array_mut().unwrap() {
        assert!(policy.as_object_mut().unwrap().remove("decision").unwrap()["meanMicros"].is_u64());
    }
    replay
}

fn error(args: &[&str]) -> String {
    let output = berth(args);
    assert_eq!(output.status.code(), Some(2), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr).unwrap()
}

fn file(folder: &TempDir, name: &str, text: &str) -> String {
    let path: PathBuf = folder.path().join(name);
    fs::write(&path, text).unwrap();
    text_of(&path)
}

fn text_of(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Both tables.
fn tables(folder: &TempDir) -> [String; 2] {
    [file(folder, "nodes.csv", NODES), file(folder, "pods.csv", PODS)]
}

#[test]
fn a_trace_is_played_in_its_order_and_counts_gpus_in_parts() {
    let folder = TempDir::new().unwrap();
    let [nodes, pods] = tables(&folder);
    let replay = replayed(&["-f", &nodes, "--trace", &pods]);
    let policy = &replay["policies"][0];
    assert_eq!(policy["name"], "default");
    // `half` is on a card of n1, so that `both` does not fit there: it waits.
    assert_eq!(policy["pods"], json!({"arrived": 4, "bound": 3, "waiting": 1}));
    assert_eq!(policy["gpus"]["capacity"], 4.0);
    assert_eq!(policy["gpus"]["allocated"], 1.5);
    assert_eq!(policy["gpus"]["allocatedPercent"], 37.5);
    assert_eq!(policy["wait"], json!({"p50": "0s", "p90": "0s", "p99": "0s", "mean": "0s"}));
    let demand: Vec<_> =
        policy["curve"].as_array().unwrap().iter().map(|point| &point["demandPercent"]).collect();
    assert_eq!(demand, [13, 38, 88]);
}

#[test]
fn a_drawn_order_follows_from_its_seed() {
    let folder = TempDir::new().unwrap();
    let [nodes, pods] = tables(&folder);
    let drawn =
        |seed| replayed(&["-f", &nodes, "--trace", &pods, "--shuffle", "--seed", seed, "--ratio", "3"]);
    assert_eq!(drawn("1"), drawn("1"));
    assert_ne!(drawn("1"), drawn("2"));
    let last =
        drawn("1")["policies"][0]["curve"].as_array().unwrap().last().unwrap()["demandPercent"].clone();
    assert!((275..=300).contains(&last.as_u64().unwrap()), "{last}");
}

#[test]
fn a_steady_load_is_measured_over_time_and_by_size() {
    let folder = TempDir::new().unwrap();
    let [nodes, _] = tables(&folder);
    let rows = PODS.replace("Running,0,,0", "Running,0,60,0").replace("Running,10,,10", "Running,10,70,10");
    let pods = file(&folder, "pods.csv", &rows);
    let steady = |more: &[&str]| {
        let args =
            ["-f", &nodes, "--trace", &pods, "--until", "12h", "--warm-up", "2h", "--longest-run", "5m"];
        replayed(&[&args, more].concat())
    };
    let quiet = steady(&["--load", "30", "--seed", "7"]);
    assert_eq!(quiet, steady(&["--load", "30", "--seed", "7"]));
    assert_ne!(quiet, steady(&["--load", "30", "--seed", "8"]));
    let policy = &quiet["policies"][0];
    let allocated = policy["overTime"]["allocatedPercent"].as_f64().unwrap();
    assert!((26.0..=34.0).contains(&allocated), "{allocated} % allocated under a load of 30 %");
    let sizes = policy["waitBySize"].as_array().unwrap();
    let cards: Vec<_> = sizes.iter().map(|row| row["cards"].as_str().unwrap()).collect();
    assert_eq!(cards, ["none", "share", "1", "2"]);
    let bound: u64 = sizes.iter().map(|row| row["bound"].as_u64().unwrap()).sum();
    let all = policy["pods"]["bound"].as_u64().unwrap();
    assert!(bound < all && 10 * bound > 7 * all, "{bound} of {all} pods are bound after two of twelve hours");
    // No more than all can be allocated, and what is asked for beyond that waits.
    let crowded = steady(&["--load", "300", "--seed", "7"]);
    let over_time = &crowded["policies"][0]["overTime"];
    assert!(over_time["allocatedPercent"].as_f64().unwrap() <= 100.0);
    assert!(over_time["waitingPercent"].as_f64().unwrap() > 100.0);
    let waiting: Vec<_> = crowded["policies"][0]["waitBySize"].as_array().unwrap().iter().collect();
    let waiting: u64 = waiting.iter().map(|row| row["waiting"].as_u64().unwrap()).sum();
    assert_eq!(waiting, crowded["policies"][0]["pods"]["waiting"].as_u64().unwrap());
    let table =
        berth(&["-f", &nodes, "--trace", &pods, "--until", "1h", "--longest-run", "5m", "--load", "30"]);
    let table = String::from_utf8(table.stdout).unwrap();
    assert!(table.contains("WAIT NONE   WAIT SHARE   WAIT 1   WAIT 2"), "{table}");
}

#[test]
fn pods_that_end_make_room_for_those_that_wait() {
    let folder = TempDir::new().unwrap();
    let nodes = file(&folder, "nodes.csv", "sn,cpu_milli,memory_mib,gpu,model\nn1,16000,65536,1,A10\n");
    let pod = |name: &str, second: u32| {
        json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "team", "creationTimestamp": format!("2024-05-04T10:00:{second:02}Z"),
                "annotations": {"berth.dev/run-seconds": "60"}},
            "spec": {"schedulerName": "berth", "containers": [{"name": "main",
                "resources": {"limits": {"nvidia.com/gpu": 1, "nvidia.com/gpumem": 10_000}}}]}})
    };
    let list = json!({"apiVersion": "v1", "kind": "List", "items": [pod("first", 0), pod("second", 20)]});
    let pods = file(&folder, "pods.json", &list.to_string());
    let replay = replayed(&["-f", &nodes, "-f", &pods]);
    let policy = &replay["policies"][0];
    assert_eq!(policy["pods"], json!({"arrived": 2, "bound": 2, "waiting": 0}));
    // The second waited 40 seconds, and both have ended.
    assert_eq!(policy["wait"], json!({"p50": "0s", "p90": "40s", "p99": "40s", "mean": "20s"}));
    assert_eq!(policy["gpus"]["allocated"], 0.0);
    let stopped = replayed(&["-f", &nodes, "-f", &pods, "--until", "30s"]);
    assert_eq!(stopped["policies"][0]["pods"], json!({"arrived": 2, "bound": 1, "waiting": 1}));
    let before = replayed(&["-f", &nodes, "-f", &pods, "--until", "10s"]);
    assert_eq!(before["policies"][0]["pods"], json!({"arrived": 1, "bound": 1, "waiting": 0}));
    let picture = text_of(&folder.path().join("waits.svg"));
    replayed(&["-f", &nodes, "-f", &pods, "--svg", &picture]);
    assert!(fs::read_to_string(picture).unwrap().contains("minutes since arrival"));
    let unreadable = list.to_string().replace("\"60\"", "\"soon\"");
    let told = error(&["-f", &nodes, "-f", &file(&folder, "wrong.json", &unreadable)]);
    assert!(
        told.contains("metadata.annotations[berth.dev/run-seconds]: must be a number of seconds"),
        "{told}"
    );
}

#[test]
fn policies_play_the_same_pods_side_by_side_and_are_drawn() {
    let folder = TempDir::new().unwrap();
    let [nodes, pods] = tables(&folder);
    let spread = file(&folder, "spread.yaml", "dialects:\n  hami:\n    nodeSchedulerPolicy: spread\n");
    let pack = file(&folder, "pack.yaml", "dialects:\n  hami:\n    gpuSchedulerPolicy: binpack\n");
    let (spread, pack) = (format!("spread={spread}"), format!("pack={pack}"));
    let picture = text_of(&folder.path().join("curves.svg"));
    let replay = replayed(&[
        "-f", &nodes, "--trace", &pods, "--policy", &spread, "--policy", &pack, "--svg", &picture,
    ]);
    let names: Vec<_> = replay["policies"].as_array().unwrap().iter().map(|policy| &policy["name"]).collect();
    assert_eq!(names, ["spread", "pack"]);
    let picture = fs::read_to_string(picture).unwrap();
    assert!(picture.starts_with("<svg") && picture.contains("pack: allocated"), "{picture}");
    assert!(!picture.contains("minutes"), "no pod waited");
}

#[test]
fn what_can_not_be_played_is_named() {
    let folder = TempDir::new().unwrap();
    let [nodes, pods] = tables(&folder);
    let other = file(&folder, "other.csv", "a,b\n1,2\n");
    assert!(error(&["--trace", &other]).contains("neither a table of nodes"));
    let wrong = file(&folder, "wrong.csv", &PODS.replace("10,,10", "ten,,10"));
    let told = error(&["-f", &nodes, "--trace", &wrong]);
    assert!(told.contains("wrong.csv: row 2"), "{told}");
    assert!(error(&[]).contains("give nodes and pods with -f or --trace"));
    assert!(error(&["-f", &nodes, "--trace", &pods, "--ratio", "2"]).contains("--shuffle"));
    let steady = ["-f", &nodes, "--trace", &pods, "--until", "1h"];
    let refused = |more: &[&str]| error(&[&steady, more].concat());
    assert!(refused(&["--load", "95"]).contains("say with --longest-run how long such pods run"));
    assert!(refused(&["--load", "0"]).contains("must be above 0 and at most 1000"));
    assert!(refused(&["--load", "95", "--shuffle"]).contains("cannot be used with"));
    assert!(refused(&["--warm-up", "1h"]).contains("--warm-up: must be shorter than --until"));
    assert!(refused(&["--seed", "3"]).contains("--shuffle|--load"));
    assert!(error(&["-f", &nodes, "--trace", &pods, "--load", "95"]).contains("--until"));
    assert!(error(&["-f", &nodes, "--trace", &pods, "--policy", "a"]).contains("must be NAME=FILE"));
}
