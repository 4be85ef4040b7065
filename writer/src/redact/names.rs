//! What a name means: `db_password`, `apiKey` and `X-Auth-Token` hold secrets, `monkey`, `max_tokens`
//! and `public_key` don't.
//!
//! A name is read as words (at `_`, `-`, `.`, spaces and humps), from the last, which says what the
//! thing is: a `token_count` is a count. Words that only qualify (`value`, `prod`, `2`) are passed
//! over.

/// What kind of secret a name means; it decides how its value is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Noun {
    /// Whatever the value is.
    Password,
    /// `pwd`: the working folder too.
    Pwd,
    /// `pass` alone: also what a test does.
    Pass,
    /// Several words, as in a mnemonic.
    Phrase,
    Token,
    /// May also name a file that holds it.
    Key,
    Authorization,
    Cookie,
}

/// Says whether a key, field, header, flag or variable of this name holds a secret.
///
/// It goes by English conventions in names; it does not prove that another name holds none.
pub fn is_secret_name(name: &str) -> bool {
    noun(name.as_bytes()).is_some()
}

const WORDS: usize = 16;

/// The kind of secret that `name` means, if it means one.
pub(super) fn noun(name: &[u8]) -> Option<Noun> {
    let name = &name[name.len().saturating_sub(96)..];
    let mut buffer = [b'_'; 192];
    let lower = in_words(name, &mut buffer);
    let mut words = [&b""[..]; WORDS];
    let parts = lower.rsplit(|byte| *byte == b'_').map(without_number).filter(|word| !word.is_empty());
    for (word, part) in words.iter_mut().zip(parts) {
        *word = part;
    }
    let count = words.iter().position(|word| word.is_empty()).unwrap_or(WORDS);
    let words = &words[..count];
    match name {
        b"_auth" => return Some(Noun::Token),
        // An attribute of HTML, of one letter.
        b"accesskey" | b"ACCESSKEY" => return None,
        _ => {}
    }
    if name.iter().rposition(|byte| *byte == b'.').is_some_and(|dot| is_extension(&name[dot + 1..])) {
        return None;
    }
    let mut sure = true;
    for (index, word) in words.iter().enumerate() {
        if qualifies(word) {
            continue;
        }
        let lead = words.get(index + 1).copied().unwrap_or_default();
        if let Some((noun, strong)) = word_noun(word, lead)
            && (sure || strong)
        {
            let first = words.last().copied().unwrap_or_default();
            return (!(asks(lead) || count > 1 && asks(first))).then_some(noun);
        }
        if describes(word) {
            return None;
        }
        sure = false;
    }
    None
}

/// Writes `name` in lower case with `_` between words; `APIKey` has two.
fn in_words<'b>(name: &[u8], buffer: &'b mut [u8; 192]) -> &'b [u8] {
    let mut length = 0;
    for (index, byte) in name.iter().enumerate() {
        let before = index.checked_sub(1).map_or(b'_', |before| name[before]);
        let next_is_lower = name.get(index + 1).is_some_and(u8::is_ascii_lowercase);
        let hump = byte.is_ascii_uppercase()
            && (before.is_ascii_lowercase()
                || before.is_ascii_digit()
                || before.is_ascii_uppercase() && next_is_lower);
        length += usize::from(hump);
        buffer[length] = if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'_' };
        length += 1;
    }
    &buffer[..length]
}

fn without_number(word: &[u8]) -> &[u8] {
    let digits = word.iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
    &word[..word.len() - digits]
}

/// The noun a word is after the word `lead`, and whether that stands whatever words follow it.
fn word_noun(word: &[u8], lead: &[u8]) -> Option<(Noun, bool)> {
    const STRONG: [&[u8]; 9] = [
        b"password",
        b"passwords",
        b"passwd",
        b"passphrase",
        b"passcode",
        b"passwort",
        b"kennwort",
        b"contrasena",
        b"senha",
    ];
    if STRONG.iter().any(|strong| word.ends_with(strong)) {
        return Some((Noun::Password, true));
    }
    if word.ends_with(b"secret") || matches!(word, b"secrets") {
        return Some((Noun::Token, true));
    }
    let weak = match word {
        b"pw" | b"psk" => Noun::Password,
        b"pwd" => Noun::Pwd,
        b"pass" if lead.is_empty() => Noun::Pass,
        b"pass" if holds_password(lead) => Noun::Password,
        b"token" if !counts(lead) => Noun::Token,
        b"jwt" | b"otp" | b"totp" | b"dsn" | b"bearer" => Noun::Token,
        b"pat"
            if matches!(
                lead,
                b"github"
                    | b"gh"
                    | b"gitlab"
                    | b"git"
                    | b"azure"
                    | b"devops"
                    | b"ado"
                    | b"bitbucket"
                    | b"access"
            ) =>
        {
            Noun::Token
        }
        b"key" if unlocks(lead) => return Some((Noun::Key, true)),
        b"keys" if matches!(lead, b"api" | b"secret" | b"private" | b"access") => Noun::Key,
        b"credential" | b"credentials" | b"creds" => return Some((Noun::Key, true)),
        b"authorization" => Noun::Authorization,
        b"cookie" | b"cookies" => Noun::Cookie,
        b"mnemonic" => Noun::Phrase,
        b"phrase" if matches!(lead, b"seed" | b"recovery" | b"secret" | b"pass") => Noun::Phrase,
        b"code" | b"codes" if matches!(lead, b"recovery" | b"backup") => Noun::Token,
        b"signingkey" => return None,
        _ => {
            if word.strip_suffix(b"key").is_some_and(|stem| !stem.is_empty() && unlocks(stem)) {
                return Some((Noun::Key, true));
            }
            if word.strip_suffix(b"keys").is_some_and(|stem| stem == b"api") {
                Noun::Key
            } else if word.strip_suffix(b"token").is_some_and(|stem| !stem.is_empty() && !counts(stem)) {
                Noun::Token
            } else if [&b"pass"[..], b"pwd"]
                .iter()
                .any(|end| word.strip_suffix(*end).is_some_and(holds_password))
            {
                Noun::Password
            } else {
                return None;
            }
        }
    };
    Some((weak, false))
}

