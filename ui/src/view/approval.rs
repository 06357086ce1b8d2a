//! The card of an approval, above the composer: what the call would do, the keys that decide, and why it asks.

use pixir_core::event::{Approval, Preview, Rule, Scope};
use pixir_core::rules;
use ratatui::text::{Line, Span};

use crate::input::action::Action;
use crate::input::keymap::Keymap;
use crate::render::agents::named;
use crate::render::context::{LayoutKey, RenderContext};
use crate::render::figures::plus_minus_spans;
use crate::render::preview::{self, Unchanged};
use crate::render::text::{fit, span_width, visible, width, wrap_lines};
use crate::state::{Focus, PendingApproval, State};
use crate::theme::Theme;

/// With fewer rows or columns, the card has no frame on the right and no reason.
const ROOMY: (usize, usize) = (7, 56);

/// More rows than a card has on any screen. What does not fit is read in full in a view of its own.
const TALLEST: usize = 200;
/// With at least this many rows, the card has a blank one above the answers.
const AIRY: usize = 14;

/// The card of the first approval in at most `most` rows, and whether all that the call would change is visible.
pub(super) fn lines(state: &mut State, columns: usize, most: usize) -> Option<(Vec<Line<'static>>, bool)> {
    let (theme, highlighter) = (&state.look.theme, &state.look.highlighter);
    let others = state.asked().saturating_sub(1);
    let first = state.approvals.first().filter(|it| it.approval.agent.is_none());
    let place = first.and_then(|it| state.transcript.place_in_answer(&it.approval.call_id));
    let is_bare = state.look.screen_reader;
    let focused = state.focus == Focus::Approval;
    let pending = state.approvals.first_mut()?;
    let is_roomy = most >= ROOMY.0 && columns >= ROOMY.1 && !is_bare;
    let danger = danger(&pending.approval);
    let ink = theme.fg(if danger.is_some() { theme.error } else { theme.warning });
    // A frame takes two columns on each side.
    let inside = columns.saturating_sub(if is_roomy { 4 } else { 3 }).max(1);
    let mut answers = answer_lines(pending, focused, inside, theme, &state.keys.map, Answers::All);
    // In one row only, allowing and refusing matter most.
    if most < 5 && answers.len() > 1 {
        answers = answer_lines(pending, focused, inside, theme, &state.keys.map, Answers::Plain);
        answers.truncate(1);
    }
    let title = title(&pending.approval, columns.saturating_sub(12));
    let mut body: Vec<Line<'static>> = asker_line(&pending.approval, inside, theme).into_iter().collect();
    if let Some(danger) = danger {
        let text = format!("⚠ {}", visible(&danger));
        body.extend(wrap_lines(&[Span::styled(text, theme.fg(theme.error).bold())], inside, &[], &[Span::raw("  ")]));
    }
    let frame = if is_roomy { 2 } else { 1 };
    // The reason stands on the frame, or in the card where it would be cut.
    let edge_room = columns.saturating_sub(8);
    let whole_why = why(&pending.approval, edge_room);
    let mut reason: Vec<Line<'static>> = Vec::new();
    if is_roomy && width(&whole_why) > edge_room {
        let text = Span::styled(bare_reason(&pending.approval), theme.dim());
        reason = wrap_lines(&[text], inside, &[], &[Span::raw("     ")]);
        reason.truncate(most / 4);
    }
    let room = most.saturating_sub(frame + answers.len() + body.len() + reason.len()).max(1);
    let it = &pending.approval;
    // Lines around a change give way before changed lines do.
    let mut shown: Option<Vec<Line<'static>>> = None;
    let mut hidden = 0;
    for (unchanged, cache) in [Unchanged::All, Unchanged::Some, Unchanged::None].into_iter().zip(&mut pending.preview) {
        let key = LayoutKey { columns: inside, generation: state.look.generation };
        let (lines, more) = cache.out(key, |columns| {
            let context = RenderContext::new(theme, highlighter, columns);
            preview::card(&it.preview, &context, unchanged, title.is_whole, TALLEST)
        });
        let all = lines.len() + more;
        if *more == 0 && all <= room {
            shown = Some(lines.to_vec());
            break;
        }
        shown = None;
        if unchanged == Unchanged::None {
            let shown = lines.iter().take(room - 1);
            hidden = all - shown.len();
            body.extend(shown.cloned());
        }
    }
    let is_whole = shown.is_some();
    body.extend(shown.into_iter().flatten());
    if !is_whole {
        let hint = if pending.is_read {
            "read to the end".to_owned()
        } else {
            format!("{} reads all of it", state.keys.map.keys_to_expand_approval())
        };
        let text = fit(&format!("… {hidden} more lines · {hint}"), inside);
        body.push(Line::styled(text, theme.fg(theme.warning)));
    }
    let count = match place {
        Some((at, all)) if all > 1 && others == 0 => format!("{at} of {all}"),
        _ if others > 0 => format!("1 of {}", others + 1),
        _ => String::new(),
    };
    if is_bare {
        let mut lines = vec![Line::from([title.spans(theme), vec![Span::raw(format!("  {count}"))]].concat())];
        lines.extend(body);
        lines.extend(wrap_lines(&[Span::raw(why(it, usize::MAX))], inside, &[], &[]));
        lines.extend(answers);
        return Some((lines, is_whole));
    }
    let mut lines = vec![edge(('┏', '┓'), title.spans(theme), &count, columns, is_roomy, ink, theme)];
    let has_reason = !reason.is_empty();
    let rows = frame + body.len() + reason.len() + answers.len();
    body.extend(reason);
    // Air above the answers, where nothing is missing for it.
    if most >= AIRY && is_roomy && is_whole && !body.is_empty() && rows + 1 < most {
        body.push(Line::default());
    }
    body.extend(answers);
    let last = body.len() - 1;
    for (at, line) in body.into_iter().enumerate() {
        let corner = if at == last && !is_roomy { " ┗ " } else { " ┃ " };
        let mut spans = vec![Span::styled(corner, ink)];
        let used = span_width(&line.spans);
        spans.extend(line.spans.into_iter().map(|span| span.patch_style(line.style)));
        if is_roomy {
            spans.push(Span::raw(" ".repeat(inside.saturating_sub(used))));
            spans.push(Span::styled(" ┃", ink));
        }
        lines.push(Line::from(spans));
    }
    if is_roomy {
        let text = if has_reason { rule_named(it).unwrap_or_default() } else { whole_why };
        let text = if has_reason && width(&text) > edge_room { String::new() } else { fit(&text, edge_room) };
        let text = if text.is_empty() { Vec::new() } else { vec![Span::styled(text, theme.dim())] };
        lines.push(edge(('┗', '┛'), text, "", columns, true, ink, theme));
    }
    // Air above the card, where nothing is missing for it.
    if is_whole && lines.len() < most {
        lines.insert(0, Line::default());
    }
    Some((lines, is_whole))
}

