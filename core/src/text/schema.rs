//! A JSON value against a JSON Schema (draft 2020-12, without `unevaluated…`, `dependent…` and references to other files).

use grep_matcher::Matcher as _;
use grep_regex::RegexMatcher;
use serde_json::{Map, Value};

use crate::protocol::error::{Code, Error, Result, nearest};

/// Keywords that say nothing about whether a value fits.
const NOTES: [&str; 15] = [
    "$schema",
    "$id",
    "$comment",
    "$defs",
    "definitions",
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "format",
    "contentMediaType",
    "contentEncoding",
];
/// Keywords that are checked.
const CHECKED: [&str; 34] = [
    "$ref",
    "type",
    "enum",
    "const",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "minItems",
    "maxItems",
    "uniqueItems",
    "contains",
    "minContains",
    "maxContains",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
];
/// The types of JSON.
const TYPES: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];
/// References that follow each other, before a schema counts as one that refers to itself.
const DEEPEST: usize = 64;
/// The most faults that are named.
const MOST: usize = 20;

/// A schema that is understood as a whole: a keyword that could not be checked would let values through.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema(Value);

impl Schema {
    /// Takes a schema.
    ///
    /// # Errors
    /// `INVALID_ARGS` for a keyword that is not checked, a type that does not exist, a reference that leads nowhere.
    pub fn new(schema: Value) -> Result<Schema> {
        understand(&schema, &schema, "the schema")?;
        Ok(Schema(schema))
    }

    /// What is wrong with a value, each fault with its place; nothing if it fits.
    pub fn faults(&self, value: &Value) -> Vec<String> {
        let mut faults = Vec::new();
        self.look(&self.0, value, "", 0, &mut faults);
        faults.truncate(MOST);
        faults
    }

    /// The schema as JSON.
    pub fn as_value(&self) -> &Value {
        &self.0
    }

    fn fits(&self, schema: &Value, value: &Value, depth: usize) -> bool {
        let mut faults = Vec::new();
        self.look(schema, value, "", depth, &mut faults);
        faults.is_empty()
    }

