//! What a call asks of its Turn: the rules in force, the user's decision, and the files that others hold.

use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::future::BoxFuture;

use super::{Report, Turn};
use call::{AgentPlace, Authority, Call, Gone, Permissions};
use protocol::call_info::CallInfo;
use protocol::event::{Approval, Live, PermissionDecision, Preview, Rule, Scope, Severity, WaitsOn};
use protocol::input::{Decision, RuleReach};

impl Authority for Turn {
    fn prepared<'a>(
        &'a self,
        call: &'a Call,
        info: &'a CallInfo,
        preview: &'a Preview,
    ) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move {
            let (info, preview) = (Box::new(info.clone()), Box::new(preview.clone()));
            self.live(Live::CallPrepared { call_id: call.id.clone(), info, preview }).await
        })
    }

    fn permissions(&self) -> BoxFuture<'_, Result<Permissions, Gone>> {
        Box::pin(async move {
            let Permissions { mode, rules: denied, bounds } = self.ask_session(Report::Permissions).await?;
            // The small file is read each time, so that a rule that was revoked elsewhere no longer counts. As for a line
            // of the Log, that takes less than a switch to another thread.
            let saved = catch_unwind(AssertUnwindSafe(|| self.services.rules_in_force()));
            // Without an answer anything may be denied.
            let saved = saved.unwrap_or_else(|_| vec![Rule::Deny(Scope::Unknown)]);
            Ok(Permissions { mode, rules: saved.into_iter().chain(denied).collect(), bounds })
        })
    }

    fn keep<'a>(&'a self, rule: &'a Rule, holds: RuleReach, seconds: Option<u64>) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move {
            let (services, id, rule) = (self.services.clone(), self.id.clone(), rule.clone());
            match call::off_loop(move || services.save_rule(rule, holds, seconds, &id)).await {
                Ok(()) => Ok(()),
                Err(error) => {
                    let message =
                        format!("the decision counts for this call, but the rule was not saved: {}", error.message);
                    let (severity, code) = (Severity::Warning, error.code.name().to_owned());
                    self.live(Live::Notice { severity, code, message, remedy: Some(error.remedy) }).await
                }
            }
        })
    }

    fn approve(&self, approval: Approval) -> BoxFuture<'_, Result<Option<Decision>, Gone>> {
        Box::pin(async move {
            if !self.services.options.can_ask {
                return Ok(None);
            }
            // Another agent may run while the user decides.
            let aside = self.services.agent_place.as_ref().map(AgentPlace::step_aside);
            let decision = self.ask_session(|reply| Report::RequestApproval { approval, reply }).await?;
            drop(aside);
            self.take_place_again().await?;
            Ok(decision)
        })
    }

    fn waits_for_lease<'a>(&'a self, holder: Option<&'a str>) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move { self.waits(holder.map(|holder| WaitsOn::Lease { holder: holder.to_owned() })).await })
    }

    fn record(&self, decision: PermissionDecision) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async move { Turn::record(self, decision).await })
    }
}
