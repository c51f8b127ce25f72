//! Functions of texts: CEL's own, and those of its strings extension (cel-go `ext/strings.go`). Places are counted in characters.

use super::{EvaluationError, Row, Style, Value, unreadable};

pub(super) const TABLE: &[Row] = &[
    ("contains", Style::Member, 2, 2, |arguments| Ok(compared(arguments, |text, part| text.contains(part)))),
    ("startsWith", Style::Member, 2, 2, |arguments| {
        Ok(compared(arguments, |text, part| text.starts_with(part)))
    }),
    ("endsWith", Style::Member, 2, 2, |arguments| Ok(compared(arguments, |text, part| text.ends_with(part)))),
    ("lowerAscii", Style::Member, 1, 1, |arguments| Ok(changed(arguments, str::to_ascii_lowercase))),
    ("upperAscii", Style::Member, 1, 1, |arguments| Ok(changed(arguments, str::to_ascii_uppercase))),
    ("trim", Style::Member, 1, 1, |arguments| Ok(changed(arguments, |text| text.trim().to_owned()))),
    ("reverse", Style::Member, 1, 1, |arguments| Ok(changed(arguments, |text| text.chars().rev().collect()))),
    ("charAt", Style::Member, 2, 2, char_at),
    ("indexOf", Style::Member, 2, 3, index_of),
    ("lastIndexOf", Style::Member, 2, 2, last_index_of),
    ("substring", Style::Member, 2, 3, substring),
    ("replace", Style::Member, 3, 4, replace),
    ("split", Style::Member, 2, 3, split),
    ("join", Style::Member, 1, 2, join),
];

fn compared(arguments: &[Value], compare: fn(&str, &str) -> bool) -> Option<Value> {
    match arguments {
        [Value::Text(text), Value::Text(part)] => Some(Value::Bool(compare(text, part))),
        _ => None,
    }
}

fn changed(arguments: &[Value], change: fn(&str) -> String) -> Option<Value> {
    match arguments {
        [Value::Text(text)] => Some(Value::Text(change(text).into())),
        _ => None,
    }
}

/// The byte at which the character with this number begins; the end of the text for the number behind the last one.
fn byte(text: &str, at: i64, function: &'static str) -> Result<usize, EvaluationError> {
    let bytes = text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    let found = usize::try_from(at).ok().and_then(|at| bytes.into_iter().nth(at));
    found.ok_or_else(|| unreadable(function, format!("index out of range: {at}")))
}

/// The number of the character that begins at this byte; -1 where there is none.
fn place(text: &str, byte: Option<usize>) -> Value {
    let count = byte.map(|byte| text[..byte].chars().count());
    Value::Int(count.and_then(|count| i64::try_from(count).ok()).unwrap_or(-1))
}

fn char_at(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let [Value::Text(text), Value::Int(at)] = arguments else { return Ok(None) };
    let rest = &text[byte(text, *at, "charAt")?..];
    Ok(Some(Value::text(rest.chars().next().map(String::from).unwrap_or_default().as_str())))
}

fn index_of(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let (text, part, from) = match arguments {
        [Value::Text(text), Value::Text(part)] => (text, part, 0),
        [Value::Text(text), Value::Text(part), Value::Int(from)] => {
            (text, part, byte(text, *from, "indexOf")?)
        }
        _ => return Ok(None),
    };
    Ok(Some(place(text, text[from..].find(&**part).map(|at| from + at))))
}

fn last_index_of(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let [Value::Text(text), Value::Text(part)] = arguments else { return Ok(None) };
    Ok(Some(place(text, text.rfind(&**part))))
}

fn substring(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let (text, from, to) = match arguments {
        [Value::Text(text), Value::Int(from)] => (text, byte(text, *from, "substring")?, text.len()),
        [Value::Text(text), Value::Int(from), Value::Int(to)] => {
            (text, byte(text, *from, "substring")?, byte(text, *to, "substring")?)
        }
        _ => return Ok(None),
    };
    let part = text.get(from..to).ok_or_else(|| unreadable("substring", "the end lies before the start"))?;
    Ok(Some(Value::text(part)))
}

fn replace(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let (text, from, to, most) = match arguments {
        [Value::Text(text), Value::Text(from), Value::Text(to)] => (text, from, to, usize::MAX),
        [Value::Text(text), Value::Text(from), Value::Text(to), Value::Int(most)] => {
            (text, from, to, usize::try_from(*most).unwrap_or(usize::MAX))
        }
        _ => return Ok(None),
    };
    bounded(text.len().saturating_add(1).saturating_mul(to.len().saturating_add(1)), "replace")?;
    Ok(Some(Value::text(&text.replacen(&**from, to, most))))
}

fn split(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let (text, separator, most) = match arguments {
        [Value::Text(text), Value::Text(separator)] => (text, separator, usize::MAX),
        [Value::Text(text), Value::Text(separator), Value::Int(most)] => {
            (text, separator, usize::try_from(*most).unwrap_or(usize::MAX))
        }
        _ => return Ok(None),
    };
    if most == 0 {
        return Ok(Some(Value::list([])));
    }
    if separator.is_empty() {
        return Ok(Some(Value::list(text.chars().map(|c| Value::text(c.encode_utf8(&mut [0; 4]))))));
    }
    Ok(Some(Value::list(text.splitn(most, &**separator).map(Value::text))))
}

fn join(arguments: &[Value]) -> Result<Option<Value>, EvaluationError> {
    let (elements, separator) = match arguments {
        [Value::List(elements)] => (elements, ""),
        [Value::List(elements), Value::Text(separator)] => (elements, &**separator),
        _ => return Ok(None),
    };
    bounded(elements.len().saturating_mul(separator.len().saturating_add(1)), "join")?;
    let texts: Option<Vec<&str>> = elements
        .iter()
        .map(|element| match element {
            Value::Text(text) => Some(&**text),
            _ => None,
        })
        .collect();
    Ok(texts.map(|texts| Value::text(&texts.join(separator))))
}

/// Refuses to make a text that is longer than an evaluation may cost.
fn bounded(length: usize, function: &'static str) -> Result<(), EvaluationError> {
    let limit = usize::try_from(crate::dra::cel::COST_LIMIT).unwrap_or(usize::MAX);
    if length > limit { Err(unreadable(function, "the result could be too long")) } else { Ok(()) }
}
