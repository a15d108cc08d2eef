//! A purge request as a line of the fleet's log: JSON with the subjects in the operator's words. Each node finds its own targets.

use eyewall::Purge as Kind;
use serde::{Deserialize, Serialize};

use super::{PurgeRequest, Subject};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    subjects: Vec<Subject>,
    soft: bool,
}

impl PurgeRequest {
    /// A soft purge of everything.
    pub(crate) fn everything_softly() -> Self {
        Self { subjects: vec![Subject::Everything], kind: Kind::Soft, counts: false, waits: false }
    }

    /// The request for other nodes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let line = Line { subjects: self.subjects.clone(), soft: self.kind == Kind::Soft };
        // Texts and lists can always be written.
        serde_json::to_vec(&line).unwrap_or_default()
    }

    /// The request of another node.
    ///
    /// # Errors
    /// A later version wrote it, or nobody of the fleet.
    pub(crate) fn decode(line: &[u8]) -> serde_json::Result<Self> {
        let Line { subjects, soft } = serde_json::from_slice(line)?;
        let kind = if soft { Kind::Soft } else { Kind::Hard };
        Ok(Self { subjects, kind, counts: false, waits: false })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subject_reaches_other_nodes_as_it_is() {
        let text = |text: &str| text.to_owned();
        let subjects = vec![
            Subject::Url(text("http://a/\u{e4}")),
            Subject::Tag { tag: text("post-7"), host: None },
            Subject::Tag { tag: text("post-7"), host: Some(text("a:81")) },
            Subject::Prefix(text("http://a/shop/")),
            Subject::Host(text("a")),
            Subject::Everything,
        ];
        for kind in [Kind::Hard, Kind::Soft] {
            let sent = PurgeRequest { subjects: subjects.clone(), kind, counts: true, waits: true };
            let received = PurgeRequest::decode(&sent.encode()).unwrap();
            assert_eq!((received.subjects, received.kind), (subjects.clone(), kind));
        }
        for line in ["", "{}", r#"{"subjects":[{"new":"a"}],"soft":true}"#, r#"{"subjects":[],"soft":true,"later":1}"#]
        {
            assert!(PurgeRequest::decode(line.as_bytes()).is_err(), "{line}");
        }
    }
}
