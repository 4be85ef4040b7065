//! One walk over one text: what rules share to look around a needle, and the spans that they found.
//!
//! Every helper is linear in the whole walk, whatever the text: a run of bytes of one class is measured
//! once, names and values are judged once, and all other looking around is capped.

use std::ops::Range;

/// A set of bytes that a token's body is made of.
pub(super) struct Class {
    id: usize,
    has: fn(u8) -> bool,
}

pub(super) static HEX: Class = Class { id: 0, has: |b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b) };
pub(super) static ALNUM: Class = Class { id: 1, has: |b| b.is_ascii_alphanumeric() };
/// base64url.
pub(super) static WORD: Class = Class { id: 2, has: |b| b.is_ascii_alphanumeric() || b"_-".contains(&b) };
/// base64url with dots, as in a JWT.
pub(super) static DOTTED: Class = Class { id: 3, has: |b| b.is_ascii_alphanumeric() || b"_-.".contains(&b) };
/// Both kinds of base64.
pub(super) static BASE64: Class =
    Class { id: 4, has: |b| b.is_ascii_alphanumeric() || b"_-+/=".contains(&b) };
/// base64, dotted, and percent escapes.
pub(super) static COOKIE: Class =
    Class { id: 5, has: |b| b.is_ascii_alphanumeric() || b"_-.+/=%".contains(&b) };
/// A URL's path.
pub(super) static PATH: Class =
    Class { id: 6, has: |b| b.is_ascii_alphanumeric() || b"_-./=%@:~".contains(&b) };
/// What a credential behind a scheme may be made of: all but white space, quotes, brackets and list
/// separators.
pub(super) static CREDENTIAL: Class =
    Class { id: 7, has: |b| b > b' ' && !b"\"'`<>\\,;()[]{}\x7f".contains(&b) };
/// The body of a hashed password in crypt(3) form.
pub(super) static CRYPT: Class =
    Class { id: 8, has: |b| b.is_ascii_alphanumeric() || b"./$+=,".contains(&b) };
const CLASSES: usize = 9;

pub(super) struct Scan<'t> {
    pub(super) text: &'t [u8],
    pub(super) spans: Vec<Range<usize>>,
    pub(super) homes: Vec<Range<usize>>,
    /// Names that start before this offset were judged already, or lie inside a value.
    pub(super) judged: usize,
    /// Command lines were read up to here.
    pub(super) commands: usize,
    runs: [Range<usize>; CLASSES],
}

