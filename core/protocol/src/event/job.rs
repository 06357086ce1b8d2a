//! Background jobs, as Presenters see them.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// A background job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobState {
    /// Its number in the Session, from 1.
    pub id: u32,
    /// The command line.
    pub command: String,
    /// Whether the job runs, and how it ended.
    #[serde(flatten)]
    pub status: JobStatus,
    /// The path of its saved output, as tools accept it.
    pub output_path: String,
    /// When it was started.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "super::maybe_to_the_millisecond")]
    pub started: Option<Timestamp>,
    /// When it ended or was stopped.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "super::maybe_to_the_millisecond")]
    pub ended: Option<Timestamp>,
    /// The TCP ports on which it listened when [`Input::ListJobs`](crate::input::Input::ListJobs) last asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ports: Vec<u16>,
    /// Bytes of output that were not saved, because a job's output file is limited to 64 MB.
    #[serde(default, skip_serializing_if = "crate::is_zero")]
    pub lost: u64,
}

/// Whether a job runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status", rename_all = "snake_case")]
pub enum JobStatus {
    /// It is running.
    Running,
    /// It exited.
    Ended {
        /// Its exit code, as a shell reports it.
        exit_code: i32,
    },
    /// It was stopped.
    Stopped,
}
