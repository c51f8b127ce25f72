//! Workloads: objects that keep pods as templates, and the pods that they make.
//!
//! A kind is a row of data: the built-in ones stand in `workload/table`, settings may add more. Nothing is judged here, and no
//! workload is looked up anywhere: all that is known is in the object itself.

mod count;
mod path;
mod place;
mod table;

use serde_json::{Map, Value, json};

pub use count::{Count, PodEndings};
pub use path::{Path, WildcardStep};
pub use place::Places;

use count::Factor;
use path::FoundPlace;
use table::{FormRow, TemplateNeed};

/// The kinds that are known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Workloads {
    kinds: Vec<WorkloadKind>,
}

/// A kind of workload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct WorkloadKind {
    /// Its API group; empty: the core group.
    pub group: String,
    /// Its name, such as `Deployment`.
    pub kind: String,
    /// Its name in URLs and in the rules of webhooks, such as `deployments`.
    pub plural: String,
    suspended: Vec<Path>,
    templates: Vec<TemplatePlace>,
}

/// A place in which a kind keeps a pod.
#[derive(Clone, Debug, Eq, PartialEq)]
struct TemplatePlace {
    path: Path,
    form: Form,
    part: GroupPart,
    /// The factors of the number of pods; `None`: the kind makes none.
    count: Number,
    need: Needed,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Form {
    /// Metadata and spec.
    Template,
    /// A pod's spec, with labels and annotations among its fields, and with fields that each hold one more container.
    Spec(Vec<String>),
    /// The resources of one container.
    Resources,
    /// A spec where there are containers right below, else a template.
    Either,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum GroupPart {
    Nothing,
    Word(String),
    Field(Path),
    /// What the wildcards of the template's path stand for.
    Turns,
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Number {
    None,
    EachNode,
    Product(Vec<Factor>),
}

#[derive(Clone, Debug, Eq, PartialEq)]
enum Needed {
    Must,
    May,
    Else(Path),
}

/// A pod that a workload keeps as a template.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptPod {
    /// The template's path from the root of the workload.
    pub path: String,
    /// The pod: version, kind, metadata and spec, as JSON.
    pub pod: Value,
    /// Where the pod's fields stand in the workload.
    pub places: Places,
    /// What stands between the workload's name and the number of a pod; empty: nothing.
    pub part: String,
    /// How many pods are made.
    pub count: Count,
}

/// Why the pods of a workload can't be read.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct UnreadableWorkload {
    /// The field's path from the root of the workload.
    pub field: String,
    /// What is wrong.
    pub reason: String,
}

impl KeptPod {
    /// The pod as it is made with this ending of its name: in the workload's namespace, with the workload as its owner; a Deployment owns pods
    /// through a ReplicaSet.
    pub fn made(&self, workload: &Value, mut pod: Value, ending: &str) -> Value {
        let text =
            |pointer: &str| workload.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        let (kind, name) = (text("/kind").unwrap_or_default(), text("/metadata/name"));
        let stem = name.or_else(|| text("/metadata/generateName")).unwrap_or(kind);
        let stem = stem.trim_end_matches('-').to_lowercase();
        let stem = if self.part.is_empty() { stem } else { format!("{stem}-{}", self.part) };
        let owner = json!({
            "apiVersion": text("/apiVersion").unwrap_or_default(),
            "kind": if kind == "Deployment" { "ReplicaSet" } else { kind },
            "name": name.or_else(|| text("/metadata/generateName")).unwrap_or_default(),
            "uid": text("/metadata/uid").unwrap_or_default(),
            "controller": true,
        });
        if let Some(Value::Object(metadata)) = pod.get_mut("metadata") {
            metadata.remove("generateName");
            metadata.insert("name".to_owned(), format!("{stem}{ending}").into());
            metadata.insert("ownerReferences".to_owned(), json!([owner]));
            if let Some(namespace) = text("/metadata/namespace") {
                metadata.insert("namespace".to_owned(), namespace.into());
            }
        }
        pod
    }
}

impl UnreadableWorkload {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { field: field.into(), reason: reason.into() }
    }
}

impl Default for Workloads {
    /// The built-in kinds.
    fn default() -> Self {
        Self { kinds: table::ROWS.iter().map(WorkloadKind::built_in).collect() }
    }
}

