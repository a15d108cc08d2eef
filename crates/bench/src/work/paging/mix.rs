//! What a web server asks its cache for: few objects very often, most of them small and some large.

use crate::random::{self, Random};

/// Sizes follow a Pareto distribution between these bounds: its mean is some 10 KB.
const BYTES_MIN: f64 = 2048.0;
const BYTES_MAX: f64 = 1_048_576.0;
const TAIL: f64 = 1.1;

/// The exponent of popularity.
const SKEW: f64 = 0.9;

/// Objects by popularity: the one of rank `r` is asked for as often as `1 / (r + 1) ^ 0.9` says.
#[derive(Debug)]
pub(super) struct Zipf {
    /// Of ranks up to and including each, summed.
    weights: Vec<f64>,
}

impl Zipf {
    pub(super) fn new(objects: u64) -> Self {
        let mut sum = 0.0;
        let weights = (1..=objects)
            .map(|rank| {
                sum += (rank as f64).powf(-SKEW);
                sum
            })
            .collect();
        Self { weights }
    }

    /// A rank, which is the object's index.
    pub(super) fn draw(&self, random: &mut Random) -> u64 {
        let all = self.weights.last().copied().unwrap_or(0.0);
        let point = unit(random.next_u64()) * all;
        let rank = self.weights.partition_point(|weight| *weight <= point);
        rank.min(self.weights.len().saturating_sub(1)) as u64
    }
}

/// The bytes of an object, which have nothing to do with its popularity.
pub(super) fn size_of(index: u64) -> usize {
    let point = unit(random::mix(index ^ 0x5151_5151_5151_5151));
    let shrink = 1.0 - (BYTES_MIN / BYTES_MAX).powf(TAIL);
    (BYTES_MIN * (1.0 - point * shrink).powf(-1.0 / TAIL)) as usize
}

/// The largest of all sizes.
pub(super) const SIZE_MAX: usize = BYTES_MAX as usize;

/// From 0 to 1, without 1.
fn unit(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn popularity_falls_with_the_rank_as_it_should() {
        let zipf = Zipf::new(1_000);
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
    fn sizes_have_a_long_tail_and_a_mean_of_some_ten_kilobytes() {
        let mut sizes: Vec<usize> = (0..200_000).map(size_of).collect();
        sizes.sort_unstable();
        let mean = sizes.iter().sum::<usize>() / sizes.len();
        assert!((8_000..13_000).contains(&mean), "{mean}");
        assert!(sizes[0] >= 2048 && sizes[sizes.len() - 1] <= SIZE_MAX);
        assert!(sizes[sizes.len() / 2] < 5_000 && sizes[sizes.len() - 1] > 900_000);
    }
}
