//! A key that a command of the user prints, such as `pass show work` or `gcloud auth print-access-token`.

use std::time::Duration;

use secrecy::SecretString;

use config::credentials::{PrintedKey, REDACTED, SHORTEST_SECRET};
use net::quoted;
use process::{Ended, OfThePerson, Printed, program};
use protocol::error::{Code, Error, Result};
use secrecy::ExposeSecret as _;

use super::connect::{MAX_KEY, key};

/// How long the command may take: some ask the user on a screen, or wait for a slow sign-in server.
const LIMIT: Duration = Duration::from_secs(60);
/// The most of its stderr that an error shows, characters.
const SHOWN: usize = net::MAX_SHOWN;

/// Runs the command and returns the key that it prints.
///
/// The command gets the environment of pixir, no input and no terminal. It runs in the root folder, so that nothing of a
/// repository decides what it does.
///
/// # Errors
/// `TOKEN_REQUEST_FAILED`, with what the command wrote to its stderr. Its stdout is never shown: it may be a key.
pub(super) async fn print(it: PrintedKey, provider: &str) -> Result<PrintedKey> {
    print_within(it, provider, LIMIT).await
}

async fn print_within(it: PrintedKey, provider: &str, limit: Duration) -> Result<PrintedKey> {
    let failed = |why: &str| {
        let fix =
            format!("run it in a terminal to see what it wants, or change it in [providers.{provider}] of config.toml");
        Error::new(Code::TokenRequestFailed, format!("`api_key_command` of {provider} {why}"), fix)
            .with("input", provider)
    };
    let mut shell = program("sh", &["-c".to_owned(), it.command.expose_secret().to_owned()]);
    shell.current_dir("/");
    // One byte more than a key may have, so that a longer text is seen as one.
    let ran = OfThePerson::print(shell, limit, MAX_KEY + 1).await;
    let Printed { ended, out, err } = ran.map_err(|e| failed(&format!("cannot be started: {e}")))?;
    let out = SecretString::from(String::from_utf8_lossy(&out).into_owned());
    let says = says(&err, &out);
    match ended {
        Ended::Exited(status) if status.success() => {}
        Ended::Exited(_) => return Err(failed(&format!("ended with {}{says}", ended.code()))),
        Ended::TimedOut => return Err(failed(&format!("was stopped after {} s{says}", limit.as_secs()))),
    }
    let printed = key(out.expose_secret()).map_err(|e| failed(&format!("printed no key: {}{says}", e.message)))?;
    let printed = printed.reveal().clone();
    Ok(it.printed(printed))
}

/// What the command wrote to its stderr, without the words that it printed.
fn says(err: &[u8], out: &SecretString) -> String {
    let text = String::from_utf8_lossy(err);
    let words = out.expose_secret().split_whitespace().filter(|word| word.len() >= SHORTEST_SECRET);
    let text = words.fold(text.trim().to_owned(), |text, word| text.replace(word, REDACTED));
    let skipped = text.chars().count().saturating_sub(SHOWN);
    // The last words of a program say why it ended.
    let text: String = text.chars().skip(skipped).collect();
    if text.is_empty() { String::new() } else { format!(": {}", quoted(&text)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn printed(command: &str) -> std::result::Result<String, String> {
        let it = print_within(PrintedKey::new(command, 300), "work", Duration::from_millis(1_500)).await;
        it.map(|it| it.key.expose_secret().to_owned()).map_err(|e| {
            assert_eq!(e.code, Code::TokenRequestFailed);
            e.message
        })
    }

    /// Broken builds: a failed command yields what it has printed; the printed text is in the error; a command that waits, or
    /// one whose helper lives on, is awaited for ever.
    #[tokio::test]
    async fn a_command_yields_one_word_or_an_error_with_its_stderr() {
        for (command, key) in [
            ("echo sk-one", "sk-one"),
            ("printf '\\n  sk-two \\r\\n\\n'", "sk-two"),
            ("echo warning >&2; echo sk-three", "sk-three"),
            ("sleep 60 & echo sk-four", "sk-four"),
            ("pwd", "/"),
        ] {
            assert_eq!(printed(command).await.as_deref(), Ok(key), "{command}");
        }
        for (command, says) in [
            ("echo secret-key-0001; echo 'log in first' >&2; exit 3", "ended with 3: log in first"),
            ("echo secret-key-0001; echo 'got secret-key-0001' >&2; exit 1", "ended with 1: got [redacted]"),
            ("yes warning | head -n 9999 >&2; echo 'run az login' >&2; exit 1", "run az login"),
            ("true", "printed no key: the key is empty"),
            ("echo secret-key-0001 two words", "printed no key: a key is one word"),
            ("head -c 100000 /dev/zero | tr '\\0' x", "printed no key: the input is too long"),
            ("kill -9 $$", "ended with 137"),
            ("no-such-program-here", "ended with 127: "),
            ("echo working >&2; sleep 60", "was stopped after 1 s: working"),
        ] {
            let error = printed(command).await.expect_err(command);
            assert!(error.contains(says), "{command}: {error}");
            assert!(!error.contains("secret-key-0001"), "{error}");
        }
    }
}