impl Workloads {
    /// The built-in kinds and these, which come first: a kind that is given twice is what is given here.
    #[must_use]
    pub fn and(mut self, more: Vec<WorkloadKind>) -> Self {
        self.kinds.splice(0..0, more);
        self
    }

    /// Every kind.
    pub fn kinds(&self) -> impl Iterator<Item = &WorkloadKind> {
        self.kinds.iter()
    }

    /// The kind of objects with this `apiVersion` and `kind`; an object without an `apiVersion` is of the first kind of its name.
    pub fn of_object(&self, api_version: &str, kind: &str) -> Option<&WorkloadKind> {
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        self.kinds.iter().find(|known| known.kind == kind && (api_version.is_empty() || known.group == group))
    }

    /// The kind of a resource, by its group and its plural name.
    pub fn of_resource(&self, group: &str, plural: &str) -> Option<&WorkloadKind> {
        self.kinds.iter().find(|known| known.group == group && known.plural == plural)
    }
}

impl WorkloadKind {
    /// A kind that keeps pods at these paths. Each may be followed by the path of the number of pods, which is 1 where the path or
    /// the field is absent; it may have the wildcards of the template's path and no others.
    pub fn with_templates(
        group: &str,
        kind: &str,
        plural: &str,
        templates: impl IntoIterator<Item = (Path, Option<Path>)>,
    ) -> Self {
        let templates: Vec<_> = templates.into_iter().collect();
        let several = templates.len() > 1;
        let template = |(path, replicas): (Path, Option<Path>)| {
            let name = path.telling_name().filter(|_| several && !path.has_wildcards());
            TemplatePlace {
                part: name.map_or(GroupPart::Turns, |name| GroupPart::Word(name.to_ascii_lowercase())),
                form: Form::Either,
                count: Number::Product(vec![replicas.map_or(Factor::One, |path| Factor::Field(path, 1))]),
                need: if several { Needed::May } else { Needed::Must },
                path,
            }
        };
        Self {
            group: group.to_owned(),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
            suspended: Vec::new(),
            templates: templates.into_iter().map(template).collect(),
        }
    }

    fn built_in(row: &table::WorkloadRow) -> Self {
        Self {
            group: row.group.to_owned(),
            kind: row.kind.to_owned(),
            plural: row.plural.to_owned(),
            suspended: row.suspended.iter().map(|path| known(path)).collect(),
            templates: row.templates.iter().map(TemplatePlace::built_in).collect(),
        }
    }

    /// Whether a field keeps the workload from making pods.
    pub fn is_suspended(&self, object: &Value) -> bool {
        self.suspended.iter().any(|path| path.follow(object, &[]) == Some(&Value::Bool(true)))
    }

    /// Every pod that an object of this kind keeps, in the order of its templates. None: it keeps no pod that can be read here.
    pub fn pods(&self, object: &Value) -> Result<Vec<KeptPod>, UnreadableWorkload> {
        let mut pods = Vec::new();
        for template in &self.templates {
            for found in template.path.find(object) {
                pods.extend(template.pod(object, found)?);
            }
        }
        if self.is_suspended(object) {
            for pod in &mut pods {
                pod.count = Count::none();
            }
        }
        Ok(pods)
    }
}

/// A path of the table, which its test reads.
fn known(path: &str) -> Path {
    Path::parse(path).expect("the paths of the table are read by a test")
}

impl TemplatePlace {
    fn built_in(row: &table::Keeps) -> Self {
        Self {
            path: known(row.path),
            form: match row.form {
                FormRow::Template => Form::Template,
                FormRow::Spec(containers) => {
                    Form::Spec(containers.iter().map(|&name| name.to_owned()).collect())
                }
                FormRow::Resources => Form::Resources,
            },
            part: match row.part {
                table::PartRow::Nothing => GroupPart::Nothing,
                table::PartRow::Word(word) => GroupPart::Word(word.to_owned()),
                table::PartRow::Field(path) => GroupPart::Field(known(path)),
                table::PartRow::Key => GroupPart::Turns,
            },
            count: match row.count {
                table::Times::None => Number::None,
                table::Times::EachNode => Number::EachNode,
                table::Times::Product(factors) => {
                    Number::Product(factors.iter().map(Factor::built_in).collect())
                }
            },
            need: match row.need {
                TemplateNeed::Must => Needed::Must,
                TemplateNeed::May => Needed::May,
                TemplateNeed::Else(path) => Needed::Else(known(path)),
            },
        }
    }

