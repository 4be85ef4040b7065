//! The scrubber as a whole: literals, patterns, the home folder, command lines, stability, odd bytes,
//! speed.

use std::time::Instant;

use super::{body, check, scrubber};
use crate::redact::{MARKER, Scrubber};

fn env(pairs: &[(&str, &str)]) -> Scrubber {
    Scrubber::builder()
        .env(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())))
        .build()
}

#[test]
fn secrets_of_the_environment_go_wherever_they_occur() {
    let scrubber = env(&[
        ("GH_TOKEN", "correct horse"),
        ("FOO_KEY", "abc\"def\\g"),
        ("DB_PASS", "p@ss w/rd"),
        ("DATABASE_URL", "postgres://u:fromurl99@h/db"),
        ("MY_PAT", "orange-juice\n"),
        ("API_KEY", "ключ-секрет"),
        ("AWS_SECRET_ACCESS_KEY", "/abcdefghijklmnopqrstuvwxyz0123456789ABC"),
    ]);
    let rows = [
        "it said «correct horse», twice: x«correct horse»x",
        "as json \"«abc\\\"def\\\\g»\" and raw «abc\"def\\g»",
        "?q=«p%40ss%20w%2Frd»",
        "connect with «fromurl99» now",
        "«orange-juice»",
        "— «ключ-секрет» —",
        "got «/abcdefghijklmnopqrstuvwxyz0123456789ABC» back",
    ];
    check(&scrubber, rows);
}

#[test]
fn trivial_values_of_the_environment_stay() {
    let scrubber = env(&[
        ("A_TOKEN", "short"),
        ("B_TOKEN", "false"),
        ("C_KEY", "12345678"),
        ("D_SECRET", "production"),
        ("E_KEY", "/usr/bin/thing"),
        ("F_TOKEN", "${OTHER}"),
        ("G_KEY", "xxxxxxxx"),
        ("HOME", "/home/ann/some"),
        ("PATH", "/usr/bin:/bin"),
        ("PUBLIC_KEY", "publicvalue"),
        ("PWD", "/data/ann/work"),
        ("AWS_REGION", "eu-central-1"),
        ("SSH_AUTH_SOCK", "/tmp/ssh-x/agent.1"),
    ]);
    let text = "short false 12345678 production /usr/bin/thing ${OTHER} xxxxxxxx /home/ann/some /usr/bin:/bin publicvalue \
        /data/ann/work eu-central-1 /tmp/ssh-x/agent.1";
    assert_eq!(scrubber.scrub(text), (text.into(), 0));
}

#[test]
fn debug_output_tells_no_secret() {
    let builder = Scrubber::builder()
        .env([("GH_TOKEN".to_owned(), "correct horse".to_owned())])
        .pattern("battery")
        .unwrap();
    let shown = format!("{builder:?}") + &format!("{:?}", builder.build());
    assert!(!shown.contains("horse") && !shown.contains("battery"), "{shown}");
}

#[test]
fn a_pattern_s_whole_match_goes_and_groups_are_not_echoed() {
    let scrubber =
        Scrubber::builder().pattern("acct-(\\d+)-(?P<n>x)?").unwrap().pattern("(?i)ann(a)?").unwrap().build();
    check(&scrubber, ["id «acct-123-» and «acct-4-x»", "«Anna» and «ANN»", "$1 ${n} «acct-1-»"]);
}

#[test]
fn patterns_come_to_rest() {
    for pattern in [
        "\\S+",
        ".",
        "[A-Z]{8}",
        "(?s).+",
        "\\*+",
        "RED",
        ".{3}",
        "(?-u:[\\x80-\\xff])",
        "E.*T",
        "a\\*\\*\\*",
    ] {
        let scrubber = Scrubber::builder().pattern(pattern).unwrap().build();
        for text in ["ab cde ***REDACTED*** fgh", "héllo wörld", "aaaa", "***", "a***REDACTED***b", "xa***"]
        {
            let (once, _) = scrubber.scrub(text);
            let (twice, count) = scrubber.scrub(&once);
            assert_eq!((&twice, count), (&once, 0), "{pattern} on {text}");
        }
    }
}

#[test]
fn a_bad_pattern_is_refused_in_one_line() {
    for (pattern, expect) in [
        ("(", "redact pattern 1: unclosed group at column 1"),
        ("ab[", "redact pattern 1: unclosed character class at column 3"),
        ("x*", "redact pattern 1: matches the empty string; make it match at least one character"),
        ("", "redact pattern 1: matches the empty string; make it match at least one character"),
        ("\\b", "redact pattern 1: matches the empty string; make it match at least one character"),
        ("$", "redact pattern 1: matches the empty string; make it match at least one character"),
        ("a{1000}{1000}{10}", "redact pattern 1: compiles to more than 10485760 bytes; make it shorter"),
    ] {
        assert_eq!(Scrubber::builder().pattern(pattern).unwrap_err().to_string(), expect);
    }
    let second = Scrubber::builder().pattern("ok").unwrap().pattern("hunter2(").unwrap_err().to_string();
    assert_eq!(second, "redact pattern 2: unclosed group at column 8");
}