/// What stands before `key` when the key opens something.
#[rustfmt::skip]
fn unlocks(lead: &[u8]) -> bool {
    matches!(
        lead,
        b"api" | b"app" | b"secret" | b"private" | b"priv" | b"access" | b"auth" | b"authentication"
            | b"authtoken" | b"encryption" | b"encrypt" | b"decryption" | b"decrypt" | b"signing"
            | b"master" | b"account" | b"shared" | b"preshared" | b"ssh" | b"deploy" | b"license"
            | b"licence" | b"webhook" | b"admin" | b"service" | b"role" | b"consumer" | b"hmac" | b"aes"
            | b"rsa" | b"ecdsa" | b"pgp" | b"jwt" | b"cipher" | b"crypto" | b"vault" | b"wireguard" | b"wg"
            | b"sas" | b"subscription" | b"integration" | b"ingest" | b"write"
            | b"openai" | b"anthropic" | b"claude" | b"gemini" | b"google" | b"stripe" | b"sendgrid"
            | b"mailgun" | b"twilio" | b"github" | b"gitlab" | b"aws" | b"azure" | b"gcp" | b"cloudflare"
            | b"datadog" | b"newrelic" | b"algolia" | b"supabase" | b"firebase" | b"openrouter"
            | b"groq" | b"mistral" | b"cohere" | b"deepseek" | b"xai" | b"hf" | b"huggingface"
            | b"replicate" | b"pinecone" | b"tavily" | b"serpapi" | b"elevenlabs" | b"langsmith"
            | b"langchain" | b"together" | b"perplexity" | b"fireworks" | b"slack" | b"discord"
            | b"telegram" | b"notion" | b"linear" | b"airtable" | b"figma" | b"postman" | b"shopify"
            | b"heroku" | b"netlify" | b"vercel" | b"digitalocean" | b"npm" | b"pypi" | b"brevo" | b"resend"
            | b"mailchimp"
    )
}

/// What stands before `pass` or `pwd` when it is a password's: `db_pass`, not `first_pass`.
#[rustfmt::skip]
fn holds_password(lead: &[u8]) -> bool {
    matches!(
        lead,
        b"db" | b"database" | b"mysql" | b"mariadb" | b"pg" | b"postgres" | b"postgresql" | b"sql"
            | b"redis" | b"mongo" | b"mongodb" | b"smtp" | b"imap" | b"mail" | b"email" | b"ftp" | b"sftp"
            | b"ssh" | b"user" | b"admin" | b"root" | b"proxy" | b"ldap" | b"http" | b"https" | b"auth"
            | b"api" | b"login" | b"sudo" | b"vault" | b"key" | b"keystore" | b"store" | b"truststore"
            | b"wifi" | b"vpn" | b"amqp" | b"rabbitmq" | b"basic" | b"my" | b"app" | b"web" | b"repo"
            | b"git" | b"registry" | b"docker" | b"service" | b"account" | b"master" | b"os"
    )
}

/// What stands before `token` when it is a piece of text, a place in a list, or a grammar's.
#[rustfmt::skip]
fn counts(lead: &[u8]) -> bool {
    matches!(
        lead,
        b"max" | b"min" | b"num" | b"n" | b"next" | b"page" | b"pagination" | b"continuation" | b"cursor"
            | b"cancel" | b"cancellation" | b"sync" | b"eos" | b"bos" | b"pad" | b"unk" | b"mask" | b"sep"
            | b"cls" | b"special" | b"stop" | b"start" | b"end" | b"first" | b"last" | b"prev" | b"previous"
            | b"input" | b"output" | b"prompt" | b"completion" | b"cached" | b"total" | b"per" | b"by"
            | b"each" | b"unexpected" | b"expected" | b"lookahead" | b"design" | b"fencing" | b"fence"
            | b"color" | b"image"
    )
}

