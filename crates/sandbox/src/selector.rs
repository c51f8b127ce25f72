//! Which objects a label or field selector picks, in query syntax and as a LabelSelector object; it lists nothing.

use super::{
    object,
    request::Query,
    resource::Resource,
    status::{Result, StatusError},
};
use serde_json::Value;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
    GreaterThan,
    LessThan,
}

/// One condition on one label.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Requirement {
    key: String,
    operator: Operator,
    values: Vec<String>,
}

impl Requirement {
    fn new(key: &str, operator: Operator, values: &[&str]) -> Self {
        let values = values.iter().map(|&value| value.to_owned()).collect();
        Self { key: key.to_owned(), operator, values }
    }

    fn holds(&self, label: Option<&str>) -> bool {
        let listed = label.is_some_and(|value| self.values.iter().any(|one| one == value));
        let number = |text: &str| text.parse::<i64>().ok();
        let bound = self.values.first().and_then(|text| number(text));
        let compared = label.and_then(number).zip(bound);
        match self.operator {
            Operator::In => listed,
            Operator::NotIn => !listed,
            Operator::Exists => label.is_some(),
            Operator::DoesNotExist => label.is_none(),
            Operator::GreaterThan => compared.is_some_and(|(value, bound)| value > bound),
            Operator::LessThan => compared.is_some_and(|(value, bound)| value < bound),
        }
    }
}

/// Conditions on labels that must all hold; none pick everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct LabelSelector(Vec<Requirement>);

impl LabelSelector {
    /// Reads `a=b,c!=d,e in (f,g),h notin (i),j,!k,l>1`.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let terms = split_terms(text);
        let terms = terms.iter().map(|term| term.trim()).filter(|term| !term.is_empty());
        Ok(Self(terms.map(parse_term).collect::<Result<_>>()?))
    }

    /// Reads `{matchLabels, matchExpressions}`; absent picks everything.
    pub(super) fn from_object(selector: Option<&Value>) -> Self {
        let Some(selector) = selector else {
            return Self::default();
        };
        let labels = object::pairs(selector, "/matchLabels");
        let mut all: Vec<Requirement> =
            labels.map(|(key, value)| Requirement::new(key, Operator::In, &[value])).collect();
        for expression in object::list(selector, "/matchExpressions") {
            let operator = match object::text(expression, "/operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                _ => Operator::DoesNotExist,
            };
            let values: Vec<&str> =
                object::list(expression, "/values").iter().filter_map(Value::as_str).collect();
            all.push(Requirement::new(object::text(expression, "/key"), operator, &values));
        }
        Self(all)
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        let labels = object.pointer("/metadata/labels");
        self.0.iter().all(|requirement| {
            requirement.holds(labels.and_then(|labels| labels.get(&requirement.key)).and_then(Value::as_str))
        })
    }
}

/// Splits at the commas outside parentheses.
fn split_terms(text: &str) -> Vec<&str> {
    let mut depth = 0_u32;
    text.split(|letter| {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        letter == ',' && depth == 0
    })
    .collect()
}

fn parse_term(term: &str) -> Result<Requirement> {
    let set = |operator, key: &str, list: &str| {
        let list = list.trim().strip_prefix('(').and_then(|list| list.strip_suffix(')'));
        let values: Vec<&str> = list.unwrap_or_default().split(',').map(str::trim).collect();
        list.map(|_| Requirement::new(key.trim(), operator, &values)).ok_or_else(|| unparsable(term))
    };
    if let Some((key, list)) = term.split_once(" notin ") {
        return set(Operator::NotIn, key, list);
    }
    if let Some((key, list)) = term.split_once(" in ") {
        return set(Operator::In, key, list);
    }
    let operators = [
        ("!=", Operator::NotIn),
        ("==", Operator::In),
        ("=", Operator::In),
        (">", Operator::GreaterThan),
        ("<", Operator::LessThan),
    ];
    for (sign, operator) in operators {
        if let Some((key, value)) = term.split_once(sign) {
            return Ok(Requirement::new(key.trim(), operator, &[value.trim()]));
        }
    }
    let (key, operator) = match term.strip_prefix('!') {
        Some(key) => (key.trim(), Operator::DoesNotExist),
        None => (term, Operator::Exists),
    };
    if key.is_empty() || key.contains(char::is_whitespace) {
        return Err(unparsable(term));
    }
    Ok(Requirement::new(key, operator, &[]))
}

fn unparsable(term: &str) -> StatusError {
    StatusError::bad_request(format!("unable to parse requirement: {term:?}"))
}

/// Conditions on a few fields: path in the stored object, wanted or unwanted, value.
#[derive(Clone, Debug, Default)]
struct FieldSelector(Vec<(String, Operator, String)>);

