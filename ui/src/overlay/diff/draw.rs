//! The diff, drawn: the frame with the totals, the list of files, and the lines as far as they are seen.

use std::cell::RefCell;
use std::collections::HashMap;

use pixir_core::diff::{Body, ChangedFile, Folded, Kind, Line as DiffedLine, Tag, TextPatch, words};
use pixir_core::text::human::human_size;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use super::files::head_line;
use super::places::Place;
use super::{Columns, DiffView};
use crate::input::action::LayerAction;
use crate::overlay::{Paint, panel};
use crate::render::diff::{DiffLine, Flow, SIDE_BY_SIDE, absent, language_of, rows_of};
use crate::render::figures::{plus_minus, plus_minus_spans};
use crate::render::highlight::{Coloured, Kind as Ink};
use crate::render::text::{fit, span_width, visible, width};
use crate::terminal::canvas::{Canvas, RegionState};
use crate::theme::Theme;

/// The narrowest overlay that has room for the list of files beside the lines.
const WITH_LIST: u16 = 96;
/// The columns that the totals on the frame may take.
const TOTALS: usize = 38;
/// Lines that are coloured together, and the lines before them that tell the state of the language.
const CHUNK: u32 = 64;
const BEFORE: u32 = 128;

/// Where things stand on the last frame, for the mouse.
#[derive(Debug, Default)]
pub(super) struct Areas {
    pub(super) is_wide: bool,
    /// The list, and the file in its first row.
    pub(super) list: Option<(Rect, usize)>,
    pub(super) body: Rect,
    /// The row of the file in each row of the body.
    pub(super) rows: Vec<usize>,
}

impl DiffView {
    pub(super) fn paint(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let wide = area.width >= SIDE_BY_SIDE;
        let is_split = match self.columns {
            // Beside a version without a file there would be nothing.
            Columns::Auto => wide && self.current().is_none_or(|it| !matches!(it.kind, Kind::Added | Kind::Deleted)),
            Columns::Unified => false,
            Columns::Split => area.width >= WITH_LIST,
        };
        if is_split != self.is_split {
            self.turn(is_split);
        }
        let inner = panel(canvas, area, &self.heading(), &self.hints(paint), theme);
        self.draw_totals(canvas, area, theme);
        self.areas = Areas { is_wide: area.width >= WITH_LIST, ..Areas::default() };
        let note = self.changes.as_ref().and_then(|it| it.note.clone());
        let Some(message) = self.nothing(note.as_deref()) else {
            let inner = self.draw_foot(canvas, inner, note.as_deref(), theme);
            let list_columns = if self.areas.is_wide { (inner.width / 4).clamp(26, 44) } else { inner.width };
            if self.lists && !self.areas.is_wide {
                return self.draw_list(canvas, inner, theme);
            }
            let shows_list = self.areas.is_wide && !self.hides_list;
            let body = if shows_list {
                // A column stays free before the rule.
                self.draw_list(canvas, Rect { width: list_columns - 1, ..inner }, theme);
                for y in inner.y..inner.bottom() {
                    let at = Rect { x: inner.x + list_columns, y, width: 1, height: 1 };
                    let edge = if self.lists { theme.accent } else { theme.border };
                    canvas.line(Line::styled("│", theme.fg(edge)), at);
                }
                let taken = list_columns + 2;
                Rect { x: inner.x + taken, width: inner.width.saturating_sub(taken), ..inner }
            } else {
                inner
            };
            return self.draw_file(canvas, body, paint);
        };
        canvas.line(Line::styled(fit(&message, usize::from(inner.width)), theme.dim()), inner);
    }

    /// What stands in the place of the files while there are none.
    fn nothing(&self, note: Option<&str>) -> Option<String> {
        match &self.changes {
            None => Some("Loading…".to_owned()),
            Some(it) if it.files.is_empty() => Some(
                note.map_or_else(|| "No changes here. Tab compares with something else.".to_owned(), str::to_owned),
            ),
            Some(_) => None,
        }
    }

    fn heading(&self) -> String {
        format!("Diff · {}", self.sources[self.source].1)
    }

