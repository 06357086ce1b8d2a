//! Stories at the real boundaries: the binary, the pty, the loopback socket, the file system, and the whole interface
//! in memory.

mod architecture; // the imports between rooms, and rules for all sources
mod connected; // the real binary with a scripted model server
mod dependencies; // licences, sources, bans, unused packages
mod documents; // links between documents
mod editor; // an editor that talks to `pixir acp`
mod driver; // a whole pixir: a scripted model, keys, a screen
mod issuer; // a small HTTP server with scripted answers
mod notice; // the NOTICE file is current
mod plain_strings; // core messages without the vocabulary of a Presenter
mod pty; // the real binary in a real terminal
mod random; // property tests that can be repeated
mod server; // a scripted model server on loopback
mod shell; // the real binary, without a terminal
#[path = "tasks/tasks.rs"]
mod tasks; // five tasks that a scripted model solves
mod lines; // pixir with a program at its pipes
mod hosted; // a program that drives a Session by lines
mod tier; // how many cases a suite tries
mod wait; // waiting for a state

mod stories {
    // From the shell.
    mod cli; // the command line: prompts, documents, help, exit codes
    mod at_once; // runs that start together, readers that are slow
    mod conformance; // every command under every condition
    mod exit_codes; // each exit code, by a run
    mod demo; // `pixir demo`: the first command that a user runs
    mod scripting; // pixir in scripts
    mod guided; // programs that drive pixir: what they can read, and what they get done
    mod shells; // completions and manual pages
    mod environment; // TERM, colour variables, no terminal at all
    mod led_astray; // a workspace that steers what runs unasked, or what later commands see
    mod outside; // reading outside the workspace
    mod second_folder; // a second folder that is worked on as the workspace is
    mod patches; // several files by one patch, all or nothing
    mod found; // names, ignored files and long lines: nothing is hidden
    mod lacked; // what a command had to do without
    mod places; // unusual workspaces
    mod pipes; // standard input and output: slow, closed, left open

    // The model.
    mod context_files; // AGENTS.md, what it imports, `pixir init`
    mod compaction_view; // what a compaction shows before it is applied
    mod compaction; // on demand, at the threshold, after a refusal
    mod dialects; // one task through three dialects
    mod agents; // child Sessions on one task each
    mod roles; // what an agent is for, and what it may do at most
    mod roles_keys; // what the keys of a role choose
    mod workflows; // graphs of steps, run from the command line
    mod acp; // pixir inside an editor
    mod host; // a program drives a Session by lines
    mod ledger; // what takes up the window
    mod interrupts; // Esc, signals and deadlines, at any moment
    mod queue; // steers, follow-ups, messages taken back
    mod reasoning; // sent back, shown, left out
    mod request_prefix; // each request repeats the one before it
    mod tasks; // tasks as a model meets them
    mod mcp; // servers of the Model Context Protocol
    mod surroundings; // where the model is, and how it hears of a change
    mod turns; // a Turn over HTTP, in every dialect

    // The Provider.
    mod answer_limits; // answers beyond every limit
    mod text_loops; // answers that repeat themselves without end
    mod price_steps; // requests that cost more for their length
    mod refused_parameters; // parameters that a server does not take
    mod accounts; // what users sign in with, besides a key
    mod credentials; // keys and tokens: stored, used, renewed, never shown
    mod local_servers; // servers on their usual ports
    mod starting_servers; // servers that still start, or have no model
    mod ways_on; // refusals without a screen, and the ways on that they name
    mod next_actions; // what errors and results name as the next thing to do
    mod models; // which model answers, with which effort
    mod server_faults; // every fault of a server, at every moment
    mod server_patience; // answers that break off, busy servers, fallback models
    mod server_quirks; // answers that bend the protocol
    mod server_streams; // streams with one right reading, ends that are no success
    mod sse; // streams in the forms that servers send, cut anywhere
    mod proxies; // proxies between pixir and a server
    mod tls; // certificates
    mod usage; // tokens and cost
    mod windows; // told, learnt, unknown

