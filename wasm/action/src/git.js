// The runner's own git: arguments as a list, no shell, nothing written to any configuration.

import { spawn, spawnSync } from 'node:child_process';
import { existsSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { Failure, input, workspace } from './runner.js';

/** The repository that a folder of the workspace is in. */
export class Git {
  /** @param {string} folder where the project is @param {string} top where the repository is */
  constructor(folder, top) {
    this.folder = folder;
    this.top = top;
  }

  static async at(name) {
    const folder = resolve(workspace(), name);
    if (!existsSync(folder) || !statSync(folder).isDirectory()) {
      throw new Failure(64, `working-directory ${name} is no folder of the workspace`);
    }
    const git = new Git(realpathSync(folder), folder);
    const { code, out, err } = await git.run(['rev-parse', '--show-toplevel']);
    if (code !== 0) throw new Failure(1, `no git repository was checked out here: ${err}`);
    git.top = out.toString('utf8').replace(/\n$/, '');
    if ((await git.ok(['rev-parse', '--show-object-format'])).trim() !== 'sha1') {
      throw new Failure(74, 'the objects of the repository are not SHA-1, which anchors need');
    }
    return git;
  }

  /** Runs git and gathers what it prints. */
  run(args, { network = false } = {}) {
    return new Promise((done, broke) => {
      const child = spawn('git', args, { cwd: this.folder, env: environment(this, network), stdio: ['ignore', 'pipe', 'pipe'] });
      const out = [];
      const err = [];
      child.stdout.on('data', (piece) => out.push(piece));
      child.stderr.on('data', (piece) => err.push(piece));
      child.on('error', (error) => broke(new Failure(74, `git can't be started: ${error.code}`)));
      child.on('close', (code) => {
        const said = Buffer.concat(err).toString('utf8').trim();
        done({ code, out: Buffer.concat(out), err: said.split('\n').pop(), all: said });
      });
    });
  }

  async ok(args, options) {
    const { code, out, err } = await this.run(args, options);
    if (code !== 0) throw new Failure(74, `git ${args[0]} failed: ${err}`);
    return out.toString('utf8');
  }

  /** Starts git and leaves its pipes to the caller. */
  start(args) {
    return spawn('git', args, { cwd: this.folder, env: environment(this, false), stdio: ['pipe', 'pipe', 'ignore'] });
  }

  /** Runs git to its end before anything else goes on. */
  now(args, text) {
    const options = { cwd: this.folder, env: environment(this, false), input: text, maxBuffer: 600 << 20 };
    return spawnSync('git', args, options);
  }

  /** The commit that a name stands for; nothing if it is not here. */
  async commit(name) {
    const { code, out } = await this.run(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`]);
    return code === 0 ? out.toString('utf8').trim() : undefined;
  }

  /** The commits that a shallow clone has no parents of. */
  shallow() {
    const at = this.now(['rev-parse', '--git-path', 'shallow']).stdout.toString('utf8').replace(/\n$/, '');
    const path = resolve(this.folder, at);
    return existsSync(path) ? readFileSync(path, 'utf8').split('\n').filter(Boolean) : [];
  }
}

/** What git runs under. Configuration that is needed is given here, so that none is written. */
function environment(git, network) {
  const env = { ...process.env, LC_ALL: 'C', GIT_TERMINAL_PROMPT: '0', GIT_NO_REPLACE_OBJECTS: '1' };
  // The inputs are not git's to see.
  for (const name of Object.keys(env)) if (name.startsWith('INPUT_')) delete env[name];
  const settings = [
    // In a container, the checkout may be another user's.
    ['safe.directory', git.folder],
    ['safe.directory', git.top],
    ['core.hooksPath', '/dev/null'],
    ['gc.auto', '0'],
    ['maintenance.auto', 'false'],
  ];
  if (network) settings.push(...credentials());
  else env.GIT_NO_LAZY_FETCH = '1';
  let count = Number.parseInt(env.GIT_CONFIG_COUNT ?? '0', 10) || 0;
  for (const [key, value] of settings) {
    env[`GIT_CONFIG_KEY_${count}`] = key;
    env[`GIT_CONFIG_VALUE_${count}`] = value;
    count += 1;
  }
  env.GIT_CONFIG_COUNT = String(count);
  return env;
}

/** The token as a header for the server that it is of, and no other. */
function credentials() {
  const token = input('token');
  if (!token) return [];
  const key = `http.${(process.env.GITHUB_SERVER_URL || 'https://github.com').replace(/\/+$/, '')}/.extraheader`;
  const basic = Buffer.from(`x-access-token:${token}`, 'utf8').toString('base64');
  // An empty one first: a checkout that kept its credentials would send a second header.
  return [
    [key, ''],
    [key, `AUTHORIZATION: basic ${basic}`],
  ];
}