/// `reviewer-2 ‹ worker-1 asks · reviewer`: the agent that asks, if it is not the Session itself.
fn asker_line(approval: &Approval, columns: usize, theme: &Theme) -> Option<Line<'static>> {
    let agent = approval.agent.as_ref()?;
    let name = fit(&visible(&named(&agent.path)), columns.saturating_sub(6));
    let mut spans =
        vec![Span::styled(name.clone(), theme.fg(theme.accent).bold()), Span::styled(" asks", theme.fg(theme.text))];
    let is_said = agent.path.last().is_some_and(|it| it.starts_with(agent.role.as_str()));
    if !agent.role.is_empty() && !is_said {
        let role = fit(&format!(" · {}", visible(&agent.role)), columns.saturating_sub(width(&name) + 5));
        spans.push(Span::styled(role, theme.dim()));
    }
    Some(Line::from(spans))
}

/// A horizontal edge of the card with a text at its left and one at its right.
fn edge(
    (left, right): (char, char),
    text: Vec<Span<'static>>,
    count: &str,
    columns: usize,
    is_roomy: bool,
    ink: ratatui::style::Style,
    theme: &Theme,
) -> Line<'static> {
    let blank = if text.is_empty() { "" } else { " " };
    let mut spans = vec![Span::styled(format!(" {left}{blank}"), ink)];
    spans.extend(text);
    let used = span_width(&spans);
    if !is_roomy {
        let gap = columns.saturating_sub(used + width(count));
        if !count.is_empty() && gap > 0 {
            spans.push(Span::styled(format!("{}{count}", " ".repeat(gap)), theme.dim()));
        }
        return Line::from(spans);
    }
    let tail = if count.is_empty() { String::new() } else { format!(" {count} ") };
    let line = (columns + 1).saturating_sub(used + blank.len() + width(&tail) + 1);
    spans.push(Span::styled(format!("{blank}{}", "━".repeat(line)), ink));
    spans.push(Span::styled(tail, theme.bold()));
    spans.push(Span::styled(right.to_string(), ink));
    Line::from(spans)
}

/// What the call would do, in a few words.
struct Title {
    verb: String,
    target: String,
    lines: (u64, u64),
    /// The target stands in the title as a whole.
    is_whole: bool,
}