#[test]
fn home_becomes_a_tilde_at_path_boundaries() {
    let scrubber = Scrubber::builder().home(Some("/home/ann/")).build();
    for (text, expect) in [
        ("/home/ann", "~"),
        ("cd /home/ann/x && ls \"/home/ann\"", "cd ~/x && ls \"~\""),
        ("PATH=/home/ann/bin:/home/ann/.local/bin:/bin", "PATH=~/bin:~/.local/bin:/bin"),
        ("file:///home/ann/x", "file://~/x"),
        ("cc -I/home/ann/include", "cc -I~/include"),
        ("in /home/ann. Then", "in ~. Then"),
        ("{\"cwd\":\"/home/ann\"}\\n/home/ann", "{\"cwd\":\"~\"}\\n~"),
        (
            "/home/anna /home/ann-x /home/ann.bak /mnt/home/ann a//home/ann",
            "/home/anna /home/ann-x /home/ann.bak /mnt/home/ann a//home/ann",
        ),
    ] {
        assert_eq!(scrubber.scrub(text), (expect.into(), 0));
        assert_eq!(scrubber.scrub(expect), (expect.into(), 0));
    }
    for home in [None, Some(""), Some("/"), Some("//"), Some("relative")] {
        let scrubber = Scrubber::builder().home(home).build();
        assert_eq!(scrubber.scrub("/ //relative / x"), ("/ //relative / x".into(), 0));
    }
}

#[test]
fn command_lines_lose_secrets_split_over_two_arguments() {
    let scrubber = scrubber();
    for (line, expect, count) in [
        ("run|--password|hunter2|-v", "run|--password|***REDACTED***|-v", 1),
        ("run|--token|X", "run|--token|***REDACTED***", 1),
        ("run|--password|two words", "run|--password|***REDACTED***", 1),
        ("run|-password|x", "run|-password|***REDACTED***", 1),
        ("run|--pass|x", "run|--pass|***REDACTED***", 1),
        ("run|--password=x y|z", "run|--password=***REDACTED***|z", 1),
        ("env|DB_PASSWORD=x y z|cmd", "env|DB_PASSWORD=***REDACTED***|cmd", 1),
        ("DB_PASSWORD=x cmd --flag", "DB_PASSWORD=***REDACTED*** cmd --flag", 1),
        ("sh|-c|TOKEN=abc run --fast", "sh|-c|TOKEN=***REDACTED*** run --fast", 1),
        ("sh|-c|curl -u a:b https://h", "sh|-c|curl -u a:***REDACTED*** https://h", 1),
        (
            "curl|-H|Authorization: Bearer x|https://h",
            "curl|-H|Authorization: Bearer ***REDACTED***|https://h",
            1,
        ),
        ("curl|-HX-Api-Key: a b", "curl|-HX-Api-Key: ***REDACTED***", 1),
        ("curl|--header=Authorization: Basic eDp5", "curl|--header=Authorization: Basic ***REDACTED***", 1),
        ("curl|-H|Accept: text/html", "curl|-H|Accept: text/html", 0),
        ("curl|-u|user:pa:ss|h", "curl|-u|user:***REDACTED***|h", 1),
        ("/usr/bin/curl|-uuser:pass", "/usr/bin/curl|-uuser:***REDACTED***", 1),
        ("curl|--user=user:pass", "curl|--user=user:***REDACTED***", 1),
        ("curl|-d|password=x&user=bob", "curl|-d|password=***REDACTED***&user=bob", 1),
        ("sshpass|-p|x|ssh|-p|22|h", "sshpass|-p|***REDACTED***|ssh|-p|22|h", 1),
        ("sshpass|-px|ssh|h", "sshpass|-p***REDACTED***|ssh|h", 1),
        ("mysql|-uroot|-phunter2", "mysql|-uroot|-p***REDACTED***", 1),
        ("docker|login|-u|u|-p|x|reg", "docker|login|-u|u|-p|***REDACTED***|reg", 1),
        ("docker|run|-p|80:80|-u|1000:1000|i", "docker|run|-p|80:80|-u|1000:1000|i", 0),
        ("docker|run|-e|API_KEY=x y|i", "docker|run|-e|API_KEY=***REDACTED***|i", 1),
        (
            "kubectl|create|--from-literal=password=x y",
            "kubectl|create|--from-literal=password=***REDACTED***",
            1,
        ),
        ("java|-Ddb.password=x y", "java|-Ddb.password=***REDACTED***", 1),
        ("openssl|rsa|-passin|pass:x", "openssl|rsa|-passin|pass:***REDACTED***", 1),
        (
            "aws|configure|set|aws_secret_access_key|abc",
            "aws|configure|set|aws_secret_access_key|***REDACTED***",
            1,
        ),
        ("gh|secret|set|N|--body|x", "gh|secret|set|N|--body|***REDACTED***", 1),
        ("mkdir|-p|x", "mkdir|-p|x", 0),
        ("run|--password|--verbose", "run|--password|--verbose", 0),
        ("run|--password|$PASSWORD", "run|--password|$PASSWORD", 0),
        ("run|--private-key|~/.ssh/id", "run|--private-key|~/.ssh/id", 0),
        ("run|--max-tokens|4096", "run|--max-tokens|4096", 0),
        ("psql|postgres://u:p@h/d", "psql|postgres://u:***REDACTED***@h/d", 1),
        ("", "", 0),
    ] {
        let args: Vec<String> = line.split('|').map(str::to_owned).collect();
        let (found, number) = scrubber.scrub_args(&args);
        assert_eq!((found.join("|").as_str(), number), (expect, count));
        assert_eq!(scrubber.scrub_args(&found), (found, 0));
    }
}

