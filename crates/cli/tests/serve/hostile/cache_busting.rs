//! Cache busting: a flood of misses by different queries doesn't push out the pages that readers want.

use std::io::{Read as _, Write as _};

use super::{Attacked, MIB, Way};
use crate::common::origin::Origin;

const HOT: usize = 50;
const MISSES: usize = 4000;

#[test]
fn what_is_hot_stays() {
    for way in Way::BOTH {
        // 16 MB of misses, and a volume of 8 MB.
        let origin = Origin::answering(|_| (200, "Cache-Control: max-age=600".to_owned(), vec![b'x'; 4000]));
        let attacked = Attacked::new(way, "", origin);
        let reached = &attacked.reached;
        for number in 0..HOT {
            for _ in 0..4 {
                reached.get(&format!("/hot/{number}"));
            }
            reached.get_until_hit(&format!("/hot/{number}"));
        }
        let before = attacked.origin.asked().len();
        for round in 0..MISSES / 100 {
            let mut stream = attacked.reached.connect();
            let requests: Vec<String> = (0..100)
                .map(|number| {
                    let close = if number == 99 { "Connection: close\r\n" } else { "" };
                    format!("GET /page?{round}-{number} HTTP/1.1\r\nHost: test\r\n{close}\r\n")
                })
                .collect();
            stream.write_all(requests.concat().as_bytes()).unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
        }
        assert_eq!(attacked.origin.asked().len(), before + MISSES, "each of them was a miss");
        let hits = (0..HOT).filter(|number| reached.get(&format!("/hot/{number}")).is_hit()).count();
        println!("cache busting, {}: {hits} of {HOT} hot pages are still hits", way.word());
        assert!(hits * 10 >= HOT * 9, "only {hits} of {HOT} hot pages are still hits");
        attacked.assert_bounded("cache busting", 32 * MIB);
    }
}