impl Title {
    fn spans(&self, theme: &Theme) -> Vec<Span<'static>> {
        let mut spans = vec![Span::styled(self.verb.clone(), theme.bold())];
        if !self.target.is_empty() {
            spans.push(Span::styled(format!(" {}", self.target), theme.fg(theme.code)));
        }
        spans.extend(plus_minus_spans("  ", self.lines, theme));
        spans
    }
}

fn title(approval: &Approval, room: usize) -> Title {
    let it = &*approval.preview;
    let lines = preview::changed_lines(it);
    let verb = match (it.would.as_str(), it.steps.len()) {
        ("run", 0) => "Run".to_owned(),
        ("run in the background", 0) => "Run in the background".to_owned(),
        ("run", _) => "Run a line".to_owned(),
        ("patch", n) if n > 1 => format!("Change {n} files"),
        (would, _) => {
            let first = would.chars().next().map_or(0, char::len_utf8);
            format!("{}{}", would[..first].to_uppercase(), visible(&would[first..]))
        }
    };
    // Numbers are as wide as they get.
    let taken = width(&verb) + 1 + 16;
    let target = if it.steps.is_empty() { preview::target_in_one_line(it) } else { None };
    let target = target.filter(|it| width(it) + taken <= room.max(24));
    Title { is_whole: target.is_some(), verb, target: target.unwrap_or_default(), lines }
}

/// What the call could destroy, and what of it the card cannot show.
fn danger(approval: &Approval) -> Option<String> {
    let Preview { would, target, danger, .. } = &*approval.preview;
    let destroyed = danger.clone().or_else(|| rules::danger(target).filter(|_| would.starts_with("run")));
    let unseen = approval.confirm.iter().flat_map(|it| it.unseen.iter().cloned());
    let all: Vec<String> = destroyed.into_iter().chain(unseen).collect();
    (!all.is_empty()).then(|| all.join("; "))
}

/// The reason, and the rule that would allow the call. In few columns the rule is named in fewer words, or not at all.
fn why(approval: &Approval, columns: usize) -> String {
    let reason = bare_reason(approval);
    let Some(rule) = rule_named(approval) else { return reason };
    let whole = format!("{reason} · rule that would allow it: {}", rule.trim_start_matches("rule: "));
    let fits = |it: &String| width(it) <= columns;
    [whole, format!("{reason} · {rule}")].into_iter().find(fits).unwrap_or(reason)
}

fn bare_reason(approval: &Approval) -> String {
    format!("why: {}", visible(&approval.reason))
}

/// `rule: bash(cargo test *)`
fn rule_named(approval: &Approval) -> Option<String> {
    let rule = match approval.rule.as_ref()? {
        Rule::Allow(Scope::FileChanges) | Rule::Deny(Scope::FileChanges) => "every change of files".to_owned(),
        Rule::Allow(scope) | Rule::Deny(scope) => visible(&rules::shown(scope)),
    };
    Some(format!("rule: {rule}"))
}

/// Which answers are shown with their keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Answers {
    All,
    /// To allow or to refuse, and no more.
    Plain,
}

fn answer_lines(
    pending: &PendingApproval,
    focused: bool,
    columns: usize,
    theme: &Theme,
    keymap: &Keymap,
    which: Answers,
) -> Vec<Line<'static>> {
    let it = &pending.approval;
    if pending.is_in_feedback() {
        let text = "write what to do instead, then Enter · Esc back";
        return vec![Line::styled(fit(text, columns), theme.fg(theme.accent))];
    }
    let is_wide = columns >= 62;
    let mut answers = Vec::new();
    for (anywhere, here, label) in [
        // The dots say that a question follows.
        (Action::AllowOnce, Action::FocusedAllowOnce, Some(if it.confirm.is_some() { "Allow…" } else { "Allow" })),
        (
            Action::AllowAlways,
            Action::FocusedAllowAlways,
            it.rule.as_ref().filter(|_| which == Answers::All).map(|_| "Always…"),
        ),
        (Action::Deny, Action::FocusedDeny, Some("Refuse")),
        (
            Action::DenyWithFeedback,
            Action::FocusedDenyWithFeedback,
            Some(if is_wide { "Refuse and say why" } else { "Say why" }).filter(|_| which == Answers::All),
        ),
    ] {
        let key = keymap.key_of(if focused { here } else { anywhere });
        if let (Some(label), Some(key)) = (label, key) {
            if !answers.is_empty() {
                answers.push(Span::raw(if is_wide { "   " } else { "  " }));
            }
            answers.push(Span::styled(key, theme.fg(theme.accent).bold()));
            // Non-breaking blanks keep a key and its label on one line.
            answers.push(Span::styled(format!("\u{a0}{}", label.replace(' ', "\u{a0}")), theme.fg(theme.text)));
        }
    }
    wrap_lines(&answers, columns, &[], &[])
}
