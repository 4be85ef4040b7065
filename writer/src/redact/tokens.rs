//! Tokens that tell by their shape whose they are: a provider's prefix, then a body of known letters
//! and length.
//!
//! Providers chose these prefixes so that scanners find them; so a bare token in prose or in a log is
//! caught without any name beside it. Body lengths are a little under the documented ones, as a cut
//! token is still mostly a token. What has no prefix of its own (an AWS secret key, an older Cloudflare
//! token, Datadog, Heroku: plain hex or UUIDs) looks like any hash, and is caught only under a name
//! that says so, or in a header.

use std::ops::Range;

use super::needles::{Action, Needles};
use super::scan::{ALNUM, BASE64, COOKIE, CRYPT, Class, DOTTED, HEX, PATH, Scan, WORD};

/// What may stand before a token.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Left {
    Anything,
    /// No letter or digit: `task-…` holds `sk-…`.
    Boundary,
    /// No `_` or `-` either: `cache-key-…` holds `key-…`.
    Start,
}

/// A family of tokens.
pub(super) struct Token {
    prefixes: &'static str,
    body: &'static Class,
    min: usize,
    max: usize,
    left: Left,
    /// The body must look random, for prefixes that words also have.
    random: bool,
    /// The prefix stays: it is an address, and only its path is secret.
    keeps_prefix: bool,
}

const fn token(prefixes: &'static str, body: &'static Class, min: usize) -> Token {
    Token { prefixes, body, min, max: usize::MAX, left: Left::Boundary, random: false, keeps_prefix: false }
}

impl Token {
    const fn exactly(self) -> Self {
        Self { max: self.min, ..self }
    }

    const fn after(self, left: Left) -> Self {
        Self { left, ..self }
    }

    const fn random(self) -> Self {
        Self { random: true, ..self }
    }

    const fn keeping_prefix(self) -> Self {
        Self { keeps_prefix: true, ..self }
    }
}

