// Evidence of every kind, as it is given to the command and to the verifier elsewhere: what
// the tests in Node and in the browser hold against each other.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { archives, packed } from './archives.mjs';
import { Chain, root } from './load.mjs';

export const vectors = join(root, 'tests/vectors');
export const masterKey = readFileSync(join(vectors, 'hmac.key'));

/** The signer of the receipts that are no forgeries, and somebody else. */
export const signer = fingerprint(join(vectors, 'receipt/ok-full-window/.sdd/identity/escalation-identity-public.pem'));
export const stranger = 'SHA256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg';

/**
 * All cases: `given` are paths, `options` those of the verifier, `key` whether the HMAC key is
 * given, `exit` the code that must come out, where the vector says so. What is not a vector is
 * made in `scratch`.
 */
export function cases(scratch) {
  const all = [];
  const add = (name, given, options = {}, more = {}) => all.push({ name, given, options, key: false, ...more });
  for (const kind of ['ledger', 'step-journal']) {
    each(kind, (folder, name, { strict }) => {
      const file = join(folder, '000000.jsonl');
      add(name, [file], {}, { exit: strict.exit, inPieces: true });
      const head = strict.with_expected_head?.head;
      if (head) add(`${name}, expected head`, [file], { expected_head: head }, { exit: strict.with_expected_head.exit });
    });
  }
  each('anchor', (folder, name, expected) => {
    const file = join(folder, 'anchor.bundle');
    add(name, [file]);
    if (expected.commit) add(`${name}, expected commit`, [file], { expected_commit: expected.commit });
    add(`${name}, another commit`, [file], { expected_commit: '0'.repeat(39) + '1' });
    const ledger = join(folder, '000000.jsonl');
    if (existsSync(ledger)) add(`${name}, with its ledger`, [file, ledger]);
  });
  for (const key of [true, false]) {
    const which = key ? 'with the key' : 'without the key';
    each('audit', (folder, name) => add(`${name}, ${which}`, [join(folder, 'audit')], {}, { key }));
    each('spine', (folder, name) => {
      add(`${name}, ${which}`, [folder], {}, { key });
      add(`${name}, the file, ${which}`, [join(folder, 'spine.jsonl')], {}, { key });
    });
    each('receipt', (folder, name) => {
      add(`${name}, ${which}`, [join(folder, '.sdd')], {}, { key });
      if (key) add(`${name}, pinned`, [folder], { signers: [signer] }, { key });
    });
  }
  const receipt = join(vectors, 'receipt/ok-audit-mirrored');
  add('another signer is pinned', [receipt], { signers: [stranger] });
  add('one of two signers is pinned', [receipt], { signers: [stranger, signer] });
  add('assurances that are there', [receipt], { signers: [signer], require: ['hmac'] }, { key: true });
  add('assurances that are missing', [receipt], { require: ['pinned', 'anchored', 'hmac', 'complete'] });
  add('several kinds', [receipt, join(vectors, 'anchor/one-chunk/anchor.bundle'), join(vectors, 'ledger/torn-tail/000000.jsonl')]);
  add('two of one name', [join(vectors, 'ledger/torn-tail/000000.jsonl'), join(vectors, 'ledger/bad-bom/000000.jsonl')]);
  add('two folders of one name', [join(receipt, '.sdd'), join(vectors, 'receipt/ok-full-window/.sdd')]);
  add('all receipts', [join(vectors, 'receipt')]);
  add('all ledgers', [join(vectors, 'ledger')]);
  made(scratch, add);
  archives(scratch, each, add);
  return all;
}

