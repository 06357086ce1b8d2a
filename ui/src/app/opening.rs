//! Opening another Session in place of the one on the screen.

use pixir_core::{Code, Error, Handle, Harness, Result};

use super::App;
use super::background::{BackgroundEvent, FailedTask};

impl App {
    /// Closes this Session and opens another. If that fails, opens this one again and shows the error.
    pub(super) async fn reopen(
        &mut self,
        harness: Harness,
        open: impl FnOnce(&Harness) -> Result<Handle> + Send + 'static,
    ) {
        self.save_draft();
        // From an agent's screen, the user leaves the whole tree.
        let again = self.own_session();
        let own = self.root.take().map(|it| it.handle);
        let before = own.or(self.handle.take());
        self.handle = None;
        self.closing.extend(before.clone());
        self.watch = None;
        // Before the first Session, an overlay that the user has opened stays.
        if self.opens_requested > 0 {
            self.state.clear_session();
        }
        self.state.session.can_send = true;
        self.opens_requested += 1;
        let number = self.opens_requested;
        self.spawn_for(FailedTask::Open(number), async move {
            if let Some(before) = before {
                before.close().await;
            }
            let reading = harness.clone();
            // Opening a Session reads its whole Log.
            let read = tokio::task::spawn_blocking(move || match (open(&reading), again) {
                // An empty Session is deleted when it closes, so it cannot always be resumed.
                (Err(error), Some(id)) => (reading.resume_or_read(&id).or_else(|_| reading.start()), Some(error)),
                (opened, _) => (opened, None),
            });
            let (opened, instead) = read.await.expect("opening a session does not panic");
            match opened {
                Ok(handle) => match handle.watch().await {
                    Some(watch) => {
                        let place = harness.place(handle.id());
                        let is_new = watch.past.entries().iter().all(|entry| !entry.fact.is_conversation());
                        let abandoned = || if is_new && !watch.now.read_only { harness.abandoned() } else { None };
                        let draft = place.presenter_state().or_else(abandoned);
                        BackgroundEvent::Opened { number, handle, watch: Box::new(watch), instead, draft }
                    }
                    None => BackgroundEvent::NotOpened {
                        number,
                        error: Error::new(
                            Code::SessionStartFailed,
                            "the session closed as soon as it was open",
                            "try again",
                        ),
                    },
                },
                Err(error) => BackgroundEvent::NotOpened { number, error },
            }
        });
    }
}
