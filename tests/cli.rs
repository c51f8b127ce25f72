//! The program from outside: what it is called with, what it prints, how it exits.
//!
//! A folder below `cli/cases` is one case: `args` is the call, the other files are what it reads, the snapshot is what comes of it.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

use std::{
    fs,
    io::{Read as _, Write},
    net::TcpListener,
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};

use serde_json::Value;

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/cases")
}

fn berth(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.current_dir(folder).args(args).env_remove("BERTH_CONFIG").env("LC_ALL", "C.UTF-8");
    command
}

fn call(folder: &Path, args: &[&str]) -> Output {
    berth(folder, args).output().unwrap()
}

fn words(folder: &Path) -> Vec<String> {
    let args = fs::read_to_string(folder.join("args")).unwrap();
    args.split_whitespace().map(str::to_owned).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The story of a call: how it ended, and what went where.
fn story(output: &Output) -> String {
    let code = output.status.code().unwrap();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    format!("exit {code}\n--- stderr\n{stderr}--- stdout\n{stdout}")
}

#[test]
fn every_case_prints_and_exits_as_recorded() {
    insta::glob!("cli/cases/*/args", |path| {
        let folder = path.parent().unwrap();
        let args = words(folder);
        let args: Vec<_> = args.iter().map(String::as_str).collect();
        insta::assert_snapshot!(story(&call(folder, &args)));
    });
}

#[test]
fn a_wrong_call_or_an_unreadable_question_exits_with_2_and_one_line() {
    let folder = cases().join("review_admitted");
    let calls: [&[&str]; 7] = [
        &["review", "--nonsense"],
        &["review"],
        &["simulate", "-f", "pod.yaml", "--at", "yesterday"],
        &["simulate", "-f", "nowhere"],
        &["config", "--config", "nowhere.yaml"],
        &["review", "-f", "pod.yaml", "-o", "xml"],
        &["launch"],
    ];
    for args in calls {
        let output = call(&folder, args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert_eq!(text(&output.stderr).lines().count(), 1, "{args:?}: {}", text(&output.stderr));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn completions_and_man_pages_know_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let help = call(folder.path(), &["--help"]);
    let listed = text(&help.stdout).split("Commands:").nth(1).unwrap().split("Options:").next().unwrap();
    let commands = listed.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    let commands: Vec<&str> = commands.filter(|command| *command != "help").collect();
    assert!(commands.len() >= 10, "{commands:?}");
    for shell in ["bash", "zsh", "fish"] {
        let script = call(folder.path(), &["completions", shell]);
        assert_eq!(script.status.code(), Some(0));
        assert!(!text(&script.stdout).contains("__complete"), "{shell} offers what kubectl alone calls");
        for command in &commands {
            assert!(text(&script.stdout).contains(command), "{shell}: {command}");
        }
    }
    assert_eq!(call(folder.path(), &["man", "--dir", "pages"]).status.code(), Some(0));
    for command in &commands {
        let page = fs::read_to_string(folder.path().join(format!("pages/berth-{command}.1"))).unwrap();
        assert!(
            page.contains(".SH SYNOPSIS") && page.contains(&format!("berth {command}").replace('-', "\\-")),
            "{page}"
        );
        assert_eq!(text(&call(folder.path(), &["man", command]).stdout), page);
    }
    assert!(folder.path().join("pages/berth.1").exists());
}

/// A folder in which the program is `kubectl-berth`.
fn as_a_plugin() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_berth"), folder.path().join("kubectl-berth")).unwrap();
    folder
}

#[test]
fn as_a_plugin_of_kubectl_it_is_the_same_program_whose_help_names_kubectl() {
    let folder = as_a_plugin();
    let plugin =
        |args: &[&str]| Command::new(folder.path().join("kubectl-berth")).args(args).output().unwrap();
    for (args, usage) in [
        (&["--help"][..], "Usage: kubectl berth [OPTIONS] <COMMAND>"),
        (&["top", "--help"], "Usage: kubectl berth top [OPTIONS] [VIEW]"),
    ] {
        let help = plugin(args);
        assert!(help.status.success() && text(&help.stdout).contains(usage), "{}", text(&help.stdout));
        assert!(!text(&call(folder.path(), args).stdout).contains("Usage: kubectl"), "{args:?}");
    }
    let cluster = cases().join("why_waits/cluster.yaml");
    let args = ["who", "-f", cluster.to_str().unwrap(), "--at", "2026-11-20T12:00:00Z"];
    assert_eq!(plugin(&args).stdout, call(folder.path(), &args).stdout);
}

#[test]
fn kubectl_completes_the_words_of_its_plugin() {
    let folder = as_a_plugin();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("deploy/krew/kubectl_complete-berth");
    let complete = |words: &[&str]| {
        let mut search = folder.path().as_os_str().to_owned();
        search.push(":/usr/bin:/bin");
        let output =
            Command::new(&script).args(words).env("PATH", search).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).lines().map(str::to_owned).collect::<Vec<_>>()
    };
    let commands = complete(&["w"]);
    assert_eq!(commands.len(), 4, "{commands:?}");
    assert!(commands[0].starts_with("why\tSay why a pod waits") && commands[3] == ":4", "{commands:?}");
    assert!(!complete(&[""]).iter().any(|line| line.starts_with("__")));
    let views: Vec<_> =
        complete(&["top", "n"]).iter().map(|line| line.split('\t').next().unwrap().to_owned()).collect();
    assert_eq!(views, ["nodes", "namespaces", ":4"]);
    assert_eq!(complete(&["top", "--sort-by", "m"]).len(), 2);
    assert_eq!(
        complete(&["--log-format", ""]).len(),
        3,
        "options of all commands are no options of the completion"
    );
    fs::create_dir(folder.path().join("cluster")).unwrap();
    assert_eq!(complete(&["top", "-f", "cl"]), ["cluster/", ":6"], "no space behind a folder");
    assert_eq!(complete(&["no-such-command", "x"]).last().unwrap(), ":4");
}

/// `script` of util-linux, which gives a program a terminal.
#[cfg(target_os = "linux")]
fn watched(folder: &Path, args: &[&str]) -> Option<std::process::Child> {
    // Without a size nothing is drawn; the shell makes way for the program.
    let berth = env!("CARGO_BIN_EXE_berth");
    let command = format!("stty cols 120 rows 12 && exec {berth} top --watch {}", args.join(" "));
    let mut script = Command::new("script");
    script.args(["-qefc", &command, "/dev/null"]).current_dir(folder);
    script.env("LC_ALL", "C.UTF-8").env("TERM", "xterm").env_remove("BERTH_CONFIG");
    match script.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn() {
        Ok(child) => Some(child),
        Err(error) => {
            println!("NOT RUN: the test needs `script` of util-linux: {error}");
            None
        }
    }
}

/// Reads what a terminal is sent until it holds these words.
#[cfg(target_os = "linux")]
fn read_until(sent: &mut impl std::io::Read, words: &str) -> String {
    let (mut text, mut part) = (Vec::new(), [0; 4096]);
    while !String::from_utf8_lossy(&text).contains(words) {
        let read = sent.read(&mut part).unwrap();
        assert!(read > 0, "the terminal was closed: {}", String::from_utf8_lossy(&text));
        text.extend(&part[..read]);
    }
    String::from_utf8_lossy(&text).into_owned()
}

#[cfg(target_os = "linux")]
#[test]
fn a_watched_cluster_is_drawn_anew_and_the_terminal_is_given_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("cluster.yaml");
    fs::copy(cases().join("why_waits/cluster.yaml"), &file).unwrap();
    let Some(mut script) = watched(folder.path(), &["-f", "cluster.yaml", "--interval", "100ms"]) else {
        return;
    };
    let mut sent = script.stdout.take().unwrap();
    let mut keys = script.stdin.take().unwrap();
    let first = read_until(&mut sent, "20000/49152");
    assert_eq!(first.matches("\u{1b}[?1049h").count(), 1, "the terminal's other screen: {first:?}");
    keys.write_all(b"2").unwrap();
    read_until(&mut sent, "NVIDIA-A100");
    // A file that can't be read is told, and read again once it can be.
    let renamed = folder.path().join("renamed");
    fs::rename(&file, &renamed).unwrap();
    read_until(&mut sent, "No such file");
    fs::rename(&renamed, &file).unwrap();
    keys.write_all(b"1").unwrap();
    read_until(&mut sent, "read");
    keys.write_all(b"q").unwrap();
    let last = read_until(&mut sent, "\u{1b}[?1049l");
    assert!(last.contains("\u{1b}[?1049l"), "{last:?}");
    assert_eq!(script.wait().unwrap().code(), Some(0));
}

