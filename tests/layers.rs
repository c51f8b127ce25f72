//! The house stands: imports point down only and lead in no circle, and the pure layers name no client, no async, no clock.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

/// What each top-level module may import of the crate. A module that is not here fails the test: give it its place.
const MAY_IMPORT: &[(&str, &[&str])] = &[
    ("excerpt", &[]),
    ("persistent", &[]),
    ("device", &[]),
    ("object", &["excerpt"]),
    ("dialect", &["device", "object", "excerpt"]),
    ("dra", &["object", "excerpt", "persistent"]),
    ("admission", &["device", "object", "dialect", "excerpt"]),
    ("scheduling", &["device", "dra", "object", "excerpt", "persistent"]),
    ("webhook", &["admission", "device", "object", "dialect", "excerpt"]),
    ("extender", &["scheduling", "object", "excerpt"]),
    ("cluster", &["scheduling", "device", "object", "dialect", "excerpt"]),
    ("simulation", &["cluster", "scheduling", "device", "object", "dialect"]),
    ("api", &["simulation", "scheduling", "cluster", "webhook", "object", "device", "dialect", "excerpt"]),
    ("config", &["admission", "scheduling", "device", "object", "dialect", "cluster", "webhook"]),
    (
        "app",
        &[
            "api",
            "simulation",
            "config",
            "webhook",
            "cluster",
            "extender",
            "admission",
            "scheduling",
            "device",
            "object",
            "dialect",
            "excerpt",
        ],
    ),
    (
        "cli",
        &[
            "api",
            "app",
            "simulation",
            "config",
            "webhook",
            "cluster",
            "admission",
            "scheduling",
            "device",
            "dra",
            "object",
            "dialect",
            "excerpt",
        ],
    ),
];

/// The folders of `scheduling`, each of which may import those before it. What stands beside them, the scheduler above all, may import all.
const INSIDE_SCHEDULING: &[&str] = &[
    "model",
    "packing",
    "world",
    "plugin",
    "snapshot",
    "decide",
    "plan",
    "queue",
    "prebind",
    "node_flow",
    "preempt",
    "finding",
];

/// The crates whose modules import each other in no circle.
const ROOTS: &[&str] = &["src", "crates/sandbox/src"];

/// Words that no file of a pure layer may hold, with what they stand for.
const IMPURE: &[(&str, &str)] = &[
    ("k8s_openapi", "the API server's types"),
    ("kube::", "a client"),
    ("tokio", "async"),
    ("async fn", "async"),
    ("Timestamp::now", "a clock"),
    ("Zoned::now", "a clock"),
    ("SystemTime::now", "a clock"),
    ("Instant::now", "a clock"),
    ("rand::", "randomness"),
    ("tracing::", "a log"),
    ("std::env", "the environment"),
    ("std::fs", "files"),
    ("thread_local!", "a global"),
];

const PURE: &[&str] =
    &["excerpt", "persistent", "device", "object", "dialect", "dra", "admission", "scheduling"];

/// The segments of a module's path, from the root of its crate.
type Module = Vec<String>;

/// Every source file below a folder of the project.
fn files(root: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join(root)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found
}

/// The module of a source file; `lib.rs` and `main.rs` count as modules, too.
fn module_of(path: &Path, root: &str) -> Module {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
    let inside = path.strip_prefix(root).expect("the file is below the root").with_extension("");
    inside.iter().map(|part| part.to_string_lossy().into_owned()).collect()
}

/// Every source file below `src`, with the top-level module that it belongs to.
fn sources() -> BTreeMap<PathBuf, String> {
    let first = |path: &Path| module_of(path, "src").swap_remove(0);
    files("src").into_iter().map(|path| (path.clone(), first(&path))).collect()
}

/// The modules below a root and their texts, without the roots of crates and without tests.
fn modules(root: &str) -> BTreeMap<Module, String> {
    let read = |path: PathBuf| {
        let module = module_of(&path, root);
        let counts = !module.iter().any(|part| matches!(part.as_str(), "tests" | "lib" | "main"));
        counts.then(|| (module, fs::read_to_string(&path).expect("a source file can be read")))
    };
    files(root).into_iter().filter_map(read).collect()
}

/// The top-level modules that a text imports by `crate::` paths, with their lines. Comments do not count.
fn imports(text: &str) -> Vec<(usize, String)> {
    let mut imports = Vec::new();
    let mut rest = text;
    let mut line = 1;
    while let Some(at) = rest.find("crate::") {
        line += rest[..at].matches('\n').count();
        let start = rest[..at].rfind('\n').map_or(0, |newline| newline + 1);
        let comment = rest[start..at].trim_start().starts_with("//");
        rest = &rest[at + "crate::".len()..];
        if !comment {
            imports.extend(named(rest).into_iter().map(|module| (line, module)));
        }
    }
    imports
}

