//! What the keys of the tree do.

use pixir_core::Input;
use pixir_core::input::Summarize;

use super::comparison::Compared;
use super::find::Search;
use super::{Face, PendingMove, Question, TreeView};
use crate::input::action::{LayerAction, Scope, SessionKind};
use crate::overlay::narrow::cut_word;
use crate::overlay::{Effect, Notification, OnHarness, Outcome, Paint, Press, Request, View};
use crate::terminal::canvas::Canvas;
use crate::terminal::key::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::layout::Rect;

impl TreeView {
    fn say(&mut self, text: &str) -> Outcome {
        self.note = Some(text.to_owned());
        Outcome::Stay
    }

    fn go_to(&self, to_seq: Option<u64>, edit: Option<String>) -> Outcome {
        let summarize = self.summarize;
        Outcome::CloseAndAsk(Request::MoveHead(PendingMove { to_seq, summarize, edit }))
    }

    /// Goes to the chosen Turn or Session, or does what was asked about.
    fn enter(&mut self) -> Outcome {
        match self.question.take() {
            Some(Question::Fork) => return self.fork(),
            Some(Question::Remove) => return self.remove(),
            None => {}
        }
        if let Face::Forest = self.face {
            return match self.forest.chosen() {
                Some((_, true)) => {
                    self.face = Face::Tree;
                    Outcome::Stay
                }
                Some((id, false)) => Outcome::CloseAndAsk(Request::Command(format!("/resume {id}"))),
                None => Outcome::Stay,
            };
        }
        if self.plot.is_on_chain() {
            return self.fold();
        }
        match self.chosen() {
            // The head is already there.
            Some(node) if node.is_head => Outcome::Close,
            Some(node) => self.go_to(Some(node.end_seq), None),
            None => Outcome::Stay,
        }
    }

    /// Leaves the innermost: a question, a search, a comparison, the Sessions, and at last the tree.
    fn back_out(&mut self) -> Outcome {
        if self.question.take().is_some() {
            return Outcome::Stay;
        }
        if !matches!(self.face, Face::Tree) {
            self.face = Face::Tree;
            self.previewed = None;
            return Outcome::Stay;
        }
        if self.search.take().is_some() {
            return Outcome::Stay;
        }
        Outcome::Close
    }

    /// Goes to before the chosen prompt, which returns to the composer.
    fn edit(&mut self) -> Outcome {
        match self.chosen() {
            Some(node) if !self.plot.is_on_chain() => self.go_to(node.before, Some(node.text.clone())),
            Some(_) | None => Outcome::Stay,
        }
    }

    /// Goes back to where the head was before its last move.
    fn jump_back(&mut self) -> Outcome {
        match self.moves.back.last() {
            Some(to) => self.go_to(*to, None),
            None => self.say("the head has not moved yet"),
        }
    }

    /// Goes forward to where the head came back from.
    fn jump_forward(&mut self) -> Outcome {
        match self.moves.forward.last() {
            Some(to) => self.go_to(*to, None),
            None => self.say("there is no way forward: the head has not gone back"),
        }
    }

    fn fork(&self) -> Outcome {
        self.chosen().map_or(Outcome::Stay, |node| Outcome::close_and_send(Input::Fork { seq: node.end_seq }))
    }

    fn ask_fork(&mut self) -> Outcome {
        if self.chosen().is_some() && !self.plot.is_on_chain() {
            self.question = Some(Question::Fork);
        }
        Outcome::Stay
    }

    fn ask_remove(&mut self) -> Outcome {
        let (in_trash, on_path) = match self.chosen() {
            Some(node) => (node.in_trash, node.on_path),
            None => return Outcome::Stay,
        };
        if in_trash {
            return self.say("that branch is in the trash already");
        }
        if on_path {
            return self.say("the current branch cannot be removed: go to another branch first");
        }
        self.question = Some(Question::Remove);
        Outcome::Stay
    }

    fn remove(&mut self) -> Outcome {
        let Some(seq) = self.chosen_seq() else { return Outcome::Stay };
        self.removed.push(seq);
        self.note = Some("moved to the trash; nothing is erased".to_owned());
        Outcome::send(Input::RemoveBranch { seq })
    }

    /// Restores the chosen branch from the trash, or the one that was removed last.
    fn restore(&mut self) -> Outcome {
        let begins = self.plot.node().filter(|node| self.tree.nodes[*node].in_trash).map(|node| self.trash_root(node));
        let last = || self.removed.last().copied();
        let Some(seq) = begins.or_else(last).or_else(|| self.last_in_trash()) else {
            return self.say("the trash is empty");
        };
        self.removed.retain(|it| *it != seq);
        self.note = Some("restored from the trash".to_owned());
        Outcome::send(Input::RestoreBranch { seq })
    }