    fn hints(&self, paint: Paint<'_>) -> String {
        if self.is_sending {
            return paint
                .hints(&[(LayerAction::Choose, "send them as one message"), (LayerAction::CloseOverlay, "not yet")]);
        }
        if self.protected.is_some() {
            return paint
                .hints(&[(LayerAction::Choose, "revert it all the same"), (LayerAction::CloseOverlay, "leave it")]);
        }
        if self.lists {
            let choose = if self.folders.file(self.folders.cursor).is_some() { "show" } else { "fold" };
            let hide = if self.areas.is_wide { "hide" } else { "close" };
            return paint.hints(&[
                (LayerAction::Choose, choose),
                (LayerAction::ScrollLeft, "fold"),
                (LayerAction::ScrollRight, "unfold"),
                (LayerAction::ListFiles, hide),
                (LayerAction::CloseOverlay, "back"),
            ]);
        }
        if self.changes.as_ref().is_some_and(|it| it.files.is_empty()) {
            return paint.hints_of(&[
                (!self.review.is_empty(), LayerAction::Choose, "send comments"),
                (true, LayerAction::SwitchSource, "source"),
                (true, LayerAction::CloseOverlay, "close"),
            ]);
        }
        let mut hints = Vec::new();
        if !self.review.is_empty() {
            hints.push((LayerAction::Choose, "send comments"));
        }
        hints.extend([
            (LayerAction::NextHunk, "next hunk"),
            (LayerAction::KeepHunk, "keep"),
            (LayerAction::RevertHunk, "revert"),
            (LayerAction::CommentLine, "comment"),
            (LayerAction::SwitchSource, "source"),
            (LayerAction::NextFile, "next file"),
            (LayerAction::CopyHunk, "copy"),
            (LayerAction::EditLine, "editor"),
            (LayerAction::FindInDiff, "search"),
            (LayerAction::SwitchColumns, if self.is_split { "unified" } else { "side by side" }),
            (LayerAction::WrapLines, if self.wraps { "scroll" } else { "wrap" }),
            (LayerAction::FoldFile, "fold"),
            (LayerAction::ListFiles, "files"),
            (LayerAction::CloseOverlay, "close"),
        ]);
        // Without the list beside the lines, the way to it is one of the first.
        if !self.areas.is_wide {
            let comment = hints.iter().position(|(action, _)| *action == LayerAction::CommentLine).unwrap_or(0);
            hints[comment + 1..].rotate_right(2);
        }
        paint.hints(&hints)
    }

    /// On the frame, at the right: files, lines, and the place of the cursor.
    fn draw_totals(&self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let Some(changes) = self.changes.as_ref().filter(|it| !it.files.is_empty()) else { return };
        let (added, removed, is_whole) = self.folders.totals;
        let files = changes.files.len();
        let mark = if is_whole { "" } else { "≥" };
        let mut spans = Vec::new();
        let place = match self.hunk() {
            Some(_) if self.is_start() => "  comparing…".to_owned(),
            Some((at, of)) => format!("  hunk {}/{of}", at + 1),
            None => String::new(),
        };
        let room = usize::from(area.width).saturating_sub(width(&self.heading()) + 8);
        self.draw_sources(canvas, area, theme);
        let named = format!(" {files} {}", if files == 1 { "file" } else { "files" });
        spans.push(Span::styled(named, theme.dim()));
        let lines = plus_minus_spans(&format!("  {mark}"), (added, removed), theme);
        let figures = lines.len();
        spans.extend(lines);
        spans.push(Span::styled(format!("{place} "), theme.dim()));
        if span_width(&spans) > room {
            spans.drain(..1);
        }
        if span_width(&spans) > room {
            spans.drain(..figures);
        }
        let wide = u16::try_from(span_width(&spans)).unwrap_or(u16::MAX);
        if usize::from(wide) <= room {
            let at = Rect { x: area.right().saturating_sub(wide + 2), width: wide, height: 1, ..area };
            canvas.line(Line::from(spans), at);
        }
    }

    /// On the frame, behind the title: what else can be compared, in the order of the key that switches.
    fn draw_sources(&self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let count = self.sources.len();
        let others = (1..count).map(|by| self.sources[(self.source + by) % count].1.as_str());
        let text = format!("· {} ", others.collect::<Vec<_>>().join(" · "));
        let before = width(&self.heading()) + 3;
        // The totals stand at the right.
        if count > 1 && !canvas.is_bare && usize::from(area.width) > before + width(&text) + TOTALS {
            let x = area.x + u16::try_from(before).unwrap_or(0);
            let wide = u16::try_from(width(&text)).unwrap_or(0);
            canvas.line(Line::styled(text, theme.dim()), Rect { x, width: wide, height: 1, ..area });
        }
    }

