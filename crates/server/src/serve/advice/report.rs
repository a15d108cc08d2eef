//! The advice as an object: what `GET /advice` answers, and `eyewall advise` shows.

use serde::{Deserialize, Serialize};

/// What would make more requests hits, from a sample of the requests of a running server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Report {
    /// How much was looked at.
    pub sample: Sample,
    /// The share of requests, and of their bytes, that was answered from the volume.
    pub hit_ratio: f64,
    /// The same of bytes.
    pub byte_hit_ratio: f64,
    /// The expected shares at other sizes of the volume, from the smallest.
    pub sizes: Vec<SizePoint>,
    /// Why requests weren't answered from the volume, the most frequent reason first.
    pub misses: Vec<MissShare>,
    /// What would help, the largest gain first.
    pub remedies: Vec<Remedy>,
    /// The sampled paths with most requests.
    pub hottest: Vec<PathShare>,
    /// The sampled paths whose responses began latest, on average.
    pub slowest: Vec<PathShare>,
}

/// A path of the sample, which has all of its requests.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct PathShare {
    /// Host and path.
    pub path: String,
    /// The name of the site, as in the metrics.
    pub site: String,
    /// Its requests.
    pub requests: u64,
    /// Their share of all requests.
    pub request_ratio: f64,
    /// The share of its requests that was answered from the volume.
    pub hit_ratio: f64,
    /// The mean time until its responses began, in microseconds.
    pub first_byte_us: u64,
}

/// The size of the sample.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Sample {
    /// The sampled requests.
    pub requests: u64,
    /// The sampled paths.
    pub paths: u64,
    /// The share of all paths.
    pub rate: f64,
    /// The time of the sampled requests.
    pub seconds: f64,
    /// All requests of that time.
    pub requests_of_all: u64,
    /// The sample is so small that it may say something else in an hour.
    pub is_small: bool,
}

/// The expected figures at one size.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SizePoint {
    /// As a multiple of the present size.
    pub factor: f64,
    /// The size of the volume.
    pub size_bytes: u64,
    /// The expected share of requests.
    pub hit_ratio: f64,
    /// The standard error of the difference to the present, from the sample of paths; 0 if the sample has all paths.
    pub error: f64,
    /// The expected share of bytes.
    pub byte_hit_ratio: f64,
}

/// A reason why requests weren't answered from the volume.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct MissShare {
    /// The reason: one of `Cache-Status`, or `first`, `collapsed`, `evicted`, `purged`, `expired`, `vary-miss`, `trackers`.
    pub reason: String,
    /// In words.
    pub words: String,
    /// The name of the site, as in the metrics.
    pub site: String,
    /// The share of all requests.
    pub request_ratio: f64,
    /// The share of all bytes.
    pub byte_ratio: f64,
    /// A frequent path of it.
    pub example: String,
}

/// A change of the configuration, and what it is expected to gain.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Remedy {
    /// The reason of the misses that it is for.
    pub reason: String,
    /// The name of the site; empty for all.
    pub site: String,
    /// The lines of the configuration.
    pub configuration: String,
    /// The condition under which it is right.
    pub condition: String,
    /// The share of all requests that become hits.
    pub request_gain: f64,
    /// Its standard error, as for sizes.
    pub error: f64,
    /// The share of all bytes that come from the volume instead of an origin.
    pub byte_gain: f64,
    /// It gains at most this; how much, the sample can't say.
    pub is_upper_bound: bool,
}