#[cfg(target_os = "linux")]
#[test]
fn a_watched_terminal_is_given_back_on_a_signal() {
    let folder = cases().join("why_waits");
    let Some(mut script) = watched(&folder, &["-f", "cluster.yaml"]) else { return };
    let mut sent = script.stdout.take().unwrap();
    let keys = script.stdin.take().unwrap();
    read_until(&mut sent, "20000/49152");
    let script_is = script.id();
    let children = fs::read_to_string(format!("/proc/{script_is}/task/{script_is}/children")).unwrap();
    assert!(Command::new("kill").arg(children.trim()).status().unwrap().success());
    read_until(&mut sent, "\u{1b}[?1049l");
    assert_eq!(script.wait().unwrap().code(), Some(0), "it ends by itself");
    drop(keys);
}

#[test]
fn the_schema_is_json_that_names_the_settings() {
    let schema = json(&call(&cases(), &["schema"]));
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!(schema["properties"]["protection"]["enum"], serde_json::json!(["auto", "warn", "deny"]));
}

#[test]
fn who_stops_reading_has_read_enough() {
    let calls: &[&[&str]] = &[
        &["--help"],
        &["review", "--rules"],
        &["manifests"],
        &["config"],
        #[cfg(feature = "sandbox")]
        &["demo", "--nodes", "2", "--pods", "0"],
    ];
    for args in calls.iter().copied() {
        let mut child = berth(&cases(), args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), ""), "{args:?}");
    }
}

