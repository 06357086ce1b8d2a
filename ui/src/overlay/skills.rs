//! The skills: a list with the text of the chosen one beside it. Those that cannot be used come last, with the reason.

use std::collections::BTreeMap;
use std::path::PathBuf;

use pixir_core::event::Origin;
use pixir_core::trust::Standing;
use pixir_core::{Skill, Weight};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::narrow::Narrow;
use super::{Effect, Load, Outcome, Page, Paint, Press, Request, View, dialog, panel, panes};
use crate::input::action::{LayerAction, Scope};
use crate::input::slash::fuzzy;
use crate::render::context::RenderContext;
use crate::render::markdown;
use crate::render::text::{fit, fit_path, from_home, lines_of, plain, visible, width, wrap_lines};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::KeyEvent;
use crate::theme::Theme;

/// The size of the dialog.
const SIZE: (u16, u16) = (120, 32);
/// The most of a skill's text that the preview lays out, bytes.
const MOST_TEXT: usize = 48 << 10;

#[derive(Debug, Default)]
pub(crate) struct SkillsView {
    skills: Vec<Skill>,
    /// The texts that were read, by the path of their file; an error is the reason why one was not.
    texts: BTreeMap<PathBuf, Result<String, String>>,
    narrow: Narrow,
    is_loaded: bool,
    preview: Page,
    /// The skill whose preview is laid out.
    previewed: Option<PathBuf>,
    preview_area: Rect,
}

impl SkillsView {
    /// Takes the skills. Those that can be used come first.
    fn show(&mut self, skills: &[Skill]) {
        self.skills = skills.iter().filter(|it| it.fields.user_invocable).cloned().collect();
        self.skills.sort_by_key(|it| (!it.is_active(), fault(it).is_some()));
        (self.is_loaded, self.previewed) = (true, None);
    }

    fn shown(&self) -> Vec<usize> {
        fuzzy(&self.narrow.letters, (0..self.skills.len()).collect(), |at| {
            let it = &self.skills[*at];
            format!("{} {}", it.name, it.description)
        })
    }

    fn chosen(&self) -> Option<&Skill> {
        self.shown().get(self.narrow.list.chosen).map(|at| &self.skills[*at])
    }

    /// Reads the text of the skill under the cursor, unless it has been read.
    fn read(&self) -> Option<Load> {
        let skill = self.chosen().filter(|it| !self.texts.contains_key(&it.path))?.clone();
        let path = skill.path.clone();
        Some(Load::new(
            move |from| from.harness.skill_text(&skill).map_err(|e| from.one_line(&e)),
            move |view: &mut SkillsView, text| {
                view.texts.insert(path.clone(), text.clone());
                view.previewed = None;
            },
        ))
    }

    /// The cursor may stand on another skill now.
    fn moved(&self) -> Outcome {
        Outcome::load(self.read())
    }

    /// Uses the chosen skill. One that cannot be used stays where it is, with its reason in the preview.
    fn choose(&self) -> Outcome {
        let Some(skill) = self.chosen() else { return Outcome::Stay };
        match &skill.standing {
            Standing::InForce => Outcome::CloseAndAsk(Request::Command(format!("/skill {}", skill.name))),
            Standing::New | Standing::Inert | Standing::Changed => Outcome::Ask(Request::Command("/trust".to_owned())),
            Standing::Unusable { .. } => Outcome::Stay,
        }
    }

    /// Lets the user write what the skill is to be used for.
    fn give_task(&self) -> Outcome {
        match self.chosen() {
            Some(skill) if skill.is_active() => Outcome::CloseAndAsk(Request::Complete {
                draft: format!("/skill {} ", skill.name),
                hint: Some("add a task"),
            }),
            Some(_) | None => Outcome::Stay,
        }
    }
}

