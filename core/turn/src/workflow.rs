//! A Turn that a scheduler carries out in place of a model: a run of a workflow.

use futures_util::future::BoxFuture;

use super::{Outcome, Report, Turn};
use call::leases::Holder;
use call::{Answers, Call, Context, Done, Gone, InTurn, Prepared, Registry};
use protocol::error::Error;
use protocol::event::{Fact, Form, Question, Toolset};
use provider::budget::Budget;
use workflow::run::{Hands, Run, RunEnd};

impl Turn {
    /// Carries out a run.
    pub async fn run_workflow(self, run: Run) {
        let Ok(RunEnd { status, error, details }) = run.carry_out(&self).await else { return };
        let _ = self.reports.send(Report::Done(Outcome { status, error, details })).await;
    }

    /// What a run draws from is bounded by its graph too.
    pub fn bound(&mut self, tokens: Option<u64>, cost: Option<f64>) {
        let own = &self.services.options.limits;
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let cost = own.max_cost_usd.into_iter().chain(cost).reduce(f64::min);
        self.budgets[0] = Budget::new(least(own.max_tokens, tokens), cost);
    }
}

impl Hands for Turn {
    fn fact(&self, fact: Fact) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async move { self.record(fact).await })
    }

    fn ask<'a>(&'a self, id: &'a str, question: Question) -> BoxFuture<'a, Result<Option<Answers>, Gone>> {
        Box::pin(async move {
            let form = Form { call_id: Form::call_of_step(id), questions: vec![question], agent: None };
            // A form that is closed without an answer leaves the step waiting.
            Ok(self.reports.ask(|reply| Report::OpenForm { form, reply }).await.unwrap_or_default())
        })
    }

    fn call<'a>(&'a self, call: &'a Call, prepared: Prepared, ctx: Context) -> BoxFuture<'a, Result<Done, Gone>> {
        Box::pin(async move {
            let registry = &self.services.registry;
            self.attend(call, ctx, InTurn::default(), |ctx| {
                call::carry_out_prepared(registry, call, prepared, ctx, self)
            })
            .await
        })
    }

    fn context(&self, call_id: &str) -> Context {
        let ctx = self.services.context(call_id, Toolset::Both, false);
        Context { holder: Holder { is_run: true, ..ctx.holder }, ..ctx }
    }

    fn registry(&self) -> &Registry {
        &self.services.registry
    }

    fn can_ask(&self) -> bool {
        self.services.options.can_ask
    }

    fn budget(&self) -> Result<(), Error> {
        self.budgets.iter().try_for_each(Budget::check)
    }
}
