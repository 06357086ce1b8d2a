//! A list of results: bounded, with the fields that its user selects, in every format.

use clap::Args;
use pixir_core::error::nearest;
use pixir_core::remedy::Part;
use pixir_core::{Code, Error, Remedy, Result};
use serde_json::{Map, Value, json};

use super::{Output, SCHEMA_VERSION, chatter, clean};
use crate::args::Format;

/// The options that every list has.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListOptions {
    /// Maximum number of rows
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) limit: u32,
    /// Continue after this row; a truncated list names it
    #[arg(long, value_name = "ROW")]
    pub(crate) cursor: Option<String>,
    /// Only these fields, such as name,usage.input
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) select: Vec<String>,
}

/// A list before it is cut.
pub(crate) struct List<'a> {
    /// The field of the document that holds the rows.
    pub(crate) name: &'static str,
    /// The field that names a row; a cursor is its value.
    pub(crate) key: &'static str,
    /// The fields of a row of tsv.
    pub(crate) columns: &'a [&'a str],
    pub(crate) rows: Vec<Value>,
    /// Further fields of the document.
    pub(crate) beside: Value,
}

/// What is left of a list after its bounds.
pub(crate) struct Cut {
    /// The rows that are shown, of all.
    pub(crate) shown: std::ops::Range<usize>,
    next: Option<String>,
    total: usize,
}

impl List<'_> {
    /// Prints the rows: as text each as `plain` gives it by its position, in the other formats by their fields.
    ///
    /// # Errors
    /// `NOT_FOUND` for a cursor that is not in the list, `INVALID_ARGS` for a field that no row has.
    pub(crate) fn print(self, output: &Output, options: &ListOptions, plain: impl Fn(usize) -> String) -> Result<()> {
        let cut = self.cut(options)?;
        self.check_fields(&options.select)?;
        let rows = &self.rows[cut.shown.clone()];
        match output.format {
            Format::Json => {
                let mut document = self.beside.clone();
                document["ok"] = json!(document["ok"] != json!(false));
                document[self.name] = rows.iter().map(|row| project(row, &options.select)).collect();
                document["total"] = json!(cut.total);
                document["truncated"] = json!(cut.next.is_some());
                document["nextCursor"] = json!(cut.next);
                output.document(document);
            }
            Format::Jsonl => {
                for row in rows {
                    let mut row = project(row, &options.select);
                    row["schemaVersion"] = SCHEMA_VERSION.into();
                    output.line(&row.to_string());
                }
            }
            Format::Tsv => {
                let columns: Vec<&str> = match options.select.as_slice() {
                    [] => self.columns.to_vec(),
                    some => some.iter().map(String::as_str).collect(),
                };
                output.line(&columns.join("\t"));
                rows.iter().for_each(|row| output.line(&cells(row, &columns)));
            }
            Format::Plain if !options.select.is_empty() => {
                let columns: Vec<&str> = options.select.iter().map(String::as_str).collect();
                rows.iter().for_each(|row| output.line(&cells(row, &columns)));
            }
            Format::Plain => cut.shown.clone().for_each(|at| output.line(&plain(at))),
        }
        if let Some(next) = cut.next.filter(|_| output.format != Format::Json) {
            chatter(&format!("{} of {}; --cursor {next} shows the next ones", rows.len(), cut.total));
        }
        Ok(())
    }

    fn cut(&self, options: &ListOptions) -> Result<Cut> {
        let name_of = |row: &Value| row[self.key].as_str().map_or_else(|| row[self.key].to_string(), str::to_owned);
        let from = match &options.cursor {
            None => 0,
            Some(cursor) => {
                let at = self.rows.iter().position(|row| name_of(row) == *cursor).ok_or_else(|| {
                    let near = nearest(cursor, self.rows.iter().filter_map(|row| row[self.key].as_str()));
                    let fix = near.map_or_else(
                        || "leave out --cursor".into(),
                        |near| Remedy::text("did you mean --cursor ").and(Part::Nearest(near.to_owned())).and_text("?"),
                    );
                    let message = format!("the list does not contain the {} of --cursor", self.key);
                    Error::new(Code::NotFound, message, fix).with("input", cursor.as_str())
                })?;
                at + 1
            }
        };
        let to = (from + options.limit as usize).min(self.rows.len());
        let next = (to < self.rows.len() && to > from).then(|| name_of(&self.rows[to - 1]));
        Ok(Cut { shown: from..to, next, total: self.rows.len() })
    }

    /// A field that one row has and another has not is no mistake.
    fn check_fields(&self, fields: &[String]) -> Result<()> {
        let has = |path: &str| {
            let is_there = |row: &Value| path.split('.').try_fold(row, |at, key| at.get(key)).is_some();
            self.rows.is_empty() || self.rows.iter().any(is_there)
        };
        let Some(wrong) = fields.iter().find(|field| !has(field)) else { return Ok(()) };
        let known: Map<String, Value> = self.rows.iter().filter_map(Value::as_object).flat_map(Clone::clone).collect();
        let names = || known.keys().map(String::as_str);
        let all = names().collect::<Vec<_>>().join(", ");
        let fix = match nearest(wrong, names()) {
            Some(near) => Remedy::nearest(near).and_text(format!(" fields: {all}")),
            None => format!("fields: {all}").into(),
        };
        Err(Error::new(Code::InvalidArgs, format!("there is no field `{}`", wrong.escape_debug()), fix)
            .with("input", wrong.as_str()))
    }
}

fn at<'a>(row: &'a Value, path: &str) -> &'a Value {
    path.split('.').fold(row, |at, key| &at[key])
}

/// The selected fields of a row; a field may be a path.
fn project(row: &Value, fields: &[String]) -> Value {
    if fields.is_empty() {
        return row.clone();
    }
    fields.iter().map(|field| (field.clone(), at(row, field).clone())).collect::<Map<_, _>>().into()
}

/// The fields of a row between tabs. A value holds neither a tab nor the end of a line.
fn cells(row: &Value, columns: &[&str]) -> String {
    let cell = |field: &&str| {
        let text = match at(row, field) {
            Value::Null => String::new(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        clean(&text).replace(['\t', '\n', '\r'], " ")
    };
    columns.iter().map(cell).collect::<Vec<_>>().join("\t")
}