    /// The last row: a notice, the search, or what waits for an answer. Returns the area above.
    fn draw_foot(&self, canvas: &mut Canvas, inner: Rect, note: Option<&str>, theme: &Theme) -> Rect {
        let line = if self.is_sending {
            let count = self.review.comments.len();
            let what = if count == 1 {
                "Send the comment".to_owned()
            } else {
                format!("Send {count} comments as one message")
            };
            Line::styled(format!("{what} to the model?"), theme.fg(theme.warning))
        } else if self.search.is_typed || !self.search.text.is_empty() {
            let style = theme.fg(if self.search.is_missing { theme.warning } else { theme.text });
            let missing = match (self.search.is_missing, self.is_start()) {
                (false, _) => "",
                (true, false) => "  no match in this file",
                (true, true) => "  no match so far: this file is still being compared",
            };
            let mut line = Line::styled(format!("/ {}", visible(&self.search.text)), style);
            line.push_span(Span::styled(missing, theme.dim()));
            if self.search.is_typed {
                let column = u16::try_from(2 + width(&self.search.text)).unwrap_or(u16::MAX);
                canvas.set_cursor_position((
                    (inner.x + column).min(inner.right().saturating_sub(1)),
                    inner.bottom().saturating_sub(1),
                ));
            }
            line
        } else if let Some(notice) = self.notice.as_deref() {
            Line::styled(fit(&visible(notice), usize::from(inner.width)), theme.fg(theme.warning))
        } else if let Some(reverted) = self.reverted.as_deref() {
            Line::styled(fit(&visible(reverted), usize::from(inner.width)), theme.fg(theme.success))
        } else if let Some(note) = note {
            Line::styled(fit(note, usize::from(inner.width)), theme.dim())
        } else {
            return inner;
        };
        let foot = Rect { y: inner.bottom().saturating_sub(1), height: 1.min(inner.height), ..inner };
        canvas.line(line, foot);
        Rect { height: inner.height.saturating_sub(1), ..inner }
    }

    /// Goes from unified to side by side or back, and stays on the line.
    fn turn(&mut self, is_split: bool) {
        let line = self.places().get(self.cursor).and_then(|place| place.line());
        self.is_split = is_split;
        if let Some(line) = line {
            let has = |place: &Place| {
                [place.left, place.right].into_iter().flatten().any(|at| usize::try_from(at) == Ok(line))
            };
            // Rows stand in the order of their hunks, so only those of one hunk are searched.
            let hunk = self.text().and_then(|text| text.hunk_of(line)).and_then(|hunk| u32::try_from(hunk).ok());
            let first = self.places().partition_point(|place| Some(place.hunk) < hunk);
            if let Some(at) = self.places()[first..].iter().position(has) {
                self.cursor = first + at;
                self.top = self.top.min(self.cursor);
            }
        }
    }

    // ─── The list ───

    fn draw_list(&mut self, canvas: &mut Canvas, area: Rect, theme: &Theme) {
        let height = usize::from(area.height);
        let count = self.folders.len();
        let chosen = if self.lists { self.folders.cursor } else { self.folders.row_of(self.file) };
        let around = chosen.saturating_sub(height / 2);
        let first = self.list_top.unwrap_or(around).min(count.saturating_sub(height));
        self.areas.list = Some((area, first));
        let columns = usize::from(area.width);
        for (y, at) in (area.y..area.bottom()).zip(first..count) {
            let row = Rect { y, height: 1, ..area };
            let line = self.folders.line(at, self.files(), columns, theme);
            let is_chosen = at == chosen;
            canvas.region("option", row, || line.to_string());
            canvas.region_state(RegionState { focused: self.lists && is_chosen, selected: is_chosen });
            if is_chosen {
                canvas.tint(row, theme.selected());
            }
            canvas.line(line, row);
        }
    }

    // ─── The file ───

