//! What a caller knows from elsewhere, as the text of a JSON object.

use std::fmt;

use waybill_verifier::anchor::ObjectId;
use waybill_verifier::evidence::Options;
use waybill_verifier::hash::Digest;
use waybill_verifier::json::{self, Object, Value};
use waybill_verifier::key::{Fingerprint, PublicKey};
use waybill_verifier::receipt::{Pin, Trust};
use waybill_verifier::report::Requirement;

const REQUIRE: &str = "require";

/// Why something asked of a check could not be done.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Error {
    /// The options are not the text of a JSON object.
    Options(String),
    /// An option with this name is not known.
    Unknown(String),
    /// An option's value does not fit.
    Option { name: &'static str, rule: String },
    /// Something was asked of a finished check.
    Finished,
    /// The check is not finished.
    NotFinished,
    /// Nobody asked for what a page shows.
    NotShown,
    /// A key is none.
    Key(String),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Options(why) => write!(f, "options are not the text of a JSON object: {why}"),
            Error::Unknown(name) => write!(f, "unknown option {name}"),
            Error::Option { name, rule } => write!(f, "option {name}: {rule}"),
            Error::Finished => f.write_str("the check is finished: start a new one"),
            Error::NotFinished => f.write_str("the check is not finished"),
            Error::NotShown => f.write_str("nothing is shown: set option shown"),
            Error::Key(why) => write!(f, "the key can't be used: {why}"),
        }
    }
}

impl std::error::Error for Error {}

/// Reads the options; none are those of one file that nothing is known of.
pub(crate) fn read(text: Option<&str>) -> Result<Options, Error> {
    let mut options = Options::default();
    let Some(text) = text else { return Ok(options) };
    let object: Object = match json::parse(text.as_bytes()) {
        Ok(Value::Object(object)) => object,
        Ok(_) => return Err(Error::Options("it is another kind of value".into())),
        Err(error) => return Err(Error::Options(error.to_string())),
    };
    for (name, value) in object.iter() {
        match name.as_str() {
            Some("folder") => options.folder = truth("folder", value)?,
            Some("several") => options.several = truth("several", value)?,
            Some("shown") => options.shown = truth("shown", value)?,
            Some("expected_head") => options.expect.head = Some(digest("expected_head", value)?),
            Some("contains") => options.expect.contains = Some(digest("contains", value)?),
            Some("expected_commit") => options.commit = Some(commit("expected_commit", value)?),
            Some("signers") => options.trust = pinned(items("signers", value)?)?,
            Some("require") => {
                options.requirements =
                    items("require", value)?.iter().map(requirement).collect::<Result<_, _>>()?;
            }
            _ => {
                let shown = json::ascii(&Value::String(name.clone()));
                return Err(Error::Unknown(String::from_utf8_lossy(&shown).into_owned()));
            }
        }
    }
    Ok(options)
}

fn wrong(name: &'static str, rule: impl Into<String>) -> Error {
    Error::Option { name, rule: rule.into() }
}

fn text_of<'a>(name: &'static str, value: &'a Value) -> Result<&'a str, Error> {
    value.as_str().ok_or_else(|| wrong(name, "is not text"))
}

fn truth(name: &'static str, value: &Value) -> Result<bool, Error> {
    match value {
        Value::Bool(truth) => Ok(*truth),
        _ => Err(wrong(name, "is neither true nor false")),
    }
}

fn items<'a>(name: &'static str, value: &'a Value) -> Result<&'a [Value], Error> {
    match value {
        Value::Array(items) => Ok(items),
        _ => Err(wrong(name, "is not a list")),
    }
}

fn digest(name: &'static str, value: &Value) -> Result<Digest, Error> {
    let text = text_of(name, value)?;
    Digest::from_hex(text.as_bytes()).ok_or_else(|| wrong(name, "is not 64 lowercase hex digits"))
}

fn commit(name: &'static str, value: &Value) -> Result<ObjectId, Error> {
    let text = text_of(name, value)?;
    ObjectId::from_hex(text.as_bytes()).ok_or_else(|| wrong(name, "is not 40 lowercase hex digits"))
}

fn requirement(value: &Value) -> Result<Requirement, Error> {
    assurance(text_of(REQUIRE, value)?)
}

/// An assurance, by its name.
pub(crate) fn assurance(name: &str) -> Result<Requirement, Error> {
    match name {
        "pinned" => Ok(Requirement::Pinned),
        "anchored" => Ok(Requirement::Anchored),
        "hmac" => Ok(Requirement::Hmac),
        "complete" => Ok(Requirement::Complete),
        _ => Err(wrong(REQUIRE, "knows pinned, anchored, hmac and complete")),
    }
}

fn pinned(signers: &[Value]) -> Result<Trust, Error> {
    const NAME: &str = "signers";
    let pins = signers.iter().map(|signer| {
        let text = text_of(NAME, signer)?;
        match text.trim().parse::<Fingerprint>() {
            Ok(fingerprint) => Ok(Pin::Fingerprint(fingerprint)),
            Err(_) => {
                let key = PublicKey::from_file(text.as_bytes());
                Ok(Pin::Key(key.map_err(|error| wrong(NAME, error.to_string()))?))
            }
        }
    });
    match pins.collect::<Result<Vec<_>, Error>>()? {
        pins if pins.is_empty() => Ok(Trust::Unpinned),
        pins => Ok(Trust::Pinned(pins)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn refused(options: &str, expected: &str) {
        let error = read(Some(options)).expect_err(options);
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn what_does_not_fit_is_refused_by_name() {
        refused("[]", "options are not the text of a JSON object: it is another kind of value");
        refused(r#"{"heads":1}"#, "unknown option \"heads\"");
        refused(r#"{"contains":"AB"}"#, "option contains: is not 64 lowercase hex digits");
        refused(r#"{"expected_commit":"AB"}"#, "option expected_commit: is not 40 lowercase hex digits");
        refused(r#"{"folder":1}"#, "option folder: is neither true nor false");
        refused(r#"{"signers":"x"}"#, "option signers: is not a list");
        refused(r#"{"require":["all"]}"#, "option require: knows pinned, anchored, hmac and complete");
        assert!(read(Some("{")).is_err());
        assert!(read(Some(r#"{"signers":["somebody"]}"#)).is_err());
        let options = read(Some(
            r#"{"signers":["SHA256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg"],"shown":true,"require":["hmac"]}"#,
        ));
        let options = options.expect("known options");
        assert!(matches!(options.trust, Trust::Pinned(pins) if pins.len() == 1));
        assert!(options.shown && options.requirements == [Requirement::Hmac]);
    }
}
