//! Secrets in a command line that only its words' order tells: `--password hunter2`, `curl -u
//! user:pass`, `sshpass -p x`.

use std::ops::Range;

use super::names::{self, Noun};
use super::needles::{Action, Needles};
use super::scan::Scan;
use super::values;

/// Programs whose short flags take secrets.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tool {
    Curl,
    SshPass,
    MySql,
    /// A registry's client, after `login`.
    Login,
    Registry,
    Redis,
    Samba,
    Ldap,
    Mongo,
    SqlCmd,
    OpenSsl,
    SshKeygen,
    Zip,
    GitHub,
    GitHubSecret,
}

const TOOLS: [(Tool, &str); 13] = [
    (Tool::Curl, "curl wget http https xh xhs"),
    (Tool::SshPass, "sshpass"),
    (Tool::MySql, "mysql mysqldump mysqladmin mariadb mariadb-dump mariadb-admin"),
    (Tool::Registry, "docker podman nerdctl helm oras crane az"),
    (Tool::Redis, "redis-cli"),
    (Tool::Samba, "smbclient"),
    (Tool::Ldap, "ldapsearch ldapmodify ldapadd ldapdelete"),
    (Tool::Mongo, "mongo mongosh mongodump mongorestore mongoexport mongoimport"),
    (Tool::SqlCmd, "sqlcmd bcp"),
    (Tool::OpenSsl, "openssl"),
    (Tool::SshKeygen, "ssh-keygen"),
    (Tool::Zip, "zip unzip"),
    (Tool::GitHub, "gh"),
];

/// Reads words in order; remembers what the words before mean for the next.
#[derive(Default)]
pub(super) struct Reader<'w> {
    tool: Option<Tool>,
    before: &'w [u8],
    second: &'w [u8],
}

impl<'w> Reader<'w> {
    /// Where the secret in the next word begins; it runs to the word's end.
    pub(super) fn next(&mut self, word: &'w [u8]) -> Option<usize> {
        let found = self
            .by_name(word)
            .into_iter()
            .chain(self.by_tool(word))
            .min()
            .filter(|start| *start < word.len());
        self.remember(word);
        found
    }

    fn remember(&mut self, word: &'w [u8]) {
        let program = word.rsplit(|byte| matches!(byte, b'/' | b'\\')).next().unwrap_or_default();
        let program = program.strip_suffix(b".exe").unwrap_or(program);
        let names = |names: &str| names.split_ascii_whitespace().any(|name| name.as_bytes() == program);
        if let Some((tool, _)) = TOOLS.iter().find(|(_, programs)| names(programs)) {
            self.tool = Some(*tool);
        }
        match (self.tool, word) {
            (Some(Tool::Registry), b"login") => self.tool = Some(Tool::Login),
            (Some(Tool::GitHub), b"secret") => self.tool = Some(Tool::GitHubSecret),
            _ => {}
        }
        (self.second, self.before) = (self.before, word);
    }

    fn by_name(&self, word: &[u8]) -> Option<usize> {
        let script =
            self.before.first() == Some(&b'-') && self.before.last() == Some(&b'c') && self.before.len() <= 4;
        let sentence = self.before.is_empty() && word.iter().any(u8::is_ascii_whitespace);
        if script || sentence {
            return None;
        }
        if self.follows_secret_flag(word) {
            return Some(0);
        }
        if let Some((name, start)) = assignment(word) {
            let value = &word[start..];
            let form = value.contains(&b'&')
                && value.split(|byte| *byte == b'&').skip(1).any(|pair| pair.contains(&b'='));
            return (!form && !values::is_inert(name, value)).then_some(start);
        }
        self.header(word)
    }

    /// The word before is `--password`, or `set password` is.
    fn follows_secret_flag(&self, word: &[u8]) -> bool {
        let flag = self.before.strip_prefix(b"-").map(|flag| flag.strip_prefix(b"-").unwrap_or(flag));
        let setting = (self.second == b"set").then_some(self.before);
        let name = flag.or(setting).filter(|name| !name.contains(&b'='));
        let Some(noun) = name.and_then(names::noun) else { return false };
        let next_flag = word.first() == Some(&b'-')
            && word.get(1).is_some_and(|byte| *byte == b'-' || byte.is_ascii_alphabetic());
        let named = word.starts_with(b"id=") || word.starts_with(b"type=");
        !next_flag && !named && !values::is_inert(noun, word)
    }

    /// `-H "Authorization: Bearer x"`, in one word or two.
    fn header(&self, word: &[u8]) -> Option<usize> {
        let start = if matches!(self.before, b"-H" | b"--header" | b"--proxy-header") {
            0
        } else {
            [&b"--header="[..], b"-H"].iter().find(|flag| word.starts_with(flag)).map(|flag| flag.len())?
        };
        let line = &word[start..];
        let colon = line.iter().position(|byte| *byte == b':')?;
        let noun = names::noun(&line[..colon])?;
        let blanks = line[colon + 1..].iter().take_while(|byte| **byte == b' ').count();
        let value = &line[colon + 1 + blanks..];
        let scheme = values::scheme(value).filter(|_| noun == Noun::Authorization).unwrap_or_default();
        (!values::is_inert(noun, value)).then_some(start + colon + 1 + blanks + scheme)
    }

