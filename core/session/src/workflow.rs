//! Runs of workflows in this Session: how one begins, and how it goes on.

use serde_json::{Map, Value};

use super::Session;
use call::off_loop;
use context::roles::Role;
use conversation::history::Settings;
use protocol::error::{Code, Error, Result};
use protocol::event::{Planned, Resumed, Status, WorkflowEvent};
use protocol::input::{Accepted, WorkflowOrder};
use turn::Turn;
use workflow::run::{Run, journal_of};
use workflow::{Checked, Known, WorkflowPlan, invalid};

impl Session {
    /// Begins a run.
    pub(super) async fn run_workflow(&mut self, input: &'static str, order: WorkflowOrder) -> Result<Accepted> {
        let WorkflowOrder { name, graph, params, until, approved } = order;
        let library = std::sync::Arc::clone(&self.services.library);
        let (checked, roles) = off_loop(move || {
            let workflows = library.workflows();
            let known = Known::to_run(&library);
            let (text, name) = match (graph, name) {
                (Some(graph), name) => (graph.to_string(), name.unwrap_or_else(|| "workflow".to_owned())),
                (None, Some(name)) => (workflows.usable(&name)?.text.clone(), name),
                (None, None) => {
                    let message = "there is neither a name nor a graph";
                    return Err(Error::new(Code::InvalidArgs, message, "`name` or `graph`"));
                }
            };
            let checked = Checked::read(&text, &name, &known).map_err(|faults| invalid(&name, &faults))?;
            Ok((checked, known.roles))
        })
        .await?;
        checked.is_approved(approved.as_deref())?;
        let params = checked.params(&params)?;
        let planned = self.plan_of(&checked, &params, until.clone(), &roles)?;
        self.carry_out(input, WorkflowEvent::Planned(Box::new(planned)), checked, params, until, None).await
    }

    /// Goes on with the run of this Session.
    pub(super) async fn resume_workflow(
        &mut self,
        input: &'static str,
        decisions: Resumed,
        graph: Option<Value>,
    ) -> Result<Accepted> {
        let Some(planned) = journal_of(&self.history).planned else {
            let message = "this session has no run of a workflow";
            return Err(Error::new(Code::NotFound, message, "a session that a workflow was run in"));
        };
        let library = std::sync::Arc::clone(&self.services.library);
        let (before, edited) = (planned.clone(), graph.is_some());
        let (checked, roles) = off_loop(move || {
            let name = before.name.clone();
            let roles = library.roles();
            let checked = match graph {
                Some(graph) => {
                    let known = Known::to_run(&library);
                    Checked::read(&graph.to_string(), &name, &known)
                }
                None => Checked::of_log(&before, roles.clone()),
            };
            Ok((checked.map_err(|faults| invalid(&name, &faults))?, roles))
        })
        .await?;
        let params = checked.params(&checked.known_params(&planned.params))?;
        checked.has_steps(&decisions)?;
        let until = planned.until.clone();
        let edited = edited.then(|| self.plan_of(&checked, &params, until.clone(), &roles)).transpose()?;
        self.carry_out(input, WorkflowEvent::Resumed(Box::new(decisions)), checked, params, until, edited).await
    }

    async fn carry_out(
        &mut self,
        input: &'static str,
        first: WorkflowEvent,
        mut checked: Checked,
        params: Map<String, Value>,
        until: Option<String>,
        edited: Option<Planned>,
    ) -> Result<Accepted> {
        let until = until.map(|id| checked.index_of(&id)).transpose()?;
        if self.services.agents.is_none() && checked.steps.iter().any(|it| it.agent.is_some()) {
            let message = "this session may start no agents, and the workflow has steps that need one";
            return Err(Error::new(Code::InvalidArgs, message, "set agents.depth to 1 or more"));
        }
        let limits = &mut checked.graph.limits;
        if let Some(deadline) = self.services.options.limits.deadline {
            limits.seconds = Some(limits.most_seconds().min(deadline.as_secs().max(1)));
        }
        let (tokens, cost) = (limits.tokens, limits.cost);
        let mut journal = journal_of(&self.history);
        journal.take(&first.clone().into());
        let run = Run { id: self.id.to_string(), checked, params, until, journal, edited };
        let bound = move |turn: &mut Turn| turn.bound(tokens, cost);
        self.begin_bounded(input, first.into(), bound, |turn| turn.run_workflow(run), Status::Working).await
    }

    /// What the Log keeps of a workflow and its own parameters.
    fn plan_of(
        &self,
        checked: &Checked,
        params: &Map<String, Value>,
        until: Option<String>,
        roles: &[Role],
    ) -> Result<Planned> {
        let last = until.as_deref().map(|id| checked.index_of(id)).transpose()?;
        let Settings { provider, model, .. } = &self.history.settings;
        let usual = self.services.usual((provider, model), roles);
        let plan = WorkflowPlan::of(checked, params, last, &usual);
        let is_own = |name: &String| !checked.inner_params.contains_key(name);
        Ok(Planned {
            name: checked.graph.name.clone(),
            graph: checked.source.clone(),
            uses: checked.uses.clone(),
            hash: checked.hash.clone(),
            params: params.iter().filter(|(name, _)| is_own(name)).map(|(a, b)| (a.clone(), b.clone())).collect(),
            until,
            most_cost: plan.most_cost,
        })
    }
}
