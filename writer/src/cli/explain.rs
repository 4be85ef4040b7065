//! `waybill explain`: what a check proves, what it does not, and what to do.

use super::Global;
use super::exit::{Exit, Failure};
use super::out;
use super::out::Form;
use waybill_verifier::json::{Object, Value};

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// A check's id, a fault's name, or an exit code; without one, all are listed
    #[arg(value_name = "CHECK|FAULT|CODE")]
    name: Option<String>,
}

/// What there is to say of a check, fault or code.
struct Entry {
    name: &'static str,
    means: &'static str,
    does_not_mean: &'static str,
    todo: &'static str,
}

macro_rules! entries {
    ($($name:literal: $means:literal, not: $not:literal, $todo:literal;)*) => {
        &[$(Entry { name: $name, means: $means, does_not_mean: $not, todo: $todo }),*]
    };
}

const ENTRIES: &[Entry] = entries! {
    "ledger.chain":
        "Every row is a well-formed ledger row, its stated hash is the hash of its kind, payload, predecessor and task, and each row names the row before it, from genesis to the head.",
        not: "That nothing was cut off at the end, that nobody rewrote the whole file, or when entries were written.",
        "If it fails, the first fault names entry, line and byte. Get another copy (an anchor, a backup) and compare; only if there is none, 'waybill ledger repair'.";
    "ledger.run":
        "The chain's run.open names the run that was asked for, so it is no other run's ledger under this name.",
        not: "Anything where it warns: a chain that names no run can be put in any run's place.",
        "On a mismatch, look where the file came from. Start ledgers with 'waybill ledger open', which records the name.";
    "ledger.canonical":
        "Every row is written in the one canonical form.",
        not: "A warning does not mean that a value was changed: the values still hash the same.",
        "Find out which program rewrote the file (an editor, a formatter, a sync tool), and stop it.";
    "ledger.expected_head":
        "The last entry is the one whose hash you gave, so nothing is missing and nothing was added.",
        not: "More than the hash you gave is worth: take it from somewhere the ledger's holder can't write.",
        "If it fails, entries were cut off or added since, or it is another lineage: compare with the copy that has that head.";
    "ledger.contains":
        "The entry whose hash you gave is in this ledger, so this ledger goes on from it.",
        not: "That nothing was cut off behind it.",
        "If it fails, history was rewritten or it is another run: compare the copies.";
    "ledger.compare":
        "Two ledgers of one run are the same, or one goes on from the other.",
        not: "Which of two diverged lineages is right: both hold.",
        "On a divergence, somebody who knows the runs keeps one and sets the other aside.";
    "evidence.archive":
        "The archive is a tar of regular files that every program unpacks to the same files: no links, no path that leaves its folder, nothing hidden between or behind the files.",
        not: "Who packed it, or that it is all there was.",
        "If it fails, ask for it again; what came out of it before the fault does not count.";
    "evidence.manifest":
        "MANIFEST.json names every file of the archive with its size and SHA-256, and each is so.",
        not: "That the manifest is the one that was made first: whoever changes a file can change it, too.",
        "If it fails, the archive was changed after it was made: ask for it again.";
    "evidence.files":
        "Every file that was given is told by its content; what is not known is named and not looked at.",
        not: "That nothing is missing: see what the report lists as missing.",
        "Take away what is no evidence; give large files one by one.";
    "gate.policy":
        "The base's .waybill/policy.toml was read, and its rules were applied: never those of what asks to be merged.",
        not: "That the policy asks for much. A warning that the policy is changed says what comes next, for all later merges.",
        "If it can't be read, mend it on the base: until then nothing passes. If it is changed, read the change as you would one of the CI itself.";
    "gate.base":
        "Every entry that the base's .waybill/heads.json names is still that entry of its ledger, so history was only appended to.",
        not: "That the refs here are the latest that a remote has. Where the base names no heads, nothing was compared.",
        "If the ledger is missing, fetch refs/bernstein/work-ledger/*. If it was rewritten, see 'waybill explain history_rewritten'. To retire a run, first take it out of the policy's runs on the base.";
    "gate.heads":
        "The .waybill/heads.json that asks to be merged names entries that the ledgers have, and no fewer than the base names.",
        not: "That it names all of them: a ledger may have gone on since, which is only a warning.",
        "'waybill check --update' writes it as it should be; commit that.";
    "gate.runs":
        "The ledgers that the policy asks for are here, and their refs could be read.",
        not: "That no other run exists: a run that neither the policy nor the base's heads name is not missed.",
        "Fetch the side refs: git fetch origin '+refs/bernstein/work-ledger/*:refs/bernstein/work-ledger/*'. If the repository needs no ledger, say missing = \"pass\" in the policy.";
    "step_journal.chain":
        "Every step's hash covers its prompt, model, tool call and result, and each step names the one before it.",
        not: "That nothing was cut off at the end, or when steps were taken.",
        "If it fails, the first fault names step, line and byte.";
    "step_journal.canonical":
        "Every step is written in the one canonical form.",
        not: "A warning does not mean that a value was changed.",
        "Find out which program rewrote the file.";
    "journal.chain":
        "Every event's hashes cover its type, its fields, its number and its predecessor, from the first event on.",
        not: "That nothing was cut off at the end, when events happened (`ts` and `elapsed_s` are covered by no hash), or which run it is of.",
        "If it fails, the first fault names event, line and byte. Compare with another copy; a receipt of the run tells which events were there when it was signed.";
    "journal.expected_head":
        "The last event is the one whose hash you gave, so nothing is missing and nothing was added.",
        not: "More than the hash you gave is worth.",
        "If it fails, events were cut off or added since: compare with the copy that has that head.";
    "spine.chain":
        "Every row of the lineage spine hashes to what it states and names the row before it.",
        not: "Without the HMAC key, that nobody rewrote all of it.",
        "If it fails, the first fault names row, line and byte. Get another copy and compare.";
    "spine.hmac":
        "Every row's tag was made with the HMAC key of this project.",
        not: "Which holder of the key made it.",
        "If it was not checked, name the key's file in BERNSTEIN_AUDIT_KEY_PATH. If it fails, somebody without the key wrote the row, or the key is another project's.";
    "spine.head":
        "The head file counts the rows and names the last, so none was cut off behind its back.",
        not: "That both were not put back to an earlier state together. A stale head file is what a crash leaves.",
        "If it fails, rows are missing: get another copy of both files.";
    "audit.files":
        "Every file of the audit log is one day's, packed or not, and no day is there twice.",
        not: "That no day is missing at the end.",
        "Move files that are no day's elsewhere. A day that is there twice, the same both times, is an interrupted packing: the next 'waybill audit archive' ends it.";
    "audit.chain":
        "Every row is in its one form and names the tag of the row before it, over all days.",
        not: "What the rows say: that is the tags' word. Where the log ends: a cut last day still verifies.",
        "If it fails, the first fault names file, line and byte. Get that day from a copy.";
    "audit.hmac":
        "Every row's tag was made with the HMAC key, so its content is what was written.",
        not: "Which holder of the key wrote it, or that it happened.",
        "If it was not checked, name the key's file in BERNSTEIN_AUDIT_KEY_PATH.";
    "audit.mirror":
        "The audit log has the event that this receipt was written, and it says the same.",
        not: "A missing event does not make a receipt wrong: other programs write none.",
        "If it warns, look whether the log was cut, or the receipt made elsewhere.";
    "receipt.form":
        "The receipt's file is exactly its canonical bytes: known fields of the right types, the key and the signature in their one form.",
        not: "That anything it says is true.",
        "If it fails, the file was edited, reformatted, or written by another program: get it from where it was made.";
    "receipt.signature":
        "The key in the receipt signed exactly what it claims, by the strict rules of Ed25519.",
        not: "Whose key that is: see receipt.signer.",
        "If it fails, something was changed after signing. Believe nothing in it.";
    "receipt.signer":
        "The key is one that you named, with --signer or in your trust file, and not revoked.",
        not: "Where it warns: that you know the signer. A key that came with the evidence vouches for nothing.",
        "Compare the fingerprint by another way, then 'waybill keys trust'. If it fails, somebody else signed it, or the key is revoked.";
    "receipt.id":
        "The file is named after its claims, so no other receipt was put in its place.",
        not: "",
        "If it fails, the file was renamed or swapped: look for the receipt with the right name.";
    "receipt.anchor":
        "The lineage spine has an entry of exactly this receipt, and the receipt names it.",
        not: "That the spine itself holds: see spine.chain and spine.hmac.",
        "If it fails, the receipt was not made here, or one of the two was changed.";
    "receipt.window":
        "The events that the receipt names are in the run's journal, at their places, unchanged since.",
        not: "That they were all that happened: only that they were the last ones before the stall.",
        "If it fails, the journal was changed or cut after the receipt was signed: compare with another copy.";
    "receipt.fork":
        "The journal recorded the snapshot that the receipt recommends to go on from, before the window's end, and the repository has it.",
        not: "That the working tree in it is any good.",
        "If it fails, look at 'git for-each-ref refs/bernstein/snapshots' and the journal's snapshot events.";
    "receipt.action":
        "What is recommended follows from reason, budget and events by the rules, in one of their two readings.",
        not: "That it is wise, or that anybody did it.",
        "If it fails, the signer recommends something else than the rules: ask them why.";
    "index_mismatch":
        "An event's number is not its place: events are missing, doubled or moved, or the number was edited.",
        not: "",
        "Compare with another copy at that event.";
    "payload_hash_mismatch":
        "An event's fields do not hash to what it states: they were changed after it was written.",
        not: "Which of them.",
        "Compare with another copy at that event.";
    "event_hash_mismatch":
        "An event's hash is not that of its type, number, payload and predecessor.",
        not: "Which of them was changed.",
        "Compare with another copy at that event.";
    "unknown_profile":
        "The journal's first event names a way of hashing that this program does not know.",
        not: "That it was changed.",
        "Look for a newer version of this program.";
    "unknown_scheme":
        "An audit row names a way of tagging that this program does not know.",
        not: "That it was changed.",
        "Look for a newer version of this program.";
    "prev_hmac_mismatch":
        "An audit row names another predecessor than the row before it: rows or days were removed, inserted or moved.",
        not: "",
        "Compare with a copy of the log at that row.";
    "hmac_mismatch":
        "A tag is not the content's under the key: the content was changed, or the key is another one.",
        not: "Which of the two.",
        "If every tag fails, the key is another project's. Otherwise get that row from a copy.";
    "prev_chain_digest_mismatch":
        "An event's details name another predecessor than the row itself.",
        not: "",
        "Compare with a copy of the log at that row.";
    "no_final_newline":
        "A file's last row is whole and lacks its newline: what a crash leaves, and nothing is lost.",
        not: "",
        "Nothing: the next append ends it.";
    "undated_file":
        "A file in the audit folder has no day's name, so its rows are part of no chain.",
        not: "What is in it.",
        "Move it elsewhere.";
    "day_twice":
        "A day is there packed and unpacked, so which counts can't be told.",
        not: "",
        "'waybill audit archive' ends an interrupted packing. If the two differ, compare them with a copy.";
    "archive_corrupt":
        "A packed day can't be unpacked whole: what it held is not established.",
        not: "That the other days are damaged.",
        "Get that file from a copy.";
    "require.complete":
        "You asked for a report in which nothing is left unchecked.",
        not: "That what was checked holds: that is the other checks' word.",
        "Give what the unchecked checks name as missing.";
    "require.pinned":
        "You asked that something outside the evidence vouches for it.",
        not: "",
        "Give --expected-head or --contains with a hash from elsewhere, or pin a signer.";
    "require.anchored": "You asked that an anchor vouches for the evidence.", not: "",
        "Check it against the repository that has its anchor.";
    "require.hmac": "You asked that authentication tags are checked.", not: "",
        "Give the HMAC key of the project that wrote it.";
    "torn_tail":
        "The last line is not complete: a crash or a full disk interrupted the write. The entry was never acknowledged, and everything before it holds.",
        not: "That anything acknowledged is lost.",
        "Nothing: the next open sets the torn bytes aside as .torn-<entry> and goes on.";
    "interior_corruption":
        "A line is not JSON although acknowledged rows stand in it or behind it: that is damage, not a crash.",
        not: "Who did it, or what the line said.",
        "Get another copy. If there is none, 'waybill ledger repair --from-line N' sets that line and the rest aside.";
    "duplicate_key":
        "An object names a key twice, so two readers may see two values.",
        not: "Which of the two was meant.",
        "Get another copy, and find out what wrote this one: no program of this project does.";
    "malformed_row":
        "The line is complete JSON but no row of this kind: a field is missing, of another type, against its pattern, or a limit is exceeded.",
        not: "",
        "Get another copy; the message names the field.";
    "unknown_field":
        "The row has a field that no hash covers, so anybody could have added it.",
        not: "That the row's other fields were changed.",
        "Get another copy, or find out which program adds it.";
    "seq_mismatch":
        "A row's number is not its place: rows are missing, doubled or moved, or the number was edited.",
        not: "",
        "Compare with another copy at that entry.";
    "prev_hash_mismatch":
        "A row names another predecessor than the row before it: rows were removed, inserted or taken from another chain.",
        not: "",
        "Compare with another copy at that entry.";
    "entry_hash_mismatch":
        "A row's content does not hash to what it states: kind, payload, predecessor or task was changed after it was written.",
        not: "Which of them.",
        "Compare with another copy at that entry.";
    "step_hash_mismatch":
        "A step's content does not hash to what it states: it was changed after it was written.",
        not: "Which field.",
        "Compare with another copy at that step.";
    "run_id_mismatch":
        "run.open names another run than the one that was asked for: this is another run's ledger.",
        not: "",
        "Look where the file came from.";
    "diverged":
        "Two ledgers of one run go different ways from the named entry on: the run was resumed twice.",
        not: "Which of them is right.",
        "Look at both from that entry on, and keep one; the other is set aside, never merged.";
    "unhashed_fields_differ":
        "Two ledgers have the same hashes but differ in `ts` or `redactions`, which no hash covers: one was edited.",
        not: "Which.",
        "Trust neither's time stamps.";
    "ledger.anchored":
        "The run's anchor (here, or with --remote the one that was just read there) holds the same entries, or the first of them.",
        not: "With the anchor here: that nobody rewrote ledger and anchor together. An anchor elsewhere, read now, is what vouches.",
        "If the anchor has more, entries are missing here: 'waybill ledger resume' or 'fetch' brings them back. If they diverged: 'waybill ledger diff'.";
    "anchor.objects":
        "Commit, tree and blobs are there, and have the ids by which they are named: every object was hashed again.",
        not: "That this is the latest anchor.",
        "If one is missing or damaged, fetch the anchor from another clone; 'git fsck' says what else is.";
    "anchor.tree":
        "The tree holds LEDGER.json and the chunks from 000000 on, as plain files, and nothing else.",
        not: "",
        "Somebody made that commit by hand: fetch the anchor from another clone.";
    "anchor.form":
        "LEDGER.json and every anchored row are written in their one form.",
        not: "",
        "Somebody made that commit by hand, or anchored a reformatted ledger with another program: anchor again from the ledger.";
    "anchor.run":
        "Ref, LEDGER.json and run.open name one run, so this is no other run's anchor under this name.",
        not: "Anything where it warns that nothing in the chain names its run.",
        "Look how the ref came to point there: 'git reflog' and the audit log.";
    "anchor.chunks":
        "Each chunk holds 1000 rows, the last 1 to 1000.",
        not: "",
        "Somebody made that commit by hand: fetch the anchor from another clone.";
    "anchor.chain":
        "The anchored chain holds, as 'ledger.chain' says of a ledger.",
        not: "That nothing was cut off at the end.",
        "Fetch the anchor from another clone, or anchor again from the ledger if that holds.";
    "anchor.meta":
        "LEDGER.json states the entries, chunks and head that the chunks really have.",
        not: "",
        "Fetch the anchor from another clone.";
    "anchor.commit":
        "Author, committer, message and parents are as the writer of anchors makes them.",
        not: "Who made it: anybody can write these names. Signatures are not looked at.",
        "Somebody made that commit by hand: fetch the anchor from another clone.";
    "anchor.history":
        "Each earlier anchor holds, and the next one only adds to it.",
        not: "Anything before a gc, which leaves one commit, or before the end of a shallow clone.",
        "If it fails, history was rewritten at the named commit: compare with another clone. If it is not checked: 'git fetch --unshallow'.";
    "anchor.expected_commit":
        "The anchor is the commit that you gave, or that a remote's ref names now.",
        not: "More than where you have the id from is worth.",
        "If it fails, look at both commits: one is older, or they diverged.";
    "anchor.expected_head":
        "The last anchored entry is the one whose hash you gave.", not: "",
        "If it fails, entries are missing or were added: compare the copies.";
    "anchor.contains":
        "The entry whose hash you gave is anchored.", not: "That nothing behind it was cut off.",
        "If it fails, history was rewritten or it is another run.";
    "anchor.remote":
        "The anchor that was just read at the remote holds the same entries, or the first of them.",
        not: "More than the remote is worth.",
        "If the remote has more: 'waybill ledger fetch'. If they diverged: 'waybill ledger diff --remote'.";
    "bundle.form":
        "The file is a git bundle whose pack can be read within the limits.", not: "",
        "Make it again: git bundle create x.bundle refs/bernstein/work-ledger/RUN";
    "unexpected_tree_entry": "An anchor's tree has an entry, mode or gap that it must not have.", not: "", "See 'waybill explain anchor.tree'.";
    "meta_missing": "An anchor's tree has no LEDGER.json.", not: "", "See 'waybill explain anchor.tree'.";
    "not_canonical": "Something that must be written in its one form is not.", not: "That its values were changed.", "Get another copy.";
    "chunk_size": "A chunk has more or fewer rows than its place asks for.", not: "", "See 'waybill explain anchor.chunks'.";
    "meta_mismatch": "LEDGER.json says something else than the chunks hold, or there are no entries.", not: "", "See 'waybill explain anchor.meta'.";
    "commit_mismatch": "A commit is not what the writer of anchors makes.", not: "", "See 'waybill explain anchor.commit'.";
    "history_rewritten":
        "A ledger is no continuation of what it was: an anchor does not go on from the one before it, or an entry that the base names is not in the ledger any more.",
        not: "Which of the two is right: both may hold by themselves.",
        "Compare with another clone at the named entry. If somebody settled a divergence, 'waybill ledger diff --keep' keeps the other lineage in refs/waybill/aside, which has to be pushed, too.";
    "object_missing": "A git object that must be there is not.", not: "", "Fetch from another clone; 'git fsck' says what else is missing.";
    "object_mismatch": "A git object's bytes do not have the id that names it: it is damaged, replaced, or a forged collision.", not: "", "Fetch from another clone into a new one.";
    "object_limit": "A git object is larger than anything that belongs there.", not: "", "Somebody made it by hand: take nothing from there.";
    "0": "Done; or the verdict is verified, consistent, incomplete, degraded or empty.", not: "That a verdict is better than its word: read it, or use --require.", "Nothing.";
    "1": "Absent: there is no such run, file or receipt.", not: "", "Check the name and --workdir.";
    "2": "Failed: the evidence does not hold, or lacks a required assurance.", not: "", "Read the first failed check, and 'waybill explain' its id.";
    "3": "Diverged: two lineages of one run.", not: "", "Compare them, and keep one.";
    "64": "The arguments are wrong.", not: "", "Read the line, or --help.";
    "70": "A fault of this program.", not: "", "Report it, with the line that it printed.";
    "74": "A file can't be read or written. What was not acknowledged was not recorded.", not: "", "Read the line: it names the file and the system's reason.";
    "125": "'waybill run' itself failed: its arguments, its records, or a lock. Its command did not run.", not: "That the command failed: its own codes are passed on.", "Read the line: it says what to do.";
    "126": "The command of 'waybill run' is there and can't be executed.", not: "", "Look at its mode, and at its first line.";
    "127": "The command of 'waybill run' was not found.", not: "", "Look at its name and at PATH.";
    "75": "Another process holds the lock.", not: "", "Wait for it, or leave --no-wait out.";
};

