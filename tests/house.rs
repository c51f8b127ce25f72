//! The house rules that a machine can check: how files open, how large types are, what things are called, what is left undone.
//!
//! It must not judge what code does, nor repeat what clippy and `tests/layers.rs` already hold.

mod documentation;
mod structure;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Words that say nothing of what a file or a type is for.
const EMPTY_NAMES: &[&str] =
    &["common", "helper", "helpers", "manager", "managers", "misc", "types", "util", "utils"];

/// What declares something that has a name of its own.
const DECLARES: &[&str] = &["enum", "mod", "struct", "trait", "type", "union"];

/// What says that work is left over or switched off, at the start of a line or inside of a comment.
const UNDONE: &[&str] = &["TODO", "FIXME", "XXX", "todo!", "unimplemented!", "dbg!", "#[ignore"];

/// One Rust file of the repository.
struct Source {
    /// From the repository's root.
    path: PathBuf,
    text: String,
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Every Rust file below some folders of the repository, what was built excepted; a folder that does not exist holds none.
fn sources(folders: &[&str]) -> Vec<Source> {
    let mut waiting: Vec<PathBuf> =
        folders.iter().map(|folder| root().join(folder)).filter(|folder| folder.is_dir()).collect();
    let mut found = Vec::new();
    while let Some(folder) = waiting.pop() {
        for entry in fs::read_dir(&folder).expect("a folder can be read") {
            let path = entry.expect("a folder can be read").path();
            if path.is_dir() {
                waiting.extend((!path.ends_with("target")).then_some(path));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).expect("a source file can be read");
                let path = path.strip_prefix(root()).expect("it is below the root").to_owned();
                found.push(Source { path, text });
            }
        }
    }
    assert!(!found.is_empty(), "no Rust files below {folders:?}");
    found.sort_by(|one, other| one.path.cmp(&other.path));
    found
}

/// Fails with every fault at once.
fn none(rule: &str, faults: &[String]) {
    assert!(faults.is_empty(), "{rule}:\n{}", faults.join("\n"));
}

/// The words of a name in snake or camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c == '-' || c.is_uppercase() {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("it starts with one word").extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

fn is_empty_name(name: &str) -> bool {
    words(name).iter().any(|word| EMPTY_NAMES.contains(&word.as_str()))
}

/// The name that a line declares: `Node` of `pub struct Node {`.
fn declared(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace().skip_while(|word| word.starts_with("pub"));
    let keyword = words.next()?;
    let name = words.next().filter(|_| DECLARES.contains(&keyword))?;
    name.split(|c: char| !c.is_alphanumeric() && c != '_').next()
}

/// Which mark of undone work a line bears.
fn undone(line: &str) -> Option<&'static str> {
    let line = line.trim_start();
    let comment = line.split_once("//").map_or("", |(_, comment)| comment);
    let bears = |mark: &&&str| line.starts_with(**mark) || comment.contains(**mark);
    UNDONE.iter().find(bears).copied()
}

/// How the image is built: the Dockerfile and what its `.dockerignore` lets in.
struct Dockerfile {
    text: String,
    ignore: String,
}

impl Dockerfile {
    fn read() -> Self {
        let text = |name| fs::read_to_string(root().join(name)).expect("it stands at the root");
        Self { text: text("Dockerfile"), ignore: text(".dockerignore") }
    }

    /// The paths that are copied from the build context, not from another stage.
    fn copied(&self) -> impl Iterator<Item = &str> {
        let copies = self.text.lines().filter_map(|line| line.strip_prefix("COPY "));
        copies.filter(|arguments| !arguments.contains("--from=")).flat_map(|arguments| {
            let paths = arguments.split_whitespace().filter(|word| !word.starts_with("--"));
            let count = paths.clone().count();
            paths.take(count.saturating_sub(1))
        })
    }

    fn let_in(&self) -> impl Iterator<Item = &str> {
        self.ignore.lines().filter_map(|line| line.strip_prefix('!'))
    }

