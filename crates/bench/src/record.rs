//! Figures, their comparison and the bars they are held to.

use serde::{Deserialize, Serialize};

use crate::machine::Machine;

/// Raised when the shape of the JSON changes.
pub const RECORD_SCHEMA: u32 = 1;

/// All that one run found.
#[derive(Debug, Clone, Serialize)]
pub struct Record {
    /// Version of this shape.
    pub schema: u32,
    /// UTC date of the run.
    pub date: String,
    /// Where it ran.
    pub machine: Machine,
    /// A smoke run: too short to be quoted.
    pub quick: bool,
    /// Repetitions behind each median.
    pub repetitions: usize,
    /// The seed of every workload.
    pub seed: u64,
    /// In the order they were measured.
    pub rows: Vec<Row>,
    /// Skipped parts, and facts that a reader has to know.
    pub notes: Vec<String>,
}

/// One case, measured on one or several stores.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The part of the run, as on the command line.
    pub section: &'static str,
    /// The work that was done.
    pub case: String,
    /// Unit of every sample.
    pub unit: &'static str,
    /// One per store.
    pub series: Vec<Series>,
    /// Held against each other or a bar.
    pub judgements: Vec<Judgement>,
}

/// What one store did in each repetition.
#[derive(Debug, Clone, Serialize)]
pub struct Series {
    /// Which store.
    pub store: String,
    /// In the order of the repetitions.
    pub samples: Vec<f64>,
    /// Their spread.
    #[serde(flatten)]
    pub spread: Spread,
}

/// Median and extremes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Spread {
    /// The middle sample; of an even number the mean of the middle two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// Of any number of samples; of none, zeros.
    pub fn of(samples: &[f64]) -> Self {
        let mut sorted = samples.to_vec();
        sorted.sort_by(f64::total_cmp);
        let (Some(&min), Some(&max)) = (sorted.first(), sorted.last()) else {
            return Self { median: 0.0, min: 0.0, max: 0.0 };
        };
        let middle = sorted.len() / 2;
        let median =
            if sorted.len() % 2 == 1 { sorted[middle] } else { f64::midpoint(sorted[middle - 1], sorted[middle]) };
        Self { median, min, max }
    }
}

/// What a figure is held to.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bar {
    /// Met by this and more.
    AtLeast(f64),
    /// Met by this and less.
    AtMost(f64),
}

impl Bar {
    /// Whether `figure` meets the bar.
    pub fn met_by(self, figure: f64) -> bool {
        match self {
            Self::AtLeast(bar) => figure >= bar,
            Self::AtMost(bar) => figure <= bar,
        }
    }
}

/// A comparison, and the bar it is held to if there is one.
#[derive(Debug, Clone, Serialize)]
pub struct Judgement {
    /// The two sides of the comparison.
    pub what: String,
    /// Of the comparison, repetition by repetition.
    #[serde(flatten)]
    pub spread: Spread,
    /// The bar.
    pub bar: Option<Bar>,
    /// The aim.
    pub aim: Option<f64>,
    /// Whether the median meets the bar.
    pub met: Option<bool>,
}

/// What a row asks of a comparison.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ask {
    /// The bar.
    pub bar: Option<Bar>,
    /// The aim.
    pub aim: Option<f64>,
}

impl Ask {
    /// Nothing: the figure is printed only.
    pub const NOTHING: Self = Self { bar: None, aim: None };

    /// At least `bar`.
    pub fn at_least(bar: f64) -> Self {
        Self { bar: Some(Bar::AtLeast(bar)), aim: None }
    }

    /// At most `bar`.
    pub fn at_most(bar: f64) -> Self {
        Self { bar: Some(Bar::AtMost(bar)), aim: None }
    }

    /// Hoping for `aim`.
    pub fn aim(self, aim: f64) -> Self {
        Self { aim: Some(aim), ..self }
    }
}

impl Row {
    /// A case without figures yet.
    pub fn new(section: &'static str, case: impl Into<String>, unit: &'static str) -> Self {
        Self { section, case: case.into(), unit, series: Vec::new(), judgements: Vec::new() }
    }

    /// Adds what `store` did.
    pub fn series(mut self, store: impl Into<String>, samples: &[f64]) -> Self {
        self.series.push(Series { store: store.into(), samples: samples.to_vec(), spread: Spread::of(samples) });
        self
    }

    /// Holds the ratio of two stores, repetition by repetition, to `ask`. Does nothing if either is absent.
    pub fn ratio(self, of: &str, to: &str, ask: Ask) -> Self {
        let what = format!("{of} / {to}");
        self.compare(what, of, to, ask, |left, right| left / right)
    }

    /// Holds the difference of two stores to `ask`. Does nothing if either is absent.
    pub fn difference(self, of: &str, to: &str, ask: Ask) -> Self {
        let what = format!("{of} - {to}");
        self.compare(what, of, to, ask, |left, right| left - right)
    }

    /// Holds one store's own figure to `ask`. Does nothing if it is absent.
    pub fn value(mut self, of: &str, ask: Ask) -> Self {
        if let Some(samples) = self.samples(of).map(<[f64]>::to_vec) {
            self.judge(of.to_owned(), &samples, ask);
        }
        self
    }

    /// A store's samples.
    pub fn samples(&self, store: &str) -> Option<&[f64]> {
        let series = self.series.iter().find(|series| series.store == store)?;
        Some(&series.samples)
    }

    /// A store with a single sample is a constant and compared with each of the other's.
    fn compare(mut self, what: String, of: &str, to: &str, ask: Ask, operation: impl Fn(f64, f64) -> f64) -> Self {
        let (Some(left), Some(right)) = (self.samples(of), self.samples(to)) else {
            return self;
        };
        let compared: Vec<f64> = match right {
            [constant] => left.iter().map(|sample| operation(*sample, *constant)).collect(),
            _ => left.iter().zip(right).map(|(a, b)| operation(*a, *b)).collect(),
        };
        self.judge(what, &compared, ask);
        self
    }

    fn judge(&mut self, what: String, samples: &[f64], ask: Ask) {
        let spread = Spread::of(samples);
        self.judgements.push(Judgement {
            what,
            spread,
            bar: ask.bar,
            aim: ask.aim,
            met: ask.bar.map(|bar| bar.met_by(spread.median)),
        });
    }
}