/// The modules that a path names right behind `crate::`: one, or the first of each branch of a group.
fn named(path: &str) -> Vec<String> {
    let word =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let Some(group) = path.strip_prefix('{') else { return vec![word(path)] };
    let mut modules = Vec::new();
    let mut depth = 0;
    let mut fresh = true;
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            c if fresh && c.is_alphabetic() => {
                modules.push(word(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    modules
}

/// The paths of a text that begin with `crate` or `super`, with the branches of groups written out. Comments and unit tests do not count.
fn paths(text: &str) -> Vec<Vec<String>> {
    let tests = text.match_indices("#[cfg(test)]\n").find(|(at, mark)| {
        text[at + mark.len()..].lines().next().is_some_and(|item| item.ends_with("mod tests {"))
    });
    let code = tests.map_or(text, |(at, _)| &text[..at]);
    let lines = code.lines().map(|line| line.split("//").next().expect("split gives at least one part"));
    let code = lines.collect::<Vec<_>>().join(" ");
    let mut paths = Vec::new();
    for root in ["crate::", "super::"] {
        for (at, _) in code.match_indices(root) {
            let before = code[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            spread(&mut Vec::new(), &code[at..], &mut paths);
        }
    }
    paths
}

/// Adds the paths that a text begins with behind these segments, and returns what follows.
fn spread<'a>(before: &mut Vec<String>, text: &'a str, paths: &mut Vec<Vec<String>>) -> &'a str {
    let depth = before.len();
    let mut rest = text.trim_start();
    loop {
        if let Some(group) = rest.strip_prefix('{') {
            rest = group.trim_start();
            while !rest.starts_with('}') && !rest.is_empty() {
                rest = spread(before, rest, paths).trim_start();
                rest = rest.trim_start_matches(',').trim_start();
            }
            rest = rest.strip_prefix('}').unwrap_or(rest);
            break;
        }
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (segment, after) = rest.split_at(end);
        if segment.is_empty() {
            // A glob, or the arguments of a generic type.
            paths.push(before.clone());
            rest = after.get(1..).unwrap_or_default();
            break;
        }
        before.push(segment.to_owned());
        rest = after;
        if let Some(more) = rest.strip_prefix("::") {
            rest = more;
            continue;
        }
        paths.push(before.clone());
        rest = rest.trim_start();
        if let Some(alias) = rest.strip_prefix("as ") {
            rest = alias.trim_start().trim_start_matches(|c: char| c.is_alphanumeric() || c == '_');
        }
        break;
    }
    before.truncate(depth);
    rest
}

/// Where a path leads, from a module: its segments below the crate.
fn resolved(module: &[String], path: &[String]) -> Vec<String> {
    let ups = path.iter().take_while(|segment| *segment == "super").count();
    let base = if ups > 0 { &module[..module.len().saturating_sub(ups)] } else { &[] };
    base.iter().chain(&path[ups.max(1)..]).cloned().collect()
}

/// The modules among these that a module imports, as they stand for what its paths lead to. A parent and its children are one: what is between
/// them does not count.
fn imported(module: &Module, text: &str, known: &BTreeMap<Module, String>) -> BTreeSet<Module> {
    let named = paths(text).into_iter().filter_map(|path| {
        let path = resolved(module, &path);
        let longest = (1..=path.len()).rev().map(|length| &path[..length]);
        longest.into_iter().find(|prefix| known.contains_key(*prefix)).map(<[String]>::to_vec)
    });
    named.filter(|other| !other.starts_with(module) && !module.starts_with(other)).collect()
}

/// The sets of modules each of which leads, import by import, to all others of its set.
fn cycles(imports: &BTreeMap<Module, BTreeSet<Module>>) -> BTreeSet<BTreeSet<Module>> {
    let leads_to = |module: &Module| {
        let mut found = BTreeSet::new();
        let mut ahead = vec![module];
        while let Some(next) = ahead.pop() {
            let new = imports.get(next).into_iter().flatten().filter(|other| found.insert(*other));
            ahead.extend(new.collect::<Vec<_>>());
        }
        found
    };
    let reach: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|module| (module, leads_to(module))).collect();
    let of = |module: &Module| -> BTreeSet<Module> {
        let back = |other: &&&Module| reach.get(**other).is_some_and(|reached| reached.contains(module));
        reach[module].iter().filter(back).map(|other| (*other).clone()).collect()
    };
    imports.keys().map(of).filter(|cycle| !cycle.is_empty()).collect()
}

#[test]
fn no_modules_import_each_other_in_a_circle() {
    let mut faults = Vec::new();
    for root in ROOTS {
        let modules = modules(root);
        let of = |(module, text): (&Module, &String)| (module.clone(), imported(module, text, &modules));
        let imports: BTreeMap<_, _> = modules.iter().map(of).collect();
        for cycle in cycles(&imports) {
            faults.push(format!("{root}: a cycle of {} modules:", cycle.len()));
            let within = cycle.iter().flat_map(|module| {
                let others = imports[module].intersection(&cycle);
                others.map(move |other| format!("    {} imports {}", module.join("/"), other.join("/")))
            });
            faults.extend(within);
        }
    }
    assert!(faults.is_empty(), "imports that lead in a circle:\n{}", faults.join("\n"));
}

#[test]
fn a_cycle_is_found_with_all_its_modules_and_no_others() {
    let module = |name: &str| -> Module { name.split('/').map(str::to_owned).collect() };
    let texts = [
        ("a", "mod inner; use crate::b::B;"),
        ("a/inner", "use super::A; use super::super::d::*;"),
        ("b", "fn f() -> crate::c::C::<u8> {}"),
        ("c", "use super::{a::A as _, d};"),
        ("d", "// use crate::a;\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}"),
        ("e", "use crate::e::inner::X; use crate::{a, unknown};"),
        ("e/inner", "use crate::e::E;"),
    ];
    let known: BTreeMap<Module, String> =
        texts.iter().map(|(name, text)| (module(name), (*text).to_owned())).collect();
    let of = |(own, text): (&Module, &String)| (own.clone(), imported(own, text, &known));
    let imports: BTreeMap<_, _> = known.iter().map(of).collect();
    assert_eq!(imports[&module("a/inner")], BTreeSet::from([module("d")]));
    assert_eq!(imports[&module("e")], BTreeSet::from([module("a")]));
    let cycle = BTreeSet::from(["a", "b", "c"].map(module));
    assert_eq!(cycles(&imports), BTreeSet::from([cycle]));
}

#[test]
fn the_folders_of_scheduling_import_only_those_before_them() {
    let place = |folder: &str| INSIDE_SCHEDULING.iter().position(|known| *known == folder);
    let mut faults = Vec::new();
    for (module, text) in modules("src").into_iter().filter(|(module, _)| module[0] == "scheduling") {
        let Some(own) = module.get(1).and_then(|folder| place(folder)) else { continue };
        for import in paths(&text) {
            let to = resolved(&module, &import);
            if to.first().is_none_or(|first| first != "scheduling") {
                continue;
            }
            let Some(folder) = to.get(1) else { continue };
            if place(folder).is_none_or(|of_folder| of_folder > own) {
                faults.push(format!("{}: imports {}", module.join("/"), to.join("::")));
            }
        }
    }
    assert!(faults.is_empty(), "imports of `scheduling` that point up or sideways:\n{}", faults.join("\n"));
}

/// The modules of a folder, and which of them each imports outside of its tests.
fn graph(folder: &str) -> BTreeMap<Vec<String>, Vec<Vec<String>>> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut graph: BTreeMap<Vec<String>, Vec<Vec<String>>> = BTreeMap::new();
    for (path, _) in sources() {
        let inside = path.strip_prefix(&src).expect("the file is below src").with_extension("");
        let module: Vec<String> = inside.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        if inside.starts_with(folder) && module.iter().all(|part| part != "tests") {
            let text = fs::read_to_string(&path).expect("a source file can be read");
            graph.insert(module.clone(), paths(&text).iter().map(|path| resolved(&module, path)).collect());
        }
    }
    let known: BTreeSet<Vec<String>> = graph.keys().cloned().collect();
    let module_of = |path: &Vec<String>| {
        (1..=path.len()).rev().map(|to| path[..to].to_vec()).find(|one| known.contains(one))
    };
    for (module, imports) in &mut graph {
        *imports = imports.iter().filter_map(module_of).filter(|to| to != module).collect();
    }
    graph
}

