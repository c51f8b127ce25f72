//! The smallest change of a pod with which it would fit: less of some amounts, or one wish less. Each answer was tried.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::object::Quantity;

/// Of so many amounts changes are looked for at most, the first ones of the pod.
const MOST_AMOUNTS: usize = 12;

/// So many wishes are tried to be left out at most.
const MOST_WISHES: usize = 32;

/// Where a pod has containers.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// One field that would have to be different.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct ChangedField {
    /// Its path: `spec.containers[0].resources.limits[nvidia.com/gpumem]`.
    pub field: String,
    /// What it is.
    pub from: String,
    /// What it would have to be; absent: it would have to be left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<String>,
}

impl ChangedField {
    /// Its path as a JSON pointer.
    fn pointer(&self) -> String {
        let mut pointer = String::new();
        for (at, part) in self.field.split(['[', ']']).enumerate() {
            // What stands in brackets is one key, or a place in a list.
            if at % 2 == 1 {
                pointer.push('/');
                pointer.push_str(&escaped(part));
            } else {
                let keys = part.split('.').filter(|key| !key.is_empty());
                pointer.extend(keys.flat_map(|key| ["/".to_owned(), escaped(key)]));
            }
        }
        pointer
    }
}

/// Every field that would have to be different; none: no change of the pod helps.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(transparent)]
pub struct PodChanges(pub Vec<ChangedField>);

/// An amount that a container asks for.
#[derive(Clone, Debug)]
struct AskedAmount {
    /// Where it stands: limits and requests of one container state the same.
    fields: Vec<(String, String, String)>,
    /// As a number in its unit.
    amount: i64,
    unit: AmountUnit,
}

/// What an amount is counted in.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum AmountUnit {
    /// Thousandths of a cpu.
    Millicpu,
    /// Mebibytes.
    Mebibytes,
    /// Ones.
    Ones,
}

impl PodChanges {
    /// Whether no change helps.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same as a JSON patch (RFC 6902).
    pub fn patch(&self) -> Value {
        let one = |change: &ChangedField| match &change.to {
            Some(to) => json!({"op": "replace", "path": change.pointer(), "value": to}),
            None => json!({"op": "remove", "path": change.pointer()}),
        };
        self.0.iter().map(one).collect()
    }

    /// A line for each field.
    pub fn lines(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|ChangedField { field, from, to, .. }| match to {
            Some(to) => format!("It would fit with {field} {to} instead of {from}"),
            None => format!("It would fit without {field} ({from})"),
        })
    }
}

/// The smallest change after which the pod `fits`: of amounts by the sum of the parts that are given up, fewer fields first; else one wish less.
pub fn smallest(pod: &Value, fits: impl Fn(&Value) -> bool) -> PodChanges {
    let amounts = amounts(pod);
    let search = AmountSearch { pod, amounts: &amounts, fits: &fits };
    let of_amounts = search.one().or_else(|| search.two()).or_else(|| search.all());
    if let Some(values) = of_amounts {
        return PodChanges(search.changes(&values));
    }
    let wish = wishes(pod)
        .into_iter()
        .take(MOST_WISHES)
        .find(|wish| without(pod, &wish.pointer()).is_some_and(|changed| fits(&changed)));
    PodChanges(wish.into_iter().collect())
}

/// What amounts would be; `None`: as they are.
type Values = Vec<i64>;

struct AmountSearch<'a, F> {
    pod: &'a Value,
    amounts: &'a [AskedAmount],
    fits: &'a F,
}

impl<F: Fn(&Value) -> bool> AmountSearch<'_, F> {
    fn asked(&self) -> Values {
        self.amounts.iter().map(|one| one.amount).collect()
    }

    fn fits(&self, values: &Values) -> bool {
        (self.fits)(&self.changed(values))
    }

    fn changed(&self, values: &Values) -> Value {
        let mut pod = self.pod.clone();
        for (asked, value) in self.amounts.iter().zip(values).filter(|(asked, value)| asked.amount != **value)
        {
            for (_, pointer, _) in &asked.fields {
                if let Some(field) = pod.pointer_mut(pointer) {
                    *field = asked.unit.written(*value).into();
                }
            }
        }
        pod
    }

    /// One amount less.
    fn one(&self) -> Option<Values> {
        let all = (0..self.amounts.len()).filter_map(|at| self.most(self.asked(), at));
        self.smallest(all)
    }

    /// Two amounts less.
    fn two(&self) -> Option<Values> {
        let places = 0..self.amounts.len();
        let pairs = places.clone().flat_map(|one| places.clone().map(move |other| (one, other)));
        let all = pairs.filter(|(one, other)| one != other).filter_map(|(one, other)| {
            let mut values = self.asked();
            values[other] = 1;
            self.raised(self.most(values, one)?, other)
        });
        self.smallest(all)
    }

    /// All amounts less, as few as do.
    fn all(&self) -> Option<Values> {
        let mut values = vec![1; self.amounts.len()];
        if values.is_empty() || !self.fits(&values) {
            return None;
        }
        for at in 0..values.len() {
            values = self.raised(values, at)?;
        }
        Some(values)
    }

    /// These values with the most of the amount at this place with which the pod fits, less than it asks for; `None`: with none.
    fn most(&self, mut values: Values, at: usize) -> Option<Values> {
        let (mut fitting, mut failing) = (1, values[at]);
        values[at] = fitting;
        if failing <= 1 || !self.fits(&values) {
            return None;
        }
        while failing - fitting > 1 {
            values[at] = fitting + (failing - fitting) / 2;
            if self.fits(&values) {
                fitting = values[at];
            } else {
                failing = values[at];
            }
        }
        values[at] = fitting;
        Some(values)
    }

    /// As [`Self::most`] where all that is asked for may fit too.
    fn raised(&self, mut values: Values, at: usize) -> Option<Values> {
        values[at] = self.amounts[at].amount;
        if self.fits(&values) { Some(values) } else { self.most(values, at) }
    }

    /// Of the values those that give up least.
    fn smallest(&self, all: impl Iterator<Item = Values>) -> Option<Values> {
        let given_up = |values: &Values| -> f64 {
            let part = |(asked, value): (&AskedAmount, &i64)| {
                #[expect(clippy::cast_precision_loss, reason = "a part")]
                let part = (asked.amount - value) as f64 / asked.amount.max(1) as f64;
                part
            };
            self.amounts.iter().zip(values).map(part).sum()
        };
        all.min_by(|one, other| given_up(one).total_cmp(&given_up(other)))
    }

    fn changes(&self, values: &Values) -> Vec<ChangedField> {
        let changed = self.amounts.iter().zip(values).filter(|(asked, value)| asked.amount != **value);
        let fields = changed.flat_map(|(asked, value)| {
            asked.fields.iter().map(|(field, _, from)| ChangedField {
                field: field.clone(),
                from: from.clone(),
                to: Some(asked.unit.written(*value)),
            })
        });
        fields.collect()
    }
}

