//! The place of a setting in a table: the names down to it.

/// The values of a table by their paths. An empty table is a value too: a section without keys means something.
pub(super) fn leaves(table: &toml::Table) -> Vec<(Vec<String>, toml::Value)> {
    let mut found = Vec::new();
    for (name, value) in table {
        match value {
            toml::Value::Table(below) if !below.is_empty() => {
                let below = leaves(below).into_iter();
                found.extend(below.map(|(path, value)| ([vec![name.clone()], path].concat(), value)));
            }
            value => found.push((vec![name.clone()], value.clone())),
        }
    }
    found
}

/// A path as one key.
pub(super) fn dotted(path: &[String]) -> String {
    path.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(".")
}

fn quoted(name: &str) -> String {
    let is_bare = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'));
    if is_bare { name.to_owned() } else { toml::Value::from(name).to_string() }
}

/// The keys down to the one value of a table.
pub(super) fn only_path(table: &toml::Table) -> Vec<String> {
    match table.iter().next() {
        Some((name, toml::Value::Table(below))) => [vec![name.clone()], only_path(below)].concat(),
        Some((name, _)) => vec![name.clone()],
        None => Vec::new(),
    }
}

/// The value at this path.
pub(super) fn get<'a>(table: &'a toml::Table, path: &[String]) -> Option<&'a toml::Value> {
    let (first, rest) = path.split_first()?;
    let value = table.get(first)?;
    if rest.is_empty() { Some(value) } else { get(value.as_table()?, rest) }
}

/// Sets the value at this path.
pub(super) fn insert(table: &mut toml::Table, path: &[String], value: toml::Value) {
    match path {
        [] => {}
        [name] => drop(table.insert(name.clone(), value)),
        [name, rest @ ..] => {
            let below = table.entry(name.clone()).or_insert_with(|| toml::Table::new().into());
            if !below.is_table() {
                *below = toml::Table::new().into();
            }
            if let Some(below) = below.as_table_mut() {
                insert(below, rest, value);
            }
        }
    }
}