/// Why a skill cannot be used, or what is wrong in its file.
fn fault(skill: &Skill) -> Option<String> {
    match &skill.standing {
        // The list and the preview name the file already.
        Standing::Unusable { why } => {
            let path = skill.path.display().to_string();
            Some(why.split_once(&format!("{path}: ")).map_or(why.as_str(), |(_, why)| why).to_owned())
        }
        Standing::New | Standing::Inert => Some("this workspace is not trusted".to_owned()),
        Standing::Changed => Some("it changed since you trusted it".to_owned()),
        Standing::InForce => skill.findings.iter().find(|it| it.weight == Weight::Fault).map(|it| it.message.clone()),
    }
}

/// Where a skill comes from, as the list shows it.
fn origin(skill: &Skill) -> &'static str {
    match skill.origin {
        Origin::User => "you",
        Origin::Workspace => "project",
    }
}

// ─── Drawing ───

impl SkillsView {
    fn draw_list(&self, canvas: &mut Canvas, list: Rect, shown: &[usize], theme: &Theme) {
        let columns = usize::from(list.width);
        let longest = shown.iter().map(|at| width(&self.skills[*at].name)).max().unwrap_or(0);
        let name_width = longest.min(columns / 2);
        let name_of = |row: usize| {
            let it = &self.skills[shown[row]];
            format!("{}, {}{}", it.name, origin(it), fault(it).map_or(String::new(), |why| format!(", {why}")))
        };
        let line = |row: usize| {
            let it = &self.skills[shown[row]];
            let name = fit(&it.name, name_width);
            let pad = " ".repeat(name_width - width(&name));
            let (about, style) = match fault(it) {
                Some(why) => (format!("⚠ {}", visible(&why)), theme.fg(theme.warning)),
                None => (it.description.clone(), theme.dim()),
            };
            let about = fit(&about, columns.saturating_sub(name_width + 2 + 9));
            let ink = if it.is_active() { theme.fg(theme.text) } else { theme.dim() };
            Line::from(vec![
                Span::styled(name, ink),
                Span::raw(format!("{pad}  ")),
                Span::styled(format!("{:<9}", origin(it)), theme.dim()),
                Span::styled(about, style),
            ])
        };
        self.narrow.list.draw(canvas, list, shown.len(), theme, &name_of, &line);
    }
}

impl View for SkillsView {
    fn is_loading(&self) -> bool {
        !self.is_loaded
    }

