//! RFC 9110, section 14, against plain slices: for any ranges and any length, the response has the bytes that
//! slicing gives.
#![cfg(test)]

mod fields;

use std::ops::Range;

use eyewall_http::field::range::ByteRanges;
use eyewall_http::ranges::{Boundary, Multipart, Segment, Served, fields_of_part, select};
use fields::fields;
use proptest::prelude::*;

/// One range of a request, of which this file has its own reading.
#[derive(Debug, Clone)]
enum Asked {
    FromTo(u64, u64),
    From(u64),
    Suffix(u64),
}

impl Asked {
    fn text(&self) -> String {
        match self {
            Self::FromTo(first, last) => format!("{first}-{last}"),
            Self::From(first) => format!("{first}-"),
            Self::Suffix(length) => format!("-{length}"),
        }
    }

    fn by_hand(&self, length: u64) -> Range<u64> {
        match *self {
            Self::FromTo(first, last) => first..(last + 1).min(length),
            Self::From(first) => first..length,
            Self::Suffix(suffix) => length.saturating_sub(suffix)..length,
        }
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    prop_oneof![
        (0_u64..40, 0_u64..40).prop_map(|(first, more)| Asked::FromTo(first, first + more)),
        (0_u64..40).prop_map(Asked::From),
        (0_u64..40).prop_map(Asked::Suffix),
    ]
}

proptest! {
    #[test]
    fn served_bytes_are_the_slices(specs in prop::collection::vec(asked(), 1..8), length in 0_u64..50) {
        let body: Vec<u8> = (0..length as u8).collect();
        let text: Vec<_> = specs.iter().map(Asked::text).collect();
        let asked = ByteRanges::of(&fields(&[("range", &format!("bytes={}", text.join(", ")))])).unwrap();
        let by_hand: Vec<_> =
            specs.iter().map(|spec| spec.by_hand(length)).filter(|range| range.start < range.end).collect();
        let is_wanted = |place: &u64| by_hand.iter().any(|range| range.contains(place));
        let wanted: Vec<u8> = (0..length).filter(is_wanted).map(|place| body[place as usize]).collect();
        let cut = |range: &Range<u64>| body[range.start as usize..range.end as usize].to_vec();
        match select(&asked, length) {
            Served::Whole => prop_assert!(length == 0 || by_hand.len() > 3),
            Served::Unsatisfiable => prop_assert!(by_hand.is_empty()),
            Served::Part(range) => {
                prop_assert_eq!(cut(&range), wanted);
                let head = fields_of_part(&fields(&[]), &range, Some(length)).unwrap();
                prop_assert_eq!(head["content-length"].to_str().unwrap(), cut(&range).len().to_string());
            }
            Served::Parts(ranges) => {
                prop_assert!(ranges.len() > 1);
                let mut served: Vec<u8> = ranges.iter().flat_map(cut).collect();
                // A part stands where the first range that it serves stood.
                let firsts: Vec<_> = ranges
                    .iter()
                    .map(|range| by_hand.iter().position(|wanted| range.contains(&wanted.start)))
                    .collect();
                prop_assert!(firsts.is_sorted(), "{:?}", ranges);
                let multipart = Multipart::new(&fields(&[]), ranges, Some(length), Boundary::new("b").unwrap()).unwrap();
                prop_assert_eq!(multipart.segments().map(|segment| segment.length()).sum::<u64>(), multipart.content_length());
                let bytes: Vec<u8> = multipart
                    .segments()
                    .filter_map(|segment| match segment { Segment::Bytes(range) => Some(cut(&range)), Segment::Head(_) => None })
                    .flatten()
                    .collect();
                prop_assert_eq!(&bytes, &served);
                served.sort_unstable();
                prop_assert_eq!(served, wanted);
            }
        }
    }

    #[test]
    fn nothing_overflows(first in any::<u64>(), last in any::<u64>(), length in any::<u64>()) {
        let text = format!("bytes={first}-{last},{last}-,-{first}");
        if let Some(asked) = ByteRanges::of(&fields(&[("range", &text)])) {
            let ranges = match select(&asked, length) {
                Served::Part(range) => vec![range],
                Served::Parts(ranges) => ranges,
                Served::Whole | Served::Unsatisfiable => Vec::new(),
            };
            for range in &ranges {
                prop_assert!(range.start < range.end && range.end <= length);
                prop_assert!(fields_of_part(&fields(&[]), range, Some(length)).is_some());
            }
            Multipart::new(&fields(&[]), ranges, Some(length), Boundary::new("b").unwrap());
        }
    }
}
