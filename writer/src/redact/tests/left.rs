//! What must stay.

use std::borrow::Cow;

use super::scrubber;
use crate::redact::is_secret_name;

const LEFT: &[&str] = &[
    // hashes, ids, digests, times
    "3f786850e387550fdab836ed7e6dc881de23001b",
    "commit: 3f786850e387550fdab836ed7e6dc881de23001b",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b (HEAD -> main)",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "\"entry_hash\": \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"",
    "key_hash=9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "AC9f86d081884c7d659a2feaa0c55ad015a3bf4f",
    "D41D8CD98F00B204E9800998ECF8427E",
    "cache-key-d41d8cd98f00b204e9800998ecf8427e",
    "550e8400-e29b-41d4-a716-446655440000",
    "{\"id\": \"550e8400-e29b-41d4-a716-446655440000\"}",
    "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=",
    "integrity sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg==",
    "SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDTzIqxLK2LcWzqpPw",
    "2026-01-02T03:04:05.678Z",
    "version 1.2.3-beta.4+build.5",
    "task-0123456789abcdef0123456789abcdef",
    "task-3f786850e387550fdab836ed7e6dc881de23001b",
    "disk-usage-2024-report-of-all-the-nodes",
    "risk-aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3",
    "sk-learn-pipeline-with-scaler-2-and-more-steps",
    "pnpm_config_registry_is_set_to_the_default_value",
    // names that hold no secret
    "monkey: eats",
    "keyboard: qwerty",
    "hotkey=ctrl+c",
    "key: value",
    "key=value",
    "keys: a, b",
    "token_count: 12",
    "max_tokens=4096",
    "tokens_used: 1234567",
    "{\"total_tokens\": 4096, \"prompt_tokens\": 10}",
    "next_page_token=CAUQAA123456",
    "primary_key: id12345",
    "cache_key=abc123def",
    "public_key: MCowBQYDK2VwAyEA",
    "key_id: abc123",
    "aws_access_key_id_name=abcdef",
    "author: Ann Example",
    "passed: 12345, bypass: y1",
    "compass=north1",
    "the primary key: id12, sort key: b1",
    "tokens: 12, token: 13",
    "auth: basic1",
    "PASS: tests/foo_1.sh",
    "--- PASS: TestFoo1 (0.00s)",
    "pass: 12",
    "secretary: Bob1",
    "password_policy: strict1",
    "passwordless=yes1",
    "token_type: bearer1",
    "secretName: my-secret-1",
    "secret_key_ref: x1",
    "has_password: maybe1",
    // no value, or a stand-in
    "password: ",
    "password:",
    "password=",
    "password: null",
    "password: true",
    "\"password\": false,",
    "{\"password\": \"\"}",
    "{\"password\": null, \"user\": \"u\"}",
    "password: ${PASSWORD}",
    "password=$PASSWORD",
    "TOKEN=\"$TOKEN\" run",
    "token: ${{ secrets.GITHUB_TOKEN }}",
    "password: {{ vault_password }}",
    "password=<your-password>",
    "password: ********",
    "password=%DB_PASSWORD%",
    "password=***REDACTED***",
    "Authorization: Bearer $TOKEN",
    "Authorization: Bearer ${TOKEN}",
    "Authorization: Bearer ***REDACTED***",
    "-H \"Authorization: Bearer {token}\"",
    "\"Authorization\": f\"Bearer {token}\"",
    "postgres://${USER}:${PASS}@h/db",
    "https://user:***REDACTED***@h/x",
    "https://x-access-token:***@github.com/o/r",
    // code
    "os.environ[\"API_KEY\"]",
    "process.env.API_KEY",
    "password=os.getenv(\"DB_PASSWORD\")",
    "api_key=os.environ[\"API_KEY\"],",
    "const apiKey = process.env.API_KEY;",
    "token = get_token()",
    "password = config.db.password",
    "login(user, password=db_password)",
    "fn login(password: &str, token: Option<String>) {",
    "password: String,",
    "token::Token",
    "if token == expected {",
    "if stack[-1] == 'token':\n    context.depth_of_it += 1",
    "{\"auth\": \"basic\", \"auth\": true}",
    "token: Option<String>,",
    "password: Password(inner)",
    "Status::Pass => \"pass\",",
    "pub colon_token: Token![:],",
    "pub const MASTER_KEY: u32 = 20u32;",
    "for token, value in pairs:",
    "print(\"Token: \" + t)",
    "\"Authorization\": \"Basic %s\" % auth",
    "my $secret = $p->secret;",
    "--remap-path-prefix=$PWD=src",
    "names like `password=`, or `token: `, are `keys`",
    "- `hmac.key`: the master key of all",
    "<a accesskey=\"h\" href=\"x\">",
    // prose
    "the password is required",
    "the password: it must have 8 letters",
    "enter your password",
    "invalid token: expected a comma",
    "error: unexpected token: '}'",
    "use --token to log in",
    "the --password flag is old",
    "a secret: nobody knows",
    "bearer of bad news",
    "Bearer authentication",
    "WWW-Authenticate: Bearer realm=\"x\"",
    "bearer tokens",
    "basic training",
    "Basic authentication",
    "token authentication is used",
    "Authorization: required",
    "cookie: chocolate",
    "a token of respect",
    // addresses and paths
    "git@github.com:org/repo.git",
    "ssh://git@host/repo",
    "https://ann@bitbucket.org/o/r.git",
    "https://ann.example-1234567890@host/r.git",
    "ann@example.com, bob+x@example.org",
    "https://host:8080/x@y",
    "http://localhost:3000/users/@me",
    "http://[::1]:8080/x@y",
    "https://medium.com/@ann/post-1234",
    "https://h/x?page=2&sort=key&q=a@b",
    "PWD=/home/ann/x1",
    "OLDPWD=/home/ann",
    "--private-key ~/.ssh/id_ed25519",
    "SSL_KEY_FILE=/etc/ssl/k.pem",
    "/usr/share/passwd/token/secret.txt",
    "src/password.rs:12:5",
    "arn:aws:secretsmanager:us-east-1:123456789012:secret:prod/db-AbCdEf",
    "docker run -p 8080:80 -u 1000:1000 img",
    "mkdir -p secret && cp -u a:b c",
    // public material
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ1aB2cD3eF4gH5iJ6kL7mN8oP9qR0sT1uV2wX3yZ4aB ann@h",
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABgQC7aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7",
    "-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----",
    "-----BEGIN CERTIFICATE-----\nMIIBszCCAVmgAwIBAgIUaB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3xY5zA7=\n-----END CERTIFICATE-----",
    "a file with -----BEGIN RSA PRIVATE KEY----- in it",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
    "pk_live_0123456789abcdefABCDEFGH",
    "eyJ is how base64 of {\" begins",
    // odd texts
    "",
    "«quoted» — ünïcödé: naïve",
    "==== ---- :::: //// @@@@ ....",
    "***REDACTED*** and ***REDACTED***",
];