/// A folder with a `kubeconfig` of an API server that nobody runs.
fn without_a_cluster() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let cluster = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "gone",
        "clusters": [{"name": "gone", "cluster": {"server": "https://127.0.0.1:1"}}],
        "contexts": [{"name": "gone", "context": {"cluster": "gone", "user": "gone"}}],
        "users": [{"name": "gone", "user": {}}]}"#;
    fs::write(folder.path().join("kubeconfig"), cluster).unwrap();
    folder
}

#[test]
fn an_api_server_that_is_not_there_is_told_in_one_line_and_by_its_address() {
    let folder = without_a_cluster();
    let calls = [
        ["certs", "--secret", "berth-system/tls"],
        ["serve", "--listen", "127.0.0.1:0"],
        ["preflight", "-o", "json"],
    ];
    for args in calls {
        let mut call = berth(folder.path(), &args);
        let output = call.env("KUBECONFIG", "kubeconfig").env_remove("RUST_LOG").output().unwrap();
        let said = text(&output.stderr);
        assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
        assert!(said.contains("https://127.0.0.1:1") && said.contains("refused"), "{said}");
    }
}

#[test]
fn a_server_that_still_waits_for_the_api_server_ends_when_it_is_told_to() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = without_a_cluster();
    let kubeconfig = folder.path().join("kubeconfig");
    let config = fs::read_to_string(&kubeconfig).unwrap();
    fs::write(&kubeconfig, config.replace("127.0.0.1:1", &silent.local_addr().unwrap().to_string())).unwrap();
    let mut serve = berth(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let mut serve = serve.env("KUBECONFIG", "kubeconfig").stderr(Stdio::null()).spawn().unwrap();
    let asked = silent.accept().unwrap();
    assert!(Command::new("kill").arg(serve.id().to_string()).status().unwrap().success());
    assert_eq!(serve.wait().unwrap().code(), Some(0), "and is not killed by the signal");
    drop(asked);
}