    fn look(&self, schema: &Value, value: &Value, at: &str, depth: usize, faults: &mut Vec<String>) {
        let shown = if at.is_empty() { "the value".to_owned() } else { format!("`{at}`") };
        let rules = match schema {
            Value::Object(rules) => rules,
            Value::Bool(false) => return faults.push(format!("{shown} is not allowed")),
            Value::Bool(true) | Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => return,
        };
        if depth > DEEPEST {
            return faults.push(format!("{shown} refers to itself without an end"));
        }
        if let Some(target) = rules.get("$ref").and_then(|it| target(&self.0, it)) {
            self.look(target, value, at, depth + 1, faults);
        }
        let types: Vec<&str> = one_or_many(rules.get("type")).collect();
        if !types.is_empty() && !types.iter().any(|name| is_of(value, name)) {
            return faults.push(format!("{shown} must be {}, not {}", types.join(" or "), kind_of(value)));
        }
        if let Some(all) = rules.get("enum").and_then(Value::as_array)
            && !all.iter().any(|it| equal(it, value))
        {
            let names: Vec<String> = all.iter().map(ToString::to_string).collect();
            faults.push(format!("{shown} must be one of {}", names.join(", ")));
        }
        if let Some(only) = rules.get("const").filter(|it| !equal(it, value)) {
            faults.push(format!("{shown} must be {only}"));
        }
        self.combined(rules, value, (at, &shown), depth, faults);
        match value {
            Value::Object(fields) => self.object(rules, fields, (at, &shown), depth, faults),
            Value::Array(items) => self.array(rules, items, (at, &shown), depth, faults),
            Value::String(text) => string(rules, text, &shown, faults),
            Value::Number(number) => bounds(rules, number.as_f64().unwrap_or(f64::NAN), &shown, faults),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn combined(
        &self,
        rules: &Map<String, Value>,
        value: &Value,
        (at, shown): (&str, &str),
        depth: usize,
        faults: &mut Vec<String>,
    ) {
        let several = |name: &str| rules.get(name).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for each in several("allOf") {
            self.look(each, value, at, depth + 1, faults);
        }
        let any = several("anyOf");
        if !any.is_empty() && !any.iter().any(|it| self.fits(it, value, depth + 1)) {
            faults.push(format!("{shown} fits none of the {} forms of `anyOf`", any.len()));
        }
        let one = several("oneOf");
        let fitting = one.iter().filter(|it| self.fits(it, value, depth + 1)).count();
        if !one.is_empty() && fitting != 1 {
            faults.push(format!("{shown} fits {fitting} of the {} forms of `oneOf`, and must fit one", one.len()));
        }
        if rules.get("not").is_some_and(|it| self.fits(it, value, depth + 1)) {
            faults.push(format!("{shown} must not fit the form of `not`"));
        }
        if let Some(condition) = rules.get("if") {
            let branch = if self.fits(condition, value, depth + 1) { "then" } else { "else" };
            if let Some(branch) = rules.get(branch) {
                self.look(branch, value, at, depth + 1, faults);
            }
        }
    }

    fn object(
        &self,
        rules: &Map<String, Value>,
        fields: &Map<String, Value>,
        (at, shown): (&str, &str),
        depth: usize,
        faults: &mut Vec<String>,
    ) {
        let place = |key: &str| if at.is_empty() { key.to_owned() } else { format!("{at}.{key}") };
        for key in one_or_many(rules.get("required")).filter(|key| !fields.contains_key(*key)) {
            faults.push(format!("`{}` is missing", place(key)));
        }
        count(rules, ["minProperties", "maxProperties"], fields.len(), "properties", shown, faults);
        let known = rules.get("properties").and_then(Value::as_object);
        let patterns = rules.get("patternProperties").and_then(Value::as_object);
        for (key, inner) in fields {
            let named = known.and_then(|it| it.get(key));
            let like = patterns.into_iter().flatten().filter(|(pattern, _)| matches(pattern, key)).map(|(_, it)| it);
            let mut is_known = false;
            for schema in named.into_iter().chain(like) {
                is_known = true;
                self.look(schema, inner, &place(key), depth, faults);
            }
            if let Some(names) = rules.get("propertyNames") {
                let name = Value::String(key.clone());
                if !self.fits(names, &name, depth + 1) {
                    faults.push(format!("`{}` is no allowed name", place(key)));
                }
            }
            match rules.get("additionalProperties").filter(|_| !is_known) {
                Some(Value::Bool(false)) => {
                    let names = known.into_iter().flat_map(|it| it.keys().map(String::as_str));
                    let near = nearest(key, names).map(|near| format!(" (did you mean `{near}`?)"));
                    faults.push(format!("`{}` is unknown{}", place(key), near.unwrap_or_default()));
                }
                Some(schema) => self.look(schema, inner, &place(key), depth, faults),
                None => {}
            }
        }
    }

    fn array(
        &self,
        rules: &Map<String, Value>,
        items: &[Value],
        (at, shown): (&str, &str),
        depth: usize,
        faults: &mut Vec<String>,
    ) {
        count(rules, ["minItems", "maxItems"], items.len(), "items", shown, faults);
        let first = rules.get("prefixItems").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        for (i, item) in items.iter().enumerate() {
            if let Some(schema) = first.get(i).or_else(|| rules.get("items")) {
                self.look(schema, item, &format!("{at}[{i}]"), depth, faults);
            }
        }
        if rules.get("uniqueItems") == Some(&Value::Bool(true))
            && items.iter().enumerate().any(|(i, it)| items[..i].iter().any(|earlier| equal(earlier, it)))
        {
            faults.push(format!("{shown} holds an item twice"));
        }
        if let Some(wanted) = rules.get("contains") {
            let found = items.iter().filter(|it| self.fits(wanted, it, depth + 1)).count() as u64;
            let least = rules.get("minContains").and_then(Value::as_u64).unwrap_or(1);
            let most = rules.get("maxContains").and_then(Value::as_u64).unwrap_or(u64::MAX);
            if found < least || found > most {
                faults.push(format!("{shown} holds {found} items of the form of `contains`"));
            }
        }
    }
}

fn string(rules: &Map<String, Value>, text: &str, shown: &str, faults: &mut Vec<String>) {
    count(rules, ["minLength", "maxLength"], text.chars().count(), "characters", shown, faults);
    if let Some(pattern) = rules.get("pattern").and_then(Value::as_str)
        && !matches(pattern, text)
    {
        faults.push(format!("{shown} does not match the pattern {pattern}"));
    }
}

fn bounds(rules: &Map<String, Value>, number: f64, shown: &str, faults: &mut Vec<String>) {
    let rule = |name: &str| rules.get(name).and_then(Value::as_f64);
    let checks: [(&str, fn(f64, f64) -> bool, &str); 4] = [
        ("minimum", |n, bound| n >= bound, "at least"),
        ("maximum", |n, bound| n <= bound, "at most"),
        ("exclusiveMinimum", |n, bound| n > bound, "more than"),
        ("exclusiveMaximum", |n, bound| n < bound, "less than"),
    ];
    for (name, holds, words) in checks {
        if let Some(bound) = rule(name).filter(|bound| !holds(number, *bound)) {
            faults.push(format!("{shown} must be {words} {bound}"));
        }
    }
    if let Some(step) = rule("multipleOf") {
        let times = number / step;
        if (times - times.round()).abs() > 1e-9 {
            faults.push(format!("{shown} must be a multiple of {step}"));
        }
    }
}

fn count(
    rules: &Map<String, Value>,
    [least, most]: [&str; 2],
    n: usize,
    what: &str,
    shown: &str,
    faults: &mut Vec<String>,
) {
    let rule = |name: &str| rules.get(name).and_then(Value::as_u64);
    if let Some(least) = rule(least).filter(|least| (n as u64) < *least) {
        faults.push(format!("{shown} must have at least {least} {what}"));
    }
    if let Some(most) = rule(most).filter(|most| n as u64 > *most) {
        faults.push(format!("{shown} must have at most {most} {what}"));
    }
}

/// Refuses what [`Schema::look`] would pass over.
fn understand(root: &Value, schema: &Value, at: &str) -> Result<()> {
    let invalid = |message: String, fix: String| Err(Error::new(Code::InvalidArgs, message, fix));
    let rules = match schema {
        Value::Object(rules) => rules,
        Value::Bool(_) => return Ok(()),
        Value::Null | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return invalid(format!("{at} is {}", kind_of(schema)), "a schema is an object, or true or false".into());
        }
    };
    for (key, rule) in rules {
        let place = format!("{at}.{key}");
        match key.as_str() {
            "$ref" if target(root, rule).is_none() => {
                return invalid(
                    format!("{place} leads nowhere: {rule}"),
                    "refer to a place in this file: #/$defs/NAME".into(),
                );
            }
            "type" if !one_or_many(Some(rule)).all(|name| TYPES.contains(&name)) || rule.is_object() => {
                return invalid(format!("{place} is no type: {rule}"), format!("use one of {}", TYPES.join(", ")));
            }
            "pattern" if rule.as_str().is_none_or(|it| RegexMatcher::new(it).is_err()) => {
                return invalid(
                    format!("{place} cannot be read: {rule}"),
                    "a regular expression without look-around".into(),
                );
            }
            "patternProperties"
                if rule.as_object().is_some_and(|it| it.keys().any(|it| RegexMatcher::new(it).is_err())) =>
            {
                return invalid(
                    format!("{place} has a name that is no pattern"),
                    "regular expressions without look-around".into(),
                );
            }
            "multipleOf" if rule.as_f64().is_none_or(|it| it <= 0.0) => {
                return invalid(format!("{place} must be a number above 0"), "such as 0.01".into());
            }
            "properties" | "patternProperties" | "$defs" | "definitions" => {
                let Some(inner) = rule.as_object() else {
                    return invalid(format!("{place} is {}", kind_of(rule)), "an object of schemas".into());
                };
                inner.iter().try_for_each(|(name, it)| understand(root, it, &format!("{place}.{name}")))?;
            }
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                let Some(inner) = rule.as_array() else {
                    return invalid(format!("{place} is {}", kind_of(rule)), "a list of schemas".into());
                };
                inner.iter().try_for_each(|it| understand(root, it, &place))?;
            }
            "items" | "additionalProperties" | "propertyNames" | "contains" | "not" | "if" | "then" | "else" => {
                understand(root, rule, &place)?;
            }
            known if CHECKED.contains(&known) || NOTES.contains(&known) => {}
            unknown => {
                let near = nearest(unknown, CHECKED.into_iter().chain(NOTES));
                let fix = near.map_or_else(|| "leave it out".to_owned(), |near| format!("did you mean `{near}`?"));
                let message = format!("{at} has the keyword `{}`, which pixir does not check", unknown.escape_debug());
                return invalid(message, fix);
            }
        }
    }
    Ok(())
}

/// The schema that a reference names: a place in the same file.
fn target<'a>(root: &'a Value, reference: &Value) -> Option<&'a Value> {
    root.pointer(reference.as_str()?.strip_prefix('#')?)
}

fn one_or_many(rule: Option<&Value>) -> impl Iterator<Item = &str> {
    let many = rule.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    many.iter().chain(rule.filter(|it| !it.is_array())).filter_map(Value::as_str)
}

fn matches(pattern: &str, text: &str) -> bool {
    RegexMatcher::new(pattern).is_ok_and(|it| it.is_match(text.as_bytes()).unwrap_or(false))
}

/// Numbers are equal by their value: 1 and 1.0.
fn equal(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| equal(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| equal(a, b)))
        }
        (a, b) => a == b,
    }
}

fn is_of(value: &Value, name: &str) -> bool {
    match value {
        Value::Null => name == "null",
        Value::Bool(_) => name == "boolean",
        Value::Number(n) => {
            let is_whole = n.is_i64() || n.is_u64() || n.as_f64().is_some_and(|n| n.fract() == 0.0);
            name == "number" || (name == "integer" && is_whole)
        }
        Value::String(_) => name == "string",
        Value::Array(_) => name == "array",
        Value::Object(_) => name == "object",
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