function each(kind, body) {
  for (const name of readdirSync(join(vectors, kind)).sort()) {
    const folder = join(vectors, kind, name);
    body(folder, `${kind}/${name}`, JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8')));
  }
}

function made(scratch, add) {
  const file = (name, bytes) => {
    const path = join(scratch, name);
    mkdirSync(join(path, '..'), { recursive: true });
    writeFileSync(path, bytes);
    return path;
  };
  const pair = diverged(scratch);
  add('a diverged pair', pair, {}, { exit: 3 });
  add('a ledger twice', [pair[0], pair[0]]);
  add('an empty file', [file('empty/000000.jsonl', '')]);
  add('a file that is no evidence', [file('none/notes.txt', 'no evidence\n')]);
  add('a folder with hidden files', [
    join(file('hidden/.config/000000.jsonl', ''), '../..'),
    file('hidden/b/000000.jsonl', readFileSync(pair[0])),
  ].slice(0, 1));
  const deep = `deep/${'d/'.repeat(16)}`;
  file(`${deep}seen.jsonl`, readFileSync(pair[0]));
  file(`${deep}e/unseen.jsonl`, readFileSync(pair[1]));
  add('folders in folders', [join(scratch, 'deep')]);
  const names = ['Z.jsonl', 'a.jsonl', 'é.jsonl', '\u{1f600}.jsonl', '\uff5e.jsonl'];
  names.forEach((name, index) => file(`order/${name}`, readFileSync(pair[index % 2])));
  add('names in every order', [join(scratch, 'order')]);
  const project = join(scratch, 'project');
  cpSync(join(vectors, 'receipt/ok-audit-mirrored/.sdd'), join(project, '.sdd'), { recursive: true });
  file('project/.sdd/identity/escalation-identity-key.pem', '-----BEGIN PRIVATE KEY-----\n');
  file('project/src/main.rs', 'fn main() {}\n');
  add('a whole project', [project], {}, { key: true });
  add('an archive', [packed(project, join(scratch, 'evidence.tar'))], {}, { key: true });
}

/** Two ledgers of one run that part at entry 6: their paths. */
export function diverged(scratch) {
  const lineage = (side, more) => {
    const chain = new Chain();
    const rows = [chain.row('{"goal":"nightly build","run_id":"goal-42"}')];
    const at = (kind, task, payload = '{}') => rows.push(chain.row(payload, kind, task));
    for (const task of ['fetch', 'build', 'test']) at('task.scheduled', task);
    at('task.started', 'fetch');
    at('task.completed', 'fetch');
    at('run.resumed', '', `{"by":"${side}"}`);
    more.forEach(([kind, task]) => at(kind, task));
    const path = join(scratch, 'pair', `${side}.jsonl`);
    mkdirSync(join(scratch, 'pair'), { recursive: true });
    writeFileSync(path, rows.join(''));
    return path;
  };
  return [
    lineage('laptop', [['task.started', 'build'], ['task.completed', 'build'], ['task.started', 'test']]),
    lineage('server', [['task.started', 'build'], ['task.failed', 'build']]),
  ];
}

/** The subjects that a page or a session is given for paths; files by `make(path)`. */
export function subjects(given, make) {
  return given.map((path) => {
    const name = basename(path);
    if (!statSync(path).isDirectory()) {
      const head = join(path, '../spine.head');
      const beside = name === 'spine.jsonl' && existsSync(head) ? [{ name: 'spine.head', file: make(head) }] : [];
      return [{ name, file: make(path) }, ...beside];
    }
    return [{ name, tree: filesBelow(path).map((below) => ({ path: below, file: make(join(path, below)) })) }];
  }).flat();
}

/** The paths of the files below a folder, relative to it. */
export function filesBelow(folder, below = '') {
  return readdirSync(join(folder, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below ? `${below}/${entry.name}` : entry.name;
    return entry.isDirectory() ? filesBelow(folder, path) : [path];
  });
}

/** Runs the command on a case: its JSON and its exit code. */
export function command(one, scratch) {
  const { given, options, key } = one;
  const args = ['verify', ...given, '--json'];
  if (options.expected_head) args.push('--expected-head', options.expected_head);
  if (options.contains) args.push('--contains', options.contains);
  if (options.expected_commit) args.push('--expected-commit', options.expected_commit);
  for (const pin of options.signers ?? []) args.push('--signer', pin);
  if (options.require) args.push('--require', options.require.join(','));
  const keyFile = join(scratch, 'master.key');
  writeFileSync(keyFile, masterKey, { mode: 0o600 });
  // Nobody's own trust and key.
  const env = { PATH: process.env.PATH, HOME: scratch, ...(key && { BERNSTEIN_AUDIT_KEY_PATH: keyFile }) };
  const ran = spawnSync(waybill(), args, { env, cwd: scratch, encoding: 'utf8', maxBuffer: 1 << 30 });
  if (ran.error) throw ran.error;
  return { json: ran.stdout, exit: ran.status, said: ran.stderr };
}

/** The command: the release build, or the one that WAYBILL_BIN names. */
export function waybill() {
  const path = resolve(process.env.WAYBILL_BIN ?? join(root, 'target/release/waybill'));
  if (!existsSync(path)) throw new Error(`${path} is not there: cargo build --release, or name it in WAYBILL_BIN`);
  return path;
}

export function firstDifference(expected, found) {
  const left = expected.split('\n');
  const right = found.split('\n');
  const line = left.findIndex((one, index) => one !== right[index]);
  return `  command: ${left[line]}\n  here:    ${right[line]}\n`;
}

function fingerprint(path) {
  const der = Buffer.from(readFileSync(path, 'latin1').replace(/-----[^-]*-----|\s/g, ''), 'base64');
  return `SHA256:${createHash('sha256').update(der).digest('base64').replace(/=+$/, '')}`;
}