    fn draw_file(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        let theme = paint.theme;
        let Some(file) = self.current().cloned() else { return };
        let encoding = self.loaded().and_then(|it| it.encoding.as_deref());
        let head = head_line(&file, encoding, usize::from(area.width), theme);
        canvas.line(head, Rect { height: 1.min(area.height), ..area });
        let body = Rect { y: area.y + 1.min(area.height), height: area.height.saturating_sub(1), ..area };
        self.areas.body = body;
        self.page = usize::from(body.height.saturating_sub(2)).max(1);
        let message = match (self.folded(), self.loaded().map(|it| &it.body)) {
            (Some(Folded::Generated), _) => Some("A generated file".to_owned()),
            (Some(Folded::Huge), _) => Some("A large change".to_owned()),
            (None, None) => Some("Loading…".to_owned()),
            (None, Some(Body::Binary(old, new))) => {
                Some(format!("Not text: {} → {}", human_size(*old), human_size(*new)))
            }
            (None, Some(Body::Nothing(why))) => Some(visible(why)),
            (None, Some(Body::Text(_))) => None,
        };
        if let Some(mut message) = message {
            if self.folded().is_some() {
                let (added, removed) = file.counts.unwrap_or_default();
                message = format!(
                    "{message}: {}. {}",
                    plus_minus(added, removed),
                    paint.hints(&[(LayerAction::FoldFile, "unfold")])
                );
            }
            let at = Rect { y: body.y + 1.min(body.height), height: body.height.min(1), ..body };
            return canvas.line(Line::styled(fit(&message, usize::from(body.width)), theme.dim()), at);
        }
        let Some(text) = self.text().cloned() else { return };
        let look = Look {
            view: self,
            file: &file,
            text: &text,
            paint,
            columns: usize::from(body.width),
            digits: digits(&text),
            chunks: RefCell::default(),
        };
        let (rows, top) = look.visible(usize::from(body.height));
        self.top = top;
        let below = Rect { y: body.y + u16::try_from(rows.len()).unwrap_or(u16::MAX).min(body.height), ..body };
        if self.is_start() && below.y < body.bottom() {
            let rest = "⋯ comparing the rest of the file…";
            canvas.line(Line::styled(rest, theme.dim()), Rect { height: 1, ..below });
        }
        let mut caret = None;
        for (y, (place, line)) in (body.y..body.bottom()).zip(rows) {
            let row = Rect { y, height: 1, ..body };
            canvas.line(&line, row);
            let is_field = self.field.is_some() && place == self.cursor;
            if is_field {
                caret = Some((y, span_width(&line.spans)));
            } else if place == self.cursor && self.areas.rows.last() != Some(&place) {
                canvas.region("option", row, || line.to_string());
                canvas.region_state(RegionState { focused: true, selected: true });
                mark(canvas, row, theme);
            }
            self.areas.rows.push(place);
        }
        if let Some((y, column)) = caret {
            let x = body.x.saturating_add(u16::try_from(column).unwrap_or(u16::MAX));
            canvas.set_cursor_position((x.min(body.right().saturating_sub(1)), y));
        }
    }
}

/// Marks the row of the cursor at its left edge; the tint of the line stays.
fn mark(canvas: &mut Canvas, row: Rect, theme: &Theme) {
    canvas.line(Line::styled("▌", theme.fg(theme.accent)), Rect { width: 1, ..row });
}

fn digits(text: &TextPatch) -> usize {
    // One column is left for the mark of the cursor.
    text.old.len().max(text.new.len()).to_string().len().max(3) + 1
}

/// Everything that the look of a row depends on.
struct Look<'a> {
    view: &'a DiffView,
    file: &'a ChangedFile,
    text: &'a TextPatch,
    paint: Paint<'a>,
    columns: usize,
    digits: usize,
    /// The colours of the chunks in this frame, of the old and of the new text. To find them reads the whole chunk.
    chunks: RefCell<HashMap<(bool, u32), Option<Coloured>>>,
}