static TOKENS: &[Token] = &[
    // Code hosts. GitHub's installation tokens may be `ghs_<app>_<JWT>` since 2026; GitLab's have
    // dotted parts since 2025.
    token("ghp_ gho_ ghu_ ghs_ ghr_", &DOTTED, 30).after(Left::Anything),
    token("github_pat_", &WORD, 20).after(Left::Anything),
    token("glpat- gldt- glrt- glrtr- glcbt- glptt- glft- glimt- glagent- glsoat- gloas- glffct- glwt-", &DOTTED, 16),
    token("GR1348941", &WORD, 20),
    token("ATATT3 ATCTT3 ATBB", &BASE64, 20).random(),
    token("sgp_ squ_ sqp_ sqa_ sgp_local_", &ALNUM, 40),
    // Clouds.
    token("AKIA ASIA ABIA ACCA", &ALNUM, 16).exactly(),
    token("ABSK bedrock-api-key-", &BASE64, 80),
    token("AIza", &WORD, 30),
    token("GOCSPX-", &WORD, 20),
    token("ya29.", &DOTTED, 20),
    token("1//0", &WORD, 30),
    token("AQ.Ab", &WORD, 30),
    token("LTAI", &ALNUM, 16).random(),
    token("dop_v1_ doo_v1_ dor_v1_", &HEX, 40),
    token("fo1_ fm1r_ fm1a_ fm2_", &BASE64, 30).random(),
    token("cfk_ cfut_ cfat_", &ALNUM, 40),
    token("v1.0-", &WORD, 120),
    token("dapi", &HEX, 32),
    token("HRKU-", &WORD, 30).random(),
    token("nfp_ vcp_ vci_ vca_ vcr_ vck_ rnd_ napi_ pnu_", &ALNUM, 24).random(),
    token("pscale_tkn_ pscale_pw_ pscale_oauth_", &DOTTED, 30),
    token("pul-", &HEX, 40),
    token("hvs. hvb. hvr.", &WORD, 20),
    token("dt0c01. dt0s01. dt0s16.", &DOTTED, 60),
    token("sha256~", &WORD, 40),
    // Chat.
    token("xoxb- xoxp- xoxa- xoxs- xoxr- xoxo- xoxc- xoxd- xoxe- xoxe.xox xapp- xwfp-", &COOKIE, 10).after(Left::Anything),
    token(
        "hooks.slack.com/services/ hooks.slack.com/workflows/ hooks.slack.com/triggers/ discord.com/api/webhooks/ \
         discordapp.com/api/webhooks/ webhook.office.com/webhookb2/ outlook.office.com/webhook/ \
         hooks.zapier.com/hooks/catch/ api.telegram.org/bot",
        &PATH,
        8,
    )
    .after(Left::Anything)
    .keeping_prefix(),
    // Payment and shops.
    token("sk_live_ sk_test_ rk_live_ rk_test_ sk_org_", &WORD, 14),
    token("whsec_", &BASE64, 16),
    token("sk_", &HEX, 40),
    token("shpat_ shpca_ shppa_ shpss_ shpua_", &ALNUM, 24),
    token("sq0atp- sq0csp- sq0idp-", &WORD, 20),
    token("EAAAE EAAAl", &WORD, 59).exactly(),
    token("EAACEdEose0cBA", &ALNUM, 20),
    token("access_token$production$ access_token$sandbox$", &WORD, 20),
    token("access-production- access-development- access-sandbox-", &WORD, 36),
    token("shippo_live_ shippo_test_", &ALNUM, 30),
    token("FLWSECK- FLWSECK_TEST- FLWSECK_LIVE-", &WORD, 12),
    // Models. A bare `sk-` is also many others' (DeepSeek, Moonshot, LiteLLM).
    token("sk-", &WORD, 20).random(),
    token("sk-proj- sk-svcacct- sk-admin- sk-None- sk-or- sk-lf- sk-ant-", &WORD, 16),
    token("hf_ api_org_", &ALNUM, 30),
    token("gsk_ xai- pplx-", &ALNUM, 40),
    token("r8_ csk- e2b_", &ALNUM, 30),
    token("pcsk_ lsv2_pt_ lsv2_sk_ tgp_v1_", &WORD, 30),
    token("tvly- fw_", &WORD, 20).random(),
    // Packages and builds.
    token("npm_", &ALNUM, 30),
    token("pypi-AgE", &WORD, 20).after(Left::Anything),
    token("rubygems_", &HEX, 40),
    token("cio", &ALNUM, 32).exactly().random(),
    token("dckr_pat_ dckr_oat_", &WORD, 20),
    token("oy2", &ALNUM, 43).exactly(),
    token("CLOJARS_", &ALNUM, 50),
    token("AKCp", &ALNUM, 60),
    token("CCIPAT_ CCIPRJ_ bkua_", &WORD, 30),
    // Mail, work and watching.
    token("SG.", &DOTTED, 50),
    token("key-", &HEX, 32).exactly().after(Left::Start),
    token("xkeysib- xsmtpsib-", &WORD, 40),
    token("re_", &WORD, 30).random(),
    token("lin_api_ lin_oauth_", &ALNUM, 30),
    token("ntn_", &ALNUM, 40),
    token("secret_", &ALNUM, 43).exactly(),
    token("figd_ figo_ figu_", &WORD, 30),
    token("PMAK-", &WORD, 50),
    token("sntrys_", &BASE64, 30),
    token("sntryu_", &HEX, 40),
    token("NRAK- NRII- NRIQ- NRBR-", &WORD, 20),
    token("glsa_ glc_ eyJrIjoi", &BASE64, 32),
    token("dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.", &DOTTED, 30),
    token("sbp_", &HEX, 40),
    token("sb_secret_", &WORD, 20),
    token("sk.eyJ tk.eyJ", &DOTTED, 30),
    token("pat-na1- pat-eu1-", &WORD, 36),
    token("ops_eyJ", &BASE64, 40),
    // Keys and hashed passwords.
    token("AGE-SECRET-KEY- AGE-PLUGIN-", &WORD, 40),
    token("$2a$ $2b$ $2y$", &CRYPT, 50).after(Left::Anything),
    token("$argon2id$ $argon2i$ $argon2d$ $scrypt$ $pbkdf2- $y$ $6$ $5$ $1$ $apr1$", &CRYPT, 24).after(Left::Anything),
];

/// Twilio's key and account ids are two letters and 32 hex digits; a needle takes the first digit too.
static TWILIO: Token = token("", &HEX, 31).exactly().after(Left::Start);

/// Adds the needles of all families.
pub(super) fn add_needles(needles: &mut Needles) {
    for token in TOKENS {
        for prefix in token.prefixes.split_ascii_whitespace() {
            needles.exact(prefix.as_bytes(), Action::Token(token));
        }
    }
    for digit in b"0123456789abcdef" {
        needles.exact(vec![b'S', b'K', *digit], Action::Token(&TWILIO));
        needles.exact(vec![b'A', b'C', *digit], Action::Token(&TWILIO));
    }
    // A Discord token begins with its account's number in base64, so with one of these.
    for first in b"MNO" {
        for second in b"TDjz" {
            for third in b"AEIMQUYcgk" {
                needles.exact(vec![*first, *second, *third], Action::Rule(discord));
            }
        }
    }
    needles.exact(&b":AA"[..], Action::Rule(telegram));
    needles.exact(&b"7Q~"[..], Action::Rule(azure_client_secret));
    needles.exact(&b"8Q~"[..], Action::Rule(azure_client_secret));
    needles.exact(&b"JQQJ9"[..], Action::Rule(azure_long_key));
    needles.exact(&b"AZDO"[..], Action::Rule(azure_long_key));
    needles.exact(&b"+ASt"[..], Action::Rule(azure_long_key));
    needles.exact(&b".atlasv1."[..], Action::Rule(terraform));
    needles.exact(&b"pat"[..], Action::Rule(airtable));
}

