//! The forms that names of objects, and keys and values of labels, may have.

pub(super) fn is_label(text: &str) -> bool {
    let inner = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    text.starts_with(inner)
        && text.ends_with(inner)
        && text.chars().all(|letter| inner(letter) || letter == '-')
}

pub(super) fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_label(text)
}

pub(super) fn is_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

pub(super) fn is_label_part(text: &str) -> bool {
    let edge = |letter: char| letter.is_ascii_alphanumeric();
    text.len() <= 63
        && text.starts_with(edge)
        && text.ends_with(edge)
        && text.chars().all(|letter| edge(letter) || matches!(letter, '-' | '_' | '.'))
}

/// Whether the text is `name` or `domain/name`.
pub(super) fn is_qualified(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_subdomain(domain) && is_label_part(name),
        None => is_label_part(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{is_dns_label, is_qualified, is_subdomain};

    #[test]
    fn names_follow_rfc_1123() {
        assert!(is_subdomain("a.b-c.1") && is_dns_label("a-1") && is_qualified("hami.io/vgpu-node"));
        for name in ["", "-a", "a_b", "A", "a..b", "a."] {
            assert!(!is_subdomain(name), "{name}");
        }
        assert!(!is_qualified("a/b/c") && !is_qualified("/a") && !is_qualified("a/"));
    }
}
