//! A stop of all agents that another process asks for. Only the process that has a Session open can stop its agents, so the
//! other one leaves a file, which is heeded from the first agent on.

use std::sync::{Arc, Weak};
use std::time::Duration;

use arrivals::Arrivals;

use super::node::{Heeding, Node};
use call::agents::Stop;
use call::off_loop;
use storage::store::Place;

/// How often the file is looked for where the kernel does not tell that it is there.
const LOOK: Duration = Duration::from_millis(250);

impl Node {
    /// Heeds the file from now on. The root does it for the whole tree.
    pub(super) fn heed_stop_file(&self) {
        if self.at.path.is_empty() {
            let place = self.base.0.place(&self.id);
            self.stop_file.get_or_init(|| Heeding(task::spawn(heed(self.weak(), Arc::new(place))).abort_handle()));
        }
    }
}

async fn heed(me: Weak<Node>, place: Arc<Place>) {
    let folder = Arc::clone(&place);
    let folder = off_loop(move || Ok(folder.folder_of_requests())).await;
    let arrivals = folder.ok().and_then(|folder| Arrivals::in_folder(&folder.ok()?).ok());
    // One that no process took when it was written is not meant for these agents.
    place.take_back_end_of_agents();
    loop {
        match &arrivals {
            Some(arrivals) => arrivals.next().await,
            None => tokio::time::sleep(LOOK).await,
        }
        let Some(node) = me.upgrade() else { return };
        let place = Arc::clone(&place);
        let is_asked = off_loop(move || Ok(place.take_back_end_of_agents())).await;
        if is_asked.unwrap_or_default() {
            tracing::info!(session = %node.id, "another process asked for the end of all agents");
            node.stop_some(Stop::All).await;
        }
    }
}

/// Files that come into a folder, as the kernel tells of them.
#[cfg(target_os = "linux")]
mod arrivals {
    use std::io;
    use std::mem::MaybeUninit;
    use std::os::fd::OwnedFd;
    use std::path::Path;

    use rustix::fs::inotify::{self, CreateFlags, Reader, WatchFlags};
    use tokio::io::Interest;
    use tokio::io::unix::AsyncFd;

    pub(super) struct Arrivals(AsyncFd<OwnedFd>);

    impl Arrivals {
        #[expect(deprecated, reason = "a descriptor of our own stays open as long as this; other kinds need `unsafe`")]
        pub(super) fn in_folder(folder: &Path) -> io::Result<Arrivals> {
            let watch = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
            inotify::add_watch(&watch, folder, WatchFlags::CREATE | WatchFlags::MOVED_TO)?;
            AsyncFd::with_interest(watch, Interest::READABLE).map(Arrivals)
        }

        /// Waits until a file has come since the last time.
        pub(super) async fn next(&self) {
            let Ok(mut ready) = self.0.readable().await else { return std::future::pending().await };
            let mut buffer = [MaybeUninit::uninit(); 4 << 10];
            let mut events = Reader::new(self.0.get_ref(), &mut buffer);
            while events.next().is_ok() {}
            ready.clear_ready();
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod arrivals {
    use std::io;
    use std::path::Path;

    pub(super) struct Arrivals;

    impl Arrivals {
        pub(super) fn in_folder(_folder: &Path) -> io::Result<Arrivals> {
            Err(io::ErrorKind::Unsupported.into())
        }

        pub(super) async fn next(&self) {
            std::future::pending().await
        }
    }
}