/// Judges the text behind a token's prefix.
pub(super) fn find(scan: &mut Scan<'_>, token: &Token, prefix: Range<usize>) {
    let joined = matches!(scan.before(prefix.start), Some(b'_' | b'-')) && token.left == Left::Start;
    if joined || token.left != Left::Anything && !scan.bounded(prefix.start) {
        return;
    }
    let run = scan.run(token.body, prefix.end);
    let body = &scan.text[prefix.end..run];
    let end = run - body.iter().rev().take_while(|byte| matches!(byte, b'.' | b',')).count();
    let length = end - prefix.end;
    // A body of exact length must end there; otherwise it is part of something longer, such as a
    // digest.
    let cut = token.max != usize::MAX && scan.byte(end).is_some_and(|byte| byte.is_ascii_alphanumeric());
    if length < token.min
        || length > token.max
        || cut
        || token.random && !looks_random(&scan.text[prefix.end..end])
    {
        return;
    }
    scan.add(if token.keeps_prefix { prefix.end } else { prefix.start }..end);
}

/// Letters and digits, with a stretch of 16 or more that no hyphen cuts: unlike
/// `sk-learn-pipeline-2-with-scaler`.
fn looks_random(body: &[u8]) -> bool {
    let body = &body[..body.len().min(256)];
    let letters = body.iter().any(u8::is_ascii_alphabetic);
    let digits = body.iter().any(u8::is_ascii_digit);
    letters && digits && body.split(|byte| !byte.is_ascii_alphanumeric()).any(|part| part.len() >= 16)
}

/// `<id in base64>.<time>.<mac>`: 23 to 28, 6 and 27 to 38 letters.
fn discord(scan: &mut Scan<'_>, at: Range<usize>) {
    if !scan.bounded(at.start) {
        return;
    }
    let id = scan.run(&WORD, at.start);
    if !(23..=28).contains(&(id - at.start)) || scan.byte(id) != Some(b'.') {
        return;
    }
    let time = scan.run(&WORD, id + 1);
    if time - id != 7 || scan.byte(time) != Some(b'.') {
        return;
    }
    let mac = scan.run(&WORD, time + 1);
    if (28..=40).contains(&(mac - time)) {
        scan.add(at.start..mac);
    }
}

/// `<bot's number>:AA<33 letters>`.
fn telegram(scan: &mut Scan<'_>, at: Range<usize>) {
    let digits = scan.text[..at.start].iter().rev().take(13).take_while(|byte| byte.is_ascii_digit()).count();
    let start = at.start - digits;
    // The digits of an escape before it (`%20`) are none of it.
    let start = (start..start + 3).find(|from| scan.escape_ends(*from)).unwrap_or(start);
    let end = scan.run(&WORD, at.start + 1);
    if (8..=11).contains(&(at.start - start)) && (34..=36).contains(&(end - at.start - 1)) {
        scan.add(start..end);
    }
}

/// An Entra client secret: three letters, `7Q~` or `8Q~`, then 31 to 34 more.
fn azure_client_secret(scan: &mut Scan<'_>, at: Range<usize>) {
    let part = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~');
    let before = scan.text[..at.start].iter().rev().take(3).take_while(part).count();
    let after = scan.text[at.end..].iter().take(40).take_while(part).count();
    if before == 3 && after >= 30 {
        scan.add(at.start - before..at.end + after);
    }
}

/// Newer Azure keys are 84 or 88 letters with a mark of the service inside.
fn azure_long_key(scan: &mut Scan<'_>, at: Range<usize>) {
    let part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/');
    let before = scan.text[..at.start].iter().rev().take(100).take_while(|byte| part(byte)).count();
    let after = scan.text[at.start..].iter().take(100).take_while(|byte| part(byte)).count();
    let padding = scan.text[at.start + after..].iter().take(2).take_while(|byte| **byte == b'=').count();
    if matches!(before + after + padding, 84 | 88) {
        scan.add(at.start - before..at.start + after + padding);
    }
}

/// A Terraform Cloud token: 14 letters, `.atlasv1.`, then some 67.
fn terraform(scan: &mut Scan<'_>, at: Range<usize>) {
    let before =
        scan.text[..at.start].iter().rev().take(16).take_while(|byte| byte.is_ascii_alphanumeric()).count();
    let end = scan.run(&WORD, at.end);
    if before >= 10 && end - at.end >= 40 {
        scan.add(at.start - before..end);
    }
}

/// An Airtable token: `pat`, 14 letters, a dot, 64 hex digits.
fn airtable(scan: &mut Scan<'_>, at: Range<usize>) {
    let dot = at.end + 14;
    if scan.byte(dot) != Some(b'.')
        || !scan.text[at.end..dot].iter().all(u8::is_ascii_alphanumeric)
        || !scan.bounded(at.start)
    {
        return;
    }
    let end = scan.run(&HEX, dot + 1);
    if end - dot == 65 {
        scan.add(at.start..end);
    }
}
