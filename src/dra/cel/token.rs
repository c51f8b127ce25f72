//! The words of an expression.

use std::{iter::Peekable, str::CharIndices};

use super::CompileError;

/// A word, and the character at which it begins, from 1.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub(super) at: usize,
    pub(super) word: Word,
}

/// A word of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    /// A name; the second kind stands between backquotes and is a field's name alone.
    Name(String),
    QuotedName(String),
    Int(u64),
    Uint(u64),
    Double(f64),
    Text(String),
    /// An operator or a bracket.
    Sign(&'static str),
    End,
}

/// The longer ones first.
const SIGNS: &[&str] = &[
    "&&", "||", "==", "!=", "<=", ">=", "?", ":", "<", ">", "+", "-", "*", "/", "%", "!", "(", ")", "[", "]",
    "{", "}", ",", ".",
];

/// Divides a text into words; the last one is [`Word::End`].
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, CompileError> {
    let mut lexer = Lexer { text, rest: text.char_indices().peekable() };
    let mut tokens = Vec::new();
    loop {
        lexer.skip_blanks();
        let at = lexer.offset();
        let word = lexer.word()?;
        let end = word == Word::End;
        tokens.push(Token { at: text[..at].chars().count() + 1, word });
        if end {
            return Ok(tokens);
        }
    }
}

struct Lexer<'a> {
    text: &'a str,
    rest: Peekable<CharIndices<'a>>,
}

impl Lexer<'_> {
    fn offset(&mut self) -> usize {
        self.rest.peek().map_or(self.text.len(), |(at, _)| *at)
    }

    fn error(&mut self, message: impl Into<String>) -> CompileError {
        let offset = self.offset();
        CompileError::Syntax { at: self.text[..offset].chars().count() + 1, message: message.into() }
    }

    fn remaining(&mut self) -> &str {
        let offset = self.offset();
        &self.text[offset..]
    }

    fn skip(&mut self, count: usize) {
        for _ in 0..count {
            self.rest.next();
        }
    }

    fn skip_blanks(&mut self) {
        loop {
            while self.rest.next_if(|(_, c)| c.is_ascii_whitespace()).is_some() {}
            if !self.remaining().starts_with("//") {
                return;
            }
            while self.rest.next_if(|(_, c)| *c != '\n').is_some() {}
        }
    }

    fn word(&mut self) -> Result<Word, CompileError> {
        let Some(&(_, first)) = self.rest.peek() else { return Ok(Word::End) };
        let rest = self.remaining();
        let fraction = first == '.' && rest[1..].starts_with(|c: char| c.is_ascii_digit());
        if first.is_ascii_digit() || fraction {
            return self.number();
        }
        if let Some(raw) = text_prefix(rest) {
            self.skip(usize::from(raw));
            return self.quoted(raw).map(Word::Text);
        }
        if first.is_ascii_alphabetic() || first == '_' {
            return Ok(Word::Name(self.while_matches(|c| c.is_ascii_alphanumeric() || c == '_')));
        }
        if first == '`' {
            self.skip(1);
            let name = self.while_matches(|c| c.is_ascii_alphanumeric() || "_.-/ ".contains(c));
            return match self.rest.next() {
                Some((_, '`')) => Ok(Word::QuotedName(name)),
                _ => Err(self.error("a quoted name does not end")),
            };
        }
        let sign = SIGNS.iter().find(|sign| rest.starts_with(**sign));
        let Some(sign) = sign else { return Err(self.error(format!("unexpected character {first:?}"))) };
        self.skip(sign.len());
        Ok(Word::Sign(sign))
    }

    fn while_matches(&mut self, matches: impl Fn(char) -> bool) -> String {
        let mut found = String::new();
        while let Some((_, c)) = self.rest.next_if(|(_, c)| matches(*c)) {
            found.push(c);
        }
        found
    }

    fn number(&mut self) -> Result<Word, CompileError> {
        let rest = self.remaining();
        if rest.starts_with("0x") || rest.starts_with("0X") {
            self.skip(2);
            let digits = self.while_matches(|c| c.is_ascii_hexdigit());
            let number = u64::from_str_radix(&digits, 16);
            let number = number.map_err(|_| self.error("the number is out of range"))?;
            return Ok(if self.is_unsigned() { Word::Uint(number) } else { Word::Int(number) });
        }
        let mut digits = self.while_matches(|c| c.is_ascii_digit());
        let mut whole = true;
        let fraction = self
            .remaining()
            .strip_prefix('.')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
        if fraction {
            whole = false;
            self.skip(1);
            digits.push('.');
            digits += &self.while_matches(|c| c.is_ascii_digit());
        }
        if self.rest.next_if(|(_, c)| matches!(c, 'e' | 'E')).is_some() {
            whole = false;
            digits.push('e');
            if let Some((_, sign)) = self.rest.next_if(|(_, c)| matches!(c, '+' | '-')) {
                digits.push(sign);
            }
            digits += &self.while_matches(|c| c.is_ascii_digit());
        }
        if !whole {
            return digits.parse().map(Word::Double).map_err(|_| self.error("this is not a number"));
        }
        let number = digits.parse().map_err(|_| self.error("the number is out of range"))?;
        Ok(if self.is_unsigned() { Word::Uint(number) } else { Word::Int(number) })
    }

    fn is_unsigned(&mut self) -> bool {
        self.rest.next_if(|(_, c)| matches!(c, 'u' | 'U')).is_some()
    }

    /// A text between quotes, of which the first is the next character.
    fn quoted(&mut self, raw: bool) -> Result<String, CompileError> {
        let quote = if self.remaining().starts_with('"') { '"' } else { '\'' };
        let triple = quote.to_string().repeat(3);
        let long = self.remaining().starts_with(&triple);
        let end = if long { triple } else { quote.to_string() };
        self.skip(end.len());
        let mut text = String::new();
        loop {
            if self.remaining().starts_with(&end) {
                self.skip(end.len());
                return Ok(text);
            }
            match self.rest.next() {
                None => return Err(self.error("a text does not end")),
                Some((_, '\n' | '\r')) if !long => return Err(self.error("a text does not end on its line")),
                Some((_, '\\')) if !raw => text.push(self.escaped()?),
                Some((_, c)) => text.push(c),
            }
        }
    }

    /// The character behind a backslash.
    fn escaped(&mut self) -> Result<char, CompileError> {
        let Some((_, c)) = self.rest.next() else { return Err(self.error("a text does not end")) };
        Ok(match c {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\\' | '\'' | '"' | '`' | '?' => c,
            'x' | 'X' => self.code_point(2, 16, "")?,
            'u' => self.code_point(4, 16, "")?,
            'U' => self.code_point(8, 16, "")?,
            '0'..='3' => self.code_point(2, 8, &c.to_string())?,
            _ => return Err(self.error(format!("unknown escape \\{c}"))),
        })
    }

    fn code_point(&mut self, count: usize, radix: u32, first: &str) -> Result<char, CompileError> {
        let mut digits = first.to_owned();
        for _ in 0..count {
            digits.extend(self.rest.next().map(|(_, c)| c));
        }
        let number = u32::from_str_radix(&digits, radix).ok().and_then(char::from_u32);
        number.ok_or_else(|| self.error("an escape names no character"))
    }
}

/// Whether a text in quotes begins here, and whether it is raw.
fn text_prefix(rest: &str) -> Option<bool> {
    let quoted = |rest: &str| rest.starts_with(['"', '\'']);
    match rest.strip_prefix(['r', 'R']) {
        Some(behind) if quoted(behind) => Some(true),
        _ => quoted(rest).then_some(false),
    }
}
