//! The models that can answer, with their window and price; the effort stands below them.

use pixir_core::Effort;
use pixir_core::provider::{ModelOffer, Offered};
use ratatui::layout::{Position, Rect};
use ratatui::text::{Line, Span};

use super::narrow::Narrow;
use super::save_for::SaveFor;
use super::{Effect, OnHarness, Outcome, Paint, Press, Request, View, dialog, panel};
use crate::input::action::{LayerAction, Scope};
use crate::input::slash::fuzzy;
use crate::render::text::{fit, visible, width};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::KeyEvent;
use crate::theme::Theme;

/// The size of the dialog.
const SIZE: (u16, u16) = (92, 26);
/// The most recent models that stand first.
const RECENT: usize = 4;

#[derive(Debug, Clone)]
struct Row {
    group: String,
    provider: String,
    model: String,
    window: String,
    price: String,
    efforts: Option<Vec<Effort>>,
    /// What is to be said about it, such as that its server does not list it.
    note: &'static str,
}

impl Row {
    fn name(&self) -> String {
        format!("{}/{}", self.provider, self.model)
    }
}

#[derive(Debug)]
pub(crate) struct ModelsView {
    rows: Vec<Row>,
    /// Providers that list no models, and why.
    silent: Vec<(String, String)>,
    current: String,
    /// The models that the user has marked, in their order.
    favourites: Vec<String>,
    /// What the servers offered, and the models of the last Sessions.
    offered: Option<(Offered, Vec<String>)>,
    effort: Option<Effort>,
    /// The user has chosen the effort here.
    is_effort_chosen: bool,
    narrow: Narrow,
    save: SaveFor,
    is_loading: bool,
}

/// What a user can expect of an effort.
pub(crate) const fn about_effort(effort: Effort) -> &'static str {
    match effort {
        Effort::None => "no reasoning",
        Effort::Minimal => "fastest",
        Effort::Low => "fast, for simple tasks",
        Effort::Medium => "balanced",
        Effort::High => "thorough, for complex tasks",
        Effort::XHigh => "very thorough, where the model supports it",
        Effort::Max => "maximum, slow and expensive",
    }
}

/// `200k`
fn tokens(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..1_000_000 => format!("{}k", n / 1_000),
        _ => format!("{:.1}M", n as f64 / 1e6).replace(".0M", "M"),
    }
}

/// `$3 / $15`: a million tokens, input and output.
fn price(it: &ModelOffer) -> String {
    let dollars = |n: f64| {
        let text = format!("{n:.2}");
        format!("${}", text.trim_end_matches('0').trim_end_matches('.'))
    };
    it.info.price.map_or_else(String::new, |price| match (price.input, price.output) {
        (0.0, 0.0) => "free".to_owned(),
        (input, output) => format!("{} / {}", dollars(input), dollars(output)),
    })
}

impl ModelsView {
    /// The dialog before the models are listed.
    pub(crate) fn new(current: &str, effort: Option<&str>) -> ModelsView {
        ModelsView {
            rows: Vec::new(),
            silent: Vec::new(),
            current: current.to_owned(),
            favourites: Vec::new(),
            offered: None,
            effort: effort.and_then(|name| Effort::parse(name).ok()),
            is_effort_chosen: false,
            narrow: Narrow::default(),
            save: SaveFor::Session,
            is_loading: true,
        }
    }

