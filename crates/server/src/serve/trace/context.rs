//! `traceparent` and `tracestate` (W3C Trace Context, <https://www.w3.org/TR/trace-context/>).

use http::{HeaderMap, HeaderName, HeaderValue};

pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(super) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// The length of `traceparent` in version 00, and of the part that later versions have in common with it.
const PARENT_BYTES: usize = 55;
/// The bits of the flags that this server knows.
const SAMPLED: u8 = 1;
const RANDOM: u8 = 2;
/// The most members of `tracestate`, and its greatest length that everyone has to pass on.
const MEMBERS_MAX: usize = 32;
const STATE_BYTES_MAX: usize = 4096;

/// The part of a trace that a request belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Context {
    pub(super) trace: [u8; 16],
    /// The span of the one that sent the request.
    pub(super) parent: [u8; 8],
    flags: u8,
    pub(super) state: Option<HeaderValue>,
}

impl Context {
    /// A new trace.
    pub(super) fn new(trace: [u8; 16], is_sampled: bool) -> Self {
        let flags = RANDOM | if is_sampled { SAMPLED } else { 0 };
        Self { trace, parent: [0; 8], flags, state: None }
    }

    /// The context of a request; `None` if it has none, or one that isn't valid.
    pub(super) fn of<'a>(
        mut parents: impl Iterator<Item = &'a [u8]>,
        states: impl Iterator<Item = &'a [u8]>,
    ) -> Option<Self> {
        let (trace, parent, flags) = parse_parent(parents.next()?)?;
        // Two of them could each be true.
        if parents.next().is_some() {
            return None;
        }
        Some(Self { trace, parent, flags: flags & (SAMPLED | RANDOM), state: parse_state(states) })
    }

    pub(super) fn of_fields(fields: &HeaderMap) -> Option<Self> {
        let parents = fields.get_all(TRACEPARENT).iter().map(HeaderValue::as_bytes);
        Self::of(parents, fields.get_all(TRACESTATE).iter().map(HeaderValue::as_bytes))
    }

    /// The same with a span of this server as the parent, which is sampled.
    pub(super) fn with_span(&self, span: [u8; 8]) -> Self {
        Self { parent: span, flags: self.flags | SAMPLED, ..self.clone() }
    }

    /// Whether the one that sent the request records it.
    pub(super) fn is_sampled(&self) -> bool {
        self.flags & SAMPLED != 0
    }

    /// Writes both fields in the place of those that are there.
    pub(super) fn write(&self, fields: &mut HeaderMap) {
        let mut text = Vec::with_capacity(PARENT_BYTES);
        text.extend_from_slice(b"00-");
        push_hex(&mut text, &self.trace);
        text.push(b'-');
        push_hex(&mut text, &self.parent);
        text.push(b'-');
        push_hex(&mut text, &[self.flags]);
        // Digits and dashes are always a value.
        if let Ok(value) = HeaderValue::from_bytes(&text) {
            fields.insert(TRACEPARENT, value);
        }
        match &self.state {
            Some(state) => _ = fields.insert(TRACESTATE, state.clone()),
            None => _ = fields.remove(TRACESTATE),
        }
    }
}

/// Trace, parent and flags of `version-trace-parent-flags` (section 3.2).
fn parse_parent(text: &[u8]) -> Option<([u8; 16], [u8; 8], u8)> {
    let (head, rest) = text.split_at_checked(PARENT_BYTES)?;
    let [version] = hex(&head[..2])?;
    let dashes = [2, 35, 52].iter().all(|place| head[*place] == b'-');
    // Later versions may have more behind it, after a dash.
    let has_end = match version {
        0 => rest.is_empty(),
        0xff => false,
        _ => rest.is_empty() || rest[0] == b'-',
    };
    let (trace, parent): ([u8; 16], [u8; 8]) = (hex(&head[3..35])?, hex(&head[36..52])?);
    let [flags] = hex(&head[53..55])?;
    (dashes && has_end && trace != [0; 16] && parent != [0; 8]).then_some((trace, parent, flags))
}

/// The list of vendors' members (section 3.3), as one value. `None` if there is none, or if it isn't valid: then it isn't passed on.
fn parse_state<'a>(values: impl Iterator<Item = &'a [u8]>) -> Option<HeaderValue> {
    let joined = values.collect::<Vec<_>>().join(&b","[..]);
    if joined.len() > STATE_BYTES_MAX {
        return None;
    }
    let members = joined.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty());
    let mut keys = Vec::new();
    for member in members {
        let at = member.iter().position(|byte| *byte == b'=')?;
        let (key, value) = (&member[..at], &member[at + 1..]);
        if !is_key(key) || !is_value(value) || keys.contains(&key) || keys.len() == MEMBERS_MAX {
            return None;
        }
        keys.push(key);
    }
    if keys.is_empty() { None } else { HeaderValue::from_bytes(joined.trim_ascii()).ok() }
}

