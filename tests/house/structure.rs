//! How large types are: methods, fields and variants, counted in the text of `src`.
//!
//! Types are known by their names alone: two of one name count together. What macros make is not seen.

use std::collections::BTreeMap;

use super::{none, sources};

/// Methods that a type may have, those of traits not counted.
const MOST_METHODS: usize = 40;

/// Fields that a struct may have.
const MOST_FIELDS: usize = 12;

/// Variants that an enum of `scheduling` may have.
const MOST_VARIANTS: usize = 20;

/// Types that have more methods, and how many at most. The list can only shrink.
const MORE_METHODS: &[(&str, usize)] = &[];

/// Structs that have more fields, and how many at most. The list can only shrink, but for structs that copy a form from outside:
/// an object of Kubernetes, a section of settings, the options of a command.
const MORE_FIELDS: &[(&str, usize)] = &[
    ("SliceDevice", 13),
    ("HamiConfig", 18),
    ("MigrationRow", 13),
    ("PodSpec", 21),
    ("VendorRow", 14),
    ("AllocationSearch", 14),
    ("Seen", 19),
    ("ServeArgs", 18),
    ("SimulatedPod", 17),
];

/// The text with comments, strings and characters blanked, so that each brace that is left is code.
fn masked(text: &str) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = literal(rest, masked.chars().next_back());
        if length == 0 {
            masked.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            masked.extend(rest[..length].chars().map(|c| if c == '\n' { c } else { ' ' }));
            rest = &rest[length..];
        }
    }
    masked
}

/// The length of the comment, string or character that a text begins with; 0: it begins with none.
fn literal(text: &str, before: Option<char>) -> usize {
    let until =
        |end: &str, from: usize| text[from..].find(end).map_or(text.len(), |at| from + at + end.len());
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return until("*/", 2);
    }
    let word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    if !word && let Some(raw) = text.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        if raw[hashes..].starts_with('"') {
            return until(&format!("\"{}", "#".repeat(hashes)), hashes + 2);
        }
    }
    if text.starts_with('"') {
        return closed_by(text, '"');
    }
    let mut characters = text.chars();
    let is_character = characters.next() == Some('\'')
        && match characters.next() {
            Some('\\') => true,
            Some(_) => characters.next() == Some('\''),
            None => false,
        };
    if is_character { closed_by(text, '\'') } else { 0 }
}

/// The length of a literal that begins with its quote, its escapes read.
fn closed_by(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// What stands between the braces that a text begins with.
fn body(text: &str) -> &str {
    let mut depth = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 1 => return &text[1..at],
            '}' => depth -= 1,
            _ => {}
        }
    }
    text.get(1..).unwrap_or_default()
}

/// The items of a text that begin with a keyword at the start of a line: what stands before their brace, and what is within.
fn items<'a>(text: &'a str, keyword: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let mut at = 0;
    let lines = text.split_inclusive('\n').map(move |line| {
        at += line.len();
        (at - line.len(), line)
    });
    lines.filter_map(move |(at, line)| {
        let visible = line.trim_start();
        let item = match visible.strip_prefix("pub") {
            Some(item) if item.starts_with('(') => item.split_once(')')?.1.trim_start(),
            Some(item) => item.trim_start(),
            None => visible,
        };
        let item = item.strip_prefix(keyword).filter(|item| item.starts_with([' ', '<']))?;
        let start = at + line.len() - item.len();
        let brace = text[start..].find(['{', ';', '('])?;
        let inside = &text[start + brace..];
        inside.starts_with('{').then(|| (&text[start..start + brace], body(inside)))
    })
}

/// A text without the parts between angle brackets.
fn without_generics(text: &str) -> String {
    let mut depth = 0_usize;
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '<' => depth += 1,
            '>' => depth = depth.saturating_sub(1),
            c if depth == 0 => plain.push(c),
            _ => {}
        }
    }
    plain
}

/// The last name of a path, such as `Scheduler` of `super::Scheduler`.
fn last_name(path: &str) -> &str {
    path.split_whitespace().next().unwrap_or_default().rsplit("::").next().unwrap_or_default()
}

/// How many methods each type has in the text of a file.
fn methods(code: &str) -> Vec<(String, usize)> {
    let implementations = items(code, "impl").filter_map(|(head, body)| {
        let head = without_generics(head);
        let of_trait = head.contains(" for ");
        let is_method = |line: &&str| line.split_whitespace().any(|word| word == "fn");
        (!of_trait).then(|| (last_name(&head).to_owned(), body.lines().filter(is_method).count()))
    });
    implementations.collect()
}