/// Answers each request of one connection after another with this version of Kubernetes.
fn serve_version(listener: &TcpListener, version: &str) {
    let (major, minor) = version.trim_start_matches('v').split_once('.').unwrap();
    let minor = minor.split('.').next().unwrap();
    let body = format!(
        r#"{{"major": "{major}", "minor": "{minor}", "gitVersion": "{version}", "gitCommit": "", "gitTreeState": "",
            "buildDate": "", "goVersion": "", "compiler": "", "platform": ""}}"#
    );
    let (mut stream, _) = listener.accept().unwrap();
    let mut read = [0; 4096];
    assert!(stream.read(&mut read).unwrap() > 0, "a request");
    let head = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all((head + &body).as_bytes()).unwrap();
}

#[test]
fn a_server_of_a_cluster_that_is_too_old_ends_at_once_and_names_both_versions() {
    let old = TcpListener::bind("127.0.0.1:0").unwrap();
    let folder = without_a_cluster();
    let kubeconfig = folder.path().join("kubeconfig");
    let config = fs::read_to_string(&kubeconfig).unwrap();
    let address = format!("http://{}", old.local_addr().unwrap());
    fs::write(&kubeconfig, config.replace("https://127.0.0.1:1", &address)).unwrap();
    let mut serve = berth(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let serve = serve.env("KUBECONFIG", "kubeconfig").env_remove("RUST_LOG");
    let serve = serve.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    serve_version(&old, "v1.29.4");
    let output = serve.wait_with_output().unwrap();
    let said = text(&output.stderr);
    assert_eq!((output.status.code(), said.lines().count()), (Some(2), 1), "{said}");
    assert!(said.contains("Kubernetes v1.29.4 is too old: Berth needs 1.30 or newer"), "{said}");
}

/// Answers each query with the samples of the counter that it names, one connection after another; returns what was asked.
fn serve_samples(listener: &TcpListener, samples: &[(&str, Value)]) -> Vec<String> {
    let serve = |_| {
        let (mut stream, _) = listener.accept().unwrap();
        let mut read = [0; 4096];
        let length = stream.read(&mut read).unwrap();
        let request = text(&read[..length]).to_owned();
        let found =
            samples.iter().find(|(counter, _)| request.contains(&format!("increase%28{}", encoded(counter))));
        let result = found.map_or_else(|| serde_json::json!([]), |(_, result)| result.clone());
        let body =
            serde_json::json!({"status": "success", "data": {"resultType": "vector", "result": result}})
                .to_string();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        request
    };
    (0..4).map(serve).collect()
}

fn encoded(counter: &str) -> String {
    counter.replace('_', "%5F")
}

#[test]
fn a_report_asks_prometheus_for_the_growth_of_the_counters_within_its_time() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}/prometheus", listener.local_addr().unwrap());
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("token"), "secret").unwrap();
    let mut report =
        berth(folder.path(), &["report", "--since", "7d", "--at", "2026-11-20T12:00:00Z", "-o", "json"]);
    let report = report.args(["--prometheus", &address, "--prometheus-token-file", "token"]);
    let report = report.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let sample = |labels: Value, value: &str| serde_json::json!({"metric": labels, "value": [1.0, value]});
    let of = |namespace: &str, value: &str| sample(serde_json::json!({"namespace": namespace}), value);
    let stranded = serde_json::json!({"model": "A100", "reason": "cpu"});
    let asked = serve_samples(
        &listener,
        &[
            (
                "berth_usage_gpu_seconds_total",
                vec![of("team-a", "3600"), of("team-b", "7200"), of("idle", "0")].into(),
            ),
            (
                "berth_usage_gpu_memory_byte_seconds_total",
                vec![of("team-a", "3865470566400"), of("team-b", "NaN")].into(),
            ),
            ("berth_usage_stranded_gpu_seconds_total", vec![sample(stranded, "1800")].into()),
        ],
    );
    let output = report.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    for (request, counter) in asked.iter().zip(["gpu_seconds", "gpu_memory_byte_seconds", "gpu_core_seconds"])
    {
        let query = format!(
            "sum%20by%20%28namespace%29%20%28increase%28{}",
            encoded(&format!("berth_usage_{counter}_total"))
        );
        assert!(
            request.starts_with(&format!(
                "GET /prometheus/api/v1/query?query={query}%5B604800s%5D%29%29&time=1795176000 "
            )),
            "{request}"
        );
        assert!(request.to_lowercase().contains("authorization: bearer secret"), "{request}");
    }
    let expected = serde_json::json!({
        "since": "2026-11-13T12:00:00Z", "until": "2026-11-20T12:00:00Z", "by": "namespace",
        "usage": [
            {"namespace": "team-b", "gpuHours": 2.0, "gpuMemoryGibHours": 0.0, "gpuCoreHours": 0.0},
            {"namespace": "team-a", "gpuHours": 1.0, "gpuMemoryGibHours": 1.0, "gpuCoreHours": 0.0},
        ],
        "stranded": [{"model": "A100", "reason": "cpu", "gpuHours": 0.5}],
    });
    assert_eq!(json(&output), expected);
}

