//! Workflows: those that there are, what a run would be, and what a resume would do.

use serde_json::{Map, Value};

use super::Harness;
use call::agents::Usual;
use protocol::error::{Code, Error, Result};
use protocol::event::{Planned, Resumed, SessionId, WorkflowEvent};
use storage::log;
use workflow::run::{Run, Still};
use workflow::{Checked, Fault, Journal, Known, Rehearsed, WorkflowFile, WorkflowPlan};

impl Harness {
    /// Workflows: pixir's own, the user's, those of skills and of the workspace.
    pub fn workflows(&self) -> Vec<WorkflowFile> {
        self.services.library.workflows().0
    }

    /// The workflow with this name, whether it can be run or not.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, with the nearest name.
    pub fn workflow(&self, name: &str) -> Result<WorkflowFile> {
        self.services.library.workflows().find(name).cloned()
    }

    /// The workflow with this name, if the user trusts it.
    ///
    /// # Errors
    /// `WORKFLOW_NOT_FOUND`, `WORKSPACE_UNTRUSTED`, `READ_FAILED`.
    pub fn usable_workflow(&self, name: &str) -> Result<WorkflowFile> {
        self.services.library.workflows().usable(name).cloned()
    }

    /// All faults of a workflow.
    pub fn faults_of_workflow(&self, text: &str, name: &str) -> Vec<Fault> {
        Checked::read(text, name, &Known::to_look(&self.services.library)).err().unwrap_or_default()
    }

    /// A workflow as the data that an Input takes.
    ///
    /// # Errors
    /// `WORKFLOW_INVALID` when it is neither TOML nor JSON.
    pub fn workflow_as_data(&self, text: &str) -> Result<Value> {
        workflow::as_data(text).map_err(|faults| workflow::invalid("workflow", &faults))
    }

    /// What a run of this workflow would be. Nothing is done.
    ///
    /// # Errors
    /// `WORKFLOW_INVALID` with all faults; `NOT_FOUND` for a step that it does not have.
    pub fn plan_workflow(
        &self,
        text: &str,
        name: &str,
        params: &Map<String, Value>,
        until: Option<&str>,
    ) -> Result<WorkflowPlan> {
        let known = Known::to_run(&self.services.library);
        let checked = Checked::read(text, name, &known).map_err(|faults| workflow::invalid(name, &faults))?;
        let params = checked.params(params)?;
        let until = until.map(|id| checked.index_of(id)).transpose()?;
        Ok(WorkflowPlan::of(&checked, &params, until, &self.usual()))
    }

    /// What a resume of the run in this Session would do about each step. Nothing is done. Blocks while it reads the Log.
    ///
    /// # Errors
    /// `NOT_FOUND` when no workflow was run there; `WORKFLOW_INVALID`, and those of the Log.
    pub fn rehearse_workflow(
        &self,
        id: &SessionId,
        decisions: Resumed,
        edited: Option<&str>,
    ) -> Result<impl Future<Output = Vec<Rehearsed>>> {
        let (mut journal, planned, checked) = self.run_to_resume(id, edited)?;
        let given = checked.known_params(&planned.params);
        let params = checked.params(&given)?;
        checked.has_steps(&decisions)?;
        // What a resume records of agents that were cut off, it knows from their Logs.
        for (name, session) in journal.agents_without_end() {
            if let Some(end) = agents::end_in_log(&self.services, &name, &session) {
                journal.agents.insert(session, end);
            }
        }
        journal.take(&WorkflowEvent::Resumed(Box::new(decisions)).into());
        let until = planned.until.as_deref().map(|id| checked.index_of(id)).transpose()?;
        let run = Run { id: id.to_string(), checked, params, until, journal, edited: None };
        let still = Still { ctx: self.tool_context(""), registry: self.services.registry.clone() };
        Ok(async move { run.rehearse(&still).await })
    }

    /// Whether the run in this Session has steps that an agent does, so that a model is needed to go on with it. Blocks while
    /// it reads the Log.
    ///
    /// # Errors
    /// As for [`Harness::rehearse_workflow`].
    pub fn run_has_agents(&self, id: &SessionId, edited: Option<&str>) -> Result<bool> {
        let (_, _, checked) = self.run_to_resume(id, edited)?;
        Ok(checked.steps.iter().any(|it| it.agent.is_some()))
    }

    fn run_to_resume(&self, id: &SessionId, edited: Option<&str>) -> Result<(Journal, Planned, Checked)> {
        let entries = log::read(&self.services.place(id).log())?.entries;
        let journal = Journal::fold(&entries);
        let Some(planned) = journal.planned.clone() else {
            let message = "no workflow was run in this session";
            return Err(Error::new(Code::NotFound, message, "a session that a workflow was run in"));
        };
        let checked = match edited {
            Some(text) => Checked::read(text, &planned.name, &Known::to_run(&self.services.library)),
            None => Checked::of_log(&planned, self.roles()),
        };
        let checked = checked.map_err(|faults| workflow::invalid(&planned.name, &faults))?;
        Ok((journal, planned, checked))
    }

    /// What agents may use, and what it costs, with the model of new Sessions.
    fn usual(&self) -> Usual {
        let providers = self.services.providers.now();
        self.services.usual((&providers.provider, &providers.model), &self.roles())
    }
}
