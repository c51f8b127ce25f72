//! `workloads`: kinds of workloads that Berth does not know by itself, and where they keep their pods.

use serde::Serialize;

use super::{
    section::{Field, Section},
    trouble::Trouble,
};
use crate::object::workload::{Path, WorkloadKind};

/// A kind of workload.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkloadConfig {
    /// Its API group; empty: the core group.
    pub api_group: String,
    /// Its kind.
    pub kind: String,
    /// Its name in URLs, such as `deployments`.
    pub plural: String,
    /// Where it keeps pods.
    pub templates: Vec<WorkloadTemplate>,
}

/// A place in which a workload keeps a pod.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct WorkloadTemplate {
    /// The path of a pod template or of a pod's spec.
    pub path: Path,
    /// The path of the number of its pods; absent: one pod.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Path>,
}

impl WorkloadConfig {
    /// The kind as it is looked up.
    pub(super) fn kind(&self) -> WorkloadKind {
        let templates =
            self.templates.iter().map(|template| (template.path.clone(), template.replicas.clone()));
        WorkloadKind::with_templates(&self.api_group, &self.kind, &self.plural, templates)
    }
}

/// The list of kinds; absent: none.
pub(super) fn read(field: Option<Field>) -> Result<Vec<WorkloadConfig>, Trouble> {
    let mut kinds: Vec<WorkloadConfig> = Vec::new();
    for field in field.map_or(Ok(Vec::new()), |field| field.list())? {
        let kind = workload(&field)?;
        if kinds.iter().any(|other| (&other.api_group, &other.kind) == (&kind.api_group, &kind.kind)) {
            return Err(
                field.trouble(format!("is of kind `{}`, which an earlier element describes", kind.kind))
            );
        }
        kinds.push(kind);
    }
    Ok(kinds)
}

fn workload(field: &Field) -> Result<WorkloadConfig, Trouble> {
    let mut section = Section::of(field)?;
    let api_group =
        section.take("apiGroup").map_or(Ok(String::new()), |group| name(&group, '.', "an API group"))?;
    let kind = section.take("kind").ok_or_else(|| field.trouble("has no `kind`"))?;
    let kind = name(&kind, 'A', "a kind, such as `TrainingRun`")?;
    let plural = match section.take("plural") {
        Some(plural) => name(&plural, '-', "a plural, such as `trainingruns`")?,
        None => format!("{}s", kind.to_lowercase()),
    };
    let templates = section.take("templates").ok_or_else(|| field.trouble("has no `templates`"))?;
    let listed = templates.list()?;
    if listed.is_empty() {
        return Err(templates.trouble("must name one template at least"));
    }
    let templates = listed.iter().map(template).collect::<Result<_, _>>()?;
    section.finish()?;
    Ok(WorkloadConfig { api_group, kind, plural, templates })
}

/// A name of letters and digits, in lower case unless `allowed` is an upper case letter, with `allowed` between them.
fn name(field: &Field, allowed: char, what: &str) -> Result<String, Trouble> {
    let text = field.text()?;
    let fits = |c: char| match c {
        'a'..='z' | '0'..='9' => true,
        'A'..='Z' => allowed == 'A',
        '-' => allowed == '.',
        c => c == allowed,
    };
    if !text.is_empty() && text.len() <= 253 && text.chars().all(fits) {
        return Ok(text);
    }
    Err(field.trouble(format!("`{text}` is not {what}")))
}

fn template(field: &Field) -> Result<WorkloadTemplate, Trouble> {
    let mut section = Section::of(field)?;
    let path = section.take("path").ok_or_else(|| field.trouble("has no `path`"))?;
    let path = self::path(&path)?;
    let replicas = match section.take("replicas") {
        None => None,
        Some(field) => {
            let replicas = self::path(&field)?;
            if !replicas.is_within(&path) {
                return Err(field.trouble(format!(
                    "`{replicas}` has a wildcard that `{path}` does not begin with: one number must belong to each template"
                )));
            }
            Some(replicas)
        }
    };
    section.finish()?;
    Ok(WorkloadTemplate { path, replicas })
}

fn path(field: &Field) -> Result<Path, Trouble> {
    Path::parse(&field.text()?).map_err(|error| field.trouble(error))
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const RUN: &str = "workloads:\n- apiGroup: example.com\n  kind: TrainingRun\n  templates:\n  - {path: 'spec.roles[*].template', replicas: 'spec.roles[*].count'}\n";

    fn error(text: &str) -> String {
        Config::parse(text, "berth.yaml").unwrap_err().to_string()
    }

    #[test]
    fn a_kind_of_the_settings_is_known_by_its_plural_and_read_back_as_it_was_written() {
        let config = Config::parse(RUN, "berth.yaml").unwrap().0;
        assert_eq!(config.workloads[0].plural, "trainingruns");
        assert!(config.workloads().of_resource("example.com", "trainingruns").is_some());
        assert!(config.workloads().of_resource("apps", "deployments").is_some(), "built-in kinds stay");
        let text = serde_saphyr::to_string(&config).unwrap();
        assert_eq!(Config::parse(&text, "again").unwrap().0, config, "{text}");
    }

    #[test]
    fn what_is_wrong_with_a_kind_is_named_with_key_and_line() {
        assert_eq!(
            error("workloads:\n- {apiGroup: example.com}\n"),
            "berth.yaml:2: workloads[0]: has no `kind`"
        );
        assert_eq!(
            error("workloads:\n- {kind: Run, templates: []}\n"),
            "berth.yaml:2: workloads[0].templates: must name one template at least"
        );
        assert_eq!(
            error("workloads:\n- {kind: Run, templates: [{path: '{.spec}'}]}\n").split(" such as").next(),
            Some("berth.yaml:2: workloads[0].templates[0].path: `{.spec}` is not a path,")
        );
        assert_eq!(
            error(&RUN.replace("count'", "count', x: 1")),
            "berth.yaml:5: workloads[0].templates[0].x: unknown key; the nearest known one is `path`"
        );
        let stray = error(&RUN.replace("spec.roles[*].count", "spec.others[*].count"));
        assert!(
            stray.starts_with(
                "berth.yaml:5: workloads[0].templates[0].replicas: `spec.others[*].count` has a wildcard"
            ),
            "{stray}"
        );
        let twice = format!(
            "{RUN}- {{apiGroup: example.com, kind: TrainingRun, templates: [{{path: spec.template}}]}}\n"
        );
        assert_eq!(
            error(&twice),
            "berth.yaml:6: workloads[1]: is of kind `TrainingRun`, which an earlier element describes"
        );
        assert_eq!(
            error(&RUN.replace("TrainingRun", "training run")),
            "berth.yaml:3: workloads[0].kind: `training run` is not a kind, such as `TrainingRun`"
        );
    }
}
