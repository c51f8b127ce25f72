//! The programs that a line of a POSIX shell runs, each with its words: quotes are taken off, and a substitution `$(…)` stands as one word
//! `$(…)` in its line, while the programs inside it count too.
//!
//! It knows what the pages use: pipes, lists, redirections, quotes, substitutions and comments.

use std::{iter::Peekable, str::Chars};

/// The simple commands of a line, those of substitutions included.
pub(super) fn commands(line: &str) -> Vec<Vec<String>> {
    let mut reader = Reader { rest: line.chars().peekable(), found: Vec::new() };
    reader.list(None);
    reader.found.into_iter().map(without_wrapper).filter(|words| !words.is_empty()).collect()
}

/// Without variables that are set for the program, and without `xargs`, which runs another one.
fn without_wrapper(words: Vec<String>) -> Vec<String> {
    let is_set = |word: &String| word.split_once('=').is_some_and(|(name, _)| !name.contains(['-', '/']));
    let words: Vec<_> = words.into_iter().skip_while(is_set).collect();
    if words.first().is_some_and(|word| word == "xargs") {
        return words.into_iter().skip(1).skip_while(|word| word.starts_with('-')).collect();
    }
    words
}

struct Reader<'a> {
    rest: Peekable<Chars<'a>>,
    found: Vec<Vec<String>>,
}

impl Reader<'_> {
    /// Reads commands up to the end of the line, or of the substitution.
    fn list(&mut self, end: Option<char>) {
        let mut words: Vec<String> = Vec::new();
        while let Some(&next) = self.rest.peek() {
            match next {
                ' ' => drop(self.rest.next()),
                '#' => break,
                '|' | '&' | ';' => {
                    self.rest.next();
                    self.found.push(std::mem::take(&mut words));
                }
                '>' | '<' => {
                    self.rest.next();
                    self.blanks();
                    self.word(end);
                }
                _ if Some(next) == end => break,
                _ => words.push(self.word(end)),
            }
        }
        self.found.push(words);
    }

    fn blanks(&mut self) {
        while self.rest.next_if_eq(&' ').is_some() {}
    }

    fn word(&mut self, end: Option<char>) -> String {
        let mut word = String::new();
        while let Some(next) =
            self.rest.next_if(|&c| !matches!(c, ' ' | '|' | '&' | ';' | '>') && Some(c) != end)
        {
            match next {
                '\'' => word.extend(self.rest.by_ref().take_while(|&c| c != '\'')),
                '"' => self.double_quoted(&mut word),
                _ => self.plain(next, &mut word),
            }
        }
        word
    }

    fn double_quoted(&mut self, word: &mut String) {
        while let Some(next) = self.rest.next_if(|&c| c != '"') {
            self.plain(next, word);
        }
        self.rest.next();
    }

    /// A character outside of single quotes, which may begin a substitution.
    fn plain(&mut self, next: char, word: &mut String) {
        if next == '$' && self.rest.next_if_eq(&'(').is_some() {
            self.list(Some(')'));
            self.rest.next();
            word.push_str("$(…)");
        } else if next == '\\' {
            word.extend(self.rest.next());
        } else {
            word.push(next);
        }
    }
}

#[test]
fn every_program_of_a_line_is_found_with_its_words() {
    let words = |line: &str| commands(line).iter().map(|words| words.join("¦")).collect::<Vec<_>>();
    assert_eq!(words("kubectl get pods -A  # all"), ["kubectl¦get¦pods¦-A"]);
    assert_eq!(
        words("a --x 'b | c' | kubectl apply -f - > out && d &"),
        ["a¦--x¦b | c", "kubectl¦apply¦-f¦-", "d"]
    );
    assert_eq!(
        words(
            r#"kubectl port-forward "$(kubectl get lease b -o jsonpath='{.spec.x}' | cut -d_ -f1)" 8443 &"#
        ),
        ["kubectl¦get¦lease¦b¦-o¦jsonpath={.spec.x}", "cut¦-d_¦-f1", "kubectl¦port-forward¦$(…)¦8443"]
    );
    assert_eq!(words(r"A=1 b | xargs -r -L1 kubectl delete pod"), ["b", "kubectl¦delete¦pod"]);
    assert_eq!(words(r#"jq -r '.a[] | "\(.b)"'"#), [r#"jq¦-r¦.a[] | "\(.b)""#]);
}
