//! The background jobs of the Session.

use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent};
use pixir_core::Input;
use pixir_core::event::{JobState, JobStatus};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::{Notification, Outcome, Paint, centred, panel};
use crate::render::text::{fit, visible};

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

    pub(crate) fn key(&mut self, key: KeyEvent) -> Outcome {
        match key.code {
            KeyCode::Esc | KeyCode::Char('q') | KeyCode::Enter => return Outcome::Close,
            KeyCode::Up | KeyCode::Char('k') => self.scroll(-1),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(1),
            KeyCode::Char('x') => {
                let running = self.jobs.get(self.chosen).filter(|job| job.status == JobStatus::Running);
                return running.map_or(Outcome::Stay, |job| Outcome::send(Input::StopJob { job: job.id }));
            }
            _ => {}
        }
        Outcome::Stay
    }

    pub(crate) fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let rows = u16::try_from(self.jobs.len().clamp(1, 16)).unwrap_or(16);
        let inner = panel(canvas, centred(area, 90, rows + 2), "Background jobs", "x stop · ↑↓ · Esc close", theme);
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