    /// The first Entry of the branch in the trash that a node belongs to.
    fn trash_root(&self, node: usize) -> u64 {
        let mut at = node;
        while let Some(parent) = self.tree.parents[at].filter(|parent| self.tree.nodes[*parent].in_trash) {
            at = parent;
        }
        self.tree.nodes[at].seq
    }

    fn last_in_trash(&self) -> Option<u64> {
        let node = self.tree.nodes.iter().rposition(|node| node.in_trash)?;
        Some(self.trash_root(node))
    }

    fn name(&mut self) -> Outcome {
        if !self.plot.is_on_chain() {
            self.naming = self.chosen().map(|node| node.label.clone().unwrap_or_default());
        }
        Outcome::Stay
    }

    fn pin(&mut self) -> Outcome {
        let Some(node) = self.chosen().filter(|_| !self.plot.is_on_chain()) else { return Outcome::Stay };
        let mut seqs = vec![node.seq, node.end_seq];
        seqs.dedup();
        let pinned = !node.pinned;
        let pin = |seq| Input::Pin { seq, pinned };
        Outcome::Ask(Request::Send(seqs.into_iter().map(pin).collect()))
    }

    /// Changes whether and how the branch that the head leaves is summarised.
    fn cycle_summary(&mut self) -> Outcome {
        self.summarize = match self.summarize {
            Summarize::No => Summarize::Deterministic,
            Summarize::Deterministic => Summarize::Model,
            Summarize::Model => Summarize::No,
        };
        Outcome::Stay
    }

    fn mark(&mut self) -> Outcome {
        let seq = self.chosen_seq().filter(|_| !self.plot.is_on_chain());
        self.marked = if self.marked == seq { None } else { seq };
        Outcome::Stay
    }

    /// Compares the marked Turn, or the one with the head, with the chosen one.
    fn compare(&mut self) -> Outcome {
        let marked = self.marked.and_then(|seq| self.tree.node_of(seq));
        let head = || self.tree.nodes.iter().position(|node| node.is_head);
        let (Some(left), Some(right)) = (marked.or_else(head), self.plot.node()) else { return Outcome::Stay };
        if left == right {
            return self.say("mark another turn first, then compare");
        }
        let compared = Compared::new(&self.tree, left, right);
        let (left, right) = compared.sides();
        let (left, right) = (self.tree.entries_of(left), self.tree.entries_of(right));
        self.face = Face::Compared(Box::new(compared));
        Outcome::does(OnHarness::LoadComparison { left, right })
    }

    /// Unfolds the chosen chain, or folds the one that the chosen Turn is in.
    fn fold(&mut self) -> Outcome {
        let Some(node) = self.plot.node() else { return Outcome::Stay };
        let above = std::iter::successors(Some(node), |at| self.tree.parents[*at]).take(self.tree.nodes.len());
        let seq = self.tree.nodes[node].seq;
        if self.plot.is_on_chain() {
            self.unfolded.insert(seq);
            self.lay_out(Some(seq));
        } else if let Some(first) = above.map(|at| self.tree.nodes[at].seq).find(|seq| self.unfolded.contains(seq)) {
            self.unfolded.remove(&first);
            self.lay_out(Some(seq));
            // The chain further up is another one.
            if !self.plot.is_on_chain() {
                self.unfolded.insert(first);
                self.lay_out(Some(seq));
            }
        }
        Outcome::Stay
    }

    fn sibling(&mut self, by: isize) -> Outcome {
        if !self.plot.sibling(by, &self.tree) {
            return self.say("no other branch here");
        }
        Outcome::Stay
    }

    fn cycle_filter(&mut self) -> Outcome {
        let chosen = self.chosen_seq();
        self.filter = self.filter.next();
        self.lay_out(chosen);
        Outcome::Stay
    }

    fn start_search(&mut self) -> Outcome {
        self.search = Some(Search { is_typed: true, ..Search::default() });
        Outcome::Stay
    }

    /// Goes to the next Turn that has the text, or the one before, around at the ends.
    fn next_match(&mut self, by: isize) -> Outcome {
        let Some(search) = &self.search else { return self.say("search first") };
        let rows = || search.hits.iter().filter_map(|node| Some((self.plot.row_of(*node)?, *node)));
        let here = (self.plot.chosen, self.plot.node().unwrap_or(0));
        let next = if by > 0 {
            rows().filter(|it| *it > here).min().or_else(|| rows().min())
        } else {
            rows().filter(|it| *it < here).max().or_else(|| rows().max())
        };
        if let Some((_, node)) = next {
            self.reveal(node);
        }
        Outcome::Stay
    }