impl Look<'_> {
    /// The rows on a screen of this height, each with its place, and the first place. Only these are laid out.
    fn visible(&self, height: usize) -> (Vec<(usize, Line<'static>)>, usize) {
        let places = self.view.places();
        let mut top = self.view.top.min(places.len().saturating_sub(1));
        let cursor = self.view.cursor;
        if cursor < top {
            top = cursor;
        }
        // From the cursor up, as far as it leaves the cursor on the screen; the rest of what was above stays where it was.
        let mut used = self.rows(cursor).len();
        let mut first = cursor;
        while first > top {
            let more = self.rows(first - 1).len();
            if used + more > height {
                break;
            }
            used += more;
            first -= 1;
        }
        top = first;
        let mut shown = Vec::new();
        let mut at = top;
        while shown.len() < height && at < places.len() {
            shown.extend(self.rows(at).into_iter().map(|line| (at, line)));
            at += 1;
        }
        (shown, top)
    }

    fn rows(&self, at: usize) -> Vec<Line<'static>> {
        let Some(place) = self.view.places().get(at) else { return Vec::new() };
        if place.is_head() {
            return vec![self.hunk_line(place.hunk)];
        }
        let of = |line: Option<u32>| line.and_then(|at| self.text.lines.get(usize::try_from(at).ok()?)).copied();
        let (left, right) = (of(place.left), of(place.right));
        let mut rows = if self.view.is_split {
            self.pair(left, right)
        } else {
            left.map_or_else(Vec::new, |line| self.half(Some(line), self.columns, line.tag == Tag::Removed))
        };
        rows.extend(self.comments([left, right], at));
        rows
    }

    fn pair(&self, left: Option<DiffedLine>, right: Option<DiffedLine>) -> Vec<Line<'static>> {
        let half = self.columns.saturating_sub(3) / 2;
        let theme = self.paint.theme;
        let (no_left, no_right) = (left.is_none(), right.is_none());
        let (mut left, mut right) = (self.half(left, half, true), self.half(right, half, false));
        let rows = left.len().max(right.len()).max(1);
        left.resize(rows, if no_left { absent(half, theme) } else { Line::raw(" ".repeat(half)) });
        right.resize(rows, if no_right { absent(half, theme) } else { Line::default() });
        let both = left.into_iter().zip(right).map(|(mut left, right)| {
            let used = span_width(&left.spans);
            left.spans.push(Span::raw(" ".repeat(half.saturating_sub(used))));
            left.spans.push(Span::styled(" │ ", theme.fg(theme.border)));
            left.spans.extend(right.spans);
            left
        });
        both.collect()
    }

    /// A line on its side.
    fn half(&self, line: Option<DiffedLine>, columns: usize, is_old: bool) -> Vec<Line<'static>> {
        let Some(line) = line else { return Vec::new() };
        let number = if is_old { line.old } else { line.new };
        let text = self.text.text(line).trim_end_matches(['\n', '\r']);
        let changed = self.text.pair(line).and_then(|(old, new)| words(old, new));
        let changed = changed.map(|it| if line.tag == Tag::Removed { it.old } else { it.new });
        let is_removed = line.tag == Tag::Removed;
        let moved = self.moved(line);
        let changed = changed.filter(|_| moved.is_none());
        let own = if is_removed { line.old } else { line.new };
        let chunk = own.and_then(|number| self.colours(number, is_removed));
        let colours: Option<&[(Ink, String)]> =
            chunk.as_ref().and_then(|(chunk, at)| chunk.get(*at)).map(Vec::as_slice);
        let line = DiffLine {
            tag: Some(line.tag),
            number: number.map(|at| at + 1),
            text: cut(text),
            words: changed.unwrap_or_default(),
            colours,
            is_moved: moved.is_some(),
        };
        let flow = if self.view.wraps { Flow::Wrap } else { Flow::Scroll(self.view.left) };
        let rows = rows_of(&line, columns, self.digits, flow, self.paint.theme);
        let mut rows: Vec<Line<'static>> = rows.into_iter().map(|row| row.line).collect();
        if let (Some(Some(place)), Some(first)) = (moved, rows.first_mut()) {
            let way = if is_removed { "moved to" } else { "moved from" };
            let note = format!("  {way} {place}");
            if span_width(&first.spans) + width(&note) <= columns {
                first.push_span(Span::styled(note, self.paint.theme.dim().italic()));
            }
        }
        rows
    }

    /// Whether a line only stands elsewhere, and for the first line of its block where: `line 12`, `src/new.rs:12`.
    fn moved(&self, line: DiffedLine) -> Option<Option<String>> {
        if let Some(within) = self.text.moved(line) {
            return Some(within.is_first.then(|| format!("line {}", within.other + 1)));
        }
        let there = self.view.across.moved(&self.file.path, line)?;
        Some(there.is_first.then(|| format!("{}:{}", visible(&there.path), there.line + 1)))
    }

    /// The colours of the lines around this one, and its index among them.
    fn colours(&self, number: u32, is_old: bool) -> Option<(Coloured, usize)> {
        let text = if is_old { &self.text.old } else { &self.text.new };
        let first = number / CHUNK * CHUNK;
        let end = u32::try_from(text.len()).ok()?.min(first + CHUNK);
        let mut chunks = self.chunks.borrow_mut();
        let chunk = chunks.entry((is_old, first)).or_insert_with(|| {
            let before = text.lines(first.saturating_sub(BEFORE)..first);
            self.paint.highlighter.colours(language_of(&self.file.path), before, text.lines(first..end))
        });
        Some((chunk.clone()?, usize::try_from(number - first).ok()?))
    }

    /// `@@ 86–94  def normalize(text):` and whether it is reviewed.
    fn hunk_line(&self, at: u32) -> Line<'static> {
        let theme = self.paint.theme;
        let Some(hunk) = usize::try_from(at).ok().and_then(|at| self.text.hunks.get(at)) else {
            return Line::default();
        };
        let shown = if hunk.new.is_empty() { &hunk.old } else { &hunk.new };
        let id = self.view.loaded().and_then(|loaded| loaded.ids.get(usize::try_from(at).ok()?));
        let kept = id.is_some_and(|id| self.view.kept.contains(id));
        let lines = format!("{:>width$}–{}", shown.start + 1, shown.end, width = self.digits);
        let heading = fit(&visible(self.text.heading(hunk)), self.columns.saturating_sub(width(&lines) + 14));
        let mut line = Line::from(vec![
            Span::styled(format!("{lines}  "), theme.fg(theme.accent)),
            Span::styled(heading, theme.dim()),
        ]);
        if kept {
            line.push_span(Span::styled("  ✓ reviewed", theme.fg(theme.success)));
        }
        // A hunk ends where the rule of the next one is.
        let used = span_width(&line.spans);
        if used + 2 < self.columns {
            let rule = format!(" {}", "─".repeat(self.columns - used - 1));
            line.push_span(Span::styled(rule, theme.fg(theme.border)));
        }
        line
    }

    /// The comments under a line, and the field of the one that is written.
    fn comments(&self, lines: [Option<DiffedLine>; 2], at: usize) -> Vec<Line<'static>> {
        let theme = self.paint.theme;
        let mut rows = Vec::new();
        let indent = " ".repeat(self.digits + 3);
        let is_here =
            |line: DiffedLine| self.view.review.comments.iter().filter(move |it| it.is_on(&self.file.path, line));
        let is_written = self.view.field.is_some() && self.view.cursor == at;
        let mut seen: Vec<&str> = Vec::new();
        for comment in lines.into_iter().flatten().flat_map(is_here) {
            if is_written || seen.contains(&comment.text.as_str()) {
                continue;
            }
            seen.push(&comment.text);
            let mark = if comment.is_outdated { "❯ (edited since) " } else { "❯ " };
            let text = [Span::styled(visible(&comment.text), theme.fg(theme.text))];
            let first = [Span::raw(indent.clone()), Span::styled(mark, theme.fg(theme.user))];
            let rest = [Span::raw(format!("{indent}  "))];
            rows.extend(crate::render::text::wrap_lines(&text, self.columns, &first, &rest));
        }
        if let Some(field) = self.view.field.as_ref().filter(|_| is_written) {
            let text = [Span::styled(visible(&field.comment.text), theme.fg(theme.text))];
            let first = [Span::raw(indent.clone()), Span::styled("❯ ", theme.fg(theme.warning))];
            let rest = [Span::raw(format!("{indent}  "))];
            rows.extend(crate::render::text::wrap_lines(&text, self.columns, &first, &rest));
        }
        rows
    }
}

/// Lines of minified code are shown as far as anybody reads them.
fn cut(text: &str) -> &str {
    const LONGEST: usize = 4_000;
    let end = (0..=LONGEST.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    &text[..end]
}
