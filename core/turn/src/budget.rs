//! What the requests of a Turn may spend: taken before each is sent, deducted after it, and the question to the user for more.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::model::UsageSource;
use super::{Report, Step, Turn};
use call::{AgentPlace, Gone};
use protocol::error::Error;
use protocol::event::{Cost, Form, ProviderUsage, Question, Usage, WaitsOn};
use provider::budget::{Budget, Granted, Reserved};

/// The answers where the tokens of the agents are used up.
const GO_ON: &str = "yes: as many tokens again";
const STOP: &str = "no: they end here";
/// What the Log of the agent that asked, and its model, have of the first answer.
const RAISED: &str = "The user lets the agents of this turn use as many tokens again.";

impl Turn {
    /// Whether another request may be sent. Where a budget is used up that the user can raise, the user is asked.
    pub(super) async fn check_budgets(&self) -> Result<Result<(), Error>, Gone> {
        for budget in &self.budgets {
            if let Err(error) = self.unless_raised(budget, Budget::check).await? {
                return Ok(Err(error));
            }
        }
        Ok(Ok(()))
    }

    /// Sets the tokens of a request aside in the budgets that the Session shares with others.
    pub(super) fn reserve(&self, step: &Step) -> Result<Vec<Reserved>, Error> {
        let tokens = step.tokens();
        self.services.budgets.iter().map(|budget| budget.reserve(tokens)).collect()
    }

    /// Sets the tokens of a request aside, and asks the user where a budget that can be raised does not have them.
    pub(super) async fn reserve_or_ask(&self, step: &Step) -> Result<Result<Vec<Reserved>, Error>, Gone> {
        let tokens = step.tokens();
        let mut all = Vec::new();
        for budget in self.services.budgets.iter() {
            match self.unless_raised(budget, |budget| budget.reserve(tokens)).await? {
                Ok(reserved) => all.push(reserved),
                Err(error) => return Ok(Err(error)),
            }
        }
        Ok(Ok(all))
    }

    /// Takes something from a budget. If it does not have that and the user raises it, tries again.
    async fn unless_raised<T>(
        &self,
        budget: &Budget,
        take: impl Fn(&Budget) -> Result<T, Error>,
    ) -> Result<Result<T, Error>, Gone> {
        loop {
            let refused = match take(budget) {
                Ok(taken) => return Ok(Ok(taken)),
                Err(refused) => refused,
            };
            if !self.services.options.can_ask {
                return Ok(Err(refused));
            }
            // Another Session of the tree may be asking already.
            let (used, most) = budget.used();
            self.waits(Some(WaitsOn::Budget { used, most })).await?;
            let aside = self.services.agent_place.as_ref().map(AgentPlace::step_aside);
            let granted = budget.granted().await;
            let answer = match granted {
                None => Ok(Err(refused)),
                Some(mut granted) => match (take(budget), *granted) {
                    (Ok(taken), _) => Ok(Ok(taken)),
                    (Err(refused), Granted::Refused) => Ok(Err(refused)),
                    (Err(refused), Granted::Ask) => {
                        // Another Session of the tree may have used it up and not told the user yet.
                        budget.tell_if_low();
                        if self.ask_for_more(budget).await? {
                            budget.raise();
                            // The Log alone says who let them spend more.
                            self.tell("budget", RAISED).await?;
                            continue;
                        }
                        *granted = Granted::Refused;
                        Ok(Err(refused))
                    }
                },
            };
            drop(aside);
            self.waits(None).await?;
            self.take_place_again().await?;
            return answer;
        }
    }

    /// Asks the user whether the agents of the running Turn may use more tokens.
    async fn ask_for_more(&self, budget: &Budget) -> Result<bool, Gone> {
        let (used, most) = budget.used();
        let question = Question {
            question: format!("The agents of this turn have used {used} of {most} tokens. May they go on?"),
            options: [GO_ON, STOP].map(str::to_owned).to_vec(),
            multiple: false,
            only_options: false,
        };
        let number = self.next_number.fetch_add(1, Ordering::Relaxed);
        let form = Form { call_id: format!("budget-{number}"), questions: vec![question], agent: None };
        let answers =
            self.reports.ask(|reply| Report::OpenForm { form, reply }).await.ok().flatten().unwrap_or_default();
        Ok(answers.first().is_some_and(|answer| answer.iter().any(|it| it == GO_ON)))
    }

    /// Deducts a request. The user is told once when the tokens of the agents run low.
    pub(super) fn spend(&self, usage: Usage, cost: Cost) {
        for budget in &self.budgets {
            budget.spend(usage, cost);
            budget.tell_if_low();
        }
    }

    /// What the requests of the Turn draw from; its children draw from it too.
    pub fn budgets(&self) -> Arc<[Budget]> {
        self.budgets.as_slice().into()
    }

    /// Draws from this budget instead of one of its own.
    pub fn draw_from(&mut self, budget: Budget) {
        self.budgets[0] = budget;
    }

    pub(super) async fn record_usage(
        &self,
        step: &Step,
        usage: Usage,
        usd: Option<f64>,
        source: UsageSource,
    ) -> Result<(), Gone> {
        let (provider, model) = (step.request.provider.clone(), step.request.model.clone());
        let estimated = source == UsageSource::Estimated;
        let cost = step.facts.cost(&usage, usd);
        let cost = Cost { estimated: cost.estimated || estimated, ..cost };
        self.spend(usage, cost);
        self.record(ProviderUsage { provider, model, usage, estimated, cost }).await
    }
}
