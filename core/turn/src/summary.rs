//! The request for the summary of a compaction, which a Turn makes before its next one, or the user asks for.

use super::{DeltaCoalescer, Reports};
use call::Gone;
use context::compaction::SummaryRequest;
use protocol::event::{Live, ProviderUsage, Severity};

/// Asks the model once, and records the compaction: with the model's summary, or without it if the model fails. Returns
/// what the request used.
pub async fn summarize(reports: &Reports, request: SummaryRequest) -> Result<Option<ProviderUsage>, Gone> {
    let relay = DeltaCoalescer::new(reports);
    let (made, usage) = relay.during(request.ask(&mut |chunk| relay.take_note(chunk))).await;
    if let Some(usage) = &usage {
        reports.record(usage.clone()).await?;
    }
    match made {
        Ok(compaction) => reports.record(compaction).await?,
        Err(error) => {
            let message = format!(
                "the model could not summarize the conversation ({}); pixir made the summary without it",
                error.message
            );
            let code = error.code.name().to_owned();
            reports.live(Live::Notice { severity: Severity::Warning, code, message, remedy: None }).await?;
            reports.record(request.without_model(&error)).await?;
        }
    }
    Ok(usage)
}