    fn by_tool(&self, word: &[u8]) -> Option<usize> {
        let tool = self.tool?;
        let attached = |flags: &[&[u8]]| {
            flags.iter().find(|flag| word.len() > flag.len() && word.starts_with(flag)).map(|flag| flag.len())
        };
        let behind = |flags: &[&[u8]]| flags.contains(&self.before).then_some(0);
        let start = match tool {
            Tool::Curl => {
                let flags: &[&[u8]] = &[b"-u", b"--user", b"-U", b"--proxy-user", b"-a", b"--auth"];
                let joined: &[&[u8]] = &[b"--user=", b"--proxy-user=", b"--auth=", b"-u", b"-U"];
                let start = behind(flags).or_else(|| attached(joined))?;
                return user_and(b':', word, start);
            }
            Tool::Samba => {
                return user_and(b'%', word, behind(&[b"-U", b"--user"]).or_else(|| attached(&[b"-U"]))?);
            }
            Tool::SshPass => behind(&[b"-p"]).or_else(|| attached(&[b"-p"])),
            Tool::MySql => attached(&[b"-p"]),
            Tool::Login | Tool::Mongo => behind(&[b"-p"]),
            Tool::Redis => behind(&[b"-a"]),
            Tool::Ldap => behind(&[b"-w"]),
            Tool::SqlCmd | Tool::Zip => behind(&[b"-P"]).or_else(|| attached(&[b"-P"])),
            Tool::SshKeygen => behind(&[b"-N", b"-P"]),
            Tool::OpenSsl => attached(&[b"pass:"]),
            Tool::GitHubSecret => behind(&[b"-b", b"--body"]).or_else(|| attached(&[b"--body="])),
            Tool::Registry | Tool::GitHub => None,
        }?;
        (!values::is_inert(Noun::Password, &word[start..])).then_some(start)
    }
}

/// The kind and value's place of `NAME=value`, `--name=value`, `-Dname=value`,
/// `--from-literal=name=value`.
fn assignment(word: &[u8]) -> Option<(Noun, usize)> {
    let mut start = 0;
    for _ in 0..3 {
        let length = word[start..].iter().position(|byte| *byte == b'=')?;
        let name = &word[start..start + length];
        if !name.iter().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/' | b':')) {
            return None;
        }
        let defined = name.strip_prefix(b"-D").or_else(|| name.strip_prefix(b"-P"));
        if let Some(noun) = names::noun(name).or_else(|| names::noun(defined?)) {
            return Some((noun, start + length + 1));
        }
        start += length + 1;
    }
    None
}

/// The password in `user:password`; numbers on both sides are a user's and a group's ids.
fn user_and(sign: u8, word: &[u8], start: usize) -> Option<usize> {
    let password = start + word[start..].iter().position(|byte| *byte == sign)? + 1;
    let ids = word[start..].iter().all(|byte| byte.is_ascii_digit() || *byte == sign);
    (!ids && !values::is_stand_in(&word[password..])).then_some(password)
}

/// Adds the names of programs, to find their flags inside a text.
pub(super) fn add_needles(needles: &mut Needles) {
    let programs = "curl wget sshpass mysql mariadb docker podman redis-cli smbclient ldap mongo sqlcmd openssl ssh-keygen";
    for program in programs.split_ascii_whitespace() {
        needles.exact(program.as_bytes(), Action::Rule(commands));
    }
}

/// Reads the words of a command line inside a text, up to its line's end.
fn commands(scan: &mut Scan<'_>, at: Range<usize>) {
    if at.start < scan.commands || !scan.bounded(at.start) {
        return;
    }
    let mut end = scan.line_end(at.start);
    // A backslash goes on with the next line.
    while scan.before(end) == Some(b'\\') && scan.byte(end) == Some(b'\n') {
        end = scan.line_end(end + 1);
    }
    scan.commands = end;
    let text = scan.text;
    let mut reader = Reader::default();
    let mut from = at.start;
    while let Some(word) = next_word(scan, from, end) {
        from = word.end + 1;
        if matches!(&text[word.clone()], b"|" | b"||" | b"&&" | b";") {
            reader = Reader::default();
        }
        let part = &text[word.clone()];
        if let Some(secret) = reader.by_tool(part) {
            scan.add(word.start + secret..word.end);
        }
        reader.remember(part);
    }
}

/// The next word: what a quote encloses, or what no blank parts; the commas of a JSON array part too.
fn next_word(scan: &Scan<'_>, from: usize, end: usize) -> Option<Range<usize>> {
    let start = scan.skip(from, |byte| byte <= b' ' || matches!(byte, b',' | b'['));
    if start >= end {
        return None;
    }
    if let Some(quote) = scan.quote(start) {
        let (close, _) = scan.content(&quote);
        return Some(quote.after..close.min(end).max(quote.after)).filter(|word| word.end <= scan.text.len());
    }
    let close =
        scan.skip(start, |byte| byte > b' ' && !matches!(byte, b'"' | b'\'' | b'`' | b'\\' | b')')).min(end);
    Some(start..close.max(start + 1).min(end))
}