    fn lets_in(&self, path: &str) -> bool {
        path == "." || self.let_in().any(|allowed| Path::new(path).starts_with(allowed))
    }
}

/// What a source file takes in at build time, from the repository's root.
fn included(source: &Source) -> Vec<String> {
    let folder = source.path.parent().expect("a file is in a folder");
    let macros = ["include_str!(\"", "include_bytes!(\""];
    let after = macros.iter().flat_map(|name| source.text.split(name).skip(1));
    after.filter_map(|rest| rest.split('"').next()).map(|path| flat(&folder.join(path))).collect()
}

/// A path without `..`.
fn flat(path: &Path) -> String {
    let mut parts = Vec::new();
    for part in path.iter().map(|part| part.to_string_lossy()) {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts.join("/")
}

#[test]
fn every_file_says_first_what_it_answers() {
    let silent = |source: &Source| {
        let first = source.text.lines().next().unwrap_or_default();
        first.strip_prefix("//! ").is_none_or(|sentence| sentence.trim().is_empty())
    };
    let sources = sources(&["src", "crates", "tests", "benches"]);
    let faults: Vec<_> = sources
        .iter()
        .filter(|source| silent(source))
        .map(|source| source.path.display().to_string())
        .collect();
    none("files that do not open with `//!` and a sentence", &faults);
}

#[test]
fn a_module_stands_beside_its_folder() {
    let sources = sources(&["src", "crates", "tests", "benches"]);
    let named_mod = sources.iter().filter(|source| source.path.ends_with("mod.rs"));
    let faults: Vec<_> = named_mod.map(|source| source.path.display().to_string()).collect();
    none("`mod.rs` files, which belong beside their folder as `<folder>.rs`", &faults);
}

#[test]
fn names_say_what_a_thing_is() {
    let mut faults = Vec::new();
    for source in sources(&["src", "crates", "tests", "benches"]) {
        let mut parts = source.path.iter().map(|part| part.to_string_lossy());
        if parts.any(|part| is_empty_name(part.trim_end_matches(".rs"))) {
            faults.push(source.path.display().to_string());
        }
        for (at, line) in source.text.lines().enumerate() {
            if let Some(name) = declared(line).filter(|name| is_empty_name(name)) {
                faults.push(format!("{}:{}: {name}", source.path.display(), at + 1));
            }
        }
    }
    none(&format!("names with one of {EMPTY_NAMES:?}"), &faults);
}

#[test]
fn nothing_is_left_undone() {
    let mut faults = Vec::new();
    for source in sources(&["src", "crates", "tests", "benches"]) {
        for (at, line) in source.text.lines().enumerate() {
            if let Some(mark) = undone(line) {
                faults.push(format!("{}:{}: {mark}", source.path.display(), at + 1));
            }
        }
    }
    none("marks of work that is left over or switched off", &faults);
}

/// A file that is neither would never be compiled, and its cases would pass by not being run.
#[test]
fn every_file_of_the_tests_is_a_program_or_a_module_of_one() {
    let targets = fs::read_to_string(root().join("Cargo.toml")).expect("Cargo.toml can be read");
    let is_program = |name: &str| targets.contains(&format!("[[test]]\nname = \"{name}\"\n"));
    let files = sources(&["tests"]).into_iter().filter(|source| source.path.components().count() == 2);
    let files: Vec<_> = files.collect();
    let name =
        |source: &Source| source.path.file_stem().expect("a file has a name").to_string_lossy().into_owned();
    let programs: Vec<_> = files.iter().filter(|source| is_program(&name(source))).collect();
    assert!(programs.len() > 5, "only {} programs were found", programs.len());
    // A module with a path is another file.
    let declares = |source: &Source, module: &str| {
        let lines: Vec<_> = source.text.lines().collect();
        let declared = format!("mod {module};");
        lines.windows(2).any(|pair| pair[1] == declared && !pair[0].starts_with("#[path"))
    };
    let counted = files.iter().map(name).map(|module| {
        let of_programs = programs.iter().filter(|program| declares(program, &module)).count();
        (of_programs + usize::from(is_program(&module)), module)
    });
    let faults: Vec<_> = counted
        .filter(|(count, _)| *count != 1)
        .map(|(count, module)| format!("tests/{module}.rs: {count} times"))
        .collect();
    none("files of the tests that are not part of exactly one program", &faults);
}

#[test]
fn the_image_is_built_from_what_is_there() {
    let dockerfile = Dockerfile::read();
    let mut faults = Vec::new();
    for path in dockerfile.copied().filter(|path| !root().join(path).exists()) {
        faults.push(format!("{path}: copied, and not there"));
    }
    for path in dockerfile.copied().filter(|path| !dockerfile.lets_in(path)) {
        faults.push(format!("{path}: copied, and kept out by .dockerignore"));
    }
    // Links lead to files that must be let in too.
    let comes_in = |path: &String| {
        let real = root().join(path).canonicalize().expect("what is included is there");
        let real = real
            .strip_prefix(root().canonicalize().expect("it is there"))
            .expect("it is below the root")
            .to_owned();
        dockerfile.lets_in(path) && dockerfile.lets_in(&real.to_string_lossy())
    };
    for source in sources(&["src"]) {
        for path in included(&source).into_iter().filter(|path| !comes_in(path)) {
            faults.push(format!("{}: includes {path}, which .dockerignore keeps out", source.path.display()));
        }
    }
    none("paths of the image's build", &faults);
}

#[test]
fn the_image_is_built_by_the_pinned_compiler() {
    let pin = fs::read_to_string(root().join("rust-toolchain.toml")).expect("the pin can be read");
    let channel = pin.split('"').nth(1).expect("the channel is the first string");
    let builder = format!("rust:{channel}-");
    assert!(Dockerfile::read().text.contains(&builder), "the Dockerfile does not build from {builder}…");
}

#[test]
fn the_name_reader_reads_declarations() {
    assert_eq!(declared("pub(crate) struct NodeManager<'a> {"), Some("NodeManager"));
    assert_eq!(declared("    mod util;"), Some("util"));
    assert_eq!(declared("let manager = 1;"), None);
    assert!(is_empty_name("NodeManager") && is_empty_name("string_utils"));
    assert!(!is_empty_name("Commonwealth") && !is_empty_name("NodeName"));
}

#[test]
fn the_reader_of_marks_reads_comments_and_code() {
    assert_eq!(undone(&format!("    let a = 1; // {}: later", UNDONE[0])), Some(UNDONE[0]));
    assert_eq!(undone("    todo!()"), Some("todo!"));
    assert_eq!(undone("    #[ignore = \"slow\"]"), Some("#[ignore"));
    assert_eq!(undone("    let todo = 1;"), None);
}

#[test]
fn the_reader_of_the_dockerfile_reads_sources_only() {
    let dockerfile = Dockerfile {
        text: "FROM a\nCOPY Cargo.toml Cargo.lock ./\nCOPY --link src src\nCOPY --from=build /x /y\n"
            .to_owned(),
        ignore: "*\n!src\n".to_owned(),
    };
    assert_eq!(dockerfile.copied().collect::<Vec<_>>(), ["Cargo.toml", "Cargo.lock", "src"]);
    assert!(dockerfile.lets_in("src/lib.rs") && !dockerfile.lets_in("Cargo.toml"));
}

#[test]
fn the_reader_of_includes_follows_paths() {
    let text = "const A: &str = include_str!(\"../../deploy/a.yaml\");".to_owned();
    let source = Source { path: PathBuf::from("src/cli/a.rs"), text };
    assert_eq!(included(&source), ["deploy/a.yaml"]);
}

#[test]
fn the_readme_shows_the_two_commands() {
    let readme = fs::read_to_string(root().join("README.md")).expect("README.md can be read");
    for command in ["cargo run --release -- demo", "cargo test"] {
        assert!(readme.contains(command), "README.md does not show `{command}`");
    }
}