    fn show(&mut self, offered: &Offered, recent: &[String]) {
        self.is_loading = false;
        self.silent = offered.silent.iter().map(|(name, e)| (name.clone(), e.message.clone())).collect();
        let has_real = offered.models.iter().any(|it| it.provider != "demo");
        let row = |group: &str, it: &ModelOffer| Row {
            group: group.to_owned(),
            provider: it.provider.clone(),
            model: it.model.clone(),
            window: it.info.window.map_or_else(String::new, tokens),
            price: price(it),
            efforts: it.info.efforts.clone(),
            note: "",
        };
        let name = |it: &ModelOffer| format!("{}/{}", it.provider, it.model);
        // The user's favourites stand first, then the model in use and those of the last Sessions.
        let mut rows: Vec<Row> = Vec::new();
        for wanted in &self.favourites {
            if let Some(it) = offered.models.iter().find(|it| name(it) == *wanted) {
                rows.push(row("Favourites", it));
            }
        }
        let most = rows.len() + RECENT;
        let is_other = |it: &&str| !self.favourites.iter().any(|favourite| favourite == it);
        let all = std::iter::once(self.current.as_str())
            .chain(recent.iter().map(String::as_str).filter(|it| *it != self.current));
        let first: Vec<&str> = all.filter(is_other).collect();
        for wanted in first {
            if let Some(it) =
                offered.models.iter().find(|it| name(it) == wanted && (it.provider != "demo" || !has_real))
            {
                rows.push(row("Recent", it));
            } else if wanted == self.current && !(has_real && wanted.starts_with("demo/")) {
                let (provider, model) = wanted.split_once('/').unwrap_or(("", wanted));
                let note = "in use; not listed";
                rows.push(Row {
                    group: "Recent".to_owned(),
                    provider: provider.to_owned(),
                    model: model.to_owned(),
                    window: String::new(),
                    price: String::new(),
                    efforts: None,
                    note,
                });
            }
            if rows.len() >= most {
                break;
            }
        }
        let mut others: Vec<&ModelOffer> =
            offered.models.iter().filter(|it| it.provider != "demo" || !has_real).collect();
        others.sort_by_key(|it| it.provider == "demo");
        let is_recent = |it: &&&ModelOffer| rows.iter().any(|row| row.name() == name(it));
        let rest: Vec<Row> = others.iter().filter(|it| !is_recent(it)).map(|it| row(&it.provider, it)).collect();
        rows.extend(rest);
        self.rows = rows;
    }

    /// Marks the chosen model as a favourite, or takes the mark back.
    fn mark(&mut self) -> Outcome {
        let Some(name) = self.chosen().map(Row::name) else { return Outcome::Stay };
        match self.favourites.iter().position(|it| *it == name) {
            Some(at) => drop(self.favourites.remove(at)),
            None => self.favourites.push(name.clone()),
        }
        if let Some((offered, recent)) = self.offered.take() {
            self.show(&offered, &recent);
            self.offered = Some((offered, recent));
        }
        // The cursor stays on its model.
        let at = self.shown().iter().position(|at| self.rows[*at].name() == name);
        self.narrow.list.chosen = at.unwrap_or(self.narrow.list.chosen);
        let names = self.favourites.iter().map(|it| toml::Value::from(it.as_str())).collect();
        let value = toml::Value::Array(names).to_string();
        Outcome::Ask(Request::Change { key: "favourites".to_owned(), value, save: SaveFor::You })
    }

    fn shown(&self) -> Vec<usize> {
        fuzzy(&self.narrow.letters, (0..self.rows.len()).collect(), |at| self.rows[*at].name())
    }

    fn chosen(&self) -> Option<&Row> {
        self.shown().get(self.narrow.list.chosen).map(|at| &self.rows[*at])
    }

    /// The efforts that the chosen model accepts.
    fn efforts(&self) -> Vec<Effort> {
        let of_model = self.chosen().and_then(|row| row.efforts.clone());
        of_model.unwrap_or_else(|| Effort::ALL.to_vec())
    }

    fn change_effort(&mut self, by: isize) {
        let efforts = self.efforts();
        if efforts.is_empty() {
            return;
        }
        let now = self.effort.unwrap_or(Effort::Medium);
        let at = efforts.iter().rposition(|it| *it <= now).unwrap_or(0);
        let at = at.saturating_add_signed(by).min(efforts.len() - 1);
        (self.effort, self.is_effort_chosen) = (Some(efforts[at]), true);
    }

    fn choose(&self) -> Outcome {
        let Some(row) = self.chosen() else { return Outcome::Stay };
        let effort = self.effort.filter(|_| self.is_effort_chosen).map(|it| it.name().to_owned());
        let (provider, model) = (row.provider.clone(), row.model.clone());
        Outcome::CloseAndAsk(Request::ChooseModel { provider, model, effort, save: self.save })
    }

