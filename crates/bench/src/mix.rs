//! The requests of a web server to its cache: for a few objects very often; most objects are small and some are large.

use crate::random::{self, Random};

/// Objects by popularity: the requests for the object of rank `r`, counted from 0, are proportional to `1 / (r + 1) ^
/// skew`.
#[derive(Debug)]
pub struct Zipf {
    /// For each rank, the sum of the weights up to and including it.
    weights: Vec<f64>,
}

impl Zipf {
    /// The popularity of so many objects.
    pub fn new(objects: u64, skew: f64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=objects)
            .map(|rank| {
                sum += (rank as f64).powf(-skew);
                sum
            })
            .collect();
        Self { weights }
    }

    /// A random rank, which is the index of an object.
    pub fn draw(&self, random: &mut Random) -> u64 {
        let all = self.weights.last().copied().unwrap_or(0.0);
        let point = unit(random.next_u64()) * all;
        let rank = self.weights.partition_point(|weight| *weight <= point);
        rank.min(self.weights.len().saturating_sub(1)) as u64
    }
}

/// The sizes of objects, which don't depend on their popularity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sizes {
    /// Pareto's distribution between two bounds.
    Pareto {
        /// The smallest.
        bytes_min: f64,
        /// The largest.
        bytes_max: f64,
        /// The exponent: the smaller it is, the longer the tail.
        exponent: f64,
    },
    /// A lognormal body with a Pareto tail, as the files of web servers have (Barford and Crovella, 1998).
    HeavyTailed {
        /// The body's median.
        median_bytes: f64,
        /// The standard deviation of the body's natural logarithm.
        sigma: f64,
        /// The share of objects in the tail.
        tail_share: f64,
        /// Where the tail begins.
        tail_bytes_min: f64,
        /// The tail's exponent.
        exponent: f64,
        /// The largest size. The smallest is 8 bytes.
        bytes_max: f64,
    },
}

impl Sizes {
    /// The size of an object, in bytes.
    pub fn of(&self, index: u64) -> usize {
        let mut random = Random::new(random::mix(index ^ 0x5151_5151_5151_5151));
        match *self {
            Self::Pareto { bytes_min, bytes_max, exponent } => {
                pareto(unit(random.next_u64()), bytes_min, bytes_max, exponent) as usize
            }
            Self::HeavyTailed { median_bytes, sigma, tail_share, tail_bytes_min, exponent, bytes_max } => {
                let bytes = if unit(random.next_u64()) < tail_share {
                    pareto(unit(random.next_u64()), tail_bytes_min, bytes_max, exponent)
                } else {
                    median_bytes * (sigma * normal(&mut random)).exp()
                };
                bytes.clamp(8.0, bytes_max) as usize
            }
        }
    }

    /// The sizes of the first objects, until their sum is so many bytes.
    pub fn until(&self, bytes: u64) -> Vec<u32> {
        let mut sum = 0;
        (0..u64::from(u32::MAX))
            .map(|index| self.of(index) as u32)
            .take_while(|size| {
                let before = sum;
                sum += u64::from(*size);
                before < bytes
            })
            .collect()
    }
}

/// A random value of Pareto's distribution between its bounds.
fn pareto(point: f64, bytes_min: f64, bytes_max: f64, exponent: f64) -> f64 {
    let shrink = 1.0 - (bytes_min / bytes_max).powf(exponent);
    bytes_min * (1.0 - point * shrink).powf(-1.0 / exponent)
}

/// A random value of the standard normal distribution (Box and Muller).
fn normal(random: &mut Random) -> f64 {
    let (radius, angle) = (1.0 - unit(random.next_u64()), unit(random.next_u64()));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

/// A random value from 0 (included) to 1 (excluded).
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_falls_with_the_rank_as_it_should() {
        let zipf = Zipf::new(1_000, 0.9);
        let mut random = Random::new(1);
        let mut drawn = vec![0_u32; 1_000];
        for _ in 0..400_000 {
            drawn[zipf.draw(&mut random) as usize] += 1;
        }
        assert!(drawn.iter().all(|times| *times > 0));
        // 10 ^ 0.9 is 7.94.
        let ratio = f64::from(drawn[0]) / f64::from(drawn[9]);
        assert!((7.0..9.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn sizes_of_pareto_have_a_long_tail() {
        let sizes = Sizes::Pareto { bytes_min: 2048.0, bytes_max: 1_048_576.0, exponent: 1.1 };
        let mut sizes: Vec<usize> = (0..200_000).map(|index| sizes.of(index)).collect();
        sizes.sort_unstable();
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((8_000..13_000).contains(&mean), "{mean}");
        assert!(sizes[0] >= 2048 && sizes[sizes.len() - 1] <= 1 << 20);
        assert!(sizes[sizes.len() / 2] < 5_000 && sizes[sizes.len() - 1] > 900_000);
    }

    #[test]
    fn a_body_has_its_median_and_its_tail_its_share() {
        let sizes = Sizes::HeavyTailed {
            median_bytes: 4096.0,
            sigma: 1.2,
            tail_share: 0.05,
            tail_bytes_min: 100_000.0,
            exponent: 1.2,
            bytes_max: 4e6,
        };
        let mut found: Vec<usize> = (0..100_000).map(|index| sizes.of(index)).collect();
        found.sort_unstable();
        assert!((4_000..5_000).contains(&found[50_000]), "{}", found[50_000]);
        let large = found.iter().filter(|bytes| **bytes >= 100_000).count();
        assert!((4_500..6_500).contains(&large), "{large}");
        assert!(found[0] >= 8 && *found.last().unwrap() <= 4_000_000);
        let some = sizes.until(1_000_000);
        let sum: u32 = some.iter().sum();
        assert!(sum >= 1_000_000 && sum - some.last().unwrap() < 1_000_000);
    }
}