    /// Puts the cursor on a node, and unfolds the chain that it is in.
    fn reveal(&mut self, node: usize) {
        self.plot.choose(Some(node));
        if self.plot.is_on_chain() && self.plot.nodes(self.plot.chosen).len() > 1 {
            if let Some(first) = self.chosen_seq() {
                self.unfolded.insert(first);
            }
            self.lay_out(Some(self.tree.nodes[node].seq));
        }
    }

    /// While the user types, the cursor stands on the nearest match.
    fn on_search_typed(&mut self) {
        let filter = self.filter;
        let Some(search) = &mut self.search else { return };
        search.update(&self.tree, |node| filter.shows(node));
        search.rows = search.hits.iter().filter_map(|node| self.plot.row_of(*node)).collect();
        let here = self.plot.chosen;
        let rows = || search.hits.iter().filter_map(|node| self.plot.row_of(*node));
        if let Some(row) = rows().filter(|row| *row >= here).min().or_else(|| rows().min()) {
            self.plot.chosen = row;
        }
    }

    fn toggle_preview(&mut self) -> Outcome {
        self.face = if matches!(self.face, Face::Preview) { Face::Tree } else { Face::Preview };
        self.previewed = None;
        Outcome::Stay
    }

    fn toggle_forest(&mut self) -> Outcome {
        self.face = if matches!(self.face, Face::Forest) { Face::Tree } else { Face::Forest };
        Outcome::Stay
    }

    /// Moves the cursor, or scrolls, by rows.
    fn step(&mut self, by: isize) {
        match &mut self.face {
            Face::Tree => self.plot.step(by),
            Face::Forest => self.forest.step(by),
            Face::Compared(compared) => compared.page.scroll(by),
            Face::Preview => self.preview.scroll(by),
        }
    }

    /// The same by pages.
    fn page(&mut self, by: isize) {
        match &mut self.face {
            Face::Tree => self.plot.page(by),
            Face::Forest => self.forest.page(by),
            Face::Compared(compared) => compared.page.scroll(compared.page.page() * by),
            Face::Preview => self.preview.scroll(self.preview.page() * by),
        }
    }

    /// The same to the start, or to the end.
    fn go_to_end(&mut self, by: isize) {
        const ALL: isize = isize::MAX / 2;
        match &mut self.face {
            Face::Tree if by < 0 => self.plot.go_to_start(),
            Face::Tree => self.plot.go_to_end(),
            Face::Forest => self.forest.step(by * ALL),
            Face::Compared(compared) => compared.page.scroll(by * ALL),
            Face::Preview => self.preview.scroll(by * ALL),
        }
    }

    // ─── Fields ───

    /// Ends typing: the label is set, or the search goes on with n and N.
    fn type_enter(&mut self) -> Outcome {
        if let Some(name) = self.naming.take() {
            let text = name.trim().to_owned();
            return self.chosen_seq().map_or(Outcome::Stay, |seq| Outcome::send(Input::Label { seq, text }));
        }
        let Some(search) = &mut self.search else { return Outcome::Stay };
        search.is_typed = false;
        if search.text.is_empty() {
            self.search = None;
        } else if let Some(node) = self.plot.nodes(self.plot.chosen).iter().find(|it| search.hits.contains(it)) {
            let node = *node;
            self.reveal(node);
        }
        Outcome::Stay
    }
}

