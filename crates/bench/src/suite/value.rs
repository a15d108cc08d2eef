//! The values of parameters, and the cases that they make.

use std::fmt;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::size;
use crate::error::{Error, Result};

/// A value of a workload's parameter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Whole(i64),
    /// Another number.
    Number(f64),
    /// A word, for instance `10 KB`.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(out),
            Self::Number(number) => number.fmt(out),
            Self::Text(text) => text.fmt(out),
        }
    }
}

/// One value for each of some parameters, in the order of the definition.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Case(IndexMap<String, Value>);

impl Case {
    /// The case with one more parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.0.insert(name.to_owned(), value);
        self
    }

    /// The case without some of its parameters, for a measure that doesn't depend on them.
    #[must_use]
    pub fn without(mut self, names: &[&str]) -> Self {
        self.0.retain(|name, _| !names.contains(&name.as_str()));
        self
    }

    /// A parameter's value, if the case has it.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.get(name)
    }

    /// Parameters and their values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// Whether `whole` contains all parameters and values of this case.
    pub fn is_part_of(&self, whole: &Self) -> bool {
        self.iter().all(|(name, value)| whole.get(name) == Some(value))
    }

    /// A parameter that is a word.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.get(name) {
            Some(Value::Text(text)) => Ok(text),
            other => Err(Error::parameter(name, other, "a word")),
        }
    }

    /// A parameter that is a whole number, 0 or more.
    pub fn count(&self, name: &str) -> Result<usize> {
        match self.get(name) {
            Some(Value::Whole(number)) => {
                usize::try_from(*number).map_err(|_| Error::parameter(name, self.get(name), "a number of things"))
            }
            other => Err(Error::parameter(name, other, "a whole number")),
        }
    }

    /// A parameter that is a number of any kind.
    pub fn number(&self, name: &str) -> Result<f64> {
        match self.get(name) {
            Some(Value::Whole(number)) => Ok(*number as f64),
            Some(Value::Number(number)) => Ok(*number),
            other => Err(Error::parameter(name, other, "a number")),
        }
    }

    /// A parameter that is a size, for instance `10 KB`; in bytes.
    pub fn bytes(&self, name: &str) -> Result<u64> {
        let text = self.text(name)?;
        size::parse(text).ok_or_else(|| Error::parameter(name, self.get(name), "a size such as 10 KB"))
    }
}

impl fmt::Display for Case {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (number, (name, value)) in self.iter().enumerate() {
            let comma = if number == 0 { "" } else { ", " };
            write!(out, "{comma}{name} {value}")?;
        }
        Ok(())
    }
}

/// All combinations of values of `parameters`, each added to `base`. The last parameter changes fastest.
pub fn cases<'a>(base: &Case, parameters: impl IntoIterator<Item = (&'a str, &'a [Value])>) -> Vec<Case> {
    parameters.into_iter().fold(vec![base.clone()], |cases, (name, values)| {
        let of_case =
            |case: &Case| values.iter().map(|value| case.clone().with(name, value.clone())).collect::<Vec<_>>();
        cases.iter().flat_map(of_case).collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(word: &str) -> Value {
        Value::Text(word.to_owned())
    }

    #[test]
    fn cases_are_all_choices_in_order() {
        let (sizes, readers) = ([text("1 KB"), text("1 MB")], [Value::Whole(1), Value::Whole(64)]);
        let base = Case::default().with("storage", text("disk"));
        let all = cases(&base, [("size", &sizes[..]), ("readers", &readers[..])]);
        let names: Vec<String> = all.iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "storage disk, size 1 KB, readers 1",
                "storage disk, size 1 KB, readers 64",
                "storage disk, size 1 MB, readers 1",
                "storage disk, size 1 MB, readers 64",
            ]
        );
        assert!(base.is_part_of(&all[3]) && !all[3].is_part_of(&base));
        assert_eq!(all[3].clone().without(&["readers", "size"]), base);
    }

    #[test]
    fn a_parameter_is_of_the_kind_that_is_asked_for() {
        let case = Case::default()
            .with("size", text("10 KB"))
            .with("readers", Value::Whole(8))
            .with("share", Value::Number(0.5));
        assert_eq!((case.bytes("size").unwrap(), case.count("readers").unwrap()), (10 << 10, 8));
        assert!((case.number("share").unwrap() - 0.5).abs() < f64::EPSILON);
        assert!(case.count("share").unwrap_err().to_string().contains("share"));
        assert!(case.bytes("readers").is_err() && case.text("none").is_err());
    }
}
