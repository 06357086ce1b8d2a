//! What a child changed in its copy goes to the workspace: by itself in mode `auto`, as far as it merges; otherwise as the user
//! decides. The plan is on the disk before the first file is written, so that a crash loses and doubles nothing.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::watch;

use super::child::Child;
use super::copies;
use super::node::Node;
use call::agent_end::adopted;
use call::agents::AgentNews;
use call::leases::{Holder, Patience};
use call::off_loop;
use files::restore::carry_out;
use permissions::Touch;
use protocol::agent::WaitingFor;
use protocol::error::{Code, Error, Result};
use protocol::event::{Adoption, AgentEvent, AgentResult, AgentStatus, Isolation, Live, Mode, RestorePreview};
use protocol::input::{OnConflict, RestoreOptions};

impl Node {
    /// A Turn of a child that works in a copy has ended: its changes are adopted, or the user is asked. Returns when there is
    /// nothing to wait for.
    ///
    /// # Errors
    /// What kept the files from being written, where it is no difference between both versions.
    pub(super) async fn offer(
        &self,
        child: &Arc<Child>,
        result: &mut AgentResult,
        mut decided: watch::Receiver<u64>,
    ) -> Result<()> {
        if child.isolation != Isolation::Copy {
            return Ok(());
        }
        *child.adoptions.done.lock() = None;
        let stop = child.order.lock().stop.clone();
        let mut written = Ok(());
        if self.at.standing.mode() == Mode::Auto && result.is_answered() {
            // A protected file is for the user to decide, and so is what cannot be written now.
            let taken = self.take_files(child, RestoreOptions::default(), Patience::Until(&stop)).await;
            if let Err(error) = &taken {
                tracing::info!(agent = child.name(), "an agent's files were not adopted: {}", error.message);
            }
            written = taken.map(drop);
        }
        let may_ask = self.asks.load(Ordering::Relaxed) && !stop.is_cancelled();
        *child.adoptions.asks.lock() = may_ask;
        let waiting = self.show_files(child, may_ask).await;
        result.unasked = waiting > 0 && !may_ask;
        if waiting > 0 && may_ask {
            let state = child.change(|state| {
                (state.status, state.waiting_for) = (AgentStatus::Waiting, Some(WaitingFor::User));
                state.doing = format!("adopt {waiting} {}", if waiting == 1 { "file" } else { "files" });
            });
            self.publish(state);
            tokio::select! {
                () = stop.cancelled() => {}
                _ = decided.changed() => {}
            }
            if *child.adoptions.waits_for_step.lock() {
                // Its Turn has ended before: from here on it is not open.
                child.change(|state| state.status = result.status);
            }
        }
        *child.adoptions.asks.lock() = false;
        result.adoption = child.adoptions.done.lock().take().map(Box::new);
        written
    }

    /// What the user decided about the files of a child's copy.
    pub(super) async fn decide_files(
        self: Arc<Node>,
        name: String,
        options: RestoreOptions,
        later: bool,
    ) -> Result<()> {
        let child = self.child(&name)?;
        match child.isolation {
            Isolation::Copy => {}
            Isolation::Shared => {
                let message = format!("{name} works on the workspace itself, not on a copy");
                return Err(Error::new(Code::NothingToDo, message, "look at the changes of the session"));
            }
            Isolation::Scratch => {
                let message = format!("{name} works in a copy that is thrown away");
                return Err(Error::new(Code::NothingToDo, message, "start an agent with isolation copy"));
            }
        }
        let asks = *child.adoptions.asks.lock();
        if child.is_open() && !asks {
            let message = format!("{name} still runs");
            return Err(Error::new(Code::CommandFailed, message, "wait until it has ended, or stop it"));
        }
        if options.dry_run {
            if self.show_files(&child, true).await == 0 {
                let message = format!("nothing that {name} changed waits: all of it is in the workspace");
                return Err(Error::new(Code::NothingToDo, message, "go on; its work is here"));
            }
            return Ok(());
        }
        if !later {
            let done = match self.take_files(&child, options, Patience::Short).await {
                Ok(done) => done,
                Err(error) => {
                    // What the user was shown is out of date; this is the new preview.
                    self.show_files(&child, true).await;
                    return Err(error);
                }
            };
            // What was asked and not decided is asked again: a call still waits for it.
            let decides_nothing = done.changes.is_empty() && done.kept.is_empty();
            let waiting = self.show_files(&child, asks && decides_nothing).await;
            if !asks {
                // No call waits for this decision, so the model is told before its next request.
                let text = format!("files that agent {name} changed in its copy\n{}", adopted(Some(&done), false));
                let _ = self.news.send(AgentNews::Tell { name: name.clone(), text });
            }
            if decides_nothing {
                let message = format!("no file of {name} was adopted; {waiting} changed since, in the same lines");
                return Err(Error::new(Code::FileChanged, message, "decide for each: keep it, or take the agent's"));
            }
        }
        child.adoptions.decided.send_modify(|times| *times += 1);
        self.tidy(&child).await;
        Ok(())
    }

