//! Waiting for the answer to what was sent to an actor.

use tokio::sync::oneshot;

/// The answer; `None` when the actor has gone. `gone` is the end of the channel to it.
///
/// What is sent in the moment in which the actor goes can stay in the channel, and the reply with it, for as long as a sender
/// is left: a caller that waited for the answer alone would wait for ever.
pub async fn answer_of<T>(mut answer: oneshot::Receiver<T>, gone: impl Future<Output = ()>) -> Option<T> {
    tokio::select! {
        biased;
        given = &mut answer => given.ok(),
        () = gone => answer.try_recv().ok(),
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::{mpsc, oneshot};

    use super::answer_of;

    /// Broken build: the answer alone is waited for.
    #[tokio::test]
    async fn what_is_sent_while_the_actor_goes_is_answered_with_nothing() {
        let (commands, inbox) = mpsc::channel(1);
        let (reply, answer) = oneshot::channel::<()>();
        let room = commands.reserve().await.expect("there is room");
        drop(inbox);
        room.send(reply);
        assert_eq!(answer_of(answer, commands.closed()).await, None);
    }

    /// Broken build: an actor that has gone has answered nothing.
    #[tokio::test]
    async fn an_answer_that_came_before_the_actor_went_counts() {
        let (commands, mut inbox) = mpsc::channel(1);
        let (reply, answer) = oneshot::channel();
        commands.send(reply).await.expect("there is room");
        inbox.recv().await.expect("it is there").send(7).expect("it is waited for");
        drop(inbox);
        assert_eq!(answer_of(answer, commands.closed()).await, Some(7));
    }
}