#[test]
fn what_is_no_secret_stays() {
    assert!(LEFT.len() >= 80);
    let scrubber = scrubber();
    let touched = LEFT.iter().filter_map(|text| match scrubber.scrub(text) {
        (Cow::Borrowed(_), 0) => None,
        (output, count) => Some(format!("scrubbing {text:?}\n     gave {output:?} ({count})")),
    });
    let touched: Vec<String> = touched.collect();
    assert!(touched.is_empty(), "{}", touched.join("\n"));
}

#[test]
fn names_are_judged_by_their_last_words() {
    let secret = "password passwd pwd secret api_key apiKey APIKey apikey access_token auth_token client_secret private_key \
        authorization credentials AWS_SECRET_ACCESS_KEY db_password dbpassword DB_PASS smtpPass X-Api-Key x-auth-token _auth \
        _authToken refresh_token id_token csrfToken GITHUB_TOKEN GH_PAT OPENAI_API_KEY stripe_key secret_key_base password2 \
        password_confirmation PASSWORD_PROD spring.datasource.password passphrase cookie set-cookie Proxy-Authorization \
        client_secret_value encryption_key signing_key sessionToken hmac_key AccountKey SecretString webhook_secret otp \
        seed_phrase mnemonic wifi_psk private_key_pem bearer_token passwords secrets pass";
    let other = "monkey keyboard tokens_used max_tokens token_count key public_key key_id keys author passed bypass compass \
        task_key primary_key foreign_key sort_key cache_key secretary password_policy commit key_hash token_hash password_hash \
        token_type secret_name access_key_id private_key_id password_file token_url has_password is_secret tokens tokenizer \
        tokenize passenger passthrough passport pwdless signature session session_id first_pass test_pass prompt_tokens \
        next_token page_token eos_token idempotency_key partition_key keypress turkey authored authority authorized author_key \
        cookie_policy patch path pattern hash sha256 value test data name id description turnkey whiskey donkey value_prod";
    for name in secret.split_whitespace() {
        assert!(is_secret_name(name), "{name}");
    }
    for name in other.split_whitespace() {
        assert!(!is_secret_name(name), "{name}");
    }
    assert!(!is_secret_name("") && !is_secret_name("_") && !is_secret_name("42"));
}

#[test]
fn values_under_secret_keys_are_judged_too() {
    let scrubber = scrubber();
    for (key, value) in [
        ("password", "hunter2"),
        ("password", "/home/ann"),
        ("token", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        ("Authorization", "Bearer x"),
        ("apiKey", "abc"),
        ("auth", "dXNlcjpwYXNz"),
        ("pwd", "hunter2"),
        ("secret", "${SECRET:-fallback}"),
    ] {
        assert!(scrubber.value_for_key_is_secret(key, value), "{key} {value}");
    }
    for (key, value) in [
        ("password", ""),
        ("password", "  "),
        ("password", "null"),
        ("password", "********"),
        ("password", "***REDACTED***"),
        ("password", "${PASSWORD}"),
        ("password", "$PASSWORD"),
        ("Authorization", "Bearer ***REDACTED***"),
        ("Authorization", "Bearer $TOKEN"),
        ("key_hash", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        ("commit", "3f786850e387550fdab836ed7e6dc881de23001b"),
        ("private_key", "/etc/ssl/k.pem"),
        ("token", "12"),
        ("pwd", "/home/ann"),
        ("auth", "basic"),
        ("name", "hunter2"),
    ] {
        assert!(!scrubber.value_for_key_is_secret(key, value), "{key} {value}");
    }
}