/// How many fields each struct has in the text of a file. It takes rustfmt's layout for granted: one field in a line.
fn fields(code: &str) -> Vec<(String, usize)> {
    let structs = items(code, "struct").map(|(head, body)| {
        let is_field = |line: &&str| {
            let line = line.trim_start();
            line.contains(": ") && !line.starts_with('#')
        };
        let lines = body.lines();
        let depth_of_struct = lines.clone().find(|line| is_field(line)).map_or(0, indent);
        let count = lines.filter(is_field).filter(|line| indent(line) == depth_of_struct).count();
        (last_name(&without_generics(head)).to_owned(), count)
    });
    structs.collect()
}

/// How many variants each enum has in the text of a file, by rustfmt's layout as well.
fn variants(code: &str) -> Vec<(String, usize)> {
    let enums = items(code, "enum").map(|(head, body)| {
        let begins = |line: &&str| line.trim_start().starts_with(char::is_uppercase);
        let lines = body.lines();
        let depth_of_enum = lines.clone().find(|line| begins(line)).map_or(0, indent);
        let count = lines.filter(begins).filter(|line| indent(line) == depth_of_enum).count();
        (last_name(&without_generics(head)).to_owned(), count)
    });
    enums.collect()
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The code of every file of a folder, unit tests left out.
fn code(folder: &str) -> Vec<String> {
    let files = sources(&[folder]).into_iter().filter(|source| {
        let mut parts = source.path.iter();
        !parts.any(|part| part == "tests" || part == "tests.rs")
    });
    let without_tests =
        |text: &str| text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default().to_owned();
    files.map(|source| masked(&without_tests(&source.text))).collect()
}

/// What exceeds a limit, and what stands among the exceptions and exceeds it no more.
fn faults(found: &BTreeMap<String, usize>, limit: usize, exceptions: &[(&str, usize)]) -> Vec<String> {
    let allowed =
        |name: &str| exceptions.iter().find(|(known, _)| *known == name).map_or(limit, |(_, most)| *most);
    let above = found.iter().filter(|(name, count)| **count > allowed(name));
    let above = above.map(|(name, count)| format!("{name}: {count}, at most {}", allowed(name)));
    let gone = exceptions.iter().filter(|(name, _)| found.get(*name).is_none_or(|count| *count <= limit));
    let gone = gone.map(|(name, _)| format!("{name}: no exception any more, delete its entry"));
    above.chain(gone).collect()
}

#[test]
fn no_type_has_many_methods() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (name, count) in code("src").iter().flat_map(|code| methods(code)) {
        *found.entry(name).or_default() += count;
    }
    assert!(found.len() > 300, "only {} types were found", found.len());
    none("types with many methods", &faults(&found, MOST_METHODS, MORE_METHODS));
}

#[test]
fn no_struct_has_many_fields() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (name, count) in code("src").iter().flat_map(|code| fields(code)) {
        let most = found.entry(name).or_default();
        *most = count.max(*most);
    }
    assert!(found.len() > 300, "only {} structs were found", found.len());
    none("structs with many fields", &faults(&found, MOST_FIELDS, MORE_FIELDS));
}

#[test]
fn no_enum_of_scheduling_has_many_variants() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (name, count) in code("src/scheduling").iter().flat_map(|code| variants(code)) {
        let most = found.entry(name).or_default();
        *most = count.max(*most);
    }
    assert!(found.len() > 100, "only {} enums were found", found.len());
    none("enums with many variants", &faults(&found, MOST_VARIANTS, &[]));
}

#[test]
fn the_counter_reads_code_and_nothing_else() {
    let text = "impl<'a> super::A<'a> {\n    fn b() { let _ = ('{', \"}\", r#\"fn\"#); } // fn\n    pub(crate) const fn c() {}\n}\nimpl Clone for A {\n    fn clone() {}\n}\n\
                pub(super) struct B<T> {\n    /// c: d\n    a: [u8; 2],\n    pub b: Map<\n        u8: 1,\n    >,\n}\nstruct C(u8);\nenum D {\n    /// E\n    F(u8),\n    G {\n        /// H\n        i: I,\n    },\n}\n";
    let code = masked(text);
    assert_eq!(methods(&code), [("A".to_owned(), 2)]);
    assert_eq!(fields(&code), [("B".to_owned(), 2)]);
    assert_eq!(variants(&code), [("D".to_owned(), 2)]);
    let found = BTreeMap::from([("A".to_owned(), 3), ("B".to_owned(), 1)]);
    assert_eq!(faults(&found, 2, &[("A", 3)]), Vec::<String>::new());
    assert_eq!(faults(&found, 2, &[("A", 2), ("B", 3)]).len(), 2);
}
