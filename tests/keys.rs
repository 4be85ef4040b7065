//! Keys through the binary: forms of files, OpenSSL both ways, the trust file, nothing private
//! printed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::help::{Home, report};

const PRIVATE: &str = ".sdd/identity/escalation-identity-key.pem";
const PUBLIC: &str = ".sdd/identity/escalation-identity-public.pem";

fn openssl(folder: &Path, arguments: &[&str]) -> bool {
    Command::new("openssl").current_dir(folder).args(arguments).output().unwrap().status.success()
}

fn emit(home: &Home) -> String {
    home.ok(["escalation", "emit", "r", "--worker", "w", "--reason", "unknown", "--timestamp", "7"]);
    home.receipts().pop().unwrap()
}

#[test]
fn openssl_verifies_what_we_sign_and_we_sign_with_what_openssl_made() {
    let home = Home::new();
    fs::create_dir_all(home.path().join(".sdd/identity")).unwrap();
    assert!(openssl(home.path(), &["genpkey", "-algorithm", "ed25519", "-out", PRIVATE]));
    fs::set_permissions(home.path().join(PRIVATE), fs::Permissions::from_mode(0o600)).unwrap();
    let made = fs::read(home.path().join(PRIVATE)).unwrap();
    let said = home.ok(["keys", "init"]);
    assert!(said.out.contains("there already"), "{said:?}");
    assert_eq!(fs::read(home.path().join(PRIVATE)).unwrap(), made);

    let id = emit(&home);
    let path = home.path().join(format!(".sdd/escalation/receipts/{id}.json"));
    let receipt: serde_json::Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    let mut binding = receipt.as_object().unwrap().clone();
    for name in ["journal_entry_hash", "signature", "signer_public_key_pem"] {
        binding.remove(name);
    }
    // All of it is ASCII, and serde_json sorts: these are the canonical bytes.
    fs::write(home.path().join("message"), serde_json::to_vec(&binding).unwrap()).unwrap();
    let signature = receipt["signature"].as_str().unwrap().replace('-', "+").replace('_', "/") + "==";
    fs::write(home.path().join("signature.b64"), format!("{signature}\n")).unwrap();
    assert!(openssl(home.path(), &["base64", "-d", "-A", "-in", "signature.b64", "-out", "signature"]));
    fs::write(home.path().join("public.pem"), receipt["signer_public_key_pem"].as_str().unwrap()).unwrap();
    let verify = ["pkeyutl", "-verify", "-pubin", "-inkey", "public.pem", "-rawin"];
    let files = ["-in", "message", "-sigfile", "signature"];
    assert!(openssl(home.path(), &[&verify[..], &files].concat()));
    fs::write(home.path().join("message"), b"another").unwrap();
    assert!(!openssl(home.path(), &[&verify[..], &files].concat()));
}

#[test]
fn key_files_in_the_forms_of_people_s_tools_are_pins_and_other_keys_are_named() {
    let home = Home::signing();
    let id = emit(&home);
    let pem = fs::read_to_string(home.path().join(PUBLIC)).unwrap();
    let pin = |text: &[u8]| {
        fs::write(home.path().join("pin.pem"), text).unwrap();
        home.run(["escalation", "verify", &id, "--json", "--signer", "pin.pem"])
    };
    for form in [
        pem.clone(),
        pem.replace('\n', "\r\n"),
        format!("\u{feff}{pem}"),
        format!("\n\n{pem}\n \n"),
        pem.trim_end().to_owned(),
    ] {
        let said = pin(form.as_bytes());
        assert_eq!(report(&said).check("receipt.signer")["status"], "pass", "{form:?}");
    }
    let secret = fs::read_to_string(home.path().join(PRIVATE)).unwrap();
    for (algorithm, options, word) in [
        ("x25519", &[][..], "X25519"),
        ("rsa", &["-pkeyopt", "rsa_keygen_bits:2048"], "RSA"),
        ("ec", &["-pkeyopt", "ec_paramgen_curve:P-256"], "elliptic"),
    ] {
        let make = [&["genpkey", "-algorithm", algorithm, "-out", "other.pem"][..], options].concat();
        assert!(openssl(home.path(), &make), "{algorithm}");
        assert!(openssl(home.path(), &["pkey", "-in", "other.pem", "-pubout", "-out", "other-public.pem"]));
        let said = pin(&fs::read(home.path().join("other-public.pem")).unwrap());
        assert_eq!(said.code, Some(64), "{said:?}");
        assert!(said.err.to_lowercase().contains(&word.to_lowercase()), "{said:?}");
    }
    let said = pin(secret.as_bytes());
    assert_eq!(said.code, Some(64));
    assert!(said.err.contains("private key"), "{said:?}");
    has_no_secret(&[said.out, said.err], &secret);
}

/// The base64 of a private key is in no text.
#[track_caller]
fn has_no_secret(texts: &[String], pem: &str) {
    let body = pem.lines().nth(1).unwrap();
    for text in texts {
        assert!(!text.contains(body) && !text.contains("PRIVATE KEY---"), "{text}");
    }
}