    /// The pod at one of the template's places.
    fn pod(&self, object: &Value, found: FoundPlace<'_>) -> Result<Option<KeptPod>, UnreadableWorkload> {
        let FoundPlace { mut at, turns, mut value } = found;
        if let (Needed::Else(other), None) = (&self.need, value) {
            value = other.follow(object, &turns);
            at = other.to_string();
        }
        let Some(value) = value else {
            return match self.need {
                Needed::May => Ok(None),
                Needed::Must | Needed::Else(_) => Err(UnreadableWorkload::new(at, "is missing")),
            };
        };
        let Value::Object(fields) = value else {
            return Err(UnreadableWorkload::new(at, "must be a mapping"));
        };
        let (pod, places) = self.form.pod(fields, &at);
        let count = match &self.count {
            Number::None => Count::none(),
            Number::EachNode => Count::EachNode,
            Number::Product(factors) => Count::product(factors, object, &turns)?,
        };
        Ok(Some(KeptPod { part: self.part.name(object, &turns), path: at, pod, places, count }))
    }
}

impl GroupPart {
    fn name(&self, object: &Value, turns: &[WildcardStep]) -> String {
        match self {
            Self::Nothing => String::new(),
            Self::Word(word) => word.clone(),
            Self::Field(path) => match path.follow(object, turns).and_then(Value::as_str) {
                Some(name) => name.to_owned(),
                None => Self::Turns.name(object, turns),
            },
            Self::Turns => {
                let word = |turn: &WildcardStep| match turn {
                    WildcardStep::Element(at) => at.to_string(),
                    WildcardStep::Key(key) => key.to_ascii_lowercase(),
                };
                turns.iter().map(word).collect::<Vec<_>>().join("-")
            }
        }
    }
}

impl Form {
    /// The pod that these fields at this path stand for, and where its fields are.
    fn pod(&self, fields: &Map<String, Value>, at: &str) -> (Value, Places) {
        match self {
            Self::Spec(containers) => spec(fields, containers, at),
            Self::Resources => resources(fields, at),
            Self::Either if fields.contains_key("containers") => spec(fields, &[], at),
            Self::Template | Self::Either => template(fields, at),
        }
    }
}

fn written(metadata: &Value, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
}

fn template(fields: &Map<String, Value>, at: &str) -> (Value, Places) {
    let part = |key: &str| {
        let part = fields.get(key).filter(|part| !part.is_null());
        part.cloned().unwrap_or_else(|| Value::Object(Map::new()))
    };
    (written(&part("metadata"), &part("spec")), Places::below(at))
}

/// Fields of a pod's metadata that a component of an InferenceService has among those of the spec.
const OF_METADATA: [&str; 2] = ["labels", "annotations"];

fn spec(fields: &Map<String, Value>, more: &[String], at: &str) -> (Value, Places) {
    let mut places = Places::default().moving("metadata", at).moving("spec", at);
    let mut metadata = Map::new();
    let mut spec = fields.clone();
    for key in OF_METADATA {
        metadata.extend(spec.remove(key).map(|value| (key.to_owned(), value)));
    }
    for key in more {
        let Some(container @ Value::Object(_)) = spec.remove(key) else { continue };
        let containers = spec.entry("containers").or_insert(Value::Null);
        if containers.is_null() {
            *containers = Value::Array(Vec::new());
        }
        if let Value::Array(containers) = containers {
            let from = format!("spec.containers[{}]", containers.len());
            places = places.moving(&from, &path::join(at, key));
            containers.push(container);
        }
    }
    (written(&Value::Object(metadata), &Value::Object(spec)), places)
}

fn resources(fields: &Map<String, Value>, at: &str) -> (Value, Places) {
    let parent = at.rsplit_once('.').map_or("", |(parent, _)| parent);
    let places = Places::default()
        .moving("", parent)
        .moving("spec.containers[0]", parent)
        .moving("spec.containers[0].resources", at);
    let spec = json!({"containers": [{"name": "node", "resources": fields}]});
    (written(&Value::Object(Map::new()), &spec), places)
}

#[cfg(test)]
mod tests;
