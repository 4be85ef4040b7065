// The report from WebAssembly is the command's, byte for byte: `node tests/wasm/parity.mjs`.
//
// Needs what tools/wasm.sh builds and the release build of waybill (or the one that WAYBILL_BIN
// names). The big cases are made here, in a temporary folder.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { Chain, ledger, load, root } from './load.mjs';

const LINE_LIMIT = 64 << 20;
const FILE = '000000.jsonl';

const waybill = resolve(process.env.WAYBILL_BIN ?? join(root, 'target/release/waybill'));
if (!existsSync(waybill)) {
  console.error(`${waybill} is not there: cargo build --release, or name it in WAYBILL_BIN`);
  process.exit(1);
}
const { Verifier, ReceiptVerifier } = await load('pkg', 'waybill_wasm');
const scratch = mkdtempSync(join(tmpdir(), 'waybill-parity-'));
const random = generator(0x5eed);
let passed = 0;
let failed = 0;

try {
  // Apart from each other: the big cases want a memory that nothing has cut up yet.
  if (process.argv[2] === 'receipts') {
    receipts();
  } else {
    vectors();
    big();
    misuse();
  }
} finally {
  rmSync(scratch, { recursive: true });
}
console.log(`${passed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;

function receipts() {
  const key = readFileSync(join(root, 'tests/vectors/hmac.key'));
  const keyFile = join(scratch, 'hmac.key');
  writeFileSync(keyFile, key, { mode: 0o600 });
  for (const name of readdirSync(join(root, 'tests/vectors/receipt')).sort()) {
    const folder = join(scratch, `receipt-${name}`);
    cpSync(join(root, 'tests/vectors/receipt', name), folder, { recursive: true });
    const expected = JSON.parse(readFileSync(join(folder, 'expected.json'), 'utf8'));
    const files = filesBelow(folder).filter((path) => path.startsWith('.sdd/'));
    const receipt = files.find((path) => path.startsWith('.sdd/escalation/receipts/'));
    for (const withKey of [true, false]) {
      check(`receipt/${name}, ${withKey ? 'with' : 'without'} the key`, () => {
        const verifier = new ReceiptVerifier(receipt, false, undefined);
        for (const path of files) {
          if (!path.includes('identity-key')) verifier.push(path, readFileSync(join(folder, path)));
        }
        if (withKey) verifier.key(key);
        const ours = text(verifier.finish());
        const env = { PATH: process.env.PATH, HOME: scratch };
        if (withKey) env.BERNSTEIN_AUDIT_KEY_PATH = keyFile;
        const command = spawnSync(waybill, ['verify', receipt, '--json'], { cwd: folder, env, encoding: 'utf8' });
        if (command.error) throw command.error;
        if (ours !== command.stdout) throw new Error(`reports differ:\n${firstDifference(command.stdout, ours)}${command.stderr}`);
        if (withKey) equal(JSON.parse(ours).exit_code, expected.strict.exit, 'exit code');
      });
    }
  }
}

function filesBelow(folder, below = '') {
  return readdirSync(join(folder, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below ? `${below}/${entry.name}` : entry.name;
    return entry.isDirectory() ? filesBelow(folder, path) : [path];
  });
}

function vectors() {
  for (const kind of ['ledger', 'step-journal']) {
    const folder = join(root, 'tests/vectors', kind);
    for (const name of readdirSync(folder).sort()) {
      const path = join(folder, name, FILE);
      const bytes = readFileSync(path);
      const expected = JSON.parse(readFileSync(join(folder, name, 'expected.json'), 'utf8'));
      check(`${kind}/${name}`, () => {
        const whole = same(kind, path, bytes, {});
        equal(JSON.parse(whole).exit_code, expected.strict.exit, 'exit code');
        inPieces(kind, bytes, whole);
      });
      const head = expected.strict.with_expected_head?.head;
      if (head) check(`${kind}/${name}, expected head`, () => same(kind, path, bytes, { expected_head: head }));
      if (expected.state) {
        check(`${kind}/${name}, state`, () => {
          const verifier = new Verifier(kind, FILE, JSON.stringify({ replay: true }));
          verifier.push(bytes);
          verifier.finish();
          const state = JSON.parse(text(verifier.state()));
          equal(state, { ...expected.state, run_id: state.run_id }, 'state');
        });
      }
    }
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
      same('ledger', path, bytes, {});
      if (bytes.length < 20e6 || bytes[0] !== 0x7b) finish(new Verifier('step-journal', FILE), bytes, 1 << 20);
    });
  }
}

function misuse() {
  const refusals = {
    'an unknown kind': () => new Verifier('journal', FILE),
    'options that are no JSON': () => new Verifier('ledger', FILE, '{'),
    'an unknown option': () => new Verifier('ledger', FILE, '{"heads":[]}'),
    'a head that is none': () => new Verifier('ledger', FILE, '{"expected_head":"00"}'),
    'a push behind the end': () => finished().push(new Uint8Array(1)),
    'a second end': () => finished().finish(),
    'a state nobody asked for': () => finished().state(),
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

/** Compares the command's report and exit code with ours; gives the report. */
function same(kind, path, bytes, options) {
  const args = kind === 'ledger' ? ['ledger', 'verify', '--file', path] : ['verify', path];
  if (options.expected_head) args.push('--expected-head', options.expected_head);
  const ran = spawnSync(waybill, [...args, '--json'], { maxBuffer: 1 << 30 });
  if (ran.error) throw ran.error;
  const ours = finish(new Verifier(kind, FILE, JSON.stringify(options)), bytes, 1 << 20);
  const theirs = text(ran.stdout);
  if (ours !== theirs) throw new Error(`reports differ:\n${firstDifference(theirs, ours)}${text(ran.stderr)}`);
  equal(ran.status, JSON.parse(ours).exit_code, 'exit code');
  return ours;
}

function inPieces(kind, bytes, whole) {
  for (const largest of [1, 7, 100, 5000]) {
    const verifier = new Verifier(kind, FILE);
    for (let at = 0; at < bytes.length; ) {
      const size = Math.floor(random() * (largest + 1));
      verifier.push(bytes.subarray(at, at + size));
      at += size;
    }
    const report = text(verifier.finish());
    verifier.free();
    if (report !== whole) throw new Error(`pieces of up to ${largest}:\n${firstDifference(whole, report)}`);
  }
}

function finish(verifier, bytes, size) {
  for (let at = 0; at < bytes.length; at += size) verifier.push(bytes.subarray(at, at + size));
  const report = text(verifier.finish());
  verifier.free();
  return report;
}

function finished() {
  const verifier = new Verifier('ledger', FILE);
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

function firstDifference(expected, found) {
  const left = expected.split('\n');
  const right = found.split('\n');
  const line = left.findIndex((one, index) => one !== right[index]);
  return `  command: ${left[line]}\n  here:    ${right[line]}\n`;
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