fn is_key(key: &[u8]) -> bool {
    let is_part = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-' | b'*' | b'/' | b'@');
    let is_one = memchr::memchr_iter(b'@', key).count() <= 1;
    key.len() <= 256 && is_one && key.first().is_some_and(u8::is_ascii_alphanumeric) && key.iter().all(is_part)
}

fn is_value(value: &[u8]) -> bool {
    (1..=256).contains(&value.len()) && value.iter().all(|byte| matches!(byte, b' '..=b'~') && *byte != b'=')
}

/// Reads digits in lower case, which is the only one that is valid.
fn hex<const COUNT: usize>(digits: &[u8]) -> Option<[u8; COUNT]> {
    let digit = |byte: u8| match byte {
        b'0'..=b'9' => Some(byte - b'0'),
        b'a'..=b'f' => Some(byte - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; COUNT];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = (digit(pair[0])? << 4) | digit(pair[1])?;
    }
    Some(bytes)
}

pub(super) fn push_hex(text: &mut Vec<u8>, bytes: &[u8]) {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    for byte in bytes {
        text.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn context(parents: &[&str], states: &[&str]) -> Option<Context> {
        Context::of(parents.iter().map(|text| text.as_bytes()), states.iter().map(|text| text.as_bytes()))
    }

    fn written(context: &Context) -> (String, Option<String>) {
        let mut fields = HeaderMap::from_iter([(TRACESTATE, HeaderValue::from_static("old=1"))]);
        context.write(&mut fields);
        let text = |name| fields.get(name).map(|value: &HeaderValue| value.to_str().unwrap().to_owned());
        (text(TRACEPARENT).unwrap(), text(TRACESTATE))
    }

    #[test]
    fn a_valid_context_is_passed_on_as_it_came() {
        let found = context(&[PARENT], &["a=1,b@c=x y", "d=2"]).unwrap();
        assert_eq!(written(&found), (PARENT.to_owned(), Some("a=1,b@c=x y,d=2".to_owned())));
        let unsampled = context(&["00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"], &[]).unwrap();
        assert_eq!(written(&unsampled).1, None);
        assert!(found.is_sampled() && !unsampled.is_sampled());
        let spanned = unsampled.with_span([1; 8]);
        assert_eq!(written(&spanned).0, "00-0af7651916cd43dd8448eb211c80319c-0101010101010101-01");
    }

    #[test]
    fn later_versions_are_read_as_far_as_they_are_known() {
        let later = PARENT.replacen("00", "cc", 1);
        for text in [later.clone(), later.clone() + "-what", later.replace("-01", "-ff")] {
            let found = context(&[&text], &[]).unwrap();
            assert!(written(&found).0.starts_with("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"), "{text}");
        }
        assert!(context(&[&(later + "x")], &[]).is_none());
    }

    #[test]
    fn an_invalid_parent_is_none() {
        for text in [
            "",
            "00",
            &PARENT.to_uppercase(),
            &PARENT.replacen("00", "ff", 1),
            &PARENT.replacen("00", "0g", 1),
            &format!("{PARENT}-x"),
            &PARENT[..54],
            &PARENT.replace("-01", ".01"),
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        ] {
            assert_eq!(context(&[text], &["a=1"]), None, "{text}");
        }
        assert_eq!(context(&[PARENT, PARENT], &[]), None, "two of them");
    }

    #[test]
    fn an_invalid_state_is_dropped_and_the_parent_is_kept() {
        let many = (0..33).map(|number| format!("k{number}=1")).collect::<Vec<_>>().join(",");
        for state in ["a", "A=1", "a=1,a=2", "=1", "a=", "a=\u{fc}", "a=b=c", &many, &format!("a={}", "x".repeat(257))]
        {
            assert_eq!(written(&context(&[PARENT], &[state]).unwrap()).1, None, "{state}");
        }
        assert_eq!(written(&context(&[PARENT], &["", " , "]).unwrap()).1, None);
        assert_eq!(written(&context(&[PARENT], &["a=1,,b=2"]).unwrap()).1.as_deref(), Some("a=1,,b=2"));
    }
}
