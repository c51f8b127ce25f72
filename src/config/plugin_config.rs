//! `scheduling.pluginConfig`: what is said to single plugins, below the names and with the keys that kube-scheduler's configuration has for them
//! (v1.36 `staging/src/k8s.io/kube-scheduler/config/v1/types_pluginargs.go`).

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    schema::kinds::{list, mapping, one_of, requiring, text, whole},
    section::{Field, Section},
    trouble::Trouble,
};
use crate::scheduling::{
    model::plugin_arguments::PluginArguments,
    plugin::node_resources_fit::{MOST_OF_POINT, ScoringStrategy, ScoringStrategyType, ShapePoint},
};

/// What is said to single plugins.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PluginConfig {
    /// How nodes are compared by what is requested of them.
    #[serde(rename = "NodeResourcesFit")]
    pub node_resources_fit: FitConfig,
}

/// What is said to `NodeResourcesFit`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FitConfig {
    /// How nodes are compared.
    #[serde(serialize_with = "written")]
    pub scoring_strategy: ScoringStrategy,
}

const TYPES: [&str; 3] = ["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"];
const RATIO: &str = "requestedToCapacityRatio";
/// So many resources may be named: the score of each node is a sum over them.
const MOST_RESOURCES: usize = 32;

impl PluginConfig {
    /// The same, for the plugins.
    pub fn arguments(&self) -> PluginArguments {
        PluginArguments::default().with(self.node_resources_fit.scoring_strategy.clone())
    }
}

pub(super) fn read(mut section: Section) -> Result<PluginConfig, Trouble> {
    let mut fit = section.section("NodeResourcesFit")?;
    let scoring_strategy = scoring_strategy(fit.section("scoringStrategy")?)?;
    fit.finish()?;
    section.finish()?;
    Ok(PluginConfig { node_resources_fit: FitConfig { scoring_strategy } })
}

fn scoring_strategy(mut section: Section) -> Result<ScoringStrategy, Trouble> {
    let kind = section.take("type");
    let of = |name: &'static str| (name, name);
    let name = kind.as_ref().map_or(Ok(TYPES[0]), |field| field.choice(&TYPES.map(of)))?;
    let resources = match section.take("resources") {
        Some(field) => resources(&field)?,
        None => Vec::new(),
    };
    let ratio = section.take(RATIO).map(|field| Ok((shape(&field)?, field))).transpose()?;
    section.finish()?;
    let strategy = match (name, kind, ratio) {
        ("RequestedToCapacityRatio", _, Some((shape, _))) => {
            ScoringStrategyType::RequestedToCapacityRatio(shape)
        }
        ("RequestedToCapacityRatio", Some(kind), None) => {
            return Err(kind.trouble(format!("`{name}` needs `{RATIO}` beside it")));
        }
        (_, _, Some((_, ratio))) => {
            return Err(ratio.trouble("needs `type: RequestedToCapacityRatio` beside it"));
        }
        ("MostAllocated", ..) => ScoringStrategyType::MostAllocated,
        _ => ScoringStrategyType::LeastAllocated,
    };
    let by_default = ScoringStrategy::default().resources;
    Ok(ScoringStrategy { strategy, resources: if resources.is_empty() { by_default } else { resources } })
}

fn resources(field: &Field) -> Result<Vec<(String, i64)>, Trouble> {
    let fields = field.list()?;
    if fields.len() > MOST_RESOURCES {
        return Err(field.trouble(format!("names more than {MOST_RESOURCES} resources")));
    }
    let mut resources: Vec<(String, i64)> = Vec::new();
    for field in fields {
        let mut section = Section::of(&field)?;
        let name = section.take("name").ok_or_else(|| field.trouble("`name` is missing"))?;
        let weight = section.take("weight").map_or(Ok(1), |weight| weight.int(&(1..=100)))?;
        section.finish()?;
        let text = name.text()?;
        if resources.iter().any(|(other, _)| *other == text) {
            return Err(name.trouble(format!("`{text}` has a weight already")));
        }
        resources.push((text, weight));
    }
    Ok(resources)
}

fn shape(ratio: &Field) -> Result<Vec<ShapePoint>, Trouble> {
    let mut section = Section::of(ratio)?;
    let field = section.take("shape");
    section.finish()?;
    let field = field.ok_or_else(|| ratio.trouble("`shape` is missing"))?;
    let mut points: Vec<ShapePoint> = Vec::new();
    for point in field.list()? {
        let mut section = Section::of(&point)?;
        let mut number = |key: &str, most| {
            let value = section.take(key).ok_or_else(|| point.trouble(format!("`{key}` is missing")))?;
            Ok((value.int(&(0..=most))?, value))
        };
        let ((utilization, at), (score, _)) = (number("utilization", 100)?, number("score", MOST_OF_POINT)?);
        section.finish()?;
        if points.last().is_some_and(|before| before.utilization >= utilization) {
            return Err(at.trouble("must be greater than that of the point before"));
        }
        points.push(ShapePoint { utilization, score });
    }
    if points.is_empty() {
        return Err(field.trouble("needs at least one point"));
    }
    Ok(points)
}

