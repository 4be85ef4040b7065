//! What must go.

use super::{body, check, scrubber};

const ALNUM: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789";
const HEX: &[u8] = b"0123456789abcdef";
const WORD: &[u8] = b"ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz0123456789ABCDEFGHJKLMN_-";

/// A provider's prefix, cut by `|` so that no scanner takes this file for a leak, and its body.
const TOKENS: &[(&str, &[u8], usize)] = &[
    ("gh|p_", ALNUM, 36),
    ("gh|o_", ALNUM, 36),
    ("gh|u_", ALNUM, 36),
    ("gh|s_", ALNUM, 36),
    ("gh|r_", ALNUM, 76),
    ("github|_pat_", ALNUM, 82),
    ("gl|pat-", WORD, 20),
    ("gl|dt-", WORD, 20),
    ("gl|rt-", WORD, 20),
    ("gl|cbt-", WORD, 24),
    ("ATAT|T3xFfGF0", WORD, 180),
    ("AK|IA", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
    ("AS|IA", b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16),
    ("AI|za", WORD, 35),
    ("GOC|SPX-", WORD, 28),
    ("ya|29.a0", WORD, 120),
    ("1/|/0", WORD, 60),
    ("dop|_v1_", HEX, 64),
    ("fo|1_", WORD, 43),
    ("cf|ut_", ALNUM, 48),
    ("da|pi", HEX, 32),
    ("hv|s.", WORD, 90),
    ("hv|b.", WORD, 90),
    ("xo|xb-", b"0123456789", 24),
    ("xo|xp-", b"0123456789", 24),
    ("xa|pp-", WORD, 60),
    ("sk|_live_", ALNUM, 24),
    ("rk|_live_", ALNUM, 24),
    ("sk|_test_", ALNUM, 99),
    ("wh|sec_", ALNUM, 32),
    ("shp|at_", HEX, 32),
    ("sq0|atp-", WORD, 22),
    ("EA|AAE", WORD, 59),
    ("s|k-", ALNUM, 48),
    ("s|k-", HEX, 32),
    ("sk-|proj-", WORD, 156),
    ("sk-|svcacct-", WORD, 156),
    ("sk-|ant-api03-", WORD, 93),
    ("sk-|or-v1-", HEX, 64),
    ("h|f_", ALNUM, 34),
    ("gs|k_", ALNUM, 52),
    ("x|ai-", ALNUM, 80),
    ("pp|lx-", ALNUM, 48),
    ("r|8_", ALNUM, 37),
    ("np|m_", ALNUM, 36),
    ("pypi|-AgEIcHlwaS5vcmc", WORD, 150),
    ("ruby|gems_", HEX, 48),
    ("c|io", ALNUM, 32),
    ("dckr|_pat_", WORD, 27),
    ("key|-", HEX, 32),
    ("S|K", HEX, 32),
    ("A|C", HEX, 32),
    ("lin|_api_", ALNUM, 40),
    ("nt|n_", ALNUM, 46),
    ("secret|_", ALNUM, 43),
    ("PM|AK-", HEX, 59),
    ("sntry|s_", ALNUM, 80),
    ("NR|AK-", b"ABCDEFGHJKLMN0123456789", 27),
    ("gl|sa_", ALNUM, 41),
    ("dp.|st.dev.", ALNUM, 40),
    ("sb|p_", HEX, 40),
    ("AGE-SECRET|-KEY-1", b"QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    ("123456789|:AA", WORD, 33),
    ("$2b|$12$", ALNUM, 53),
];

fn providers() -> impl Iterator<Item = String> {
    TOKENS.iter().map(|(prefix, alphabet, length)| prefix.replace('|', "") + &body(alphabet, *length))
}

#[test]
fn every_provider_s_token_goes_wherever_it_stands() {
    assert!(TOKENS.len() >= 60);
    let arounds = [
        "«T»",
        "pushed with «T» to the mirror",
        "it is «T».",
        "(«T»), see",
        "{\"log\": \"used «T»\"}",
        "first line\\n«T»\\nnext",
        "https://example.com/x?v=1&k=«T»&n=2",
        "\u{1b}[31m«T»\u{1b}[0m",
        "a=«T»; b=2",
        "— «T» —",
        "[\"-x\",\"«T»\"]",
        "%20«T»\"",
    ];
    let rows = providers().flat_map(|token| arounds.map(|around| around.replace('T', &token)));
    check(&scrubber(), rows);
}

#[test]
fn tokens_of_several_parts_go() {
    let (word, hex) = (body(WORD, 43), body(HEX, 64));
    let rows = [
        format!("S{}{}.{word} sent", "G.", body(ALNUM, 22))
            .replacen("SG.", "«SG.", 1)
            .replace(" sent", "» sent"),
        format!("t «MTk4NjIyNDgzNDcx{}.GxYz12.{}» up", body(ALNUM, 10), body(ALNUM, 38)),
        format!("t «{}.atlasv1.{}» up", body(ALNUM, 14), body(ALNUM, 67)),
        format!("t «pa{}{}.{hex}» up", "t", body(ALNUM, 14)),
        format!("t «{}8Q~{}» up", "abc", body(ALNUM, 34)),
        format!("t «{}AZDO{}» up", body(ALNUM, 76), "9xYz"),
        format!("t «{}+ASt{}==» up", body(ALNUM, 76), body(ALNUM, 6)),
        format!(
            "post to https://hooks.slack.com/services/«T0{}/B0{}/{}» now",
            body(ALNUM, 8),
            "AAA",
            body(ALNUM, 24)
        ),
        format!("https://discord.com/api/webhooks/«123456789012345678/{}»", body(WORD, 68)),
        format!(
            "git clone https://x-access-token:«gh{}{}.{}.{}»@github.com/a/b",
            "s_1234_", "eyJhbGci", word, word
        ),
        format!("t «ey{}.ey{}.{}», next", "JhbGciOiJIUzI1NiJ9", "JzdWIiOiIxIn0", word),
        format!("t «ey{}.ey{}.{}». Next", "JhbGciOiJIUzI1NiJ9", "JzdWIiOiIxIn0", word),
        format!("t «ey{}.ey{}» cut", "JhbGciOiJub25lIn0", "JzdWIiOiIxIn0"),
        format!("t «ey{}..{}.{}.{}» up", "JhbGciOiJkaXIifQ", "iv12", "ciphertext", "tag-_1"),
    ];
    check(&scrubber(), rows);
}

#[test]
fn headers_and_schemes_go_to_the_end_of_the_token() {
    let rows = [
        "Bearer «AAAA+tail/more=»",
        "Bearer «AAAA+tail/more=», then",
        "got bearer «a1b2c3d4.e_f~g-h+/=» today",
        "Authorization: Bearer «x»",
        "authorization: bearer «abc»",
        "curl -H 'Authorization: Bearer «abc/def==»' https://h/",
        "curl -H \"Authorization: token «0123456789abcdef0123456789abcdef01234567»\" https://h/",
        "Authorization: Basic «dXNlcjpwYXNz»",
        "sent Basic «dXNlcjpwYXNz» to it",
        "basic «dXNlcjpwYXNz»",
        "Authorization: Token «9944b09199c62bcf9418ad846dd0e4bbdfc6ee4b»",
        "Authorization: «9944b09199c62bcf»",
        "Authorization: Digest «username=\"u\", response=\"0a1b2c3d\", opaque=x»\nHost: h",
        "Authorization: AWS4-HMAC-SHA256 «Credential=AK/2026/s3, Signature=ab12»\r\nHost: h",
        "Proxy-Authorization: Basic «eDp5»",
        "{\"Authorization\": \"«Bearer abc»\"}",
        "{\\\"authorization\\\":\\\"«Bearer abc»\\\",\\\"n\\\":1}",
        "headers={'Authorization': '«Bearer x1»'}",
        "X-Api-Key: «0a1b2c»",
        "x-api-key: «k»\nAccept: */*",
        "X-Auth-Token: «abc123», X-Other: y",
        "X-Vault-Token=«abc»",
        "PRIVATE-TOKEN: «abc-def_1»",
        "Cookie: «sid=abc123; theme=dark»\nAccept: x",
        "Set-Cookie: «session=abc.def-1; Path=/; HttpOnly»",
        "-H 'Cookie: «sid=abc123»' next",
        "using Token «Zx9Yw8Vu7Ts6Rq5Po4Nm3Lk2»",
        "bearer%20«abcdef123456»",
        "Bearer \"«abcdef123456»\"",
    ];
    check(&scrubber(), rows);
}

#[test]
fn url_credentials_go_and_hosts_stay() {
    let rows = [
        "postgres://u:«p»@h/db",
        "postgresql://app:«s3cr3t!»@db.internal:5432/app?sslmode=require",
        "mysql://root:«p@ss»@h:3306/x",
        "mysql://root:«p/w?x#1»@h:3306/x",
        "redis://:«pw»@h:6379/0",
        "amqp://guest:«guest1»@mq//vhost",
        "mongodb+srv://user:«p%40ss»@cluster0.ab1.mongodb.net/db",
        "mongodb://u:«p»@h1:27017,h2:27017/?replicaSet=r",
        "https://user:«pass»@example.com/x",
        "git clone https://oauth2:«abc»@gitlab.com/g/p.git",
        "https://«0123456789abcdef0123456789abcdef01234567»@github.com/o/r.git",
        "https://«0123456789abcdef0123456789abcdef01234567:x-oauth-basic»@github.com/o/r.git",
        "{\"url\":\"https:\\/\\/u:«p»@h\\/x\"}",
        "ftp://u:«p»@h/file, sftp://u2:«p2»@h2/",
        "ssh://u:«p»@host/repo",
        "smtp://mail%40x.org:«pa:ss»@smtp.x.org:587",
        "source is root:«p(w)d»@tcp(127.0.0.1:3306)/db?parseTime=true",
        "DATABASE_URL=postgres://u:«p»@h/db npm start",
        "proxy http://u:«p»@10.0.0.1:3128 up",
        "https://acct.blob.core.windows.net/c?sv=2024&sp=r&sig=«aB3%2Fd5E7f9%2BhIj1kLmN3pQ%3D»&se=x",
        "https://b.s3.amazonaws.com/k?X-Amz-Date=1&X-Amz-Signature=«0123456789abcdef0123456789abcdef01234567»",
    ];
    check(&scrubber(), rows);
}

#[test]
fn assignments_go_in_every_form() {
    let rows = [
        // shell and env files
        "export DB_PASSWORD='«x y»'",
        "export DB_PASSWORD=\"«x \\\" y»\" && run",
        "DB_PASSWORD=«hunter2» npm start",
        "PGPASSWORD=«a&b;c,d)e» psql",
        "AWS_SECRET_ACCESS_KEY=«wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY»",
        "AWS_SESSION_TOKEN=«IQoJb3JpZ2luX2VjE//+=»",
        "PASSWORD='«it'\\''s»' x",
        "A=1\nAPI_KEY=«abc»\nB=2",
        "API_KEY=«abc»\\nB=2",
        "set -x GH_TOKEN «abc1»",
        "ENV DB_PASSWORD «hunter2»",
        "$env:DB_PASSWORD=\"«x»\"",
        "GH_PAT=«abc123»",
        "token=«abc».",
        "(password=«abc»)",
        "password=«***REDACTED***x» y",
        "password=«correct-horse»",
        "PASSWORD=«supersecret»",
        "password=«secret»",
        "password=«123456»",
        "MYSQL_PWD=«hunter2»",
        "PASSWORD=«${PASSWORD:-hunter2}»",
        // INI, TOML
        "[db]\npassword = «hunter2»\nhost = h",
        "password= «h» ; comment",
        "password = \"«hunter two»\" # comment",
        "//npm.example.org/:_authToken=«abc-def»",
        "_auth=«dXNlcjpwYXNz»",
        // JSON
        "{\"password\": \"«x»\"}",
        "{\"password\":\"«a\\\"b\\\\»\",\"n\":1}",
        "{\"msg\":\"{\\\"password\\\": \\\"«x»\\\", \\\"n\\\": 1}\"}",
        "\"{\\\\\\\"apiKey\\\\\\\":\\\\\\\"«x y»\\\\\\\"}\"",
        "{\"db_password\":\"«x»\", \"apiKey\":\"«y»\", \"clientSecret\":\"«z»\"}",
        "{\"pass\":\"«hunter2»\"}",
        "{\"password\": [\"«a»\",\"«b»\"], \"k\": 1}",
        "{\"passwords\":[\"«a»\",{\"old\":\"«b»\",\"n\":1}],\"k\":\"v\"}",
        "\"{\\\"tokens\\\":1,\\\"secrets\\\":[\\\"«a»\\\"]}\"",
        "{\"password\":\n  \"«x»\"\n}",
        "{\"password\": «123456»}",
        "{\"name\":\"DB_PASSWORD\",\"value\":\"«hunter2»\"}",
        "{'refresh_token': u'«abc»'}",
        // YAML
        "password: «x»",
        "db:\n  password: «hunter»\n  user: u",
        "- password: '«x y»'",
        "token: «abc»,",
        "- name: DB_PASSWORD\n  value: «hunter2»\n",
        "key:\n  client_secret: |\n    «line one\n    line two»\n  other: x",
        "secret: «s3cr3t» # note",
        // code, XML, query, flags, SQL, netrc
        "password: str = \"«x»\"",
        "const apiKey = '«abc»';",
        "config[\"password\"] = \"«x»\"",
        "if password == \"«x»\" {",
        "password => '«x»'",
        "let token = b\"«abc»\";",
        "login(user=\"u\", password=\"«x»\")",
        "<password>«x»</password>",
        "<add key=\"ApiKey\" value=\"«x»\"/>",
        "https://h/x?api_key=«x»&y=z",
        "https://h/cb?next=%2F&access_token=«ya.x%2F1»#top",
        "?next=https%3A%2F%2Fh%3Fapi_key%3D«abc»&x=1",
        "user=bob&password=«a%26b»&x=1",
        "run --password=«x» --verbose",
        "run --password «hunter2» --verbose",
        "run --api-key '«x y»' -v",
        "[\"run\",\"--token\",\"«abc»\"]",
        "CREATE USER u WITH PASSWORD '«it''s»';",
        "CREATE USER u IDENTIFIED BY '«x»';",
        "machine h login u password «x1»",
        "Server=h;Database=d;User Id=u;Password=«x»;Encrypt=true",
        "DefaultEndpointsProtocol=https;AccountName=a;AccountKey=«abc+/def==»;EndpointSuffix=core",
        "curl -u user:«pass» https://h/",
        "curl -sS -uuser:«pass» https://h/ | jq .",
        "curl \\\n  -u user:«pass» \\\n  https://h/",
        "sshpass -p «x» ssh h",
        "ssh-keygen -t rsa -N «pa55» -f k",
        "API key: «abc123def»",
        "{\"API Key\": \"«x»\"}",
        "jdbc:mysql://h/db?user=u&password=«p»",
        "Authorization: ApiKey «abc:def»",
        "mysql -u root -p«hunter2» db",
        "mnemonic: «legal winner thank year wave»",
        "error: bad password \"«hunter2»\" for u",
        // spelled-out quotes, colour codes, wrappers
        "password&quot;:&quot;«x y»&quot;,",
        "body=%22password%22%3A%22«x»%22%2C",
        "\\u0022password\\u0022:\\u0022«x»\\u0022",
        "password: \u{1b}[32m«hunter2»\u{1b}[0m",
        "\u{1b}[34;1m\"password\"\u{1b}[0m\u{1b}[1;39m:\u{1b}[0m \u{1b}[0;32m\"«x»\"\u{1b}[0m",
        "password\\u001b[0m=\\u001b[32m«hunter2»\\u001b[0m",
        "Config { token: Some(\"«y»\"), password: Secret(\"«x»\") }",
        "Config { token: Some(Secret(\"«y»\")) }",
        "password: &pw «hunter2»\n",
        "password: !!str «hunter2»\n",
        "$p = ConvertTo-SecureString \"«x»\" -AsPlainText -Force",
        "ConvertTo-SecureString -String '«x»' -AsPlainText",
        "{\"auths\":{\"r.io\":{\"auth\":\"«dXNlcjpwYXNz»\"}}}",
        "{\\\"auth\\\":\\\"«dXNlcjpwYXNz»\\\"}",
        "htpasswd line u:«$apr1$lZL6V/ci$eIMz/iKDkbtys/uU7LEK00»",
    ];
    check(&scrubber(), rows);
}

#[test]
fn private_keys_go_whole() {
    let mut rows = Vec::new();
    let (one, two) = (body(ALNUM, 64), body(ALNUM, 40));
    for label in
        ["PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY"]
    {
        for end in ["\n", "\r\n", "\\n", "\\\\n", "\\r\\n", " ", ""] {
            let block = format!("-----BEGIN {label}-----{end}{one}{end}{two}=={end}-----END {label}-----");
            rows.push(format!("key: {{ «{block}» }} after"));
            rows.push(
                format!("{{\"private_key\": \"«{block}»\", \"x\": 1}}")
                    .replace('\n', "\\n")
                    .replace('\r', "\\r"),
            );
        }
        rows.push(format!("log «-----BEGIN {label}-----\n{one}\n{two}»"));
        rows.push(format!("{{\"k\":\"«-----BEGIN {label}-----\\n{one}\\n{two}»\"}}"));
        rows.push(format!("«-----BEGIN {label}-----\n{one}»\nand then it was cut off"));
        rows.push(format!("cut: «{one}\n{two}\n-----END {label}-----»\nafter"));
    }
    let headers = "Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,0A1B\n\n";
    rows.push(format!("«-----BEGIN RSA PRIVATE KEY-----\n{headers}{one}\n-----END RSA PRIVATE KEY-----»\n"));
    rows.push(format!("«-----BEGIN RSA PRIVATE KEY-----\n{headers}{one}»\n"));
    rows.push(format!(
        "«-----BEGIN PGP PRIVATE KEY BLOCK-----\n\n{one}\n=AbCd\n-----END PGP PRIVATE KEY BLOCK-----»"
    ));
    rows.push(format!("password=«x-----BEGIN PRIVATE KEY-----\n{one}\n-----END PRIVATE KEY-----»"));
    rows.push(format!("Private-Lines: 2«\n{one}\n{two}»\nPrivate-MAC: 00"));
    check(&scrubber(), rows);
}
