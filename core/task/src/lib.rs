//! Tasks of the runtime: core starts every one of them here.
//!
//! Tokio compiles 14 KB of code for each type of future that it runs, and with them once more the body of the future.
//! Boxed, all tasks with the same result share that code, and a body is compiled once. It costs an allocation for each
//! task; tokio itself boxes those that are larger than 2 KB.
#![forbid(unsafe_code)]

use futures_util::future::{BoxFuture, LocalBoxFuture};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Starts a task on the current runtime.
pub fn spawn<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> JoinHandle<T> {
    tokio::spawn(boxed(work))
}

/// Starts work that may block, on a thread of its own.
pub fn spawn_blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    let work: Box<dyn FnOnce() -> T + Send> = Box::new(work);
    tokio::task::spawn_blocking(work)
}

/// Waits on this thread, which belongs to no runtime, until the work is done.
pub fn block_on<T>(runtime: &Handle, work: impl Future<Output = T>) -> T {
    let work: LocalBoxFuture<'_, T> = Box::pin(work);
    runtime.block_on(work)
}

/// A future of no type of its own, for sets of tasks, and for functions that other rooms await.
pub fn boxed<'a, T>(work: impl Future<Output = T> + Send + 'a) -> BoxFuture<'a, T> {
    Box::pin(work)
}
