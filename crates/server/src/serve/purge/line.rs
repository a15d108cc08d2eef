//! A purge request as a line of the fleet's log, with the subjects in the operator's words. Each node finds its own targets.

use eyewall_fleet_agent::words::Purging;

use super::PurgeRequest;

impl PurgeRequest {
    /// The request for other nodes.
    pub(crate) fn encode(&self) -> Vec<u8> {
        Purging::new(self.subjects.clone(), self.kind).encode()
    }

    /// The request of another node.
    ///
    /// # Errors
    /// A later version wrote it, or nobody of the fleet.
    pub(crate) fn decode(line: &[u8]) -> serde_json::Result<Self> {
        let purging = Purging::decode(line)?;
        Ok(Self { kind: purging.kind(), subjects: purging.subjects, counts: false, waits: false, previews: false })
    }
}