/// The modules that can be reached from this one by imports.
fn reached<'a>(
    graph: &'a BTreeMap<Vec<String>, Vec<Vec<String>>>,
    from: &'a Vec<String>,
) -> BTreeSet<&'a Vec<String>> {
    let (mut seen, mut waiting) = (BTreeSet::new(), vec![from]);
    while let Some(module) = waiting.pop() {
        waiting.extend(graph.get(module).into_iter().flatten().filter(|to| seen.insert(*to)));
    }
    seen
}

#[test]
fn no_modules_of_preflight_import_each_other_in_a_circle() {
    let graph = graph("cli/preflight");
    assert!(graph.len() > 15, "{:?}", graph.keys());
    let in_circles = graph.keys().filter(|module| reached(&graph, module).contains(module));
    let in_circles: Vec<_> = in_circles.map(|module| module.join("::")).collect();
    assert!(in_circles.is_empty(), "{in_circles:?}");
}

#[test]
fn the_reader_of_paths_writes_groups_out() {
    let found = paths(
        "use super::{\n    a::{self, B as C},\n    d, // crate::x\n};\nfn f(_: crate::e::F) {}\n#[cfg(test)]\nmod tests {\n    use crate::g;\n}",
    );
    let found: Vec<_> = found.iter().map(|path| path.join("::")).collect();
    assert_eq!(found, ["crate::e::F", "super::a::self", "super::a::B", "super::d"]);
    let module = ["scheduling", "world", "ledger"].map(str::to_owned);
    let path = ["super", "super", "model", "name"].map(str::to_owned);
    assert_eq!(resolved(&module, &path), ["scheduling", "model", "name"]);
}