    // Tools.
    mod ask_user; // questions of the model
    mod descriptors; // what pixir was started with, and no program gets
    mod encodings; // files in other encodings than UTF-8
    mod escapes; // ways out of the sandbox, each tried
    mod edits; // what `edit` and `apply_patch` forgive
    mod replaced; // what a file has besides its words, when it is replaced
    mod two_pixir; // two pixir and an editor in one workspace
    mod file_modes; // files that run as their owner
    mod files; // reading, searching and editing, odd files too
    mod images; // mentioned, pasted, read by a tool, sent
    mod too_large; // requests and images that a server refuses for their size
    mod job_network; // what a job serves, reached by the next command
    mod jobs; // shell commands in the background
    mod refused; // what the sandbox refused to a command, named and offered
    mod shown; // what programs see of the machine
    mod path_sockets; // sockets of the machine, and of commands
    mod processes; // no process outlives its command
    mod recall; // memories across Sessions
    mod protected; // protected files that a command wrote
    mod aftermath; // what a command leaves to the user's next command
    mod run_language; // the output of a line of commands
    mod run_limits; // the limits of a line of commands
    mod sandbox; // the launcher, the tiers, kernels without any
    mod tools; // the contract of every tool and command
    mod user_commands; // `!` and `!!`

    // Sessions and Logs.
    mod crash; // `kill -9`, and writers that race
    mod damaged_logs; // torn, damaged and odd Logs
    mod faults_together; // random faults of everything at once
    mod future; // Logs of the next version
    mod event_order; // random sequences of events, reopened
    mod starved; // full disks, few descriptors, odd clocks, folders that cannot be written
    mod signals; // signals that end pixir, whatever it waits for
    mod log_faults; // system calls on the Log that fail
    mod mounts; // read-only and full file systems
    mod replay; // a Session replayed, and as a cast
    mod long_sessions; // the memory that a long Session takes at rest
    mod soak; // a long conversation in one process
    mod sessions_together; // several watchers, several Sessions, slow disks
    mod sessions; // lists, names, trash, export, import
    mod branches; // the tree's rows, search, comparisons, trash, sessions
    mod tree; // moving the head, forks, labels, pins
    mod diff; // reading changes, keeping, reverting, commenting
    mod undo; // undo, redo and restore of files

    // The interface.
    mod builds; // builds and tests in auto, in projects of several languages
    mod caches; // what commands write to caches of toolchains
    mod races; // paths that are exchanged while pixir uses them
    mod ordinary_work; // an hour of work in ask mode, and its questions
    mod readers; // commands that run unasked
    mod hostile_words; // words that a program takes for more than they seem
    mod listed_names; // names of files that one program lists for another
    mod repositories; // hostile repositories: nothing of them runs
    mod approval_text; // what the user approves is visible and is what runs
    mod approval_changes; // what changes, whatever the files and their bytes
    mod approvals; // the card, the keys that decide, the scope of a decision
    mod commands; // slash commands: effects, completion, availability
    mod composer; // editing the prompt, completion, vim
    mod conversation; // what a Turn looks like: prompts, runs of reads, plans, its end
    mod drafts; // saved, restored, set aside
    mod find; // searching the transcript
    mod frames; // screens as snapshots
    mod interface; // header, settings, skills, diff
    mod configure; // settings that are changed in place
    mod connect; // a model that is connected while pixir runs; the first screen
    mod keymap; // keys, hints, the palette
    mod newcomer; // the whole way of a new user, from the first start to a resumed session
    mod read_out; // overlays for a screen reader
    mod large_answers; // long, wide and strange answers
    mod layout; // no region covers another
    mod mouse; // clicks and the wheel in lists and previews
    mod overlays; // leaving a layer, its keys, its rectangle
    mod pickers; // palette, sessions, help, jobs, HUD
    mod results; // what the model reads of a result
    mod rules; // rules of the user, protected restores
    mod secrets; // secrets of the user, in no place that pixir writes
    mod self_protection; // programs and tools that turn against pixir
    mod settings; // files, environment and flags: which value holds, and how one is set
    mod skills; // skills and prompt templates: listed, offered, activated, checked
    mod trust; // what a workspace brings along, in force only with the user's trust
    mod selection; // selecting and copying
    mod foreign_names; // models under the names of clouds and gateways
    mod without_tools; // models that only answer
    mod signed_calls; // of a server that refuses calls without its signature
    mod sizes; // screens of every size
    mod sizeless; // a terminal of which the kernel does not know the size
    mod screens; // every overlay at three sizes, and without colours
    mod themes; // listed, checked, reloaded, chosen
    mod transcript; // scrolling, folding, walking by entry

    // The terminal.
    mod chaos; // random keys, pastes, clicks and sizes
    mod hostile_text; // only pixir's own sequences reach the terminal
    mod inline; // without the alternate screen
    mod terminal; // behaviour that needs a real terminal
    mod terminal_input; // pastes, cut sequences, focus
    mod titles; // the window title, the bell, the progress report
    mod ways_out; // every way out gives the terminal back
}
