//! What the workspace brings along, and whether it is to be in force: asked once, and again when it changes.

use pixir_core::Input;
use pixir_core::trust::{Contribution, Contributions, Standing, TrustAnswer};
use ratatui::layout::{Constraint, Layout, Position, Rect};
use ratatui::text::{Line, Span};

use super::list::ListView;
use super::{Outcome, Page, Paint, Press, Request, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::render::text::{fit, visible, width, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::theme::Theme;

/// The most rows and columns of the card.
const ROWS: u16 = 24;
const COLUMNS: u16 = 88;

/// The most characters of what a contribution says about itself.
const MOST_ABOUT: usize = 300;

#[derive(Debug)]
pub(crate) struct TrustView {
    all: Contributions,
    choices: Vec<Choice>,
    list: ListView,
    page: Page,
}

/// An answer that the card offers.
#[derive(Debug)]
struct Choice {
    /// `None` leaves everything as it is.
    answer: Option<TrustAnswer>,
    name: &'static str,
    about: &'static str,
}

const fn choice(answer: Option<TrustAnswer>, name: &'static str, about: &'static str) -> Choice {
    Choice { answer, name, about }
}

impl TrustView {
    pub(crate) fn new(all: Contributions) -> TrustView {
        let is = |wanted: fn(&Standing) -> bool| all.all.iter().any(|it| wanted(&it.standing));
        let is_in_force = is(|it| *it == Standing::InForce) && !all.trusted_for_run;
        let can_be = is(|it| matches!(it, Standing::New | Standing::Changed | Standing::Inert));
        // Enter alone takes the first one, so it changes nothing.
        let mut choices = vec![if all.needs_answer() {
            choice(Some(TrustAnswer::NotNow), "Not now", "unused; asked again when it changes")
        } else {
            choice(None, "Close", "leave everything as it is")
        }];
        if can_be {
            choices.push(choice(Some(TrustAnswer::Trust), "Trust", "in force as it is now, until it changes"));
            choices.push(choice(Some(TrustAnswer::Never), "Never", "unused, and not asked about again"));
        }
        if is_in_force {
            choices.push(choice(Some(TrustAnswer::Revoke), "Stop trusting", "unused from now on"));
        }
        TrustView { all, choices, list: ListView::default(), page: Page::default() }
    }

    /// The card in a sentence, for a user who is writing.
    pub(crate) fn sentence(all: &Contributions) -> String {
        let waiting = all.all.iter().filter(|it| matches!(it.standing, Standing::New | Standing::Changed));
        let paths: Vec<String> = waiting.map(|it| visible(&it.path)).collect();
        let more = paths.len().saturating_sub(3);
        let tail = if more > 0 { format!(" and {more} more") } else { String::new() };
        let listed = paths.into_iter().take(3).collect::<Vec<_>>().join(", ");
        let who = all.folder.as_ref().map_or("this workspace", |_| "an added folder");
        format!("{who} brings along {listed}{tail}, not in force without your trust")
    }

    fn request(&self, answer: TrustAnswer) -> Request {
        Request::Send(vec![Input::AnswerTrust { answer, seen: self.all.seen(), folder: self.all.folder.clone() }])
    }
}

impl View for TrustView {
    fn title(&self) -> &'static str {
        if self.all.folder.is_some() { "Instructions of an added folder" } else { "What this workspace brings along" }
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Overlay]
    }

    fn is_guarded(&self) -> bool {
        true
    }

    /// Leaving the card is an answer too: the user has seen it.
    fn leave(self) -> Option<Request> {
        self.all.needs_answer().then(|| self.request(TrustAnswer::NotNow))
    }

    /// A click chooses an answer and gives none: trust wants a key.
    fn press(&mut self, at: Position) -> Press {
        self.list.press(at);
        Press::Did(Box::new(Outcome::Stay))
    }

    fn scroll(&mut self, by: isize) {
        self.list.scroll(by, self.choices.len());
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::Choose => {
                return match self.choices[self.list.chosen].answer {
                    Some(answer) => Outcome::CloseAndAsk(self.request(answer)),
                    None => Outcome::Close,
                };
            }
            LayerAction::OverlayUp => self.scroll(-1),
            LayerAction::OverlayDown => self.scroll(1),
            LayerAction::OverlayPageUp | LayerAction::OverlayPageDown => self.page.act(action),
            _ => {}
        }
        Outcome::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let rows = u16::try_from(self.choices.len()).unwrap_or(1);
        let columns = usize::from(COLUMNS.min(area.width).saturating_sub(4));
        let text = u16::try_from(lines(&self.all, columns, theme).len()).unwrap_or(u16::MAX);
        // The frame and a blank line are around the text and the choices.
        let wanted = text.saturating_add(rows + 3);
        let more = (wanted > area.height.min(ROWS)).then_some((LayerAction::OverlayPageDown, "more"));
        let close = (LayerAction::CloseOverlay, if self.all.needs_answer() { "not now" } else { "close" });
        let hints: Vec<_> = [(LayerAction::Choose, "choose")].into_iter().chain(more).chain([close]).collect();
        let keys = paint.hints(&hints);
        let card = dialog(area, COLUMNS, wanted.min(ROWS));
        let inner = panel(canvas, card, self.title(), &keys, theme);
        let rows = rows.min(inner.height);
        let [above, _, below] =
            Layout::vertical([Constraint::Fill(1), Constraint::Length(1), Constraint::Length(rows)]).areas(inner);
        let all = &self.all;
        self.page.draw(canvas, above, paint, |columns| lines(all, columns, theme));
        self.list.begin();
        for (y, (at, choice)) in (below.y..below.bottom()).zip(self.choices.iter().enumerate()) {
            let is_chosen = at == self.list.chosen;
            let columns = usize::from(below.width);
            let row = Rect { y, height: 1, ..below };
            self.list.option(canvas, row, at, || choice.name.to_owned());
            canvas.line(choice.line(is_chosen, columns, theme), row);
        }
    }
}

