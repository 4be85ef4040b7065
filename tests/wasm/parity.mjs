// The report from WebAssembly is the command's, byte for byte: `node tests/wasm/parity.mjs`.
//
// Needs what tools/wasm.sh builds and the release build of waybill (or the one that WAYBILL_BIN
// names). The big cases are made here, in a temporary folder.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { plan } from '../../www/given.js';
import { cases, command, firstDifference, masterKey, subjects } from './cases.mjs';
import { Chain, ledger, load } from './load.mjs';

const LINE_LIMIT = 64 << 20;
const FILE = '000000.jsonl';

const { Verifier, isEvidence } = await load('pkg', 'waybill_wasm');
const scratch = mkdtempSync(join(tmpdir(), 'waybill-parity-'));
const random = generator(0x5eed);
let passed = 0;
let failed = 0;

try {
  // Apart from each other: the big cases want a memory that nothing has cut up yet.
  if (process.argv[2] === 'vectors') {
    const all = cases(scratch);
    for (const one of all) check(one.name, () => same(one));
    state(all);
  } else {
    big();
    misuse();
  }
} finally {
  rmSync(scratch, { recursive: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

/** What a page shows of a ledger is what its entries come to. */
function state(all) {
  for (const { name, given, inPieces } of all.filter((one) => one.inPieces)) {
    const expected = JSON.parse(readFileSync(join(given[0], '../expected.json'), 'utf8'));
    if (!expected.state) continue;
    check(`${name}, state`, () => {
      const verifier = new Verifier(FILE, '{"shown":true}');
      verifier.open(FILE);
      verifier.push(readFileSync(given[0]));
      verifier.close();
      verifier.finish();
      const [{ board }] = JSON.parse(text(verifier.view())).ledgers;
      const found = Object.fromEntries(board.flatMap(({ state: of, tasks }) => tasks.map(({ task_id: task }) => [task, of])));
      const tasks = Object.fromEntries(Object.entries(expected.state.tasks).map(([task, one]) => [task, one.state]));
      equal(Object.entries(found).sort(), Object.entries(tasks).sort(), 'tasks');
    });
  }
}

function big() {
  // Each starts a chain of its own. `run.open` rows are parsed to values, canonical or not.
  const row = (payload) => new Chain().row(payload);
  const many = (item, bytes) => row(`{"a":[${item.repeat(bytes / item.length)}0]}`);
  const text = (room) => row(`{"a":"${'x'.repeat(LINE_LIMIT - row('{"a":""}').length + room)}"}`);
  const nest = (open, close, depth) => open.repeat(depth) + close.repeat(depth);
  const cases = {
    '100 MB of arrays in arrays': () => '['.repeat(100e6),
    '60 MB of arrays in arrays': () => '['.repeat(60e6),
    '60 MB of objects in objects': () => '{"a":'.repeat(12e6),
    '60 MB of complete arrays, 100 deep': () => many(`${nest('[', ']', 100)},`, 60e6),
    '16 MB of objects, 100 deep': () => many(`${nest('{"a":[', ']}', 50)},`, 16e6),
    '16 MB of numbers': () => many('1,', 16e6),
    '16 MB of empty strings': () => many('"",', 16e6),
    '16 MB of keys, the last first': () => row(`{${Array.from({ length: 1e6 }, (_, key) => `"${2e8 - key}":0`)}}`),
    '60 MB of escapes': () => many('"\\u00e9\\u00e9\\u00e9",', 60e6),
    'a row of the longest line': () => text(1),
    'a row that is one byte longer': () => text(2),
    'a line of 200 MB, and a row behind it': () => `${'x'.repeat(200e6)}\n${row('{"run_id":"big"}')}`,
    'rows that are 5,000 deep': () => many(`${nest('[', ']', 5000)},`, 1e5) + many(`${nest('{"a":[', ']}', 2500)},`, 1e5),
    '2 million broken lines': () => 'x\n'.repeat(2e6),
    '100 MB that hold': () => ledger(100e6),
  };
  for (const [name, make] of Object.entries(cases)) {
    check(name, () => {
      const bytes = Buffer.from(make(), 'latin1');
      const path = join(scratch, FILE);
      writeFileSync(path, bytes);
      same({ given: [path], options: {} });
    });
  }
}

function misuse() {
  const refusals = {
    'options that are no JSON': () => new Verifier(FILE, '{'),
    'an unknown option': () => new Verifier(FILE, '{"heads":[]}'),
    'a head that is none': () => new Verifier(FILE, '{"expected_head":"00"}'),
    'a signer who is none': () => new Verifier(FILE, '{"signers":["somebody"]}'),
    'a private key as a signer': () => new Verifier(FILE, JSON.stringify({ signers: ['-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n'] })),
    'a key that is too short': () => new Verifier(FILE).key(new Uint8Array(4)),
    'a file behind the end': () => finished().open(FILE),
    'a push behind the end': () => finished().push(new Uint8Array(1)),
    'a second end': () => finished().finish(),
    'a view nobody asked for': () => finished().view(),
    'a view before the end': () => new Verifier(FILE, '{"shown":true}').view(),
  };
  for (const [name, refused] of Object.entries(refusals)) {
    check(`${name} is refused`, () => {
      try {
        refused();
      } catch (error) {
        if (error instanceof Error && !(error instanceof WebAssembly.RuntimeError) && error.message) return;
        throw error;
      }
      throw new Error('it was taken');
    });
  }
}

/** Compares the command's report and exit code with ours, whole and in pieces. */
function same(one) {
  const theirs = command(one, scratch);
  const ours = report(one, () => 1 << 20);
  if (ours !== theirs.json) throw new Error(`reports differ:\n${firstDifference(theirs.json, ours)}${theirs.said}`);
  equal(theirs.exit, JSON.parse(ours).exit_code, 'exit code');
  if (one.exit !== undefined) equal(theirs.exit, one.exit, 'exit code');
  for (const largest of one.inPieces ? [1, 7, 100, 5000] : []) {
    const found = report(one, () => Math.floor(random() * (largest + 1)));
    if (found !== ours) throw new Error(`pieces of up to ${largest}:\n${firstDifference(ours, found)}`);
  }
}

/** The report from here: named and read as the page does it. */
function report({ given, options, key }, size) {
  const job = plan(subjects(given, (path) => path));
  const files = job.files.filter(({ path, inFolder }) => !inFolder || isEvidence(path));
  const several = job.subjects > 1 || files.length > 2;
  const verifier = new Verifier(job.name, JSON.stringify({ ...options, folder: job.folder, several }));
  if (key) verifier.key(masterKey);
  for (const { path, file } of files) {
    verifier.open(path);
    const bytes = readFileSync(file);
    for (let from = 0; from < bytes.length; ) {
      const to = from + size();
      verifier.push(bytes.subarray(from, to));
      from = to;
    }
    verifier.close();
  }
  const found = text(verifier.finish());
  verifier.free();
  return found;
}

function finished() {
  const verifier = new Verifier(FILE);
  verifier.finish();
  return verifier;
}

function check(name, body) {
  try {
    body();
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.message}`);
  }
}

function equal(found, expected, what) {
  if (!isDeepStrictEqual(found, expected)) {
    throw new Error(`${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
  }
}

function text(bytes) {
  return Buffer.from(bytes).toString('utf8');
}

/** Mulberry32: the same numbers each time, so that a failure can be seen again. */
function generator(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