#[test]
fn a_log_filter_that_cannot_be_read_is_told() {
    let folder = without_a_cluster();
    let mut call = berth(folder.path(), &["certs", "--secret", "berth-system/tls"]);
    let output = call.env("KUBECONFIG", "kubeconfig").env("RUST_LOG", "berth=loudly").output().unwrap();
    let said = text(&output.stderr);
    assert!(said.starts_with("warning: RUST_LOG: "), "{said}");
}

/// Standard error of a service whose disk is full, and of one whose log reader has gone.
#[cfg(target_os = "linux")]
#[test]
fn who_can_be_told_nothing_still_gets_the_exit_code() {
    let folder = without_a_cluster();
    let calls: [&[&str]; 5] = [
        &["review", "-f", "nowhere.yaml"],
        &["launch"],
        &[],
        &["certs", "--secret", "berth-system/tls"],
        &["serve", "--listen", "127.0.0.1:0"],
    ];
    for args in calls {
        let full = fs::File::options().write(true).open("/dev/full").unwrap();
        let mut told_on_a_full_disk = berth(folder.path(), args);
        let status = told_on_a_full_disk.env("KUBECONFIG", "kubeconfig").stderr(full).status().unwrap();
        assert_eq!(status.code(), Some(2), "{args:?}");
    }
}

#[test]
fn names_that_nobody_can_have_are_refused_before_anything_is_written() {
    let folder = tempfile::TempDir::new().unwrap();
    let calls: [(&[&str], &str); 3] = [
        (&["certs", "--dir", "certs", "--also", "not a name"], "certificate name `not a name` is neither"),
        (
            &["certs", "--dir", "certs", "--service", "Bad Name"],
            "certificate name `Bad Name.berth-system.svc`",
        ),
        (&["manifests", "--image", ""], "`` is not an image"),
    ];
    for (args, words) in calls {
        let output = call(folder.path(), args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(words), "{args:?}: {}", text(&output.stderr));
        assert!(!folder.path().join("certs").exists(), "{args:?}");
    }
}

#[test]
fn strict_makes_a_no_of_what_does_not_fit() {
    let folder = cases().join("simulate_does_not_fit");
    let lenient = call(&folder, &["simulate", "-f", "input.yaml", "-o", "json"]);
    let strict = call(&folder, &["simulate", "-f", "input.yaml", "-o", "json", "--strict"]);
    assert_eq!((lenient.status.code(), strict.status.code()), (Some(0), Some(1)));
    let placed = call(&cases().join("simulate_hami"), &["simulate", "-f", ".", "--strict", "-o", "json"]);
    assert_eq!(placed.status.code(), Some(0), "{}", story(&placed));
}

#[test]
fn a_folder_standard_input_and_files_are_the_same_question() {
    let folder = cases().join("simulate_hami");
    let at = ["-o", "json", "--at", "2026-11-21T09:54:07Z"];
    let files = call(&folder, &[&["simulate", "-f", "node.yaml", "-f", "pod.yaml"][..], &at].concat());
    let whole = call(&folder, &[&["simulate", "-f", "."][..], &at].concat());
    assert_eq!(text(&files.stdout), text(&whole.stdout));

    let mut piped = berth(&folder, &[&["simulate", "-f", "node.yaml", "-f", "-"][..], &at].concat());
    let mut piped = piped.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let pod = fs::read(folder.join("pod.yaml")).unwrap();
    piped.stdin.take().unwrap().write_all(&pod).unwrap();
    assert_eq!(text(&files.stdout), text(&piped.wait_with_output().unwrap().stdout));
}

