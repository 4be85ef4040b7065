// The action, run as a runner runs it, on real repositories: its report is `waybill check`'s, byte
// for byte. Needs `npm ci` here, wasm/action/dist, and the waybill that WAYBILL_BIN names.

import { mkdirSync, readFileSync, readdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { ANCHORS, REF, RUN, World, act, runnersNode, waybill } from './world.mjs';
import * as schemas from './schemas.mjs';
import { serve } from './server.mjs';

const node = runnersNode();
const only = process.argv[2];
let passed = 0;
let failed = 0;

async function check(name, body) {
  if (only && !name.includes(only)) return;
  const world = new World();
  try {
    await body(world);
    passed += 1;
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.stack}`);
  } finally {
    world.remove();
  }
}

function equal(found, expected, what) {
  if (found !== expected) throw new Error(`${what}: ${JSON.stringify(found)}, expected ${JSON.stringify(expected)}`);
}

function holds(truth, what) {
  if (!truth) throw new Error(what);
}

/** Runs both, and compares all that both say. */
async function same(job, { args = [], env = {}, inputs = {}, event = {}, beside = job }, verdict, first = '') {
  const acted = await act(node, job, { inputs, env, event });
  holds(acted.report, `no report: ${acted.out}${acted.err}`);
  // What is not in the repository is the same for both: the event, and no key but the one that is named.
  const home = join(job.world.folder, 'no-home');
  const variables = { HOME: home, GITHUB_EVENT_PATH: join(acted.temp, 'event.json'), ...env };
  const checked = beside.check(['--json', ...args], variables);
  holds(checked.out.equals(acted.report), `reports differ:\n${firstDifference(checked.out, acted.report)}${checked.err}`);
  const report = JSON.parse(acted.report);
  equal(report.verdict, verdict, `verdict: ${report.summary}`);
  equal(acted.code, checked.code, 'exit code');
  equal(acted.code, report.exit_code, 'exit code in the report');
  equal(acted.outputs.verdict, verdict, 'output verdict');
  equal(acted.outputs['exit-code'], String(acted.code), 'output exit-code');
  equal(acted.outputs['first-failure'], first, 'output first-failure');
  equal(acted.outputs.entries, String(report.facts.entries), 'output entries');
  equal(acted.outputs.head, report.facts.head_hash ?? '', 'output head');
  const lines = acted.out.split('\n').filter(Boolean);
  const log = beside.check(['--format', 'github', ...args], variables).out.toString('utf8');
  equal(lines.filter((line) => !isOwn(line)).join('\n'), log.trimEnd(), 'log');
  equal(acted.summary, beside.check(['--format', 'markdown', ...args], variables).out.toString('utf8'), 'summary');
  holds(acted.summary.length < 1 << 20, 'summary of a MiB');
  holds(lines.filter((line) => line.startsWith('::')).length <= 11, 'more than ten annotations and a warning');
  for (const line of lines) holds(isSafe(line), `a line: ${line}`);
  equal(acted.err, '', 'standard error');
  return { ...acted, json: report };
}

const isOwn = (line) => line.startsWith('waybill: exit code') || line.startsWith('::warning title=waybill::');
const isSafe = (line) => /^(::(error|warning|notice) (file|title)=|waybill: )/.test(line) && !/##\[|[\u0000-\u001f\u202a-\u202e]/.test(line);

function firstDifference(expected, found) {
  const [left, right] = [expected, found].map((bytes) => bytes.toString('utf8').split('\n'));
  const line = left.findIndex((one, index) => one !== right[index]);
  return `  command: ${left[line]}\n  action:  ${right[line]}\n`;
}

const never = { fetch: 'never' };
const pull = (host) => ({
  env: { GITHUB_EVENT_NAME: 'pull_request', GITHUB_BASE_REF: 'main' },
  event: { pull_request: { base: { ref: 'main', sha: host.git('rev-parse', 'HEAD') } } },
});

await check('good', async (world) => {
  world.gated('require = ["anchored"]\n');
  const job = world.checkout('job', { side: true });
  const found = await same(job, { inputs: { ...never, 'sarif-file': 'w.sarif', 'junit-file': 'w.xml' } }, 'consistent');
  equal(found.outputs['sarif-file'], join(job.folder, 'w.sarif'), 'sarif-file');
  holds(job.check(['--format', 'sarif']).out.equals(job.read('w.sarif')), 'SARIF differs');
  holds(job.check(['--format', 'junit']).out.equals(job.read('w.xml')), 'JUnit differs');
});

await check('tampered', async (world) => {
  const host = world.gated();
  host.forge(REF, (rows) => rows.replace('task.scheduled', 'task.abandoned'));
  host.publish();
  const job = world.checkout('job', { side: true });
  const { outputs } = await same(job, { inputs: never }, 'failed', 'anchor.chain: entry_hash_mismatch');
  equal(outputs.head, '', 'the head of what does not hold');
});

await check('diverged', async (world) => {
  const host = world.gated();
  const path = `.sdd/runtime/ledger/${RUN}/000000.jsonl`;
  host.write(path, host.read(path).toString('utf8').split('\n').slice(0, 2).join('\n') + '\n');
  host.waybill('ledger', 'append', RUN, '--kind', 'task.failed', '--task', 't0', '--accept-loss');
  await same(host, { inputs: never }, 'diverged', 'ledger.anchored: diverged');
});

await check('rewritten but valid', async (world) => {
  const host = world.gated();
  host.recordAnew();
  host.waybill('check', '--update');
  host.commit('rewritten');
  host.git('push', '-q', 'origin', '+HEAD:refs/heads/topic', '+refs/bernstein/*:refs/bernstein/*');
  const job = world.checkout('job', { ref: 'refs/heads/topic', depth: 0, side: true });
  await same(job, { inputs: never }, 'consistent');
  await same(job, { inputs: never, ...pull(job) }, 'failed', 'gate.base: history_rewritten');
  // A rewritten branch that was pushed: the event says what it was before.
  const before = job.git('rev-parse', 'origin/main');
  await same(job, { inputs: never, event: { before } }, 'failed', 'gate.base: history_rewritten');
});

await check('settled by diff --keep', async (world) => {
  const host = world.gated();
  const other = world.checkout('other', { depth: 0 });
  other.waybill('ledger', 'fetch', RUN);
  for (const [clone, task] of [[host, 'a'], [other, 'b']]) {
    clone.append('task.started', task);
    clone.waybill('ledger', 'anchor', RUN);
  }
  host.waybill('check', '--update');
  host.commit('a goes on');
  host.publish();
  other.waybill('ledger', 'diff', RUN, '--remote', 'origin', '--keep', 'local');
  other.waybill('ledger', 'push', RUN);
  const job = world.checkout('job', { depth: 0, side: true });
  await same(job, { inputs: never }, 'failed', 'gate.heads');
  job.waybill('check', '--update');
  job.commit('settled');
  const { json } = await same(job, { inputs: never, ...pull(job) }, 'consistent');
  holds(json.checks.some(({ id, status }) => id === 'gate.base' && status === 'warn'), 'nothing is said of it');
});

await check('after gc, and a ledger that went on', async (world) => {
  const host = world.gated();
  host.append('task.completed');
  host.waybill('ledger', 'anchor', RUN);
  host.waybill('ledger', 'gc', RUN);
  host.publish();
  const { outputs } = await same(world.checkout('job', { side: true }), { inputs: never }, 'consistent');
  equal(outputs.entries, '4', 'entries');
});

await check('missing ledger', async (world) => {
  world.gated();
  await same(world.checkout('job'), { inputs: never }, 'failed', 'gate.base');
});

await check('unpinned signer', async (world) => {
  const other = 'SHA256:n4bQgYhMfWWaL+qgxVrQFaO/TxsrC4Is0V1sFbDwCgg';
  const host = world.gated(`signers = ["${other}"]\n`);
  host.waybill('keys', 'init');
  host.waybill('journal', 'record', RUN, '--event', 'worker.started');
  host.waybill('escalation', 'emit', RUN, '--worker', 'w1', '--reason', 'heartbeat_stale');
  const { outputs } = await same(host, { inputs: never }, 'failed', 'receipt.signer');
  equal(outputs.signer, JSON.parse(host.waybill('keys', 'show', '--json')).fingerprint, 'signer');
  // With the key of the project, from the place that both are told.
  const key = join(world.env.HOME, '.local/state/bernstein/audit.key');
  host.write('.waybill/policy.toml', `signers = ["${outputs.signer}"]\n`);
  host.commit('ours');
  const env = { BERNSTEIN_AUDIT_KEY_PATH: key };
  await same(host, { inputs: { ...never, require: 'pinned, hmac' }, args: ['--require', 'pinned,hmac'], env }, 'consistent');
});

await check('policy changed in the pull request', async (world) => {
  const host = world.gated('require = ["complete"]\n');
  host.git('switch', '-q', '-c', 'topic');
  host.write('.waybill/policy.toml', 'missing = "pass"\n');
  host.commit('loosened');
  host.git('push', '-q', 'origin', 'topic');
  const job = world.checkout('job', { ref: 'refs/heads/topic', depth: 0 });
  const { json } = await same(job, { inputs: never, ...pull(job) }, 'failed', 'gate.base');
  holds(json.checks.some(({ id, status }) => id === 'gate.policy' && status === 'warn'), 'the change is not said');
});

await check('30 faults at once', async (world) => {
  const host = world.host('host');
  for (let run = 0; run < 30; run += 1) {
    const name = `run-${String(run).padStart(2, '0')}`;
    host.waybill('ledger', 'open', name);
    host.waybill('ledger', 'anchor', name);
    host.forge(ANCHORS + name, (rows) => rows.replace('run.open', 'run.oven'));
  }
  rmSync(join(host.folder, '.sdd'), { recursive: true });
  host.commit('none');
  const inputs = { ...never, 'sarif-file': 'w.sarif', 'junit-file': 'w.xml' };
  const found = await same(host, { inputs }, 'failed', 'anchor.chain: entry_hash_mismatch');
  const commands = found.out.split('\n').filter((line) => line.startsWith('::'));
  equal(commands.length, 10, 'annotations');
  holds(/^::notice title=waybill::and \d+ more/.test(commands[9]), commands[9]);
  equal(schemas.sarif(host.read('w.sarif')).runs[0].results.filter(({ level }) => level === 'error').length >= 30, true, 'SARIF');
  schemas.junit(host.read('w.xml').toString('utf8'));
  schemas.gitlab(host.check(['--format', 'gitlab']).out);
});

await check('hostile payloads and names', async (world) => {
  const host = world.gated();
  const hostile = 'x%0A::error::y\\n::warning::z ##[error]q \u202e\u001b[31m<img src=x>|`a`[b](http://c)@d]]>&\'';
  host.forge(REF, (rows) => rows.replace('task.scheduled', hostile));
  for (const name of ['::error::a.json', '##[error]b.json', 'c\n::error::d.json', '<e>&\'".json', '%0A::f.json']) {
    host.write(`.sdd/escalation/receipts/${name}`, `{"${hostile}":1}`);
  }
  host.write('.waybill/policy.toml', `"${hostile}" = 1`);
  host.write('.waybill/heads.json', `{"${hostile}":1}`);
  const inputs = { ...never, 'sarif-file': 'w.sarif', 'junit-file': 'w.xml' };
  await same(host, { inputs }, 'failed', 'gate.policy');
  schemas.sarif(host.read('w.sarif'));
  schemas.junit(host.read('w.xml').toString('utf8'));
  schemas.gitlab(host.check(['--format', 'gitlab']).out);
});

await check('a merge group, by the event, in a shallow checkout', async (world) => {
  const host = world.gated();
  const base = host.git('rev-parse', 'HEAD');
  host.recordAnew();
  host.waybill('check', '--update');
  host.commit('rewritten');
  host.git('push', '-q', 'origin', '+HEAD:refs/heads/gh-readonly-queue/main/pr-1', '+refs/bernstein/*:refs/bernstein/*');
  const job = world.checkout('job', { ref: 'refs/heads/gh-readonly-queue/main/pr-1' });
  const whole = world.checkout('whole', { ref: 'refs/heads/gh-readonly-queue/main/pr-1', depth: 0, side: true });
  const env = { GITHUB_EVENT_NAME: 'merge_group' };
  const config = job.read('.git/config');
  await same(job, { env, event: { merge_group: { base_sha: base } }, args: ['--base', base], beside: whole }, 'failed', 'gate.base: history_rewritten');
  holds(config.equals(job.read('.git/config')), 'the configuration was written to');
  // Nothing is fetched when nothing may be, and then nothing passes.
  const none = await act(node, world.checkout('none', { ref: 'refs/heads/gh-readonly-queue/main/pr-1' }), {
    env,
    inputs: never,
    event: { merge_group: { base_sha: base } },
  });
  equal(none.code, 1, none.out);
  equal(none.outputs['exit-code'], '1', 'exit-code');
});

await check('a pull request in a shallow checkout fetches base and side refs', async (world) => {
  const host = world.gated();
  host.git('switch', '-q', '-c', 'topic');
  host.append('task.completed');
  host.waybill('ledger', 'anchor', RUN);
  host.waybill('check', '--update');
  host.commit('goes on');
  host.git('push', '-q', 'origin', 'HEAD:refs/pull/1/merge', '+refs/bernstein/*:refs/bernstein/*');
  const job = world.checkout('job', { ref: 'refs/pull/1/merge' });
  const whole = world.checkout('whole', { ref: 'refs/pull/1/merge', depth: 0, side: true });
  const before = job.git('for-each-ref', 'refs/bernstein', 'refs/heads', 'refs/tags');
  const { outputs } = await same(job, { ...pull(host), beside: whole }, 'consistent');
  equal(outputs.entries, '4', 'entries');
  equal(job.git('for-each-ref', 'refs/bernstein', 'refs/heads', 'refs/tags'), before, 'refs');
  // A ref that the remote has no more is not there, whatever an earlier fetch brought.
  host.git('push', '-q', 'origin', `:${REF}`);
  const again = await act(node, job, pull(host));
  equal(again.outputs['first-failure'], 'gate.base', again.out);
});

await check('a blobless clone', async (world) => {
  world.gated();
  const job = world.host('job');
  world.run(world.remote, 'git', ['config', 'uploadpack.allowFilter', 'true']);
  world.run(job.folder, 'git', ['fetch', '-q', '--filter=blob:none', '--no-tags', 'origin', '+refs/heads/main:refs/remotes/origin/main']);
  job.git('checkout', '-q', '--detach', 'refs/remotes/origin/main');
  await same(job, { ...pull(job), beside: world.checkout('whole', { depth: 0, side: true }) }, 'consistent');
});

await check('over HTTP with a token', async (world) => {
  const host = world.gated();
  const token = 'ghs_MadeUpForThisTest000000000000000000';
  const basic = `basic ${Buffer.from(`x-access-token:${token}`).toString('base64')}`;
  const server = await serve(world.folder, (given) => given?.toLowerCase() === basic.toLowerCase());
  try {
    const whole = world.checkout('whole', { depth: 0, side: true });
    const job = world.checkout('job');
    job.git('remote', 'set-url', 'origin', `${server.url}/remote.git`);
    const env = { GITHUB_SERVER_URL: server.url };
    const config = job.read('.git/config');
    const inputs = { token, fetch: 'always' };
    const found = await same(job, { ...both(pull(host), env), inputs, beside: whole }, 'consistent');
    holds(config.equals(job.read('.git/config')), 'the configuration was written to');
    holds(server.seen.some(({ given }) => given === 1), 'no token was sent');
    for (const text of [found.out, found.err, found.summary, found.report.toString('utf8')]) holds(!text.includes(token), 'the token was shown');
    holds(!contains(join(job.folder, '.git'), [token, basic.slice(6)]), 'the token was written down');
    // A checkout that kept its own credentials: one header, not two.
    job.git('config', `http.${server.url}/.extraheader`, `AUTHORIZATION: ${basic}`);
    await same(job, { ...both(pull(host), env), inputs, beside: whole }, 'consistent');
    holds(server.seen.every(({ given }) => given <= 1), 'two headers');
    job.git('config', '--unset', `http.${server.url}/.extraheader`);
    // A fork without secrets: nothing can be read, and nothing passes for it.
    const fork = world.checkout('fork', { depth: 0 });
    fork.git('remote', 'set-url', 'origin', `${server.url}/remote.git`);
    const none = await act(node, fork, both(pull(host), env));
    equal(none.outputs.verdict, 'failed', none.out);
    holds(none.out.includes("::warning title=waybill::can't fetch the ledgers' refs"), none.out);
    const strict = await act(node, fork, { ...both(pull(host), env), inputs: { fetch: 'always' } });
    equal(strict.code, 74, strict.out);
    // Another server gets no token.
    const before = server.seen.length;
    await act(node, job, { ...pull(host), inputs });
    holds(server.seen.slice(before).every(({ given }) => given === 0), 'another server got the token');
  } finally {
    server.close();
  }
  function both(given, env) {
    return { ...given, env: { ...given.env, ...env } };
  }
});

await check('links and other traps of a pull request', async (world) => {
  const host = world.gated();
  const secret = join(world.folder, 'secret');
  writeFileSync(secret, 'kept\n');
  const job = world.checkout('job', { side: true });
  symlinkSync(secret, join(job.folder, 'w.sarif'));
  mkdirSync(join(world.folder, 'elsewhere'));
  symlinkSync(join(world.folder, 'elsewhere'), join(job.folder, '.sdd'));
  await same(job, { inputs: { ...never, 'sarif-file': 'w.sarif' } }, 'consistent');
  equal(readFileSync(secret, 'utf8'), 'kept\n', 'what a link points to');
  symlinkSync(join(world.folder, 'elsewhere'), join(job.folder, 'out'));
  const out = await act(node, job, { inputs: { ...never, 'junit-file': 'out/w.xml' } });
  equal(out.code, 64, out.out);
  equal(readdirSync(join(world.folder, 'elsewhere')).length, 0, 'files elsewhere');
  rmSync(join(job.folder, '.waybill'), { recursive: true });
  symlinkSync(join(host.folder, '.waybill'), join(job.folder, '.waybill'));
  equal((await act(node, job, { inputs: never })).code, 74, 'a link for .waybill');
  // An anchor that is none: a commit of the project, whose tree is its sources.
  const other = world.checkout('other', { side: true });
  other.git('update-ref', `${ANCHORS}source`, 'HEAD');
  other.git('symbolic-ref', `${ANCHORS}symbolic`, REF);
  const { json } = await same(other, { inputs: never }, 'failed', 'gate.runs');
  holds(json.subjects.some(({ verdict }) => verdict === 'failed'), 'the project passed for an anchor');
});

await check('an object that is missing, and one that was not gathered', async (world) => {
  const host = world.gated();
  host.append('task.completed');
  host.waybill('ledger', 'anchor', RUN);
  const blob = host.git('rev-parse', `${REF}~1:chunk-000000.jsonl`);
  rmSync(join(host.folder, '.git/objects', blob.slice(0, 2), blob.slice(2)));
  await same(host, { inputs: never }, 'failed', 'anchor.history: object_missing');
  // A tree whose file has another name is asked for by nobody, or read one by one: the same either way.
  const other = world.checkout('other', { side: true });
  const tree = world.run(other.folder, 'git', ['mktree'], { input: `${other.git('ls-tree', REF).replace('LEDGER.json', 'LEDGER.JSON')}\n` });
  other.git('update-ref', `${ANCHORS}named`, other.git('commit-tree', '-m', 'x', tree));
  const found = await act(node, other, { inputs: never });
  holds(other.check(['--json']).out.equals(found.report), 'reports differ');
});

await check('wrong inputs', async (world) => {
  world.gated();
  const job = world.checkout('job', { side: true });
  for (const [inputs, code] of [
    [{ fetch: 'sometimes' }, 64],
    [{ ...never, require: 'everything' }, 64],
    [{ remote: '--upload-pack=touch pwned' }, 64],
    [{ ...never, base: '--output=pwned' }, 1],
    [{ ...never, base: 'nowhere' }, 1],
    [{ ...never, policy: 'nowhere.toml' }, 1],
    [{ ...never, 'working-directory': 'nowhere' }, 64],
  ]) {
    const found = await act(node, job, { inputs });
    equal(found.code, code, `${JSON.stringify(inputs)}: ${found.out}`);
    holds(/^::error title=waybill::[^\n]*\n$/.test(found.out), found.out);
    equal(found.outputs['exit-code'], String(code), 'exit-code');
  }
  holds(!readdirSync(job.folder).includes('pwned'), 'an option got through');
});

/** Whether a file below a folder has one of the texts. */
function contains(folder, texts) {
  return readdirSync(folder, { withFileTypes: true, recursive: true }).some((entry) => {
    if (!entry.isFile()) return false;
    const bytes = readFileSync(join(entry.parentPath ?? entry.path, entry.name));
    return texts.some((text) => bytes.includes(text));
  });
}

console.log(`${execFileSync(node, ['--version'], { encoding: 'utf8' }).trim()}, ${waybill}`);
console.log(`${passed} passed, ${failed} failed`);
if (failed > 0 || passed === 0) process.exitCode = 1;
