//! Sessions that a Session has started, as the Logs of its folder tell them.

use std::io::{BufRead as _, BufReader};

use super::{Place, Store, Trashed, index};
use crate::{log, regular};
use protocol::error::{Code, Error, Result, nearest};
use protocol::event::{Entry, Fact, ParentSession, SessionId};
use protocol::remedy::{Remedy, Sessions};

/// The longest first line that is read for what it says of a parent, bytes.
const MAX_LINE: u64 = 64 << 20;

impl Place {
    /// What its Log says of the Session that started it; `None` if the user did.
    pub fn parent(&self) -> Option<ParentSession> {
        let file = regular::open_to_read(&self.log()).ok()?;
        let mut line = String::new();
        BufReader::new(std::io::Read::take(file, MAX_LINE)).read_line(&mut line).ok()?;
        match Entry::decode(line.trim_end()).ok()?.fact {
            Fact::SessionStarted(it) => it.parent.map(|it| *it),
            _ => None,
        }
    }

    /// Sessions that it has started, in the order of their beginning.
    pub fn children(&self) -> Vec<Place> {
        let mut own: Vec<_> = index::list(&self.folder).into_iter().collect();
        own.retain(|it| it.parent.as_deref() == Some(self.id.as_str()));
        own.sort_by(|a, b| a.created.cmp(&b.created).then_with(|| a.id.cmp(&b.id)));
        own.iter().filter_map(|it| Some(Place::new(&self.folder, SessionId::parse(&it.id).ok()?))).collect()
    }

    /// Sessions that it has started, and those that they have, each behind its parent.
    pub fn descendants(&self) -> Vec<Place> {
        let mut all = Vec::new();
        let mut open = self.children();
        open.reverse();
        while let Some(place) = open.pop() {
            // A Log that names itself its parent would have no end.
            if all.contains(&place) || place == *self {
                continue;
            }
            open.extend(place.children().into_iter().rev());
            all.push(place);
        }
        all
    }

    /// The child of this name.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND`, with the names that there are.
    pub fn child(&self, name: &str) -> Result<Place> {
        let all: Vec<(String, Place)> =
            self.children().into_iter().filter_map(|it| Some((it.parent()?.name, it))).collect();
        if let Some((_, place)) = all.iter().find(|(it, _)| it == name) {
            return Ok(place.clone());
        }
        let names = || all.iter().map(|(name, _)| name.as_str());
        let fix = match nearest(name, names()) {
            Some(near) => format!("did you mean {}/{near}?", self.id),
            None if all.is_empty() => "the session itself".to_owned(),
            None => format!("one of: {}", names().collect::<Vec<_>>().join(", ")),
        };
        let message = format!("{} has started no agent `{}`", self.id, name.escape_debug());
        Err(Error::new(Code::SessionNotFound, message, fix))
    }

    /// The Session that the user began, and the names from its child down to this one; none for that Session itself.
    ///
    /// # Errors
    /// `SESSION_NOT_FOUND` if a Session above is gone.
    pub fn lineage(&self) -> Result<(Place, Vec<String>)> {
        let mut at = self.clone();
        let mut path = Vec::new();
        while let Some(parent) = at.parent() {
            path.push(parent.name);
            let above = Place::new(&self.folder, SessionId::parse(&parent.session_id)?);
            if !above.log().is_file() || path.len() > 16 {
                let message = format!("the session {} that started this agent is gone", above.id);
                let fix = Remedy::ListSessions { which: Sessions::Trash };
                return Err(Error::new(Code::SessionNotFound, message, fix));
            }
            at = above;
        }
        path.reverse();
        Ok((at, path))
    }

    /// Whether a process has the Session open for writing.
    pub fn is_open(&self) -> bool {
        let opened = log::Log::open(&self.log(), self.id.clone());
        opened.is_err_and(|e| e.code == Code::SessionLocked)
    }
}

impl Store {
    /// Finds an agent by `SESSION/NAME/…`.
    pub(super) fn find_agent(&self, text: &str, near: &std::path::Path) -> Option<Result<Place>> {
        let (above, name) = text.rsplit_once('/')?;
        let place = self.find(above, near).ok()?;
        Some(place.child(name))
    }
}

impl Trashed {
    /// Agents of the Session that are in the trash with it.
    pub fn agents(&self) -> &[String] {
        &self.agents
    }
}
