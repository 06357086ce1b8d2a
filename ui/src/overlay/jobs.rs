//! The background jobs of the Session.

use crate::terminal::canvas::Canvas;
use pixir_core::Input;
use pixir_core::event::{JobState, JobStatus};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Notification, Outcome, Paint, dialog, panel};
use crate::input::action::Action;
use crate::render::text::{fit, visible};

/// The rows of the dialog, its frame included.
const ROWS: u16 = 18;

#[derive(Debug)]
pub(crate) struct JobsView {
    jobs: Vec<JobState>,
    chosen: usize,
}

impl JobsView {
    pub(crate) fn new(jobs: &[JobState]) -> JobsView {
        JobsView { jobs: jobs.to_vec(), chosen: 0 }
    }
}

impl JobsView {
    pub(crate) fn notify(&mut self, notification: Notification<'_>) {
        if let Notification::Jobs(jobs) = notification {
            self.jobs = jobs.to_vec();
        }
    }

    pub(crate) fn scroll(&mut self, by: isize) {
        self.chosen = self.chosen.saturating_add_signed(by).min(self.jobs.len().saturating_sub(1));
    }

    pub(crate) fn act(&mut self, action: Action) -> Outcome {
        match action {
            Action::CloseOverlay | Action::Choose => return Outcome::Close,
            Action::OverlayUp => self.scroll(-1),
            Action::OverlayDown => self.scroll(1),
            Action::StopJob => {
                let running = self.jobs.get(self.chosen).filter(|job| job.status == JobStatus::Running);
                return running.map_or(Outcome::Stay, |job| Outcome::send(Input::StopJob { job: job.id }));
            }
            _ => {}
        }
        Outcome::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let keys = paint.hints(&[(Action::StopJob, "stop"), (Action::CloseOverlay, "close")]);
        let inner = panel(canvas, dialog(area, 90, ROWS), "Background jobs", &keys, theme);
        let columns = usize::from(inner.width);
        if self.jobs.is_empty() {
            canvas.line(Line::styled(fit("no background jobs", columns), theme.dim()), inner);
            return;
        }
        let top = (self.chosen + 1).saturating_sub(usize::from(inner.height));
        for (y, (row, job)) in (inner.y..inner.bottom()).zip(self.jobs.iter().enumerate().skip(top)) {
            let (status, style) = match job.status {
                JobStatus::Running => ("running".to_owned(), theme.fg(theme.accent)),
                JobStatus::Ended { exit_code: 0 } => ("ended".to_owned(), theme.dim()),
                JobStatus::Ended { exit_code } => (format!("exit {exit_code}"), theme.fg(theme.warning)),
                JobStatus::Stopped => ("stopped".to_owned(), theme.dim()),
            };
            let line = Line::from(vec![
                Span::styled(format!("{:>2} ", job.id), theme.dim()),
                Span::styled(format!("{status:<8} "), style),
                Span::styled(fit(&visible(&job.command), columns.saturating_sub(13)), theme.fg(theme.text)),
            ]);
            let at = Rect { y, height: 1, ..inner };
            canvas.tint(at, if row == self.chosen { theme.selected() } else { theme.base() });
            canvas.line(line, at);
        }
    }
}