impl View for TreeView {
    fn title(&self) -> &'static str {
        "Tree"
    }

    fn scopes(&self) -> &'static [Scope] {
        &[Scope::Tree, Scope::Overlay]
    }

    /// Carries out an action. A question that is open is answered by Enter only; any other key takes it back.
    fn act(&mut self, action: LayerAction) -> Outcome {
        self.note = None;
        if !matches!(action, LayerAction::Choose | LayerAction::CloseOverlay) {
            self.question = None;
        }
        match action {
            LayerAction::CloseOverlay => return self.back_out(),
            LayerAction::Choose => return self.enter(),
            LayerAction::OverlayUp => self.step(-1),
            LayerAction::OverlayDown => self.step(1),
            LayerAction::OverlayPageUp => self.page(-1),
            LayerAction::OverlayPageDown => self.page(1),
            LayerAction::OverlayStart => self.go_to_end(-1),
            LayerAction::OverlayEnd => self.go_to_end(1),
            LayerAction::ToggleTreePreview => return self.toggle_preview(),
            LayerAction::ToggleForest if self.session == SessionKind::Live => return self.toggle_forest(),
            // The others are about the Turn under the cursor.
            _ if !matches!(self.face, Face::Tree | Face::Preview) => {}
            LayerAction::FindInTree => return self.start_search(),
            LayerAction::NextInTree => return self.next_match(1),
            LayerAction::PreviousInTree => return self.next_match(-1),
            LayerAction::NextBranch => return self.sibling(1),
            LayerAction::PreviousBranch => return self.sibling(-1),
            LayerAction::FoldChain if matches!(self.face, Face::Preview) => self.page(1),
            LayerAction::FoldChain => return self.fold(),
            LayerAction::CycleTreeFilter => return self.cycle_filter(),
            LayerAction::MarkNode => return self.mark(),
            _ if self.session == SessionKind::Replay => {}
            LayerAction::CompareNodes => return self.compare(),
            LayerAction::EditAgain => return self.edit(),
            LayerAction::JumpBack => return self.jump_back(),
            LayerAction::JumpForward => return self.jump_forward(),
            LayerAction::ForkHere => return self.ask_fork(),
            LayerAction::LabelNode => return self.name(),
            LayerAction::PinNode => return self.pin(),
            LayerAction::CycleSummary => return self.cycle_summary(),
            LayerAction::RemoveBranch => return self.ask_remove(),
            LayerAction::RestoreBranch => return self.restore(),
            _ => {}
        }
        Outcome::Stay
    }

    /// Moves the cursor, or scrolls.
    fn scroll(&mut self, by: isize) {
        self.step(by);
    }

    /// The wheel does so where the pointer is: over the preview, it scrolls the preview.
    fn wheel(&mut self, at: ratatui::layout::Position, by: isize) -> Outcome {
        if self.preview_area.contains(at) {
            self.preview.scroll(by)
        } else {
            self.step(by)
        }
        Outcome::Stay
    }

    /// A click chooses the row under it.
    fn press(&mut self, at: ratatui::layout::Position) -> Press {
        if !self.rows.contains(at) {
            return Press::Nowhere;
        }
        let below = usize::from(at.y - self.rows.y);
        let is_row = match self.face {
            Face::Tree => self.plot.click(below),
            Face::Forest => self.forest.click(below),
            Face::Compared(_) | Face::Preview => false,
        };
        if is_row { Press::OnRow(below) } else { Press::Nowhere }
    }

    /// The letters of the keys are text.
    fn is_typing(&self) -> bool {
        self.naming.is_some() || self.search.as_ref().is_some_and(|search| search.is_typed)
    }

    /// A key while the user types.
    fn key(&mut self, key: KeyEvent) -> Option<Outcome> {
        let field = match (&mut self.naming, &mut self.search) {
            (Some(name), _) => name,
            (None, Some(search)) => &mut search.text,
            (None, None) => return None,
        };
        match key.code {
            KeyCode::Backspace => drop(field.pop()),
            KeyCode::Char('u') if key.modifiers == KeyModifiers::CONTROL => field.clear(),
            KeyCode::Char('w') if key.modifiers == KeyModifiers::CONTROL => cut_word(field),
            KeyCode::Char(c) if key.modifiers.is_typing() => field.push(c),
            KeyCode::Esc => {
                if self.naming.take().is_none() {
                    self.search = None;
                }
                return Some(Outcome::Stay);
            }
            KeyCode::Enter => return Some(self.type_enter()),
            // Arrows move the cursor also while a search is typed.
            _ => return None,
        }
        if self.naming.is_none() {
            self.on_search_typed();
        }
        Some(Outcome::Stay)
    }

    /// Adds pasted text to the field that is typed.
    fn paste(&mut self, text: &str) {
        let line = text.lines().next().unwrap_or_default();
        if let Some(name) = &mut self.naming {
            name.push_str(line);
        } else if let Some(search) = self.search.as_mut().filter(|search| search.is_typed) {
            search.text.push_str(line);
            self.on_search_typed();
        }
    }

    fn draw(&mut self, canvas: &mut Canvas, area: Rect, paint: Paint<'_>) {
        self.paint(canvas, area, paint);
    }

    fn opened(&mut self) -> Vec<Effect> {
        self.read_forest()
    }

    fn notify(&mut self, notification: Notification<'_>) {
        self.learn(notification);
    }
}