impl AmountUnit {
    fn of(resource: &str) -> Self {
        match resource {
            "cpu" => Self::Millicpu,
            "memory" | "ephemeral-storage" => Self::Mebibytes,
            huge if huge.starts_with("hugepages-") => Self::Mebibytes,
            _ => Self::Ones,
        }
    }

    /// The quantity in this unit, rounded down; `None`: it can't be read.
    fn read(self, quantity: &Quantity) -> Option<i64> {
        let amount = quantity.amount().ok()?;
        Some(match self {
            Self::Millicpu => amount.millis_rounded_up(),
            Self::Ones => amount.units_rounded_up(),
            Self::Mebibytes => amount.units_rounded_up() >> 20,
        })
    }

    fn written(self, amount: i64) -> String {
        match self {
            Self::Millicpu => format!("{amount}m"),
            Self::Mebibytes => format!("{amount}Mi"),
            Self::Ones => amount.to_string(),
        }
    }
}

/// Every amount of more than one that containers ask for.
fn amounts(pod: &Value) -> Vec<AskedAmount> {
    let mut found: Vec<AskedAmount> = Vec::new();
    for key in CONTAINERS {
        let containers = pod.pointer(&format!("/spec/{key}")).and_then(Value::as_array);
        for (at, container) in containers.into_iter().flatten().enumerate() {
            let mut of_container: BTreeMap<&str, AskedAmount> = BTreeMap::new();
            for part in ["limits", "requests"] {
                let stated = container.pointer(&format!("/resources/{part}")).and_then(Value::as_object);
                for (resource, value) in stated.into_iter().flatten() {
                    let from = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                    let unit = AmountUnit::of(resource);
                    let Some(amount) = unit.read(&Quantity::from(from.as_str())) else { continue };
                    let field = format!("spec.{key}[{at}].resources.{part}[{resource}]");
                    let pointer = format!("/spec/{key}/{at}/resources/{part}/{}", escaped(resource));
                    let asked = of_container.entry(resource).or_insert_with(|| AskedAmount {
                        fields: Vec::new(),
                        amount,
                        unit,
                    });
                    asked.amount = asked.amount.max(amount);
                    asked.fields.push((field, pointer, from));
                }
            }
            found.extend(of_container.into_values().filter(|asked| asked.amount > 1));
        }
    }
    found.truncate(MOST_AMOUNTS);
    found
}

/// What the pod states that may keep it from nodes and cards: labels of nodes, and annotations.
fn wishes(pod: &Value) -> Vec<ChangedField> {
    let of = |at: &str, called: &str| -> Vec<ChangedField> {
        let stated = pod.pointer(at).and_then(Value::as_object);
        let one = |(key, value): (&String, &Value)| ChangedField {
            field: format!("{called}[{key}]"),
            from: value.as_str().map_or_else(|| value.to_string(), str::to_owned),
            to: None,
        };
        stated.into_iter().flatten().map(one).collect()
    };
    let mut wishes = of("/metadata/annotations", "metadata.annotations");
    wishes.extend(of("/spec/nodeSelector", "spec.nodeSelector"));
    wishes
}

/// The object without the field at this pointer.
fn without(pod: &Value, pointer: &str) -> Option<Value> {
    let (parent, key) = pointer.rsplit_once('/')?;
    let mut pod = pod.clone();
    pod.pointer_mut(parent)?.as_object_mut()?.remove(&key.replace("~1", "/").replace("~0", "~"))?;
    Some(pod)
}

/// A key as a JSON pointer has it.
fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
