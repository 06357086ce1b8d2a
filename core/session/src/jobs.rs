//! Background jobs: their list, their end on request, and what they wrote to protected files.

use super::Session;
use door::Reply;
use protocol::error::{Code, Error, NoticeCode, Result};
use protocol::event::{Live, Severity};
use protocol::input::Accepted;
use protocol::remedy::Remedy;

/// The name of `Input::StopJob`.
const STOP_JOB: &str = "stop_job";

/// The answer to `Input::StopJob`.
pub(super) struct Stopped {
    reply: Option<Reply>,
    outcome: Result<Accepted>,
}

impl Session {
    /// Tells what was written to protected files while jobs ran, since the last call.
    pub(super) async fn close_job_guards(&mut self) {
        let ctx = self.services.context("", self.history.settings.toolset, false);
        let attended = self.services.options.can_ask;
        let told = task::spawn_blocking(move || ctx.job_guards.close(&ctx, attended)).await;
        for text in told.unwrap_or_default() {
            tracing::warn!("{text}");
            self.notice(Severity::Warning, NoticeCode::FileProtected.name(), text);
        }
    }

    pub(super) fn stop_job(&mut self, job: u32, reply: Option<Reply>) {
        let jobs = self.services.jobs.clone();
        self.stopping_jobs.spawn(task::boxed(async move {
            let outcome = match jobs {
                Some(jobs) => jobs.stop(job).await.map(|_| Accepted::default()),
                None => Ok(Accepted::default()),
            };
            Stopped { reply, outcome }
        }));
    }

    pub(super) fn on_stopped_job(&mut self, stopped: std::result::Result<Stopped, tokio::task::JoinError>) {
        match stopped {
            Ok(Stopped { reply, outcome }) => self.answer_input(STOP_JOB, reply, outcome),
            Err(e) => {
                let error =
                    Error::new(Code::CommandFailed, format!("stop a job: {e}"), Remedy::Retry { after_s: None });
                self.refuse(STOP_JOB, &error);
            }
        }
    }

    /// Publishes the jobs, with the ports on which they listen now.
    pub(super) async fn list_jobs(&mut self) -> Accepted {
        if let Some(jobs) = self.services.jobs.clone()
            && let Err(e) = task::spawn_blocking(move || jobs.look_at_ports()).await
        {
            tracing::warn!("look at the ports of jobs: {e}");
        }
        self.publish_jobs();
        Accepted::default()
    }

    pub(super) fn publish_jobs(&mut self) {
        if let Some(jobs) = &self.services.jobs {
            let live = Live::JobsChanged { jobs: jobs.list() };
            self.publish(live);
        }
    }
}