impl FieldSelector {
    fn parse(resource: &Resource, text: &str) -> Result<Self> {
        let terms = text.split(',').filter(|term| !term.is_empty());
        Ok(Self(terms.map(|term| parse_field(resource, term)).collect::<Result<_>>()?))
    }

    fn matches(&self, object: &Value) -> bool {
        self.0.iter().all(|(pointer, operator, want)| {
            let equal = match object.pointer(pointer) {
                Some(Value::String(text)) => text == want,
                Some(Value::Bool(flag)) => flag.to_string() == *want,
                Some(Value::Number(number)) => number.to_string() == *want,
                _ => want.is_empty() || want == "false",
            };
            equal == (*operator == Operator::In)
        })
    }
}

fn parse_field(resource: &Resource, term: &str) -> Result<(String, Operator, String)> {
    let signs = [("!=", Operator::NotIn), ("==", Operator::In), ("=", Operator::In)];
    let found = signs.into_iter().find_map(|(sign, operator)| {
        let (field, value) = term.split_once(sign)?;
        Some((field, operator, value))
    });
    let (field, operator, value) = found.ok_or_else(|| {
        StatusError::bad_request(format!("invalid field selector: {term:?}; can't understand {term:?}"))
    })?;
    let field = match (resource.plural, field) {
        ("events", "reason" | "type") => field,
        ("events", _) if field.starts_with("regarding.") => &field.replacen("regarding", "involvedObject", 1),
        _ => field,
    };
    if !selectable(resource, field) {
        return Err(StatusError::bad_request(format!("field label not supported: {field}")));
    }
    Ok((format!("/{}", field.replace('.', "/")), operator, value.to_owned()))
}

fn selectable(resource: &Resource, field: &str) -> bool {
    let known: &[&str] = match resource.plural {
        "pods" => &[
            "spec.nodeName",
            "spec.schedulerName",
            "spec.restartPolicy",
            "spec.serviceAccountName",
            "spec.hostNetwork",
            "status.phase",
            "status.nominatedNodeName",
            "status.podIP",
        ],
        "nodes" => &["spec.unschedulable"],
        "namespaces" => &["status.phase"],
        "secrets" => &["type"],
        "events" => &[
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        ],
        _ => &[],
    };
    matches!(field, "metadata.name" | "metadata.namespace") || known.contains(&field)
}

/// What a list or watch selects: a namespace, labels and fields.
#[derive(Clone, Debug)]
pub(super) struct Selection {
    namespace: String,
    labels: LabelSelector,
    fields: FieldSelector,
}

impl Selection {
    pub(super) fn read(resource: &Resource, namespace: &str, query: &Query) -> Result<Self> {
        Ok(Self {
            namespace: namespace.to_owned(),
            labels: LabelSelector::parse(query.get("labelSelector").unwrap_or_default())?,
            fields: FieldSelector::parse(resource, query.get("fieldSelector").unwrap_or_default())?,
        })
    }

    pub(super) fn matches(&self, object: &Value) -> bool {
        (self.namespace.is_empty() || object::namespace(object) == self.namespace)
            && self.labels.matches(object)
            && self.fields.matches(object)
    }
}

#[cfg(test)]
mod tests {
    use super::{LabelSelector, Selection};
    use crate::{request::Query, resource};
    use serde_json::json;

    #[test]
    fn label_selectors_pick_what_kubectl_says() {
        let object = json!({ "metadata": { "labels": { "a": "b", "n": "7" } } });
        let picked = ["a=b", "a==b,n", "a!=c", "x!=b", "a in (b, c),n>6", "x notin (b)", "!x", "n<8", ""];
        let left = ["a=c", "x", "a notin (b,c)", "!a", "n>7", "a in (c)"];
        for text in picked {
            assert!(LabelSelector::parse(text).unwrap().matches(&object), "{text}");
        }
        for text in left {
            assert!(!LabelSelector::parse(text).unwrap().matches(&object), "{text}");
        }
        assert!(LabelSelector::parse("a in b").is_err());
    }

    #[test]
    fn field_selectors_know_their_fields() {
        let pods = resource::known("", "pods");
        let read = |text: &str| Selection::read(pods, "", &Query::parse(&format!("fieldSelector={text}")));
        let pod = json!({ "metadata": { "name": "p" }, "spec": { "schedulerName": "s" }, "status": { "phase": "Running" } });
        for text in
            ["metadata.name%3Dp", "spec.nodeName%3D", "status.phase!%3DFailed,spec.schedulerName%3D%3Ds"]
        {
            assert!(read(text).unwrap().matches(&pod), "{text}");
        }
        assert!(!read("spec.nodeName!%3D").unwrap().matches(&pod));
        assert_eq!(read("spec.color%3Dred").unwrap_err().code, 400);
    }
}