impl Choice {
    fn line(&self, is_chosen: bool, columns: usize, theme: &Theme) -> Line<'static> {
        let name = format!("{:<15}", self.name);
        let room = columns.saturating_sub(width(&name) + 2);
        Line::from(vec![
            Span::styled(if is_chosen { "▸ " } else { "  " }, theme.fg(theme.accent)),
            Span::styled(name, if is_chosen { theme.bold() } else { theme.fg(theme.text) }),
            Span::styled(fit(self.about, room), theme.dim()),
        ])
    }
}

/// What there is, and what it would do.
fn lines(all: &Contributions, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let of_folder = all.folder.as_ref().map(|folder| {
        format!(
            "pixir works on {} besides the workspace: tools and commands change files there by the mode and the rules. The \
             model reads these instructions only if you trust them. Settings, skills and servers of that folder are not used.",
            visible(folder)
        )
    });
    let intro = if let Some(text) = &of_folder {
        text
    } else if all.all.is_empty() {
        "Nothing here needs your trust."
    } else if all.trusted_for_run {
        "In force for this run, by --trust-workspace."
    } else {
        "These files come with the repository. They are used only if you trust them."
    };
    let mut lines = wrap_lines(&[Span::styled(intro, theme.dim())], columns, &[], &[]);
    for it in &all.all {
        lines.push(Line::default());
        lines.extend(described(it, columns, theme));
    }
    lines
}

fn described(it: &Contribution, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (state, colour) = match &it.standing {
        Standing::InForce => ("in force", theme.added),
        Standing::Inert => ("not in force", theme.text),
        Standing::New => ("new", theme.warning),
        Standing::Changed => ("changed since you were asked", theme.warning),
        Standing::Unusable { .. } => ("cannot be used", theme.error),
    };
    let tail = format!("  {}, ", it.kind.name());
    let room = columns.saturating_sub(width(&tail) + width(state));
    let head = Line::from(vec![
        Span::styled(fit(&visible(&it.path), room), theme.bold()),
        Span::styled(tail, theme.dim()),
        Span::styled(state, theme.fg(colour)),
    ]);
    let about = match &it.standing {
        Standing::Unusable { why } => why,
        Standing::InForce | Standing::Inert | Standing::New | Standing::Changed => &it.about,
    };
    let mut lines = vec![head];
    if !about.is_empty() {
        let indent = [Span::raw("  ")];
        // A repository decides how long this is; the file itself has the rest.
        let start: String = about.chars().take(MOST_ABOUT).collect();
        let more = if start.len() < about.len() { "…" } else { "" };
        let text = format!("{}{more}", visible(&start));
        lines.extend(wrap_lines(&[Span::styled(text, theme.fg(theme.text))], columns, &indent, &indent));
    }
    lines
}