#[test]
fn any_bytes_are_taken_and_spans_keep_characters_whole() {
    let scrubber = Scrubber::builder().pattern("(?-u:\\xa4)").unwrap().build();
    let mut bytes = b"\xff\xfe password=hunter2\xed\xa0\x80 ".to_vec();
    bytes.extend(b"\xc0token: abc1\x80\n");
    let (output, count) = scrubber.scrub_bytes(&bytes);
    assert_eq!((&*output, count), (&b"\xff\xfe password=***REDACTED*** \xc0token: ***REDACTED***\n"[..], 2));
    assert_eq!(scrubber.scrub("käse"), ("k***REDACTED***se".into(), 1));
}

/// Joins pieces at random and checks that a second scrub finds nothing, and that no panic is in any of
/// it.
#[test]
fn scrubbing_twice_is_scrubbing_once() {
    let token = format!("gh{}{}", "p_", body(b"abcDEF0123456789", 36));
    #[rustfmt::skip]
    let pieces = [
        "password", "=", ": ", "\"", "'", "\\\"", "\\", "\n", "\\n", " ", ",", ";", "&", "|", ")", "}",
        "]", "[", "{", "`", "${X}", "$", "x", "hunter2", "token", "--token ", "Bearer ",
        "Basic dXNlcjpwYXNz", "Authorization: ", "Cookie: a=b", "https://", "u:p@h", "@", "/",
        "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----",
        "aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7", "eyJhbGciOiJIUzI1NiJ9", ".", "MARK", "***", "REDACTED",
        "curl -u ", "/home/ann", "é", "\u{1b}[31m", "%3D", "secret", "|-\n  ", "mnemonic: ", "TOKEN",
        "sig=", "?", "#", "<password>", "</", "literal-value", "key",
    ];
    let scrubber = Scrubber::builder()
        .home(Some("/home/ann"))
        .env([("X_TOKEN".to_owned(), "literal-value".to_owned())])
        .pattern("h.nter")
        .unwrap()
        .build();
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..12 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let piece = pieces[usize::try_from(state >> 33).unwrap() % pieces.len()];
            text += match piece {
                "MARK" => MARKER,
                "TOKEN" => &token,
                piece => piece,
            };
        }
        let (once, _) = scrubber.scrub(&text);
        let (twice, count) = scrubber.scrub(&once);
        assert_eq!((&twice, count), (&once, 0), "{text:?}");
        assert!(!once.contains(&token) && !once.contains("literal-value"), "{text:?}");
        let args: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let (args, _) = scrubber.scrub_args(&args);
        assert_eq!(scrubber.scrub_args(&args), (args, 0), "{text:?}");
    }
}

/// 128 KiB of anything takes a fraction of a second even unoptimised; quadratic work would take
/// minutes.
#[test]
fn hostile_texts_take_linear_time() {
    let scrubber = scrubber();
    #[rustfmt::skip]
    let pieces = [
        "=", "-", "a", "A", "\"", "'", "\\", "*", "***REDACTED***", " ", "\n", ":", "/", "://", "://a:b",
        "://a:b/", "://a:b@", "eyJ", "eyJ.", "eyJaaaaaaaaaa.", "ghp_", "sk-", "sk-a1", "xoxb-", "7Q~",
        "AZDO", ":AA1", "password=", "password: ", "password=\"", "password='", "password=[",
        "password=\\\"", "\"password\":", "password: |\n  ", "password,", "token_", "token ", "--token ",
        "--token -", "Authorization: ", "Authorization: Digest ", "Cookie: ", "Bearer ", "basic ",
        "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n",
        "-----BEGIN PRIVATE KEY-----A: ", "BEGIN ", "Private-Lines: 1 ", "curl ", "curl -u ", "${",
        "password=${", "password=<", "<password>", "mnemonic: ", "@tcp(", "a@tcp(", "sig=", "?sig=", "\\n",
        "pat", "MTA", "identified by '", "\u{1b}[31m", "%3D", "\u{2022}",
        "-----BEGIN PRIVATE KEY-----\nhttps://", "identified by \"Cookie: ", "\"auth\": \"Authorization: Digest ",
        "Private-Lines: 1 password: |\n ", "password=%22x", "Some(\"password: Some(", "curl \\\n",
    ];
    for piece in pieces {
        let long = piece.repeat((1 << 17) / piece.len());
        for text in [format!("password={long}"), long] {
            let start = Instant::now();
            let _ = scrubber.scrub(&text);
            let took = start.elapsed();
            assert!(took.as_secs() < 5, "{piece:?} took {took:?}");
        }
    }
}
