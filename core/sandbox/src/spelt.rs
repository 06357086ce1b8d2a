//! Paths in a plan: as text, or byte by byte where they are not UTF-8.

use std::ffi::OsString;
use std::fmt;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::de::{SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A path that every reader of the plan gets as it is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Spelt(PathBuf);

impl From<&Path> for Spelt {
    fn from(path: &Path) -> Spelt {
        Spelt(path.to_owned())
    }
}

impl Serialize for Spelt {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self.0.to_str() {
            Some(text) => to.serialize_str(text),
            None => to.collect_seq(self.0.as_os_str().as_bytes()),
        }
    }
}

impl<'de> Deserialize<'de> for Spelt {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Spelt, D::Error> {
        from.deserialize_any(TextOrBytes)
    }
}

struct TextOrBytes;

impl<'de> Visitor<'de> for TextOrBytes {
    type Value = Spelt;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a path")
    }

    fn visit_str<E>(self, text: &str) -> Result<Spelt, E> {
        Ok(Spelt(text.into()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Spelt, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = seq.next_element()? {
            bytes.push(byte);
        }
        Ok(Spelt(OsString::from_vec(bytes).into()))
    }
}

/// One path.
pub(crate) mod one {
    use super::{Deserialize, Deserializer, Path, PathBuf, Serialize, Serializer, Spelt};

    pub(crate) fn serialize<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
        Spelt::from(path).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
        Ok(Spelt::deserialize(from)?.0)
    }
}

/// A path that may be missing.
pub(crate) mod maybe {
    use super::{Deserialize, Deserializer, PathBuf, Serialize, Serializer, Spelt};

    #[expect(clippy::ref_option, reason = "serde passes the field so")]
    pub(crate) fn serialize<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
        path.as_deref().map(Spelt::from).serialize(to)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Option<PathBuf>, D::Error> {
        Ok(Option::<Spelt>::deserialize(from)?.map(|it| it.0))
    }
}

/// Several paths.
pub(crate) mod all {
    use super::{Deserialize, Deserializer, PathBuf, Serializer, Spelt};

    pub(crate) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|it| Spelt::from(it.as_path())))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<PathBuf>, D::Error> {
        Ok(Vec::<Spelt>::deserialize(from)?.into_iter().map(|it| it.0).collect())
    }
}

/// Names with what they lead to.
pub(crate) mod pairs {
    use super::{Deserialize, Deserializer, PathBuf, Serializer, Spelt};

    pub(crate) fn serialize<S: Serializer>(pairs: &[(PathBuf, PathBuf)], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(pairs.iter().map(|(name, target)| (Spelt::from(name.as_path()), Spelt::from(target.as_path()))))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<(PathBuf, PathBuf)>, D::Error> {
        let pairs = Vec::<(Spelt, Spelt)>::deserialize(from)?;
        Ok(pairs.into_iter().map(|(name, target)| (name.0, target.0)).collect())
    }
}