    fn title(&self) -> &'static str {
        "Skills"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Skills, Scope::Overlay]
    }

    fn is_typing(&self) -> bool {
        true
    }

    fn opened(&mut self) -> Vec<Effect> {
        let list = Load::new(
            |from| from.harness.skills(),
            |view: &mut SkillsView, all| {
                view.show(all);
                view.read().map(Effect::from)
            },
        );
        vec![list.into()]
    }

    fn scroll(&mut self, by: isize) {
        let rows = self.shown().len();
        self.narrow.list.scroll(by, rows);
    }

    fn wheel(&mut self, at: Position, by: isize) -> Outcome {
        if self.preview_area.contains(at) {
            self.preview.scroll(by);
            return Outcome::Stay;
        }
        self.scroll(by);
        self.moved()
    }

    fn press(&mut self, at: Position) -> Press {
        match self.narrow.list.press(at) {
            Press::OnRow(row) => match self.moved() {
                Outcome::Stay => Press::OnRow(row),
                read => Press::Preview(row, Box::new(read)),
            },
            other => other,
        }
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        self.narrow.key(key).then(|| self.moved())
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => Outcome::Close,
            LayerAction::Choose => self.choose(),
            LayerAction::GiveTask => self.give_task(),
            LayerAction::ReadOn => {
                self.preview.scroll(self.preview.page());
                Outcome::Stay
            }
            LayerAction::ReadBack => {
                self.preview.scroll(-self.preview.page());
                Outcome::Stay
            }
            action => {
                let rows = self.shown().len();
                self.narrow.list.act(action, rows);
                self.moved()
            }
        }
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let enter = match self.chosen().map(|it| &it.standing) {
            Some(Standing::New | Standing::Inert | Standing::Changed) => "trust…",
            Some(Standing::InForce | Standing::Unusable { .. }) | None => "use it",
        };
        let chosen = self.chosen();
        let can_use = chosen.is_some_and(|it| !matches!(it.standing, Standing::Unusable { .. }));
        let keys = paint.hints_of(&[
            (can_use, LayerAction::Choose, enter),
            (can_use, LayerAction::GiveTask, "with a task"),
            (true, LayerAction::CloseOverlay, "close"),
            (chosen.is_some(), LayerAction::ReadOn, "read on"),
        ]);
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "Skills", &keys, theme);
        let below = self.narrow.draw(canvas, inner, theme);
        let shown = self.shown();
        self.narrow.list.begin();
        if shown.is_empty() {
            let text = match (self.is_loaded, self.skills.is_empty()) {
                (false, _) => "reading the skills…",
                (true, true) => "No skills yet. Write one at .pixir/skills/<name>/SKILL.md",
                (true, false) => "No matches",
            };
            canvas.line(Line::styled(fit(text, usize::from(below.width)), theme.dim()), below);
            return;
        }
        self.narrow.list.chosen = self.narrow.list.chosen.min(shown.len() - 1);
        let most = u16::try_from(self.skills.len()).unwrap_or(u16::MAX).min(below.height / 2);
        let (list, preview) = panes::split_after(canvas, below, most, theme);
        self.narrow.draw_place(canvas, inner, shown.len(), list.height, theme);
        self.draw_list(canvas, list, &shown, theme);
        self.preview_area = preview.unwrap_or_default();
        let Some(preview) = preview else { return };
        let skill = &self.skills[shown[self.narrow.list.chosen]];
        if self.previewed.as_ref() != Some(&skill.path) {
            self.previewed = Some(skill.path.clone());
            self.preview = Page::default();
        }
        let text = self.texts.get(&skill.path);
        self.preview.draw(canvas, preview, paint, |columns| preview_lines(skill, text, columns, paint));
    }
}

/// The skill's name and file, what is wrong with it, and its text.
fn preview_lines(
    skill: &Skill,
    text: Option<&Result<String, String>>,
    columns: usize,
    paint: Paint<'_>,
) -> Vec<Line<'static>> {
    let theme = paint.theme;
    let wrapped = |text: String, style| wrap_lines(&[Span::styled(text, style)], columns, &[], &[]);
    let mut lines = wrapped(visible(&skill.name), theme.bold());
    let path = visible(&from_home(&skill.path, paint.home));
    lines.push(Line::styled(fit_path(&path, columns), theme.dim()));
    if !skill.is_active() {
        lines.extend(
            fault(skill).into_iter().flat_map(|why| wrapped(format!("⚠ {}", visible(&why)), theme.fg(theme.warning))),
        );
    }
    for it in skill.findings.iter().filter(|it| it.weight == Weight::Fault) {
        let text = format!("⚠ line {}: {} — {}", it.line, visible(&it.message), visible(&it.fix));
        lines.extend(wrapped(text, theme.fg(theme.warning)));
    }
    for hidden in &skill.hides {
        lines.extend(wrapped(format!("hides {}", visible(&from_home(hidden, paint.home))), theme.dim()));
    }
    if let Some(hint) = &skill.fields.argument_hint {
        lines.extend(wrapped(format!("takes {}", visible(hint)), theme.dim()));
    }
    lines.push(Line::default());
    if !skill.description.is_empty() {
        lines.extend(wrapped(visible(&skill.description), theme.fg(theme.text)));
        lines.push(Line::default());
    }
    match text {
        None => lines.push(Line::styled("reading…", theme.dim())),
        // The fault above says why.
        Some(Err(_)) if fault(skill).is_some() => {}
        Some(Err(why)) => lines.extend(wrapped(visible(why), theme.fg(theme.error))),
        Some(Ok(text)) => {
            let start = plain(&text[..text.floor_char_boundary(MOST_TEXT)]).into_owned();
            let context = RenderContext::new(theme, paint.highlighter, columns);
            lines.extend(lines_of(markdown::rows(&start, &context)));
        }
    }
    lines
}