#[test]
fn settings_come_from_the_environment_too() {
    let folder = cases().join("config_in_force");
    let output =
        berth(&folder, &["config", "-o", "json"]).env("BERTH_CONFIG", "berth.yaml").output().unwrap();
    assert_eq!(json(&output)["schedulerName"], "gpu");
    let output = berth(&folder, &["config"]).env("BERTH_CONFIG", "nowhere.yaml").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let output = berth(&folder, &["config", "-o", "json"]).env("BERTH_CONFIG", "").output().unwrap();
    assert_eq!(json(&output)["schedulerName"], "berth", "empty is not set");
    let output = call(&folder, &["config", "--config", ""]);
    assert_eq!(output.status.code(), Some(2), "an argument is not empty by accident");
}

#[test]
#[cfg(target_os = "linux")]
fn settings_that_never_end_are_not_read_for_ever() {
    let folder = cases().join("config_in_force");
    let output = call(&folder, &["config", "--config", "/dev/zero"]);
    let told = "error: /dev/zero: larger than 1048576 bytes, the limit for settings\n";
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(2), told));
}

#[test]
fn what_config_prints_is_a_settings_file() {
    let folder = cases().join("config_in_force");
    let first = call(&folder, &["config", "--config", "berth.yaml"]);
    let printed = std::env::temp_dir().join(format!("berth-settings-{}.yaml", std::process::id()));
    fs::write(&printed, &first.stdout).unwrap();
    let second = call(&folder, &["config", "--config", printed.to_str().unwrap()]);
    fs::remove_file(&printed).unwrap();
    assert_eq!(text(&first.stdout), text(&second.stdout));
}

#[test]
fn json_and_yaml_say_the_same() {
    let folder = cases().join("review_namespace_hints");
    let args = ["review", "-f", "namespace.yaml", "-f", "pod.yaml", "-o"];
    let as_json = json(&call(&folder, &[&args[..], &["json"]].concat()));
    let as_yaml = call(&folder, &[&args[..], &["yaml"]].concat());
    let as_yaml: Value = serde_saphyr::from_str(text(&as_yaml.stdout)).unwrap();
    assert_eq!(as_json, as_yaml);
}

#[test]
fn a_reviewed_pod_is_not_changed_by_a_second_review() {
    let folder = cases().join("review_admitted");
    let reviewed = json(&call(&folder, &["review", "-f", "pod.yaml", "-o", "json"]));
    let object = reviewed["reviews"][0]["object"].to_string();
    let mut again = berth(&folder, &["review", "-f", "-", "-o", "json"]);
    let mut again = again.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    again.stdin.take().unwrap().write_all(object.as_bytes()).unwrap();
    let again = json(&again.wait_with_output().unwrap());
    assert_eq!(again["reviews"][0]["patch"], serde_json::json!([]));
    assert_eq!(again["reviews"][0]["object"], reviewed["reviews"][0]["object"]);
}

/// What a path answers to the bearer of a token, and its status.
#[cfg(feature = "sandbox")]
async fn ask(url: &http::Uri, token: &str) -> (u16, Value) {
    use http_body_util::BodyExt as _;
    let host = format!("https://{}", url.authority().unwrap());
    let mut config = kube::Config::new(host.parse().unwrap());
    config.accept_invalid_certs = true;
    config.auth_info.token = Some(token.to_owned().into());
    let client = kube::Client::try_from(config).unwrap();
    let request = http::Request::get(url.path()).body(kube::client::Body::empty()).unwrap();
    let response = client.send(request).await.unwrap();
    let status = response.status().as_u16();
    (status, serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap())
}