/// The strategy with the keys of the file.
fn written<S: serde::Serializer>(strategy: &ScoringStrategy, serializer: S) -> Result<S::Ok, S::Error> {
    let resource = |(name, weight): &(String, i64)| json!({"name": name, "weight": weight});
    let resources: Vec<_> = strategy.resources.iter().map(resource).collect();
    let written = match &strategy.strategy {
        ScoringStrategyType::LeastAllocated => json!({"type": TYPES[0], "resources": resources}),
        ScoringStrategyType::MostAllocated => json!({"type": TYPES[1], "resources": resources}),
        ScoringStrategyType::RequestedToCapacityRatio(shape) => {
            let point = |point: &ShapePoint| json!({"utilization": point.utilization, "score": point.score});
            let shape: Vec<_> = shape.iter().map(point).collect();
            json!({"type": TYPES[2], "resources": resources, RATIO: {"shape": shape}})
        }
    };
    written.serialize(serializer)
}

/// The schema of the section.
pub(super) fn schema() -> Value {
    let resource = requiring(mapping([("name", text()), ("weight", whole(1, 100))]), &["name"]);
    let point = mapping([("utilization", whole(0, 100)), ("score", whole(0, MOST_OF_POINT))]);
    let point = requiring(point, &["utilization", "score"]);
    let strategy = mapping([
        ("type", one_of(&TYPES)),
        ("resources", list(&resource)),
        (RATIO, requiring(mapping([("shape", list(&point))]), &["shape"])),
    ]);
    mapping([("NodeResourcesFit", mapping([("scoringStrategy", strategy)]))])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    const AT: &str = "scheduling.pluginConfig.NodeResourcesFit.scoringStrategy";

    fn read(strategy: &str) -> Result<ScoringStrategy, String> {
        let text =
            format!("scheduling: {{pluginConfig: {{NodeResourcesFit: {{scoringStrategy: {strategy}}}}}}}");
        let config = Config::parse(&text, "f").map_err(|error| error.to_string())?.0;
        let printed = serde_json::to_string(&config).unwrap();
        assert_eq!(Config::parse(&printed, "f").unwrap().0, config, "what is printed reads back as itself");
        Ok(config.scheduling.plugin_config.node_resources_fit.scoring_strategy)
    }

    #[test]
    fn a_strategy_is_read_with_the_keys_of_kube_scheduler() {
        assert_eq!(read("{}"), Ok(ScoringStrategy::default()));
        let resources = vec![("cpu".to_owned(), 3), ("example.com/foo".to_owned(), 1)];
        assert_eq!(
            read("{type: MostAllocated, resources: [{name: cpu, weight: 3}, {name: example.com/foo}]}"),
            Ok(ScoringStrategy { strategy: ScoringStrategyType::MostAllocated, resources })
        );
        let shape = "[{utilization: 0, score: 0}, {utilization: 100, score: 10}]";
        let ratio = read(&format!("{{type: RequestedToCapacityRatio, {RATIO}: {{shape: {shape}}}}}"));
        let points = [(0, 0), (100, 10)].map(|(utilization, score)| ShapePoint { utilization, score });
        assert_eq!(ratio.unwrap().strategy, ScoringStrategyType::RequestedToCapacityRatio(points.into()));
    }

    #[test]
    fn a_strategy_that_makes_no_sense_is_refused_with_its_key() {
        let ratio = |shape: &str| format!("{{type: RequestedToCapacityRatio, {RATIO}: {{shape: {shape}}}}}");
        let many: Vec<_> = (0..=MOST_RESOURCES).map(|at| format!("{{name: r{at}}}")).collect();
        let cases = [
            (
                "{type: Least}".to_owned(),
                ".type: must be `LeastAllocated` or `MostAllocated` or `RequestedToCapacityRatio`, not the text `Least`",
            ),
            (
                "{type: RequestedToCapacityRatio}".to_owned(),
                ".type: `RequestedToCapacityRatio` needs `requestedToCapacityRatio` beside it",
            ),
            (
                "{requestedToCapacityRatio: {shape: [{utilization: 0, score: 1}]}}".to_owned(),
                ".requestedToCapacityRatio: needs `type: RequestedToCapacityRatio` beside it",
            ),
            (ratio("[]"), ".requestedToCapacityRatio.shape: needs at least one point"),
            (ratio("[{utilization: 5}]"), ".requestedToCapacityRatio.shape[0]: `score` is missing"),
            (
                ratio("[{utilization: 5, score: 11}]"),
                ".requestedToCapacityRatio.shape[0].score: must be a whole number from 0 to 10, not `11`",
            ),
            (
                ratio("[{utilization: 5, score: 1}, {utilization: 5, score: 2}]"),
                ".requestedToCapacityRatio.shape[1].utilization: must be greater than that of the point before",
            ),
            ("{resources: [{weight: 2}]}".to_owned(), ".resources[0]: `name` is missing"),
            (
                "{resources: [{name: cpu, weight: 0}]}".to_owned(),
                ".resources[0].weight: must be a whole number from 1 to 100, not `0`",
            ),
            (
                "{resources: [{name: cpu}, {name: cpu}]}".to_owned(),
                ".resources[1].name: `cpu` has a weight already",
            ),
            (format!("{{resources: [{}]}}", many.join(", ")), ".resources: names more than 32 resources"),
        ];
        for (strategy, error) in cases {
            // What is left out for it may be missed beside the rest, which is reported too.
            let found = read(&strategy).unwrap_err();
            assert_eq!(found.split("; f:1:").next(), Some(&*format!("f:1: {AT}{error}")), "{strategy}");
        }
    }
}
