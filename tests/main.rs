//! Stories at the real boundaries: the binary, the pty, the loopback socket, the file system, and the whole interface in memory.

mod architecture; // who may know whom
mod driver; // a whole pixir: a scripted model, keys, a screen
mod issuer; // a small server whose answers a story decides
mod plain_strings; // words that fit every Presenter
mod pty; // the real binary in a real terminal
mod server; // a scripted model server on loopback
mod shell; // the real binary, without a terminal

mod stories {
    mod asides; // commands and images in the line
    mod chaos; // anything in any order
    mod cli; // what the command line promises
    mod company; // jobs, questions, memories
    mod crash; // what survives kill -9
    mod demo; // the first thing that anyone runs
    mod faults; // every way in which a server fails, at every moment
    mod files; // files as tools read, search and change them
    mod frames; // what the screen looks like
    mod inline; // without a screen of its own
    mod keys; // keys and tokens, never to be seen
    mod lines; // what a line of commands may not do
    mod processes; // what a command starts ends with it
    mod providers; // what a model is sent and what is made of its answer
    mod reading; // finding, folding and copying in the transcript
    mod regressions; // what others had to mend
    mod replay; // what goes back to a model of what it said
    mod retold; // a session told again
    mod run; // one line is a whole workflow
    mod screen; // what a person does in the interface
    mod sessions; // sessions at rest
    mod streams; // answers as servers send them, cut anywhere
    mod surroundings; // terminals of every kind, and none
    mod terminal; // what only a real terminal shows
    mod tools; // what every tool and command keeps to
    mod travel; // files follow the conversation
    mod trust; // certificates
    mod wire; // turns over HTTP, in every dialect
    mod writing; // the line in which one writes
}