#[cfg(feature = "sandbox")]
#[tokio::test]
async fn a_demo_that_stays_up_shows_its_ledger_by_the_command_that_it_prints() {
    use std::io::{BufRead as _, BufReader};
    let folder = tempfile::tempdir().unwrap();
    let mut command = berth(folder.path(), &["demo", "--keep", "--pods", "0"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stderr.take().unwrap()).lines();
    let found = lines.map_while(Result::ok).find(|line| line.contains("/debug/ledger"));
    let printed = found.unwrap_or_else(|| panic!("the demo printed no command: {:?}", child.wait()));
    let answers = async {
        let url: http::Uri = printed.split(' ').next_back().unwrap().parse().unwrap();
        let token = printed.split("Bearer ").nth(1).unwrap().split('\'').next().unwrap();
        (ask(&url, token).await, ask(&url, "wrong").await.0)
    };
    let ((status, ledger), stranger) = answers.await;
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!((status, stranger), (200, 401), "{ledger}");
    let nodes = ledger["nodes"].as_array().unwrap();
    assert_eq!(nodes.len(), 5, "{ledger}");
    assert!(ledger.to_string().contains("team-a/"), "{ledger}");
    let typed = nodes.iter().find(|node| node["name"] == "koordinator-0").unwrap();
    let nic = typed["devices"].as_array().unwrap().iter().find(|device| device["type"] == "rdma").unwrap();
    assert_eq!(
        (&nic["used"]["koordinator.sh/rdma"], &nic["pods"]),
        (&100.into(), &serde_json::json!(["team-a/joint"]))
    );
    let pods = ledger["pods"].as_array().unwrap();
    let half = pods.iter().find(|pod| pod["name"] == "half").unwrap();
    assert_eq!(half["devices"][0]["resources"]["koordinator.sh/gpu-core"], 50, "{half}");
}

/// Each command that reads files, in each form: standard output, and standard error.
#[test]
fn no_command_prints_a_character_that_a_terminal_obeys() {
    let files = ["simulate_escapes", "review_escapes", "top_escapes"].map(|folder| (folder, "input.yaml"));
    let waits = ["why", "-n", "team\u{2066}\u{200f}", "waits\u{1b}[2J"];
    let calls: [&[&str]; 15] = [
        &["top"],
        &["top", "models", "-o", "wide"],
        &["top", "namespaces", "-o", "wide"],
        &["who"],
        &["who", "-o", "wide"],
        &["fits", "-o", "wide"],
        &["what-if"],
        &waits,
        &["why", "-n", waits[2], waits[3], "-o", "wide"],
        &["simulate", "--at", "2026-11-21T09:54:07Z", "--explain"],
        &["simulate", "--at", "2026-11-21T09:54:07Z", "--skip-admission", "--strict"],
        &["review"],
        &["migrate", "--plan"],
        &["migrate", "--plan", "-o", "wide"],
        &["moves", "--at", "2026-11-21T09:54:07Z"],
    ];
    let obeyed = |c: char| c != '\n' && berth::excerpt::is_obeyed(c);
    for (folder, file) in files {
        let folder = cases().join(folder);
        for args in calls {
            for format in [None, Some("json"), Some("yaml")] {
                if format.is_some() && args.contains(&"wide") {
                    continue;
                }
                let mut args = args.to_vec();
                args.extend(["-f", file]);
                args.extend(format.iter().flat_map(|format| ["-o", *format]));
                let output = call(&folder, &args);
                for stream in [&output.stdout, &output.stderr] {
                    let found: Vec<_> = text(stream).chars().filter(|c| obeyed(*c)).collect();
                    assert!(found.is_empty(), "{args:?}: {found:?}");
                }
            }
        }
    }
    let folder = cases().join("simulate_escapes");
    let call = |format| {
        call(
            &folder,
            &[
                "simulate",
                "-f",
                "input.yaml",
                "--skip-admission",
                "--at",
                "2026-11-21T09:54:07Z",
                "-o",
                format,
            ],
        )
    };
    let pods = json(&call("json"))["pods"].clone();
    assert_eq!(pods[0]["namespace"], "team\u{202e}\u{2066}\u{200f}", "JSON says exactly what was read");
    let yaml: Value = serde_saphyr::from_str(text(&call("yaml").stdout)).unwrap();
    assert_eq!(yaml["pods"], pods, "and so does YAML");
}
