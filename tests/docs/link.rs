//! The links of a page, and whether they lead somewhere.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::Page;

/// The targets of a page's links, those in code left out.
pub(super) fn of(page: &str) -> Vec<String> {
    let text = without_code(page);
    let after = text.split("](").skip(1);
    after.filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

/// What is wrong with a link; `None`: it leads to a file, and to a heading of it where it names one.
pub(super) fn fault(root: &Path, page: &Page, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (file, anchor) = target.split_once('#').map_or((target, None), |(file, anchor)| (file, Some(anchor)));
    let folder = page.path.parent().expect("a page is in a folder");
    let path = if file.is_empty() { page.path.clone() } else { flat(&folder.join(file)) };
    if !root.join(&path).exists() {
        return Some(format!("{target}: there is no {}", path.display()));
    }
    if page.is_in_the_book() && !path.starts_with("docs") {
        return Some(format!("{target}: is not in the book, whose readers may not have the repository"));
    }
    let anchor = anchor?;
    let text = fs::read_to_string(root.join(&path)).expect("a page can be read");
    let known = without_code(&text).lines().any(|line| line.starts_with('#') && slug(line) == anchor);
    (!known).then(|| format!("{target}: {} has no such heading", path.display()))
}

/// A heading as GitHub and mdBook name it in links.
fn slug(heading: &str) -> String {
    let text = heading.trim_start_matches('#').trim().to_lowercase();
    let kept = text.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// A path without `..`.
fn flat(path: &Path) -> PathBuf {
    let mut parts = PathBuf::new();
    for part in path {
        if part == ".." {
            parts.pop();
        } else {
            parts.push(part);
        }
    }
    parts
}

/// The text without fenced blocks and without what stands between backticks.
fn without_code(text: &str) -> String {
    let mut kept = String::new();
    let mut fenced = false;
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            fenced = !fenced;
        } else if !fenced {
            let is_heading = line.starts_with('#');
            let plain: String =
                if is_heading { line.replace('`', "") } else { line.split('`').step_by(2).collect() };
            kept.push_str(&plain);
            kept.push('\n');
        }
    }
    kept
}

#[test]
fn the_reader_of_links_leaves_code_out() {
    let page = "[a](b.md#c) `[d](e)`\n```\n[f](g)\n```\n[`h`](i.md)\n";
    assert_eq!(of(page), ["b.md#c", "i.md"]);
    assert_eq!(slug("## A node's `device` plugin: silent"), "a-nodes-device-plugin-silent");
}
