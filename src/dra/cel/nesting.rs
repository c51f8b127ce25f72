//! How deeply the parts of an expression can be nested, found in its words: a parser and an evaluation call themselves once for each level.

use cel::parser::pratt_parser::{Lexer, Token, TokenKind};

use super::CompileError;

/// How many levels an expression may have.
pub(super) const DEEPEST: usize = 100;

/// A bracket that is not closed yet.
struct Open {
    closes: TokenKind,
    /// Operators of the part under way that take what stands in front of them: `a.b.c` has two.
    chain: usize,
    /// The bracket itself, and conditions, which hold all that follows.
    around: usize,
}

/// Refuses a text whose tree could be too deep. `&&` and `||` add no level, since their operands stand side by side.
///
/// A text with brackets that do not match or with characters that begin no word is refused too: where a parser goes on after those, its levels could
/// not be counted.
pub(super) fn bound(text: &str) -> Result<(), CompileError> {
    let mut lexer = Lexer::new(text);
    let mut open = vec![Open { closes: TokenKind::TokEnd, chain: 0, around: 0 }];
    loop {
        let word = lexer.lex();
        let top = open.last_mut().expect("the text itself is only closed by its end");
        match (word.kind, closing(word.kind)) {
            (TokenKind::TokEnd, _) => return Ok(()),
            (TokenKind::TokError, _) => {
                let message = lexer.get_error().map(|error| error.message.as_str());
                return Err(misplaced(text, word, message.unwrap_or("no word of an expression")));
            }
            (_, Some(closes)) => open.push(Open { closes, chain: 0, around: 1 }),
            (kind, _) if kind == top.closes => {
                open.pop();
                open.last_mut().into_iter().for_each(|outer| outer.chain += 1);
            }
            (TokenKind::TokRightParen | TokenKind::TokRightBracket | TokenKind::TokRightBrace, _) => {
                return Err(misplaced(text, word, "a bracket that closes none"));
            }
            (TokenKind::TokComma, _) => (top.chain, top.around) = (0, 1),
            (TokenKind::TokLogicalAnd | TokenKind::TokLogicalOr, _) => top.chain = 0,
            (TokenKind::TokQuestion, _) => top.around += 1,
            (kind, _) => top.chain += usize::from(is_operator(kind)),
        }
        if open.iter().map(|one| one.chain + one.around).sum::<usize>() > DEEPEST {
            return Err(CompileError::TooDeep);
        }
    }
}

/// What closes a bracket.
const fn closing(kind: TokenKind) -> Option<TokenKind> {
    match kind {
        TokenKind::TokLeftParen => Some(TokenKind::TokRightParen),
        TokenKind::TokLeftBracket => Some(TokenKind::TokRightBracket),
        TokenKind::TokLeftBrace => Some(TokenKind::TokRightBrace),
        _ => None,
    }
}

const fn is_operator(kind: TokenKind) -> bool {
    use TokenKind::{
        TokAsterisk, TokDot, TokEqual, TokEqualEqual, TokExclamation, TokExclamationEqual, TokGreater,
        TokGreaterEqual, TokIn, TokLess, TokLessEqual, TokMinus, TokPercent, TokPlus, TokSlash,
    };
    matches!(
        kind,
        TokAsterisk
            | TokDot
            | TokEqual
            | TokEqualEqual
            | TokExclamation
            | TokExclamationEqual
            | TokGreater
            | TokGreaterEqual
            | TokIn
            | TokLess
            | TokLessEqual
            | TokMinus
            | TokPercent
            | TokPlus
            | TokSlash
    )
}

fn misplaced(text: &str, word: Token, message: &str) -> CompileError {
    let before = text.get(..word.start).unwrap_or_default();
    let (above, beside) =
        before.rsplit_once('\n').map_or((0, before), |(above, beside)| (above.split('\n').count(), beside));
    let place = |count: usize| isize::try_from(count + 1).unwrap_or(isize::MAX);
    CompileError::Syntax {
        line: place(above),
        column: place(beside.chars().count()),
        message: message.to_owned(),
    }
}