pub(super) fn run(global: &Global, args: &Args) -> Result<Exit, Failure> {
    let Some(name) = &args.name else {
        let names: Vec<&str> = ENTRIES.iter().map(|entry| entry.name).collect();
        super::put(format!("{}\n", names.join("\n")).as_bytes())?;
        return Ok(Exit::Done);
    };
    let Some(entry) = ENTRIES.iter().find(|entry| entry.name == name) else {
        let message =
            format!("{} is no check, fault or exit code: 'waybill explain' lists them", out::escape(name));
        return Err(Failure::usage(message));
    };
    match global.form() {
        Form::Json => {
            let document = Object::of([
                ("name", Value::from(entry.name)),
                ("means", Value::from(entry.means)),
                ("does_not_mean", Value::from(entry.does_not_mean)),
                ("to_do", Value::from(entry.todo)),
            ]);
            super::put_document(document)?;
        }
        Form::Text | Form::Quiet => {
            let width = out::width();
            let mut text = format!("{}\n", entry.name);
            for (lead, body) in [("means", entry.means), ("not", entry.does_not_mean), ("to do", entry.todo)]
            {
                if !body.is_empty() {
                    text.push_str(&paragraph(lead, body, width));
                }
            }
            super::put(text.as_bytes())?;
        }
    }
    Ok(Exit::Done)
}

