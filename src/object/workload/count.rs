//! How many pods a workload makes of a template, and their numbers.

use std::ops::Range;

use serde_json::Value;

use super::{
    UnreadableWorkload,
    path::{Path, WildcardStep},
    table,
};

/// The most pods of one template: what is simulated pod by pod must end.
const MOST: u64 = 10_000;

/// How many pods are made of a template.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Count {
    /// One on each node that would have it.
    EachNode,
    /// One with each of these endings of its name.
    Endings(PodEndings),
}

/// The endings of the names of pods: a number of each range, as `-0` or `-3-1`; empty where there is no range. They are not written out before
/// they are asked for: many templates of one object may ask for many pods each.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PodEndings(Vec<Range<u64>>);

impl PodEndings {
    /// How many there are.
    pub fn len(&self) -> u64 {
        self.0.iter().map(length).fold(1, u64::saturating_mul)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Each of them; the last number changes first.
    pub fn iter(&self) -> impl Iterator<Item = String> {
        (0..self.len()).map(|at| {
            let (mut rest, mut ending) = (at, String::new());
            for range in self.0.iter().rev() {
                ending.insert_str(0, &format!("-{}", range.start + rest % length(range)));
                rest /= length(range);
            }
            ending
        })
    }
}

fn length(range: &Range<u64>) -> u64 {
    range.end.saturating_sub(range.start)
}

/// One factor of a number of pods.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Factor {
    /// One, with a number.
    One,
    /// A field, or this where it is absent.
    Field(Path, u64),
    /// A field, or this where it is absent; numbered from another field, or else from 0.
    From(Path, u64, Path),
    /// A field, or this where it is absent, less 1; numbered from 1.
    Rest(Path, u64),
    /// The greater of two fields; absent: 0.
    Greater(Path, Path),
    /// How many pods a Job runs at a time. Kubernetes `pkg/controller/job/job_controller.go`: `parallelism` (1), and no more than
    /// `completions`, where that is there.
    Job { parallelism: Path, completions: Path },
}

impl Factor {
    pub(super) fn built_in(row: &table::FactorRow) -> Self {
        match *row {
            table::FactorRow::One => Self::One,
            table::FactorRow::Field(path, default) => Self::Field(super::known(path), default),
            table::FactorRow::From(path, default, first) => {
                Self::From(super::known(path), default, super::known(first))
            }
            table::FactorRow::Rest(path, default) => Self::Rest(super::known(path), default),
            table::FactorRow::Greater(one, other) => Self::Greater(super::known(one), super::known(other)),
            table::FactorRow::Job(spec) => Self::Job {
                parallelism: super::known(&format!("{spec}.parallelism")),
                completions: super::known(&format!("{spec}.completions")),
            },
        }
    }

    /// The numbers: the first, and the one behind the last.
    fn range(&self, object: &Value, turns: &[WildcardStep]) -> Result<(u64, u64), UnreadableWorkload> {
        let number = |path: &Path| number(path, object, turns);
        Ok(match self {
            Self::One => (0, 1),
            Self::Field(path, default) => (0, number(path)?.unwrap_or(*default)),
            Self::From(path, default, first) => {
                let (first, count) = (number(first)?.unwrap_or(0), number(path)?.unwrap_or(*default));
                (first, first.saturating_add(count))
            }
            Self::Rest(path, default) => (1, number(path)?.unwrap_or(*default).max(1)),
            Self::Greater(one, other) => {
                (0, number(one)?.unwrap_or_default().max(number(other)?.unwrap_or_default()))
            }
            Self::Job { parallelism, completions } => {
                let parallelism = number(parallelism)?.unwrap_or(1);
                (0, number(completions)?.map_or(parallelism, |completions| parallelism.min(completions)))
            }
        })
    }

    /// The fields that it depends on.
    pub(super) fn paths(&self) -> Vec<&Path> {
        match self {
            Self::One => Vec::new(),
            Self::Field(path, _) | Self::Rest(path, _) => vec![path],
            Self::Greater(one, other) | Self::From(one, _, other) => vec![one, other],
            Self::Job { parallelism, completions } => vec![parallelism, completions],
        }
    }
}

/// The whole number at a path; `None`: there is none.
fn number(path: &Path, object: &Value, turns: &[WildcardStep]) -> Result<Option<u64>, UnreadableWorkload> {
    let Some(value) = path.follow(object, turns) else { return Ok(None) };
    let whole = value.as_u64().map(Some);
    whole.ok_or_else(|| {
        UnreadableWorkload::new(
            path.to_string(),
            format!("must be a whole number that is not negative, not {value}"),
        )
    })
}

impl Count {
    /// No pod.
    pub fn none() -> Self {
        Self::Endings(PodEndings(std::iter::once(0..0).collect()))
    }

    /// A pod for each combination of the factors' numbers.
    pub(super) fn product(
        factors: &[Factor],
        object: &Value,
        turns: &[WildcardStep],
    ) -> Result<Self, UnreadableWorkload> {
        let mut endings = PodEndings(Vec::new());
        for factor in factors {
            let (first, end) = factor.range(object, turns)?;
            endings.0.push(first..end);
            let count = endings.len();
            if count > MOST {
                let field = factor.paths().first().map(ToString::to_string).unwrap_or_default();
                let reason = format!("asks for {count} pods; at most {MOST} of a template are counted out");
                return Err(UnreadableWorkload::new(field, reason));
            }
        }
        Ok(Self::Endings(endings))
    }
}