    /// Shows what waits, and returns how many files. With `publishes`, watchers get the preview.
    pub(super) async fn show_files(&self, child: &Arc<Child>, publishes: bool) -> usize {
        let asks = *child.adoptions.asks.lock();
        let (base, own) = (self.base.0.clone(), Arc::clone(child));
        let preview = off_loop(move || {
            let (target, _) = copies::waiting(&base, &own)?;
            Ok(RestorePreview {
                agent: own.path.clone(),
                asks,
                ..target.preview(&base.guarded(base.workspace.root())?, &base.blobs)
            })
        });
        let preview = match preview.await {
            Ok(preview) => preview,
            Err(error) => {
                tracing::warn!(agent = child.name(), "an agent's files were not read: {}", error.message);
                return 0;
            }
        };
        let waiting = preview.files.len();
        let state = child.change(|state| state.waiting_files = u32::try_from(waiting).unwrap_or(u32::MAX));
        if publishes && waiting > 0 {
            self.send_live(child.path.clone(), Live::RestorePreviewed(preview));
        } else {
            self.publish(state);
        }
        waiting
    }

    /// Writes files of a child's copy to the workspace.
    async fn take_files(
        &self,
        child: &Arc<Child>,
        options: RestoreOptions,
        patience: Patience<'_>,
    ) -> Result<Adoption> {
        let _one = child.adoptions.one.lock().await;
        let base = self.base.0.clone();
        let (services, own) = (base.clone(), Arc::clone(child));
        let (target, to_seq) = off_loop(move || copies::waiting(&services, &own)).await?;
        let touches: Vec<Touch> =
            target.paths().map(|path| Touch::Files { path: Some(path.clone()), protected: None }).collect();
        let _lease = self.at.leases.take(&Holder::named(child.name()), &touches, patience).await?;
        let workspace = Arc::new(
            off_loop({
                let base = base.clone();
                move || base.guarded(base.workspace.root())
            })
            .await?,
        );
        let planned = off_loop({
            let (workspace, blobs) = (Arc::clone(&workspace), base.blobs.clone());
            // Where both changes fit, the merge needs no decision.
            let options = RestoreOptions { changed_since: merging(options.changed_since), ..options };
            move || target.plan(&options, &workspace, &blobs)
        })
        .await?;
        let mut it = Adoption {
            name: child.name().to_owned(),
            to_seq,
            changes: planned.changes,
            kept: planned.kept,
            left: planned.left,
        };
        if !it.changes.is_empty() {
            self.record(AgentEvent::Adopting(Box::new(it.clone()))).await?;
            let snapshot = base.snapshot.for_session(self.id.clone());
            let changes = std::mem::take(&mut it.changes);
            let (done, left) = off_loop(move || Ok(carry_out(&changes, &workspace, &base.blobs, &snapshot))).await?;
            it.changes = done;
            it.left.extend(left);
        }
        if !it.changes.is_empty() || !it.kept.is_empty() {
            self.record(AgentEvent::Adopted(Box::new(it.clone()))).await?;
            child.adoptions.settle(&it);
        }
        let mut before = child.adoptions.done.lock();
        let all = match before.take() {
            Some(mut all) => {
                all.changes.extend(it.changes.clone());
                all.kept.extend(it.kept.clone());
                all.left.clone_from(&it.left);
                all
            }
            None => it.clone(),
        };
        *before = Some(all);
        Ok(it)
    }

    /// Closes the children that work in copies, and removes the copies in which nothing waits: pixir may end next.
    pub(super) async fn tidy_all(&self) {
        let children: Vec<Arc<Child>> = self.children.lock().clone();
        for child in children.iter().filter(|it| it.isolation != Isolation::Shared) {
            let open = child.door.lock().await.as_ref().and_then(door::WeakHandle::upgrade);
            if let Some(door) = open {
                door.close().await;
                door.commands.closed().await;
            }
            self.tidy(child).await;
        }
    }

    /// Removes the copy of a child that is not open, if nothing in it waits.
    pub(super) async fn tidy(&self, child: &Arc<Child>) {
        let door = child.door.lock().await;
        let is_open = door.as_ref().is_some_and(|door| door.upgrade().is_some());
        let is_for_step = *child.adoptions.waits_for_step.lock();
        let waits = is_for_step || child.isolation == Isolation::Copy && child.state().waiting_files > 0;
        if is_open || waits || child.isolation == Isolation::Shared {
            return;
        }
        let (base, root, own) = (self.base.0.clone(), self.at.tree.root.clone(), Arc::clone(child));
        let removed = task::spawn_blocking(move || copies::remove(&base, &root, &own));
        let _ = removed.await;
    }
}

/// A file that changed on both sides is merged, unless the user wants all of the agent's.
fn merging(choice: OnConflict) -> OnConflict {
    match choice {
        OnConflict::Overwrite => OnConflict::Overwrite,
        OnConflict::Keep | OnConflict::Merge => OnConflict::Merge,
    }
}
