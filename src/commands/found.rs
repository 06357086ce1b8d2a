//! Words for skills and roles that were found in files.

use std::path::Path;

use pixir_core::Weight;
use pixir_core::trust::Standing;

/// A path whose line ends and tabs cannot pass for other rows.
pub(super) fn one_line(path: &Path) -> String {
    path.display().to_string().replace(char::is_control, "\u{fffd}")
}

pub(super) fn standing(standing: &Standing) -> &'static str {
    match standing {
        Standing::InForce => "in force",
        Standing::Inert | Standing::New => "not trusted",
        Standing::Changed => "changed",
        Standing::Unusable { .. } => "unusable",
    }
}

pub(super) fn weight(weight: Weight) -> &'static str {
    match weight {
        Weight::Fault => "fault",
        Weight::Note => "note",
    }
}