impl<'t> Scan<'t> {
    pub(super) fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            spans: Vec::new(),
            homes: Vec::new(),
            judged: 0,
            commands: 0,
            runs: std::array::from_fn(|_| 0..0),
        }
    }

    pub(super) fn add(&mut self, span: Range<usize>) {
        if span.start < span.end {
            self.spans.push(span);
        }
    }

    /// Adds the home folder found at `at` if it is a whole path's beginning.
    pub(super) fn home(&mut self, at: Range<usize>) {
        let in_name = |byte: u8| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b'@' | b'~' | 0x80..)
        };
        let full_stop = self.byte(at.end + 1).is_none_or(|byte| !in_name(byte) && byte != b'.');
        let ends = match self.byte(at.end) {
            Some(b'.') => full_stop,
            Some(byte) => !in_name(byte),
            None => true,
        };
        let begins = match self.before(at.start) {
            // `file:///home/ann`
            Some(b'/') => self.before(at.start - 1) == Some(b'/'),
            Some(b'.') => false,
            Some(byte) => !in_name(byte) || byte.is_ascii_alphanumeric() && self.bounded(at.start),
            None => true,
        };
        if begins && ends {
            self.homes.push(at);
        }
    }

    pub(super) fn byte(&self, at: usize) -> Option<u8> {
        self.text.get(at).copied()
    }

    pub(super) fn before(&self, at: usize) -> Option<u8> {
        at.checked_sub(1).and_then(|index| self.byte(index))
    }

    pub(super) fn starts(&self, at: usize, with: &[u8]) -> bool {
        self.text.get(at..).is_some_and(|rest| rest.starts_with(with))
    }

    /// Where the run of `class` bytes that `from` is in ends.
    pub(super) fn run(&mut self, class: &Class, from: usize) -> usize {
        let known = &self.runs[class.id];
        if known.start <= from && from < known.end {
            return known.end;
        }
        let end = self.skip(from, class.has);
        self.runs[class.id] = from..end;
        end
    }

    /// The first offset from `from` on whose byte isn't `of` these.
    pub(super) fn skip(&self, from: usize, of: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.get(from..).unwrap_or_default();
        from + rest.iter().position(|byte| !of(*byte)).unwrap_or(rest.len())
    }

    /// The first offset after spaces, tabs and colour codes (`ESC[31m`, also with the escape spelled
    /// out).
    pub(super) fn skip_blanks(&self, from: usize) -> usize {
        let mut at = from;
        loop {
            at = self.skip(at, |byte| matches!(byte, b' ' | b'\t'));
            let escapes = [&b"\x1b["[..], br"\u001b[", br"\x1b[", br"\033[", br"\e["];
            let Some(escape) = escapes.iter().find(|escape| self.starts(at, escape)) else { return at };
            let code = at + escape.len();
            let end = self.skip(code, |byte| byte.is_ascii_digit() || byte == b';');
            if end - code > 16 || !matches!(self.byte(end), Some(b'm' | b'K')) {
                return at;
            }
            at = end + 1;
        }
    }

    /// The end of the line that `from` is in; an escaped line end (`\n` as two bytes) counts.
    pub(super) fn line_end(&self, from: usize) -> usize {
        self.line_end_within(from, usize::MAX)
    }

    /// [`Self::line_end`], but at most `most` bytes on.
    pub(super) fn line_end_within(&self, from: usize, most: usize) -> usize {
        let limit = self.text.len().min(from.saturating_add(most));
        let line = self.text.get(from..limit).unwrap_or_default();
        let ends = |at: &usize| matches!(self.text[*at], b'\n' | b'\r' | b'\\') && self.ends_line(*at);
        (from..from + line.len()).find(ends).unwrap_or(limit.max(from))
    }

    /// The text or a line ends at `at`, perhaps by an escaped line end.
    pub(super) fn ends_line(&self, at: usize) -> bool {
        match self.byte(at) {
            None | Some(b'\n' | b'\r') => true,
            Some(b'\\') => {
                let escapes = self.text[at..].iter().take(16).take_while(|byte| **byte == b'\\').count();
                matches!(self.byte(at + escapes), Some(b'n' | b'r'))
            }
            Some(_) => false,
        }
    }

    /// Nothing is before `at` on its line.
    pub(super) fn starts_line(&self, at: usize) -> bool {
        match self.before(at) {
            None | Some(b'\n' | b'\r') => true,
            Some(b'n' | b'r') => self.before(at - 1) == Some(b'\\'),
            Some(_) => false,
        }
    }

    /// A word can begin at `at`: no letter or digit before it, save one that belongs to something else,
    /// such as an escape (`\n`, `%20`, `\u0022`), a colour code (`ESC[31m`) or a one-letter flag
    /// (`-p`).
    pub(super) fn bounded(&self, at: usize) -> bool {
        let Some(before) = self.before(at) else { return true };
        let flag = |dash: usize| {
            let free = self.before(dash).is_none_or(|byte| byte <= b' ' || b"\"',`".contains(&byte));
            free && self.text[dash] == b'-' && before.is_ascii_alphabetic()
        };
        !before.is_ascii_alphanumeric() || self.escape_ends(at) || at.checked_sub(2).is_some_and(flag)
    }

    /// An escape or colour code ends at `at`.
    pub(super) fn escape_ends(&self, at: usize) -> bool {
        let hex = |digits: &[u8]| digits.iter().all(u8::is_ascii_hexdigit);
        match &self.text[at.saturating_sub(6)..at] {
            [.., b'\\', b'n' | b'r' | b't' | b'b' | b'f'] => true,
            [.., b'%', first, second] | [.., b'\\', b'x', first, second] if hex(&[*first, *second]) => true,
            [b'\\', b'u', digits @ ..] if hex(digits) => digits.len() == 4,
            [.., b'm'] => {
                let code = self.text[at.saturating_sub(17)..at - 1].iter().rev();
                code.copied().find(|byte| !byte.is_ascii_digit() && *byte != b';') == Some(b'[')
            }
            _ => false,
        }
    }

    /// An opening quote at `at`, bare, escaped by backslashes, or spelled out.
    pub(super) fn quote(&self, at: usize) -> Option<Quote> {
        let marked = self.skip(at, |byte| byte == b'\\');
        let escapes = marked - at;
        if let Some(mark @ (b'"' | b'\'' | b'`')) = self.byte(marked) {
            return (escapes < 16).then_some(Quote { after: marked + 1, mark, escapes, spelled: None });
        }
        let from = marked - escapes.min(1);
        let spelled = SPELLED.into_iter().find(|quote| self.starts(from, quote))?;
        Some(Quote { after: from + spelled.len(), mark: 0, escapes: 0, spelled: Some(spelled) })
    }

    /// Where the content that `quote` opened ends, and what is behind the closing quote; without one,
    /// its line's end.
    pub(super) fn content(&self, quote: &Quote) -> (usize, Option<usize>) {
        let rest = self.text.get(quote.after..).unwrap_or_default();
        if let Some(spelled) = quote.spelled {
            let ends =
                |index: &usize| matches!(rest[*index], b'\n' | b'\r') || rest[*index..].starts_with(spelled);
            let end = quote.after + (0..rest.len()).find(ends).unwrap_or(rest.len());
            return (end, self.starts(end, spelled).then_some(end + spelled.len()));
        }
        let level = 2 * (quote.escapes + 1);
        let mut escapes = 0;
        for (index, byte) in rest.iter().enumerate() {
            let at = quote.after + index;
            match *byte {
                b'\n' | b'\r' => return (at, None),
                b'\\' => {
                    escapes += 1;
                    continue;
                }
                // `\"` inside "…" is content; `\"` closes \"…\", and so does a bare `"` that ends the
                // text around it.
                mark if mark == quote.mark
                    && (escapes < quote.escapes || escapes % level == quote.escapes) =>
                {
                    return (at - escapes.min(quote.escapes), Some(at + 1));
                }
                _ => {}
            }
            escapes = 0;
        }
        (self.text.len().max(quote.after), None)
    }
}

/// Quotes as URLs, HTML and strings spell them.
const SPELLED: [&[u8]; 9] =
    [b"%22", b"%27", b"&quot;", b"&#34;", b"&#39;", br"\u0022", br"\u0027", br"\x22", br"\x27"];

/// An opening quote.
#[derive(Clone, Copy)]
pub(super) struct Quote {
    pub(super) after: usize,
    /// 0 if it is spelled out.
    pub(super) mark: u8,
    pub(super) escapes: usize,
    pub(super) spelled: Option<&'static [u8]>,
}
