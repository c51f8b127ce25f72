//! The documentation: its links lead somewhere, its pages are in the book, its commands are accepted, and those that need no cluster
//! do what the pages show.
#![allow(clippy::unwrap_used, reason = "a helper of a test fails as the test does")]

mod block;
mod link;
mod lists;
mod message;
#[cfg(feature = "sandbox")]
mod shell;

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use berth::cli::Cli;
use block::{Call, calls};
use clap::{CommandFactory, error::ErrorKind};
use serde_json::Value;

#[cfg(feature = "sandbox")]
use crate::support;

/// Pages outside of the book whose links and commands are checked too.
const BESIDE_THE_BOOK: [&str; 10] = [
    "README.md",
    "SECURITY.md",
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "BENCHMARKS.md",
    "certs/README.md",
    "tests/fuzz/README.md",
    "deploy/helm/berth/README.md",
    "deploy/helm/berth/manifests/README.md",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// One page of Markdown, its path from the repository's root.
struct Page {
    path: PathBuf,
    text: String,
}

impl Page {
    fn read(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        let text = fs::read_to_string(root().join(&path)).expect("a page can be read");
        Self { path, text }
    }

    fn is_in_the_book(&self) -> bool {
        self.path.starts_with("docs")
    }
}

/// Every page below a folder.
fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("a folder can be read");
    let paths = entries.map(|entry| folder.join(entry.expect("a folder can be read").file_name()));
    let mut found = Vec::new();
    for path in paths {
        if root().join(&path).is_dir() {
            found.extend(below(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found.sort();
    found
}

fn pages() -> Vec<Page> {
    let book = below(Path::new("docs"));
    assert!(book.len() > 10, "{book:?}");
    BESIDE_THE_BOOK.into_iter().map(PathBuf::from).chain(book).map(Page::read).collect()
}

/// Fails with every fault at once.
fn none(rule: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{rule}:\n{}", faults.join("\n"));
}

#[test]
fn every_link_leads_to_a_file_and_a_heading_that_exist() {
    let faults: Vec<_> = pages()
        .iter()
        .flat_map(|page| {
            let place = page.path.display().to_string();
            link::of(&page.text)
                .into_iter()
                .filter_map(move |target| Some(format!("{place}: {}", link::fault(root(), page, &target)?)))
        })
        .collect();
    none("links that lead nowhere", &faults);
}

/// Lines that a newcomer reads in two minutes; the rest belongs in `docs/`.
const LONGEST_README: usize = 150;

#[test]
fn the_readme_is_short() {
    let lines = Page::read("README.md").text.lines().count();
    assert!(lines <= LONGEST_README, "README.md has {lines} lines, more than {LONGEST_README}");
}

#[test]
fn every_page_is_in_the_summary() {
    let summary = Page::read("docs/SUMMARY.md");
    let listed = link::of(&summary.text);
    let missing = below(Path::new("docs")).into_iter().filter(|path| *path != summary.path).filter(|path| {
        let name = path.strip_prefix("docs").unwrap().to_string_lossy().into_owned();
        !listed.contains(&name)
    });
    let missing: Vec<_> = missing.map(|path| path.display().to_string()).collect();
    none("pages that docs/SUMMARY.md lacks", &missing);
}

/// Characters of a line that a reader takes in; code, and tables with the program's own words, may be wider.
const LONGEST_LINE: usize = 170;

#[test]
fn no_line_of_the_pages_is_long() {
    let mut faults = Vec::new();
    for page in pages().iter().filter(|page| page.is_in_the_book() || page.path.ends_with("CHANGELOG.md")) {
        let mut fenced = false;
        for (at, line) in page.text.lines().enumerate() {
            fenced ^= line.trim_start().starts_with("```");
            let length = line.chars().count();
            if !fenced && !line.starts_with('|') && length > LONGEST_LINE {
                faults.push(format!("{}:{}: {length}", page.path.display(), at + 1));
            }
        }
    }
    none(&format!("lines of more than {LONGEST_LINE} characters"), &faults);
}

/// Every command `berth …` in the console blocks of the pages, with the page that shows it.
fn shown() -> Vec<(PathBuf, Call)> {
    let all = pages().into_iter().flat_map(|page| {
        let calls = calls(&page.text);
        calls.into_iter().map(move |call| (page.path.clone(), call))
    });
    all.filter(|(_, call)| call.words.first().is_some_and(|word| word == "berth")).collect()
}

#[test]
fn every_command_that_the_pages_show_is_accepted() {
    let shown = shown();
    assert!(shown.len() > 15, "only {} commands were found", shown.len());
    let faults = shown.iter().filter_map(|(page, call)| {
        let refused = Cli::command().try_get_matches_from(&call.words).err()?;
        let is_help = matches!(refused.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        (!is_help).then(|| format!("{}: {}\n{refused}", page.display(), call.words.join(" ")))
    });
    none("commands that berth does not accept", &faults.collect::<Vec<_>>());
}

/// Every call of kubectl in the console blocks of the pages, with the page that shows it; the program's name is left out.
#[cfg(feature = "sandbox")]
fn of_kubectl() -> Vec<(PathBuf, Vec<String>)> {
    let lines = pages().into_iter().flat_map(|page| {
        let lines = block::lines(&page.text);
        lines.into_iter().map(move |line| (page.path.clone(), line))
    });
    let commands = lines
        .flat_map(|(page, line)| shell::commands(&line).into_iter().map(move |words| (page.clone(), words)));
    let of_kubectl = commands.filter(|(_, words)| words[0] == "kubectl");
    of_kubectl.map(|(page, words)| (page, words[1..].to_vec())).collect()
}

/// kubectl itself reads them; it is built by Go.
#[cfg(feature = "sandbox")]
#[test]
fn every_kubectl_command_that_the_pages_show_is_one_that_kubectl_takes() {
    use std::io::Write as _;
    let program = match support::build::kubectl() {
        Ok(program) => program,
        Err(reason) => return support::controlplane::absent("kubectl, which Go builds", &reason),
    };
    let shown = of_kubectl();
    assert!(shown.len() > 40, "only {} commands were found", shown.len());
    let mut child = Command::new(program)
        .arg("parse")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    for (_, words) in &shown {
        writeln!(input, "{}", serde_json::json!(words)).unwrap();
    }
    drop(input);
    let output = child.wait_with_output().unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<String> = answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers.len(), shown.len());
    let refused = shown.iter().zip(answers).filter(|(_, answer)| !answer.is_empty());
    let faults = refused
        .map(|((page, words), answer)| format!("{}: kubectl {}: {answer}", page.display(), words.join(" ")));
    none("commands that kubectl does not take", &faults.collect::<Vec<_>>());
}

#[test]
fn every_example_in_the_help_is_accepted() {
    let mut command = Cli::command();
    let mut faults = Vec::new();
    let mut examples = 0;
    for command in
        std::iter::once(command.clone()).chain(command.get_subcommands_mut().map(|one| one.clone()))
    {
        let help = command.clone().render_long_help().to_string();
        for line in help.lines().filter_map(|line| line.strip_prefix("  berth ")) {
            examples += 1;
            let call = block::call(&format!("berth {line}"));
            let refused = Cli::command().try_get_matches_from(&call.words).err();
            faults.extend(refused.map(|refused| format!("{line}\n{refused}")));
        }
    }
    assert!(examples > 6, "only {examples} examples were found");
    none("examples that berth does not accept", &faults);
}

/// The leaves of a value, each by its key from the root.
fn leaves(path: &str, value: &Value) -> Vec<(String, Value)> {
    match value {
        Value::Object(fields) if !fields.is_empty() => {
            let below = |key: &String| if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            fields.iter().flat_map(|(key, value)| leaves(&below(key), value)).collect()
        }
        _ => vec![(path.to_owned(), value.clone())],
    }
}

/// The defaults that the settings page shows in rows for a key of this name.
fn defaults_of<'a>(page: &'a str, key: &str) -> Vec<&'a str> {
    let quoted = format!("`{key}`");
    let rows = page.lines().map(|line| line.split('|').collect::<Vec<_>>());
    let rows = rows.filter(|cells| cells.len() > 3 && cells[1].contains(&quoted));
    rows.map(|cells| cells[2].trim_matches([' ', ',', '`'])).collect()
}

/// The names under which the page may list a key: its own, the one below its dialect, that of its section or plugin.
fn names_of(key: &str) -> Vec<&str> {
    let mut names = vec![key];
    if let Some(plugin) = key.strip_prefix("scheduling.weights.") {
        names.push(plugin);
    }
    if let Some(own) =
        ["dialects.hami.", "dialects.volcano."].iter().find_map(|start| key.strip_prefix(start))
    {
        names.push(own);
    }
    names
}

#[test]
fn the_settings_page_lists_every_key_with_its_default() {
    let page = Page::read("docs/settings.md").text;
    let settings = serde_json::to_value(berth::config::Config::default()).unwrap();
    let leaves = leaves("", &settings);
    assert!(leaves.len() > 40, "{leaves:#?}");
    let mut faults = Vec::new();
    // The keys of the other vendors are HAMi's own; the page names their sections.
    for (key, value) in leaves.iter().filter(|(key, _)| !key.starts_with("dialects.hami.hygon.")) {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let shown: Vec<_> = names_of(key).into_iter().flat_map(|name| defaults_of(&page, name)).collect();
        if !shown.contains(&value.as_str()) {
            faults.push(format!("{key}: {value}, shown: {shown:?}"));
        }
    }
    none("keys that docs/settings.md lacks, or shows with another default", &faults);
}

#[test]
fn every_yaml_block_can_be_read() {
    let mut faults = Vec::new();
    for page in pages() {
        for text in block::of_language(&page.text, "yaml") {
            let read = serde_saphyr::from_multiple::<Value>(&text);
            faults.extend(read.err().map(|error| format!("{}: {error}\n{text}", page.path.display())));
        }
    }
    none("blocks that are no YAML", &faults);
}

/// Copies a folder of the repository.
fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn run(folder: &Path, call: &Call) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_berth"));
    command.current_dir(folder).args(&call.words[1..]);
    command
        .env_remove("BERTH_CONFIG")
        .env("LC_ALL", "C.UTF-8")
        .env("NO_COLOR", "1")
        .env("KUBECONFIG", "none")
        .output()
        .unwrap()
}

/// What is wrong with what a command printed and how it ended; `None`: it did what the page shows.
fn misbehaviour(call: &Call, output: &Output) -> Option<String> {
    let printed =
        [&output.stderr, &output.stdout].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat();
    let expected = i32::from(call.ends_with_no());
    let code = output.status.code();
    if code != Some(expected) {
        return Some(format!("ended with {code:?} instead of {expected}:\n{printed}"));
    }
    let lacks = call.lacking(&printed)?;
    Some(format!("did not print\n{lacks}\nbut\n{printed}"))
}

#[test]
fn the_commands_that_need_no_cluster_do_what_the_pages_show() {
    let folder = tempfile::tempdir().unwrap();
    copy(&root().join("examples"), &folder.path().join("examples"));
    // Where the page of a take-over has preflight write it.
    fs::copy(root().join("examples/berth.yaml"), folder.path().join("berth.yaml")).unwrap();
    let mut ran = 0;
    let mut faults = Vec::new();
    for (page, call) in shown().into_iter().filter(|(_, call)| call.needs_no_cluster()) {
        ran += 1;
        let fault = misbehaviour(&call, &run(folder.path(), &call));
        faults.extend(fault.map(|fault| format!("{}: {} {fault}", page.display(), call.words.join(" "))));
    }
    assert!(ran > 10, "only {ran} commands were run");
    none("commands that do not do what the page shows", &faults);
}

#[test]
fn the_tests_and_benchmarks_that_the_pages_name_exist() {
    let targets = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml can be read");
    let mut faults = Vec::new();
    for page in pages() {
        let words: Vec<_> = page.text.split([' ', '\n', '`', ')', ',', ';']).collect();
        for pair in words.windows(2) {
            let kind = match pair[0] {
                "--test" => "test",
                "--bench" => "bench",
                _ => continue,
            };
            let name = pair[1].trim_end_matches(['.', ':']);
            if !targets.contains(&format!("[[{kind}]]\nname = \"{name}\"\n")) {
                faults.push(format!("{}: {} {name}", page.path.display(), pair[0]));
            }
        }
    }
    none("targets that there are not", &faults);
}

#[test]
fn every_message_in_the_troubleshooting_page_is_one_that_the_program_writes() {
    let page = Page::read("docs/troubleshooting.md");
    let messages = message::of(&page.text);
    assert!(messages.len() > 40, "{messages:#?}");
    let sources = message::Sources::read(&[root().join("src"), root().join("webhook-config")]);
    let unknown: Vec<_> = messages.into_iter().filter(|message| !sources.have(message)).collect();
    none("messages that no source file has", &unknown);
}
