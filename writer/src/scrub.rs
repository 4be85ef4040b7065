//! Scrubbing of whole JSON values: every string, every key, and what stands under a key whose
//! name means a secret.

use waybill_verifier::json::{Object, Text, Value};

use crate::redact::{MARKER, Scrubber, is_secret_name};

/// A scrubbed payload, and how many secrets were scrubbed out of it.
#[must_use]
pub fn object(scrubber: &Scrubber, object: Object) -> (Object, u64) {
    let mut scrub = Scrub { scrubber, count: 0 };
    let object = scrub.object(object, Under::Anything);
    (object, scrub.count)
}

/// What a value stands under.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Under {
    Anything,
    /// A key, or one of its ancestors' keys, whose name means a secret.
    SecretName,
}

struct Scrub<'a> {
    scrubber: &'a Scrubber,
    count: u64,
}

impl Scrub<'_> {
    // The value was read by the verifier's parser, so the recursion is at most 128 deep.
    fn value(&mut self, value: Value, under: Under) -> Value {
        match value {
            Value::String(text) => Value::String(self.text(&text)),
            Value::Array(items) => self.array(items, under),
            Value::Object(object) => Value::Object(self.object(object, under)),
            Value::Int(int) if under == Under::SecretName && int.as_str().len() >= 4 => self.marker(),
            other => other,
        }
    }

    fn object(&mut self, object: Object, under: Under) -> Object {
        let mut scrubbed = Object::default();
        // `{"name":"DB_PASSWORD","value":"…"}`, as container and CI settings are written.
        let mut names = ["name", "key", "Name", "Key"].iter().filter_map(|key| object.get(key)?.as_str());
        let under_value = if names.any(is_secret_name) { Under::SecretName } else { under };
        for (key, value) in object {
            let under = if key == *"value" || key == *"Value" { under_value } else { under };
            let name = key.as_str().unwrap_or_default();
            let value = match &value {
                Value::String(text) => match text.as_str() {
                    Some(text)
                        if self.scrubber.value_for_key_is_secret(name, text)
                            || (under == Under::SecretName && is_worth_hiding(text)) =>
                    {
                        self.marker()
                    }
                    _ => self.value(value, under),
                },
                _ if is_secret_name(name) => self.value(value, Under::SecretName),
                _ => self.value(value, under),
            };
            let key = self.key(&key, &scrubbed);
            scrubbed.insert(key, value);
        }
        scrubbed
    }

    /// A key, scrubbed; one that is then taken gets a number, so that nothing is overwritten.
    fn key(&mut self, key: &Text, taken: &Object) -> Text {
        let scrubbed = self.text(key);
        let is_taken = |key: &Text| taken.iter().any(|(other, _)| other == key);
        if scrubbed == *key || !is_taken(&scrubbed) {
            return scrubbed;
        }
        let base = String::from_utf8_lossy(scrubbed.as_wtf8()).into_owned();
        let mut number: u64 = 2;
        loop {
            let numbered = Text::from(format!("{base}#{number}"));
            if !is_taken(&numbered) {
                return numbered;
            }
            number += 1;
        }
    }

    /// An array of strings may be a command line, whose secrets are split over two arguments.
    fn array(&mut self, items: Vec<Value>, under: Under) -> Value {
        if under == Under::SecretName {
            let hidden = items.into_iter().map(|item| match item.as_str() {
                Some(text) if is_worth_hiding(text) => self.marker(),
                _ => self.value(item, under),
            });
            return Value::Array(hidden.collect());
        }
        let strings: Option<Vec<String>> =
            items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
        match strings {
            Some(arguments) if arguments.len() > 1 => {
                let (scrubbed, count) = self.scrubber.scrub_args(&arguments);
                self.count += count;
                Value::Array(scrubbed.into_iter().map(Value::from).collect())
            }
            _ => Value::Array(items.into_iter().map(|item| self.value(item, under)).collect()),
        }
    }

    fn text(&mut self, text: &Text) -> Text {
        let (scrubbed, count) = self.scrubber.scrub_bytes(text.as_wtf8());
        self.count += count;
        match scrubbed {
            std::borrow::Cow::Borrowed(_) => text.clone(),
            std::borrow::Cow::Owned(bytes) => Text::from_wtf8_lossy(&bytes),
        }
    }

    fn marker(&mut self) -> Value {
        self.count += 1;
        Value::from(MARKER)
    }
}