    fn draw_rows(&mut self, canvas: &mut Canvas, list: Rect, shown: &[usize], theme: &Theme) {
        self.narrow.list.begin();
        // Headings stand between the rows while nothing is filtered.
        let mut lines: Vec<Option<usize>> = Vec::new();
        let mut group = "";
        for (number, at) in shown.iter().enumerate() {
            if self.narrow.letters.is_empty() && self.rows[*at].group != group {
                group = &self.rows[*at].group;
                lines.push(None);
            }
            lines.push(Some(number));
        }
        let silent = if self.narrow.letters.is_empty() { self.silent.as_slice() } else { &[] };
        let height = usize::from(list.height);
        let at = lines.iter().position(|line| *line == Some(self.narrow.list.chosen)).unwrap_or(0);
        let top = (at + 2).saturating_sub(height).min(at);
        let columns = usize::from(list.width);
        let [window, price] = if columns >= 60 { [8, 16] } else { [6, 0] };
        let name = columns.saturating_sub(2 + window + price);
        for (y, at) in (list.y..list.bottom()).zip(top..) {
            let here = Rect { y, height: 1, ..list };
            let Some(line) = lines.get(at) else {
                let Some((provider, why)) = silent.get(at - lines.len()) else { break };
                let text = format!("  {}: {}", visible(provider), visible(why));
                canvas.line(Line::styled(fit(&text, columns), theme.fg(theme.warning)), here);
                continue;
            };
            let Some(number) = line else {
                let heading = lines.get(at + 1).copied().flatten().map_or("", |n| self.rows[shown[n]].group.as_str());
                canvas.line(Line::styled(visible(heading), theme.fg(theme.accent).bold()), here);
                continue;
            };
            let row = &self.rows[shown[*number]];
            let (is_current, is_favourite) = (row.name() == self.current, self.favourites.contains(&row.name()));
            let shown_name = if row.group == row.provider { row.model.clone() } else { row.name() };
            let note = if row.note.is_empty() { String::new() } else { format!("  {}", row.note) };
            // Where nothing is known of the model, the note has the room of the figures too.
            let name = if row.window.is_empty() && row.price.is_empty() { columns.saturating_sub(2) } else { name };
            let text = fit(&visible(&shown_name), name.saturating_sub(1));
            let note = fit(&note, name.saturating_sub(width(&text) + 1));
            let gap = " ".repeat(name.saturating_sub(width(&text) + width(&note)));
            let line = Line::from(vec![
                match (is_current, is_favourite) {
                    (true, _) => Span::styled("● ", theme.fg(theme.success)),
                    (false, true) => Span::styled("★ ", theme.fg(theme.warning)),
                    (false, false) => Span::raw("  "),
                },
                Span::styled(text, if is_current { theme.bold() } else { theme.fg(theme.text) }),
                Span::styled(note, theme.dim()),
                Span::raw(gap),
                Span::styled(format!("{:>window$}", row.window), theme.dim()),
                Span::styled(if price == 0 { String::new() } else { format!("{:>price$}", row.price) }, theme.dim()),
            ]);
            self.narrow.list.row(canvas, here, *number, theme, || row.name(), line);
        }
    }

