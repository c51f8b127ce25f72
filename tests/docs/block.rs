//! The console blocks of a page: each command, and what is shown below it.
//!
//! A command is a line that starts with `$`. What stands after `|`, `>` or `&` is the shell's; a line `…` among the shown output stands
//! for any lines.

/// Commands that read files or nothing.
const OFFLINE: [&str; 7] = ["review", "simulate", "config", "manifests", "certs", "completions", "schema"];

/// One command of a page.
#[derive(Debug, Eq, PartialEq)]
pub(super) struct Call {
    /// Its words, the program first.
    pub(super) words: Vec<String>,
    /// The lines that the page shows below it.
    pub(super) shown: Vec<String>,
}

impl Call {
    /// Whether it can be run without a cluster and ends by itself.
    pub(super) fn needs_no_cluster(&self) -> bool {
        let has = |flag: &str| self.words.iter().any(|word| word == flag);
        match self.words.get(1).map(String::as_str) {
            Some("demo") => !has("--keep"),
            Some("certs") => !has("--secret"),
            Some("migrate" | "moves" | "top" | "why" | "who" | "fits" | "what-if") => has("-f"),
            Some("shadow") => has("-f") && !has("-"),
            Some(command) => OFFLINE.contains(&command),
            None => false,
        }
    }

    /// Whether its answer is no: it is shown with a denied pod, with one that does not fit where all must, or with one that would not be served
    /// by a plan, or where a shadow has found what must be looked at.
    pub(super) fn ends_with_no(&self) -> bool {
        let shows = |word: &str| self.shown.iter().any(|line| line.contains(word));
        let strict = self.words.iter().any(|word| word == "--strict");
        let unplanned = ["DoesNotFit", "NoClaim", "with less than asked for"].into_iter().any(shows);
        shows("Denied") || unplanned || shows("Verdict: review") || (strict && shows("Unschedulable"))
    }

    /// The first line of what is shown that was not printed, in order; `None`: all was.
    pub(super) fn lacking<'a>(&'a self, printed: &str) -> Option<&'a str> {
        let mut lines = printed.lines().map(str::trim_end);
        let shown = self.shown.iter().map(|line| line.trim_end());
        shown.filter(|line| *line != "…").find(|line| !lines.any(|printed| printed == *line))
    }
}

/// The commands of every console block.
pub(super) fn calls(page: &str) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::new();
    let mut fence: Option<(usize, bool)> = None;
    for line in page.lines() {
        let indent = line.len() - line.trim_start().len();
        if let Some(info) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_none() { Some((indent, info == "console")) } else { None };
            continue;
        }
        let Some((indent, true)) = fence else { continue };
        let line = line.get(indent..).unwrap_or_default();
        match line.strip_prefix("$ ") {
            Some(command) => calls.push(call(command)),
            None => calls.last_mut().expect("a block starts with a command").shown.push(line.to_owned()),
        }
    }
    calls
}

/// The command lines of every console block, as the shell reads them.
#[cfg(feature = "sandbox")]
pub(super) fn lines(page: &str) -> Vec<String> {
    let blocks = of_language(page, "console").into_iter();
    let lines =
        blocks.flat_map(|text| text.lines().map(|line| line.trim_start().to_owned()).collect::<Vec<_>>());
    lines.filter_map(|line| line.strip_prefix("$ ").map(str::to_owned)).collect()
}

/// The texts of the fenced blocks of a language.
pub(super) fn of_language(page: &str, language: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut fence: Option<bool> = None;
    for line in page.lines() {
        if let Some(info) = line.trim_start().strip_prefix("```") {
            fence = if fence.is_none() { Some(info == language) } else { None };
            texts.extend((fence == Some(true)).then(String::new));
        } else if fence == Some(true) {
            texts.last_mut().expect("the fence began one").extend([line, "\n"]);
        }
    }
    texts
}

/// The command of one line.
pub(super) fn call(command: &str) -> Call {
    Call { words: words(command), shown: Vec::new() }
}

/// The words of the first program in a line of the shell, without its comment.
fn words(command: &str) -> Vec<String> {
    let command = command.split(" #").next().unwrap_or_default();
    let words = command.split_whitespace();
    words.take_while(|word| !["|", ">", "&", "&&"].contains(word)).map(str::to_owned).collect()
}

#[test]
fn the_reader_of_blocks_takes_commands_and_what_they_show() {
    let page = "```console\n$ berth demo --keep > a   # stays\n$ berth review -f a | head\nDenied\n```\n\n1. x\n\n   ```console\n   \
                $ berth config\n   ```\n```yaml\n$ no\n```\n";
    let found = calls(page);
    let words: Vec<_> = found.iter().map(|call| call.words.join(" ")).collect();
    assert_eq!(words, ["berth demo --keep", "berth review -f a", "berth config"]);
    assert_eq!(found[1].shown, ["Denied"]);
    assert!(found[1].ends_with_no() && !found[2].ends_with_no());
    assert!(!found[0].needs_no_cluster() && found[1].needs_no_cluster());
}

#[test]
fn the_reader_of_blocks_takes_one_language() {
    let page = "```yaml\na: 1\n```\n```console\n$ x\n```\n```yaml\nb: 2\n```\n";
    assert_eq!(of_language(page, "yaml"), ["a: 1\n", "b: 2\n"]);
}

#[test]
fn what_is_shown_must_be_printed_in_its_order() {
    let call = Call { words: Vec::new(), shown: ["a", "…", "c"].map(str::to_owned).into() };
    assert_eq!(call.lacking("a\nb\nc\n"), None);
    assert_eq!(call.lacking("c\na\n"), Some("c"));
}
