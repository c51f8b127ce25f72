//! Texts between quotation marks as Go writes them (Go 1.26 `strconv/quote.go`, `Quote`).

/// The bytes between quotation marks; those that are no UTF-8 as `\xff`.
pub(in crate::dra::cel) fn quoted(bytes: &[u8]) -> String {
    let mut written = String::with_capacity(bytes.len() + 2);
    written.push('"');
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match escaped(character) {
                Some(escaped) => written.push_str(&escaped),
                None => written.push(character),
            }
        }
        written.extend(chunk.invalid().iter().map(|byte| format!(r"\x{byte:02x}")));
    }
    written.push('"');
    written
}

/// What stands for a character; `None`: the character itself.
fn escaped(character: char) -> Option<String> {
    let number = u32::from(character);
    let escaped = match character {
        '"' | '\\' => format!(r"\{character}"),
        '\u{7}' => r"\a".to_owned(),
        '\u{8}' => r"\b".to_owned(),
        '\u{c}' => r"\f".to_owned(),
        '\n' => r"\n".to_owned(),
        '\r' => r"\r".to_owned(),
        '\t' => r"\t".to_owned(),
        '\u{b}' => r"\v".to_owned(),
        ' '..='~' => return None,
        '\0'..' ' | '\u{7f}' => format!(r"\x{number:02x}"),
        _ if is_printed(character) => return None,
        _ if number < 0x1_0000 => format!(r"\u{number:04x}"),
        _ => format!(r"\U{number:08x}"),
    };
    Some(escaped)
}

/// Whether Go leaves a character as it is: letters, marks, numbers, punctuation and symbols (Go 1.26 `unicode/graphic.go`, `IsPrint`). Rust shows the same ones
/// as they are behind another character.
fn is_printed(character: char) -> bool {
    String::from_iter(['a', character]).escape_debug().nth(1) == Some(character)
}