/// Whether a string under a secret's name can be the secret.
fn is_worth_hiding(text: &str) -> bool {
    !text.is_empty() && text != MARKER && !matches!(text, "true" | "false" | "null" | "none")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use waybill_verifier::json;

    use super::*;

    #[track_caller]
    fn check(input: &str, expect: &str, count: u64) {
        let scrubber = Scrubber::builder().build();
        let Value::Object(value) = json::parse(input.as_bytes()).unwrap() else { panic!("an object") };
        let (scrubbed, counted) = object(&scrubber, value);
        let text = json::ascii(&Value::Object(scrubbed.clone()));
        assert_eq!(String::from_utf8(text).unwrap(), expect);
        assert_eq!(counted, count);
        let (again, more) = object(&scrubber, scrubbed.clone());
        assert_eq!((again, more), (scrubbed, 0), "scrubbing twice is scrubbing once");
    }

    fn token(tail: &str) -> String {
        format!("{}{}{tail}", "ghp", "_16C7e42F292c6912E7710c838347Ae178B4")
    }

    #[test]
    fn a_secret_is_caught_in_a_value_a_key_and_a_nested_array() {
        let token = token("a");
        check(&format!(r#"{{"a":"see {token}"}}"#), r#"{"a":"see ***REDACTED***"}"#, 1);
        check(&format!(r#"{{"{token}":1}}"#), r#"{"***REDACTED***":1}"#, 1);
        check(&format!(r#"{{"a":[[1,["{token}"]]]}}"#), r#"{"a":[[1,["***REDACTED***"]]]}"#, 1);
    }

    #[test]
    fn what_stands_under_a_secret_name_is_hidden_at_any_depth() {
        check(
            r#"{"db":{"password":"hunter2"},"note":"x"}"#,
            r#"{"db":{"password":"***REDACTED***"},"note":"x"}"#,
            1,
        );
        check(
            r#"{"password":["hunter2",{"old":"hunter1","n":12345}]}"#,
            r#"{"password":["***REDACTED***",{"n":"***REDACTED***","old":"***REDACTED***"}]}"#,
            3,
        );
        check(r#"{"password":"","secret":null}"#, r#"{"password":"","secret":null}"#, 0);
    }

    #[test]
    fn a_value_beside_a_secret_s_name_is_hidden() {
        check(
            r#"{"env":[{"name":"DB_PASSWORD","value":"hunter2"},{"name":"MODE","value":"fast"}]}"#,
            r#"{"env":[{"name":"DB_PASSWORD","value":"***REDACTED***"},{"name":"MODE","value":"fast"}]}"#,
            1,
        );
    }

    #[test]
    fn a_secret_split_over_two_arguments_is_caught() {
        check(
            r#"{"argv":["login","--password","hunter2","host"]}"#,
            r#"{"argv":["login","--password","***REDACTED***","host"]}"#,
            1,
        );
    }

    #[test]
    fn scrubbed_keys_that_collide_are_numbered() {
        let (first, second, third) = (token("a"), token("b"), token("c"));
        check(
            &format!(r#"{{"{first}":1,"{second}":2,"{third}":3}}"#),
            r#"{"***REDACTED***":1,"***REDACTED***#2":2,"***REDACTED***#3":3}"#,
            3,
        );
    }

    #[test]
    fn lone_surrogates_and_hashes_pass() {
        let hash = "4efbc8d60b21fbac78255d6807923986bb968a43";
        let text = format!(r#"{{"commit":"{hash}","s":"\ud800x"}}"#);
        check(&text, &text, 0);
    }
}
