//! A label selector as kubectl takes it on its command line: `pool=a100,zone in (a, b),!spot`.
//!
//! Grammar: `k8s.io/apimachinery/pkg/labels/selector.go`, without its operators `<` and `>`.

use std::str::FromStr;

use super::LabelSelector;
use crate::object::Requirement;

/// A part that can't be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "`{0}` is no requirement on a label: write `key=value`, `key!=value`, `key in (a, b)`, `key notin (a, b)`, `key` or `!key`"
)]
pub struct UnreadableSelector(String);

impl FromStr for LabelSelector {
    type Err = UnreadableSelector;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let terms = terms(text).into_iter().filter(|term| !term.is_empty());
        let match_expressions = terms.map(requirement).collect::<Result<_, _>>()?;
        Ok(Self { match_expressions, ..Self::default() })
    }
}

/// The parts between commas that stand in no parentheses.
fn terms(text: &str) -> Vec<&str> {
    let mut depth = 0_i32;
    let outer = |c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    };
    text.split(outer).map(str::trim).collect()
}

fn requirement(term: &str) -> Result<Requirement, UnreadableSelector> {
    let refuse = || UnreadableSelector(term.to_owned());
    let made = |key: &str, operator: &str, values: Vec<String>| {
        let (key, is_one_word) = (key.trim(), |text: &str| !text.contains([' ', '(', ')', '=', '!', ',']));
        let readable = !key.is_empty() && is_one_word(key) && values.iter().all(|value| is_one_word(value));
        let requirement = Requirement { key: key.to_owned(), operator: operator.to_owned(), values };
        readable.then_some(requirement).ok_or_else(refuse)
    };
    let one = |value: &str| vec![value.trim().to_owned()];
    if let Some(listed) = term.strip_suffix(')') {
        let (head, values) = listed.split_once('(').ok_or_else(refuse)?;
        let (key, operator) = head.trim().rsplit_once(char::is_whitespace).ok_or_else(refuse)?;
        let values = values.split(',').map(|value| value.trim().to_owned()).collect();
        return match operator {
            "in" => made(key, "In", values),
            "notin" => made(key, "NotIn", values),
            _ => Err(refuse()),
        };
    }
    if let Some((key, value)) = term.split_once("!=") {
        return made(key, "NotIn", one(value));
    }
    match term.split_once("==").or_else(|| term.split_once('=')) {
        Some((key, value)) => made(key, "In", one(value)),
        None => match term.strip_prefix('!') {
            Some(key) => made(key, "DoesNotExist", Vec::new()),
            None => made(term, "Exists", Vec::new()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object::Labels;

    #[test]
    fn a_selector_reads_as_kubectl_reads_it() {
        let labels = [("pool", "a100"), ("zone", "b")].map(|(key, value)| (key.to_owned(), value.to_owned()));
        let labels = Labels::from(labels);
        for (text, expected) in [
            ("", true),
            ("pool=a100", true),
            ("pool == a100,zone=b", true),
            ("pool!=a100", false),
            ("spot!=true", true),
            ("zone in (a, b),pool", true),
            ("zone notin (a,b)", false),
            ("!spot", true),
            ("! pool", false),
            ("pool=", false),
        ] {
            assert_eq!(text.parse().map(|read: LabelSelector| read.matches(&labels)), Ok(expected), "{text}");
        }
        for text in ["=x", "a b", "zone in a", "zone in (a", "zone out (a)", "a=b c", "a=b=c", "!"] {
            assert!(text.parse::<LabelSelector>().is_err(), "{text}");
        }
    }
}
