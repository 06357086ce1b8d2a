//! The background jobs of the Session, with the end of what each has printed.

use std::path::Path;
use std::time::Duration;

use pixir_core::Input;
use pixir_core::event::{JobState, JobStatus};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::panes;
use super::{Effect, Load, Notification, Outcome, Paint, Press, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::render::figures;
use crate::render::text::{fit, fit_path, from_home, plain, visible, width, wrap_lines};
use crate::terminal::canvas::Canvas;

/// The size of the dialog.
const SIZE: (u16, u16) = (120, 26);

/// The most lines of a job's output that are kept for the screen.
const MOST_LINES: usize = 200;

/// The end of a job's output.
#[derive(Debug, Clone)]
struct JobTail {
    job: u32,
    lines: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct JobsView {
    jobs: Vec<JobState>,
    list: ListView,
    tail: Option<JobTail>,
    /// The user is asked whether the chosen job is to be stopped.
    is_confirming: bool,
    /// The time when the jobs were last listed, since 1970.
    now: Duration,
    preview_area: Rect,
    /// Lines of the output below the preview: the user has scrolled back. With 0 it follows the output.
    below: usize,
}

impl JobsView {
    pub(crate) fn new(jobs: &[JobState], now: Duration) -> JobsView {
        let running = jobs.iter().position(|job| job.status == JobStatus::Running);
        let (jobs, list) = (jobs.to_vec(), ListView::at(running.unwrap_or(0)));
        JobsView { jobs, list, tail: None, is_confirming: false, now, preview_area: Rect::default(), below: 0 }
    }

    /// Reads the end of the chosen job's output.
    fn read(&self) -> Option<Load> {
        let chosen = self.jobs.get(self.list.chosen)?;
        let (job, file) = (chosen.id, Path::new(&chosen.output_path).file_name()?.to_owned());
        Some(Load::new(
            move |from| {
                let outputs = from.harness.place(from.session.as_ref()?).outputs();
                let (text, _) = (from.end_of)(&outputs.join(&file)).unwrap_or_default();
                let lines: Vec<String> = text.lines().map(|line| plain(line).into_owned()).collect();
                Some(JobTail { job, lines: lines[lines.len().saturating_sub(MOST_LINES)..].to_vec() })
            },
            |view: &mut JobsView, tail| view.tail = tail.clone(),
        ))
    }

    fn running(&self) -> Option<&JobState> {
        self.jobs.get(self.list.chosen).filter(|job| job.status == JobStatus::Running)
    }

    /// How long it has run, or ran: `42s`, `12m`.
    fn age(&self, job: &JobState) -> String {
        let since_1970 = |ms: i64| Duration::from_millis(u64::try_from(ms).unwrap_or(0));
        let Some(started) = job.started.map(|it| since_1970(it.as_millisecond())) else { return String::new() };
        let ran = job.ended.map_or(self.now, |it| since_1970(it.as_millisecond())).saturating_sub(started);
        match ran.as_secs() {
            seconds @ 0..60 => format!("{seconds}s"),
            _ => figures::age(ran),
        }
    }

    /// `listens on 8080, 8081 · runs for 12m`
    fn facts(&self, job: &JobState) -> String {
        let listens = match job.ports.as_slice() {
            [] => String::new(),
            ports => format!("listens on {} · ", ports.iter().map(u16::to_string).collect::<Vec<_>>().join(", ")),
        };
        let verb = if job.status == JobStatus::Running { "has run for" } else { "ran for" };
        format!("{listens}{verb} {}", self.age(job))
    }

    /// What it is, or the question, then the end of the output.
    fn preview_lines(&self, columns: usize, rows: usize, paint: Paint<'_>) -> Vec<Line<'static>> {
        let theme = paint.theme;
        let Some(job) = self.jobs.get(self.list.chosen) else { return Vec::new() };
        let head = if self.is_confirming {
            Line::styled(fit(&format!("Stop job {} and all its processes?", job.id), columns), theme.fg(theme.warning))
        } else {
            Line::styled(fit(&self.facts(job), columns), theme.fg(theme.text))
        };
        let path = from_home(Path::new(&job.output_path), paint.home);
        let mut lines = vec![head, Line::styled(fit_path(&visible(&path), columns), theme.dim())];
        let Some(tail) = self.tail.as_ref().filter(|tail| tail.job == job.id) else { return lines };
        if tail.lines.is_empty() {
            lines.push(Line::styled("Nothing printed yet", theme.dim()));
        }
        let to = tail.lines.len().saturating_sub(self.below);
        let shown = tail.lines[to.saturating_sub(rows.saturating_sub(2))..to].iter();
        lines.extend(shown.map(|line| Line::styled(fit(&visible(line), columns), theme.fg(theme.text))));
        lines
    }
}

impl View for JobsView {
    fn title(&self) -> &'static str {
        "Background jobs"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Jobs, Scope::Overlay]
    }

    fn opened(&mut self) -> Vec<Effect> {
        let tail = self.read().map(Effect::from);
        tail.into_iter().chain([Effect::Send(Input::ListJobs)]).collect()
    }

    fn follows(&self) -> bool {
        true
    }

    fn follow(&mut self) -> Vec<Effect> {
        // While a job runs, ages and ports may change.
        let has_running = self.jobs.iter().any(|job| job.status == JobStatus::Running);
        let list = has_running.then_some(Effect::Send(Input::ListJobs));
        self.read().map(Effect::from).into_iter().chain(list).collect()
    }

    fn notify(&mut self, notification: Notification<'_>) {
        if let Notification::Jobs { all, now } = notification {
            (self.jobs, self.now) = (all.to_vec(), now);
            self.list.chosen = self.list.chosen.min(all.len().saturating_sub(1));
        }
    }

    fn scroll(&mut self, by: isize) {
        self.list.scroll(by, self.jobs.len());
        (self.is_confirming, self.below) = (false, 0);
    }

    fn wheel(&mut self, at: Position, by: isize) -> Outcome {
        if self.preview_area.contains(at) {
            self.below = self.below.saturating_add_signed(-by);
            return Outcome::Stay;
        }
        self.scroll(by);
        Outcome::load(self.read())
    }

    fn press(&mut self, at: Position) -> Press {
        let before = self.list.chosen;
        let pressed = self.list.press(at);
        if self.list.chosen == before {
            return pressed;
        }
        (self.is_confirming, self.below) = (false, 0);
        match (pressed, self.read()) {
            (Press::OnRow(row), read @ Some(_)) => Press::Preview(row, Box::new(Outcome::load(read))),
            (pressed, _) => pressed,
        }
    }

    fn forget_question(&mut self) {
        self.is_confirming = false;
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        if std::mem::take(&mut self.is_confirming) {
            return match (action, self.running()) {
                (LayerAction::ConfirmStop, Some(job)) => Outcome::send(Input::StopJob { job: job.id }),
                _ => Outcome::Stay,
            };
        }
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::OverlayUp => self.scroll(-1),
            LayerAction::OverlayDown => self.scroll(1),
            LayerAction::StopJob => {
                self.is_confirming = self.running().is_some();
                return Outcome::Stay;
            }
            _ => return Outcome::Stay,
        }
        Outcome::load(self.read())
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let keys = if self.is_confirming {
            paint.hints(&[(LayerAction::ConfirmStop, "stop it, any other key lets it run")])
        } else {
            paint.hints_of(&[
                (self.running().is_some(), LayerAction::StopJob, "stop"),
                (true, LayerAction::CloseOverlay, "close"),
            ])
        };
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "Background jobs", &keys, theme);
        if self.jobs.is_empty() {
            let text = "No background jobs: the model starts one for a server or a long build";
            let lines = wrap_lines(&[Span::styled(text, theme.dim())], usize::from(inner.width), &[], &[]);
            panes::draw_lines(canvas, inner, lines);
            return;
        }
        let most = u16::try_from(self.jobs.len()).unwrap_or(u16::MAX).min(inner.height / 2);
        let (list, preview) = panes::split_after(canvas, inner, most, theme);
        let columns = usize::from(list.width);
        let status = |job: &JobState| match job.status {
            JobStatus::Running => ("running".to_owned(), theme.fg(theme.accent)),
            JobStatus::Ended { exit_code: 0 } => ("ended".to_owned(), theme.dim()),
            JobStatus::Ended { exit_code } => (format!("exit {exit_code}"), theme.fg(theme.warning)),
            JobStatus::Stopped => ("stopped".to_owned(), theme.dim()),
        };
        let name = |row: usize| {
            let job = &self.jobs[row];
            format!("{}: {}, {}", visible(&job.command), status(job).0, self.facts(job))
        };
        let line = |row: usize| {
            let job = &self.jobs[row];
            let (status, style) = status(job);
            let head = format!("{:>2} ", job.id);
            let facts = format!("{:>4}  {}", self.age(job), ports(job));
            let facts = if ports(job).is_empty() { facts } else { facts + "  " };
            let taken = width(&head) + 9 + width(&facts);
            Line::from(vec![
                Span::styled(head, theme.dim()),
                Span::styled(format!("{status:<8} "), style),
                Span::styled(facts, theme.fg(theme.accent)),
                Span::styled(fit(&visible(&job.command), columns.saturating_sub(taken)), theme.fg(theme.text)),
            ])
        };
        self.list.draw(canvas, list, self.jobs.len(), theme, &name, &line);
        self.preview_area = preview.unwrap_or_default();
        if let Some(area) = preview {
            let rows = usize::from(area.height).saturating_sub(2);
            let all = self.tail.as_ref().map_or(0, |tail| tail.lines.len());
            self.below = self.below.min(all.saturating_sub(rows));
            let lines = self.preview_lines(usize::from(area.width), usize::from(area.height), paint);
            panes::draw_lines(canvas, area, lines);
        }
    }
}

/// `:8080`, and how many more.
fn ports(job: &JobState) -> String {
    match job.ports.as_slice() {
        [] => String::new(),
        [port] => format!(":{port}"),
        [port, more @ ..] => format!(":{port} +{}", more.len()),
    }
}