/// `  lead   body`, with the body's lines below each other.
fn paragraph(lead: &str, body: &str, width: usize) -> String {
    const MARGIN: usize = 10;
    let mut text = format!("\n  {lead:<7} ");
    let mut at = MARGIN;
    for word in body.split(' ') {
        if at > MARGIN && at + word.chars().count() > width.saturating_sub(1) {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(&" ".repeat(MARGIN));
            at = MARGIN;
        }
        text.push_str(word);
        text.push(' ');
        at += word.chars().count() + 1;
    }
    format!("{}\n", text.trim_end())
}

#[cfg(test)]
mod tests {
    use waybill_verifier::chain::FaultKind;

    use super::ENTRIES;

    #[test]
    fn every_fault_is_explained() {
        for kind in [
            FaultKind::TornTail,
            FaultKind::InteriorCorruption,
            FaultKind::DuplicateKey,
            FaultKind::MalformedRow,
            FaultKind::UnknownField,
            FaultKind::SeqMismatch,
            FaultKind::PrevHashMismatch,
            FaultKind::EntryHashMismatch,
            FaultKind::StepHashMismatch,
            FaultKind::RunIdMismatch,
            FaultKind::UnexpectedTreeEntry,
            FaultKind::MetaMissing,
            FaultKind::NotCanonical,
            FaultKind::ChunkSize,
            FaultKind::MetaMismatch,
            FaultKind::CommitMismatch,
            FaultKind::HistoryRewritten,
            FaultKind::ObjectMissing,
            FaultKind::ObjectMismatch,
            FaultKind::ObjectLimit,
            FaultKind::PayloadHashMismatch,
            FaultKind::EventHashMismatch,
            FaultKind::IndexMismatch,
            FaultKind::UnknownProfile,
            FaultKind::UnknownScheme,
            FaultKind::PrevHmacMismatch,
            FaultKind::HmacMismatch,
            FaultKind::PrevChainDigestMismatch,
            FaultKind::NoFinalNewline,
        ] {
            assert!(ENTRIES.iter().any(|entry| entry.name == kind.name()), "{kind}");
        }
    }
}