#[test]
fn nothing_private_is_printed_or_copied() {
    let home = Home::new();
    let mut texts = Vec::new();
    let mut take = |said: crate::help::Said| texts.extend([said.out, said.err]);
    take(home.run(["keys", "init"]));
    let secret = fs::read_to_string(home.path().join(PRIVATE)).unwrap();
    let id = emit(&home);
    for command in [
        &["keys", "init"][..],
        &["keys", "show"],
        &["keys", "show", "--json"],
        &["keys", "list"],
        &["escalation", "list"],
        &["escalation", "show", &id],
        &["escalation", "verify", &id],
        &["audit", "log"],
        &["audit", "verify"],
        &["verify", PRIVATE],
        &["keys", "trust", PRIVATE, "--name", "x"],
        &["escalation", "verify", &id, "--signer", PRIVATE],
    ] {
        take(home.run(command));
    }
    take(home.ok(["doctor"]));
    fs::set_permissions(home.path().join(PRIVATE), fs::Permissions::from_mode(0o640)).unwrap();
    take(home.run(["doctor"]));
    take(home.fails(74, &["0640", "chmod 600"], ["keys", "init"]));
    take(home.fails(74, &["chmod 600"], ["escalation", "emit", "r", "--worker", "w", "--reason", "unknown"]));
    has_no_secret(&texts, &secret);
    let hmac = fs::read_to_string(home.key()).unwrap();
    assert!(texts.iter().all(|text| !text.contains(&hmac)));
    let body = secret.lines().nth(1).unwrap().to_owned();
    for path in files(home.path()) {
        if !path.ends_with(PRIVATE) {
            let text = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            assert!(!text.contains(&body) && !text.contains(&hmac), "{}", path.display());
        }
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found
}

#[test]
fn the_trust_file_vouches_revokes_and_expires() {
    let home = Home::signing();
    let id = emit(&home);
    let standing = || {
        let report = home.verify_receipt(&id);
        (report.verdict().to_owned(), report.check("receipt.signer")["status"].as_str().unwrap().to_owned())
    };
    let was = |verdict: &str, status: &str| (verdict.to_owned(), status.to_owned());
    assert_eq!(standing(), was("degraded", "warn"));
    // Another is known, this one is not.
    let other = Home::signing();
    let pem = other.path().join(PUBLIC);
    home.ok(["keys", "trust", pem.to_str().unwrap(), "--name", "bob"]);
    assert_eq!(standing(), was("degraded", "warn"));
    home.ok(["keys", "trust", PUBLIC, "--name", "old ann", "--valid-from", "1990-01-01"]);
    // The receipt's time is 1970.
    assert_eq!(standing(), was("failed", "fail"));
    home.ok(["keys", "trust", PUBLIC, "--name", "ann", "--valid-until", "1970-01-01"]);
    assert_eq!(standing(), was("degraded", "pass"));
    let said = home.ok(["keys", "list"]);
    assert!(said.out.contains("bob") && said.out.contains("ann") && said.out.contains("SHA256:"), "{said:?}");
    home.ok(["keys", "revoke", "ann"]);
    assert_eq!(standing(), was("failed", "fail"));
    assert!(home.ok(["keys", "list"]).out.contains("revoked"));
    home.fails(1, &["no name in your trust file"], ["keys", "revoke", "carol"]);
    // A pin that is given takes the trust file's place.
    let said = home.run(["escalation", "verify", &id, "--json", "--signer", PUBLIC]);
    assert_eq!(report(&said).check("receipt.signer")["status"], "pass");
    let path = home.home.path().join(".config/waybill/trust.toml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    home.fails(74, &["chmod go-w"], ["escalation", "verify", &id]);
}

#[test]
fn a_lost_private_key_is_not_replaced() {
    let home = Home::signing();
    fs::remove_file(home.path().join(PRIVATE)).unwrap();
    home.fails(74, &["put it back"], ["keys", "init"]);
    home.fails(
        1,
        &["no identity", "keys init"],
        ["escalation", "emit", "r", "--worker", "w", "--reason", "unknown"],
    );
    assert!(!home.path().join(PRIVATE).exists());
}

#[test]
fn a_revoked_key_is_not_trusted_again_and_no_entry_is_added_twice() {
    let home = Home::signing();
    let file = home.home.path().join(".config/waybill/trust.toml");
    let trust = ["keys", "trust", PUBLIC, "--name", "ann", "--valid-until", "2026-12-31"];
    home.ok(trust);
    let once = fs::read(&file).unwrap();
    let said = home.ok(trust);
    assert!(said.err.contains("trusted already") && said.out.is_empty(), "{said:?}");
    assert_eq!(fs::read(&file).unwrap(), once);
    home.ok(["keys", "trust", PUBLIC, "--name", "ann"]);
    assert_ne!(fs::read(&file).unwrap(), once, "until another time is another entry");

    home.ok(["keys", "revoke", "ann"]);
    let revoked = fs::read(&file).unwrap();
    let shown = file.to_str().unwrap();
    for name in ["ann", "bob"] {
        let words = ["is revoked, as ann", "nothing was added", shown];
        let said = home.fails(64, &words, ["keys", "trust", PUBLIC, "--name", name]);
        assert!(said.out.is_empty(), "{said:?}");
    }
    let again = home.ok(["keys", "revoke", PUBLIC]);
    assert!(again.err.contains("revoked already"), "{again:?}");
    assert_eq!(fs::read(&file).unwrap(), revoked);
}

#[test]
fn a_key_file_that_is_missing_is_an_error_of_reading_as_the_help_says() {
    let home = Home::signing();
    let said = home.fails(74, &["no-such.pem"], ["keys", "trust", "no-such.pem", "--name", "ann"]);
    assert_eq!(said.err.lines().count(), 1, "{said:?}");
    assert!(home.ok(["keys", "trust", "--help"]).out.replace('\n', " ").contains("74 I/O, or no such file"));
    let id = emit(&home);
    home.fails(74, &["no-such.pem"], ["escalation", "verify", &id, "--signer", "no-such.pem"]);
    home.fails(1, &["no-such.pem", "no name"], ["keys", "revoke", "no-such.pem"]);
}