    /// `Effort ‹ high › Thorough`
    fn draw_effort(&self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        if area.height == 0 {
            return;
        }
        let theme = paint.theme;
        let efforts = self.efforts();
        let at = Rect { y: area.bottom() - 1, height: 1, ..area };
        if area.height > 1 {
            let rule = "─".repeat(usize::from(area.width));
            canvas.line(Line::styled(rule, theme.fg(theme.border)), Rect { height: 1, ..area });
        }
        if efforts.is_empty() {
            return canvas.line(Line::styled("Effort: this model has none to set", theme.dim()), at);
        }
        // A model that does not know the wanted effort gets the next lower one.
        let given = self.effort.map(|wanted| *efforts.iter().rev().find(|it| **it <= wanted).unwrap_or(&efforts[0]));
        let keys = paint.hints(&[(LayerAction::LessEffort, "less"), (LayerAction::MoreEffort, "more")]);
        let (name, about) =
            given.map_or(("default", "what the model does by itself"), |it| (it.name(), about_effort(it)));
        // On a narrow screen the keys matter more than what the effort is for.
        let room = usize::from(area.width).saturating_sub(width("Effort  ‹  ›") + width(name));
        let rest = [format!("  {about}   {keys}"), format!("  {keys}")].into_iter().find(|it| width(it) <= room);
        let line = Line::from(vec![
            Span::styled("Effort  ", theme.fg(theme.accent)),
            Span::styled(format!("‹ {name} ›"), theme.bold()),
            Span::styled(rest.unwrap_or_default(), theme.dim()),
        ]);
        canvas.line(line, at);
    }
}

impl ModelsView {
    /// Takes the models to choose from, those of the last Sessions, and the user's favourites.
    pub(crate) fn list(&mut self, offered: &Offered, recent: &[String], favourites: &[String]) {
        self.favourites = favourites.to_vec();
        self.show(offered, recent);
        if self.narrow.letters.is_empty() {
            self.narrow.list.chosen = self.rows.iter().position(|it| it.name() == self.current).unwrap_or(0);
        }
        self.offered = Some((offered.clone(), recent.to_vec()));
    }
}

impl View for ModelsView {
    fn is_loading(&self) -> bool {
        self.is_loading
    }

    fn title(&self) -> &'static str {
        "Models"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Models, Scope::Saving, Scope::Overlay]
    }

    fn is_typing(&self) -> bool {
        true
    }

    fn opened(&mut self) -> Vec<Effect> {
        vec![OnHarness::LoadModels.into()]
    }

    fn press(&mut self, at: Position) -> Press {
        self.narrow.list.press(at)
    }

    fn scroll(&mut self, by: isize) {
        let rows = self.shown().len();
        self.narrow.list.scroll(by, rows);
    }

    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        self.narrow.key(key).then_some(Outcome::Stay)
    }

    fn act(&mut self, action: LayerAction) -> Outcome {
        match action {
            LayerAction::CloseOverlay => return Outcome::Close,
            LayerAction::Choose => return self.choose(),
            LayerAction::SaveFor => self.save = self.save.next(),
            LayerAction::MarkFavourite => return self.mark(),
            LayerAction::MoreEffort => self.change_effort(1),
            LayerAction::LessEffort => self.change_effort(-1),
            LayerAction::ConnectHere => return Outcome::CloseAndAsk(Request::Command("/connect".to_owned())),
            action => {
                let rows = self.shown().len();
                self.narrow.list.act(action, rows);
            }
        }
        Outcome::Stay
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let hints = paint.hints(&[
            (LayerAction::Choose, "use it"),
            (LayerAction::SaveFor, &self.save.choices()),
            (LayerAction::CloseOverlay, "close"),
            (LayerAction::MarkFavourite, "favourite"),
            (LayerAction::ConnectHere, "connect another"),
        ]);
        let inner = panel(canvas, dialog(area, SIZE.0, SIZE.1), "Model", &hints, theme);
        let list = self.narrow.draw(canvas, inner, theme);
        let foot = 2.min(list.height / 3);
        let list = Rect { height: list.height - foot, ..list };
        let shown = self.shown();
        if shown.is_empty() {
            let text = match (self.is_loading, self.rows.is_empty()) {
                (true, _) => "asking the servers for their models…",
                (false, true) => "No model is connected. /connect connects one here.",
                (false, false) => "No matches",
            };
            canvas.line(Line::styled(text, theme.dim()), Rect { height: 1.min(list.height), ..list });
            return;
        }
        self.narrow.list.chosen = self.narrow.list.chosen.min(shown.len() - 1);
        self.narrow.draw_place(canvas, inner, shown.len(), list.height, theme);
        self.draw_rows(canvas, list, &shown, theme);
        self.draw_effort(canvas, Rect { y: list.bottom(), height: foot, ..list }, paint);
    }
}