/// Words that make a name a question or a fault: `has_password`.
#[rustfmt::skip]
fn asks(lead: &[u8]) -> bool {
    matches!(
        lead,
        b"is" | b"has" | b"have" | b"show" | b"hide" | b"require" | b"requires" | b"needs" | b"need"
            | b"use" | b"uses" | b"no" | b"without" | b"skip" | b"allow" | b"forgot" | b"invalid"
            | b"missing" | b"wrong" | b"bad" | b"can" | b"should"
    )
}

/// What ends a file's name: `password.rs`, `credentials.json`.
#[rustfmt::skip]
fn is_extension(end: &[u8]) -> bool {
    matches!(
        end,
        b"rs" | b"py" | b"js" | b"mjs" | b"ts" | b"tsx" | b"jsx" | b"go" | b"java" | b"kt" | b"rb" | b"php"
            | b"c" | b"h" | b"cc" | b"cpp" | b"hpp" | b"cs" | b"sh" | b"md" | b"txt" | b"json" | b"yaml"
            | b"yml" | b"toml" | b"ini" | b"cfg" | b"conf" | b"lock" | b"html" | b"css" | b"sql" | b"xml"
            | b"log" | b"pem" | b"crt" | b"pub" | b"tf" | b"swift"
    )
}

/// Trailing words that leave the meaning as it is.
#[rustfmt::skip]
fn qualifies(word: &[u8]) -> bool {
    matches!(
        word,
        b"value" | b"val" | b"string" | b"str" | b"text" | b"plain" | b"plaintext" | b"clear" | b"raw"
            | b"encoded" | b"base" | b"b" | b"hex" | b"bytes" | b"data" | b"new" | b"old" | b"current"
            | b"prod" | b"production" | b"dev" | b"development" | b"test" | b"testing" | b"stage"
            | b"staging" | b"live" | b"local" | b"default" | b"main" | b"primary" | b"secondary" | b"backup"
            | b"pem" | b"der" | b"json" | b"rw" | b"ro" | b"v"
    )
}

/// Trailing words that make it a thing about a secret: `password_policy`, `key_id`, `token_type`.
#[rustfmt::skip]
fn describes(word: &[u8]) -> bool {
    matches!(
        word,
        b"id" | b"ids" | b"identifier" | b"needed" | b"name" | b"names" | b"path" | b"paths" | b"file"
            | b"files" | b"filename" | b"dir" | b"directory" | b"location" | b"url" | b"uri" | b"endpoint"
            | b"host" | b"port" | b"policy" | b"policies" | b"length" | b"len" | b"size" | b"count"
            | b"counts" | b"counter" | b"limit" | b"limits" | b"max" | b"min" | b"type" | b"types" | b"kind"
            | b"format" | b"version" | b"hash" | b"hashes" | b"digest" | b"fingerprint" | b"checksum"
            | b"sha" | b"md" | b"arn" | b"ref" | b"refs" | b"reference" | b"expiry" | b"expires"
            | b"expiration" | b"expired" | b"ttl" | b"at" | b"age" | b"created" | b"updated" | b"usage"
            | b"used" | b"budget" | b"cost" | b"price" | b"rate" | b"required" | b"enabled" | b"disabled"
            | b"valid" | b"invalid" | b"set" | b"reset" | b"change" | b"changed" | b"rotation" | b"manager"
            | b"store" | b"provider" | b"service" | b"helper" | b"source" | b"env" | b"var" | b"variable"
            | b"field" | b"label" | b"prompt" | b"hint" | b"strength" | b"score" | b"regex" | b"pattern"
            | b"prefix" | b"suffix" | b"stdin" | b"mode" | b"method" | b"algorithm" | b"alg" | b"bits"
            | b"status" | b"state" | b"error" | b"errors" | b"message" | b"index" | b"position" | b"offset"
            | b"start" | b"end" | b"number" | b"scope" | b"scopes" | b"audience" | b"issuer" | b"subject"
            | b"class" | b"list" | b"map" | b"table" | b"column" | b"schema" | b"template" | b"description"
            | b"comment" | b"docs" | b"help" | b"config" | b"settings" | b"info" | b"metadata" | b"owner"
            | b"header" | b"headers" | b"domain" | b"jar" | b"consent" | b"banner" | b"samesite" | b"secure"
            | b"engine" | b"scanner" | b"scanning" | b"server" | b"client" | b"command" | b"cmd" | b"less"
            | b"found" | b"provided" | b"generator" | b"validator" | b"rules" | b"agent" | b"exists"
            | b"present"
    )
}
