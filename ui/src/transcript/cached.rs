//! What the layout of the transcript holds in memory, for the HUD.

use super::Transcript;

impl Transcript {
    /// The cells, rows and bytes of laid-out text that are cached. It walks the cache.
    pub(crate) fn cached(&self) -> (usize, u64, u64) {
        let (mut rows, mut bytes) = (0, 0);
        for (_, laid_out) in self.layouts.values() {
            rows += laid_out.len() as u64;
            for row in laid_out.iter() {
                let spans = &row.line.spans;
                let text: usize = spans.iter().map(|span| span.content.len()).sum();
                bytes += (size_of_val(row) + size_of_val(spans.as_slice()) + text) as u64;
            }
        }
        (self.layouts.len(), rows, bytes)
    }
}
