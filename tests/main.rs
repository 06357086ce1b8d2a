//! Stories at the real boundaries: the binary, the pty, the loopback socket, the file system, and the whole interface in memory.

mod architecture; // who may know whom
mod driver; // a whole pixir: a scripted model, keys, a screen
mod issuer; // a small server whose answers a story decides
mod pty; // the real binary in a real terminal
mod server; // a scripted model server on loopback
mod shell; // the real binary, without a terminal

mod stories {
    mod user_commands; // commands and images in the line
    mod chaos; // anything in any order
    mod cli; // what the command line promises
    mod jobs; // jobs, questions, memories
    mod crash; // what survives kill -9
    mod demo; // the first thing that anyone runs
    mod server_faults; // every way in which a server fails, at every moment
    mod files; // files as tools read, search and change them
    mod frames; // what the screen looks like
    mod inline; // without a screen of its own
    mod credentials; // keys and tokens, never to be seen
    mod run_limits; // what a line of commands may not do
    mod processes; // what a command starts ends with it
    mod dialects; // what a model is sent and what is made of its answer
    mod transcript; // finding, folding and copying in the transcript
    mod layout; // what others had to mend
    mod reasoning; // what goes back to a model of what it said
    mod replay; // a session told again
    mod run_language; // one line is a whole workflow
    mod approvals; // what a person does in the interface
    mod sessions; // sessions at rest
    mod sse; // answers as servers send them, cut anywhere
    mod environment; // terminals of every kind, and none
    mod terminal; // what only a real terminal shows
    mod tools; // what every tool and command keeps to
    mod undo; // files follow the conversation
    mod tls; // certificates
    mod turns; // turns over HTTP, in every dialect
    mod composer; // the line in which one writes
}
