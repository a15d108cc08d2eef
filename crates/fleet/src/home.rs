//! The home of a key: the node that asks the origin for it, for all nodes.
//!
//! Rendezvous hashing: each pair of a key and a node has a score, and the node with the highest score is the home. All nodes find the same
//! one without talking about it. A node that comes takes the keys that it has the highest score for, and a node that goes leaves its keys
//! to the second of each. So 1/n of the keys move, and no others.
//!
//! A home that is busy is passed over: it has more requests under way than `LOAD` times the mean. The next node by score is asked then.
//!
//! A node that is the home never passes itself over. So a node asks only nodes with a higher score for the key than its own, and nodes whose
//! requests wait for each other never form a circle.

/// How many times the mean load a home takes.
const LOAD: (usize, usize) = (5, 4);
/// It takes this many requests at once in any case.
const LOAD_MIN: usize = 16;

/// A node, as a home of keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Name {
    hash: u64,
}

/// A node that may be chosen.
#[derive(Debug, Clone, Copy)]
pub struct Candidate<'a> {
    /// Its name.
    pub name: &'a Name,
    /// How many requests are under way to it, as far as the one that chooses knows.
    pub load: usize,
    /// It is the one that chooses.
    pub is_self: bool,
}

impl Name {
    /// The name of a node, which is the same at all nodes.
    pub fn new(name: &str) -> Self {
        Self { hash: hash(name.as_bytes()) }
    }
}

/// The place of a key's home among the candidates; `None` without candidates.
pub fn choose(key: &[u8], candidates: &[Candidate<'_>]) -> Option<usize> {
    let key = hash(key);
    let total: usize = candidates.iter().map(|candidate| candidate.load + 1).sum();
    let bound = (total * LOAD.0).div_ceil(LOAD.1 * candidates.len().max(1)).max(LOAD_MIN);
    let best = |takes: &dyn Fn(&Candidate<'_>) -> bool| {
        let taken = candidates.iter().enumerate().filter(|(_, candidate)| takes(candidate));
        taken.max_by_key(|(_, candidate)| score(key, candidate.name)).map(|(place, _)| place)
    };
    best(&|candidate| candidate.is_self || candidate.load < bound).or_else(|| best(&|_| true))
}

/// Nodes of any version and machine have to find the same scores.
fn score(key: u64, name: &Name) -> u64 {
    mixed(key ^ mixed(name.hash))
}

/// A number for these bytes, which is the same on all machines (FNV-1a).
pub fn hash(bytes: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    mixed(bytes.iter().fold(0xcbf2_9ce4_8422_2325, add))
}

/// The end of splitmix64.
fn mixed(mut word: u64) -> u64 {
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: usize = 10_000;

    fn names(numbers: impl IntoIterator<Item = u64>) -> Vec<Name> {
        numbers.into_iter().map(|number| Name::new(&format!("http://10.0.0.{number}:8443"))).collect()
    }

    fn homes(names: &[Name]) -> Vec<&Name> {
        let candidates: Vec<_> = names.iter().map(|name| Candidate { name, load: 0, is_self: false }).collect();
        let home = |key: usize| choose(format!("http://example.org/{key}").as_bytes(), &candidates).unwrap();
        (0..KEYS).map(|key| candidates[home(key)].name).collect()
    }

    #[test]
    fn every_node_is_the_home_of_its_share() {
        for count in 1..=9 {
            let names = names(1..=count);
            let homes = homes(&names);
            for name in &names {
                let share = homes.iter().filter(|home| **home == name).count();
                let fair = KEYS / count as usize;
                assert!(share > fair * 9 / 10 && share < fair * 11 / 10, "{share} of {KEYS} keys with {count} nodes");
            }
        }
    }

    #[test]
    fn a_node_that_comes_or_goes_moves_only_its_own_keys() {
        for gone in 1..=5 {
            let all = names(1..=5);
            let rest = names((1..=5).filter(|number| *number != gone));
            let (before, after) = (homes(&all), homes(&rest));
            let lost = &all[gone as usize - 1];
            for (one, other) in before.into_iter().zip(after) {
                assert!(one == other || one == lost);
            }
        }
    }

    #[test]
    fn the_order_of_nodes_does_not_matter() {
        let (one, other) = (names(1..=5), names((1..=5).rev()));
        assert_eq!(homes(&one), homes(&other));
    }

    #[test]
    fn no_node_gets_more_than_its_bound() {
        let names = names(1..=4);
        let mut loads = [0; 4];
        for taken in 0..400 {
            let candidate = |(name, load)| Candidate { name, load, is_self: false };
            let candidates: Vec<_> = names.iter().zip(loads).map(candidate).collect();
            // All requests are for one key.
            loads[choose(b"hot", &candidates).unwrap()] += 1;
            let bound = ((taken + 4) * 5usize).div_ceil(16).max(LOAD_MIN);
            assert!(loads.iter().all(|load| *load <= bound), "{loads:?} after {taken}");
        }
        assert!(loads.iter().all(|load| *load > 0), "{loads:?}");
        assert_eq!(choose(b"hot", &[]), None);
    }

    #[test]
    fn nodes_ask_only_nodes_with_a_higher_score_however_loads_differ() {
        let names = names(1..=5);
        for number in 0..1000_usize {
            let key = number.to_le_bytes();
            let score_of = |place: usize| score(hash(&key), &names[place]);
            for own in 0..names.len() {
                let load = |place: usize| hash(&[own as u8, place as u8, number as u8]) as usize % 100;
                let candidate = |(place, name)| Candidate { name, load: load(place), is_self: place == own };
                let candidates: Vec<_> = names.iter().enumerate().map(candidate).collect();
                let asked = choose(&key, &candidates).unwrap();
                assert!(asked == own || score_of(asked) > score_of(own), "{number}: {own} asks {asked}");
            }
        }
    }
}