#[test]
fn imports_point_down_only() {
    let rules: BTreeMap<_, _> = MAY_IMPORT.iter().copied().collect();
    let mut faults = Vec::new();
    for (path, module) in sources() {
        if matches!(module.as_str(), "lib" | "main") {
            continue;
        }
        let Some(allowed) = rules.get(module.as_str()) else {
            faults.push(format!("{}: module `{module}` has no layer in this test", path.display()));
            continue;
        };
        let text = fs::read_to_string(&path).expect("a source file can be read");
        for (line, import) in imports(&text) {
            if import != module && !allowed.contains(&import.as_str()) {
                faults.push(format!("{}:{line}: `{module}` imports `{import}`", path.display()));
            }
        }
    }
    assert!(faults.is_empty(), "imports that point up or sideways:\n{}", faults.join("\n"));
}

/// Whether a line begins a `static` item. One that never changes can be a `const`, so that none is let through.
fn is_static(line: &str) -> bool {
    let item = line.trim_start();
    let item = item.strip_prefix("pub").map_or(item, |item| match item.strip_prefix('(') {
        Some(within) => within.split_once(')').map_or(within, |(_, item)| item),
        None => item,
    });
    item.trim_start().starts_with("static ")
}

#[test]
fn the_pure_layers_are_pure() {
    let mut faults = Vec::new();
    for (path, _) in sources().into_iter().filter(|(_, module)| PURE.contains(&module.as_str())) {
        let text = fs::read_to_string(&path).expect("a source file can be read");
        for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            let words = IMPURE.iter().filter(|(word, _)| line.contains(word));
            for (word, what) in words.chain(is_static(line).then_some(&("static", "a global"))) {
                faults.push(format!("{}:{}: `{word}` ({what})", path.display(), at + 1));
            }
        }
    }
    assert!(faults.is_empty(), "the pure layers name:\n{}", faults.join("\n"));
}

#[test]
fn wire_names_stand_in_dialects_only() {
    let names = ["hami.io/", "nvidia.com/", "volcano.sh/"];
    // Commands and settings name what users write.
    let exempt = ["dialect", "cli", "config"];
    let mut faults = Vec::new();
    for (path, _) in sources().into_iter().filter(|(_, module)| !exempt.contains(&module.as_str())) {
        let text = fs::read_to_string(&path).expect("a source file can be read");
        let code = text.split("#[cfg(test)]").next().expect("split gives at least one part");
        for (at, line) in code.lines().enumerate().filter(|(_, line)| !line.trim_start().starts_with("//")) {
            if names.iter().any(|name| line.contains(name)) {
                faults.push(format!("{}:{}: {}", path.display(), at + 1, line.trim()));
            }
        }
    }
    assert!(faults.is_empty(), "wire names outside of src/dialect:\n{}", faults.join("\n"));
}

#[test]
fn a_static_is_seen_wherever_it_stands() {
    for line in ["static A: Mutex<u8> =", "    pub(super) static mut B: u8", "pub static C: LazyLock<u8>"] {
        assert!(is_static(line), "{line}");
    }
    assert!(!is_static("    known: &'static str,") && !is_static("fn publish(name: &'static str) {"));
}

#[test]
fn the_import_reader_reads_groups() {
    let text =
        "use crate::{\n    device::{A, B},\n    object,\n};\n// crate::cli\nfn f() { crate::dialect::go() }";
    let found: Vec<_> = imports(text).into_iter().map(|(_, module)| module).collect();
    assert_eq!(found, ["device", "object", "dialect"]);
}
