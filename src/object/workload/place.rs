//! Where the fields of a pod stand in the workload that makes it.

/// Places of a pod's fields in a workload, by the longest path of the pod that leads to a field.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Places {
    moved: Vec<(String, String)>,
}

impl Places {
    /// The whole pod stands at this path.
    pub fn below(path: &str) -> Self {
        Self::default().moving("", path)
    }

    /// The field at `from` in the pod, and what is below it, stands at `to`.
    #[must_use]
    pub fn moving(mut self, from: &str, to: &str) -> Self {
        self.moved.push((from.to_owned(), to.to_owned()));
        self.moved.sort_by_key(|(from, _)| std::cmp::Reverse(from.len()));
        self
    }

    /// The path of a pod's field from the root of the workload. An empty field is the pod itself.
    pub fn of(&self, field: &str) -> String {
        let found = self.moved.iter().find_map(|(from, to)| Some((to, rest_of(field, from)?)));
        match found {
            None => field.to_owned(),
            Some((to, "")) => to.clone(),
            Some((to, rest)) if to.is_empty() => rest.trim_start_matches('.').to_owned(),
            Some((to, rest)) if rest.starts_with(['.', '[']) => format!("{to}{rest}"),
            Some((to, rest)) => format!("{to}.{rest}"),
        }
    }

    /// A sentence about a pod, with each path of a field as in the workload.
    pub fn in_words(&self, sentence: &str) -> String {
        let mut told = String::new();
        let mut rest = sentence;
        while let Some(at) = path_start(rest) {
            let length = path_length(&rest[at..]);
            told += &rest[..at];
            told += &self.of(&rest[at..at + length]);
            rest = &rest[at + length..];
        }
        told + rest
    }
}

/// What of a field's path is below another one; empty: nothing, they are equal.
fn rest_of<'a>(field: &'a str, from: &str) -> Option<&'a str> {
    let rest = field.strip_prefix(from)?;
    (from.is_empty() || rest.is_empty() || rest.starts_with(['.', '['])).then_some(rest)
}

/// Where the next path of a pod's field begins.
fn path_start(text: &str) -> Option<usize> {
    let starts = |word: &'static str| text.match_indices(word).map(|(at, _)| at);
    let whole = |at: &usize| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|c| !c.is_alphanumeric() && !matches!(c, '.' | '/' | '-' | '_' | ']'))
    };
    starts("spec.").chain(starts("metadata.")).filter(whole).min()
}

/// How long a path is that begins a text; what is in brackets is one key.
fn path_length(text: &str) -> usize {
    let mut depth = 0_usize;
    let end = text.find(|c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        let inside = depth > 0 && !c.is_whitespace();
        !(inside || c.is_ascii_alphanumeric() || matches!(c, '.' | ']' | '_'))
    });
    text[..end.unwrap_or(text.len())].trim_end_matches('.').len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_stands_where_the_longest_known_path_leads() {
        let places = Places::default()
            .moving("metadata", "spec.predictor")
            .moving("spec", "spec.predictor")
            .moving("spec.containers[1]", "spec.predictor.model");
        let told = [
            ("metadata.annotations[a/b]", "spec.predictor.annotations[a/b]"),
            ("spec.containers[1].resources.limits", "spec.predictor.model.resources.limits"),
            ("spec.containers[10].name", "spec.predictor.containers[10].name"),
            ("spec.schedulerName", "spec.predictor.schedulerName"),
        ];
        for (field, expected) in told {
            assert_eq!(places.of(field), expected);
        }
        assert_eq!(Places::below("spec.template").of(""), "spec.template");
        assert_eq!(Places::default().of("spec.nodeName"), "spec.nodeName");
    }

    #[test]
    fn paths_in_a_sentence_are_the_workloads_and_the_rest_is_left_as_it_is() {
        let places = Places::below("spec.template");
        let said = "asks in spec.containers[0].resources.limits[nvidia.com/gpu] (hami) and metadata.annotations[a.b/c]. \
                    See my-spec.yaml";
        let told = "asks in spec.template.spec.containers[0].resources.limits[nvidia.com/gpu] (hami) and \
                    spec.template.metadata.annotations[a.b/c]. See my-spec.yaml";
        assert_eq!(places.in_words(said), told);
    }
}
