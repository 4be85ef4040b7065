// The commit that policy and heads are read from.

import { readFileSync } from 'node:fs';
import { Failure, input } from './runner.js';

const NONE = /^0+$/;
const ID = /^[0-9a-f]{40}$/;

export class Base {
  constructor(git, commit) {
    this.git = git;
    this.commit = commit;
  }

  static async of(git, side) {
    if (input('policy') && input('heads')) return new Base(git, undefined);
    const { name, source } = named(side.remote);
    if (name === undefined) return new Base(git, await git.commit('HEAD'));
    const commit = (await git.commit(name)) ?? (await side.commit(source));
    if (!commit) throw new Failure(1, `the base ${name} is not here: let it be fetched, or name another as base`);
    return new Base(git, commit);
  }

  /** A file of the base; nothing if it has no such file. */
  async file(path) {
    if (!this.commit) return undefined;
    const entry = await this.git.ok(['ls-tree', '-z', '--full-tree', this.commit, '--', path], { network: true });
    if (!entry) return undefined;
    const [mode, kind, id] = entry.split('\t')[0].split(' ');
    if (kind !== 'blob' || !mode.startsWith('100')) throw new Failure(74, `${path} of the base is no regular file`);
    const { code, out, err } = await this.git.run(['cat-file', 'blob', id], { network: true });
    if (code !== 0) throw new Failure(74, `can't read ${path} of the base: ${err}`);
    if (out.length > 16 << 20) throw new Failure(74, `${path} of the base has more than ${16 << 20} bytes`);
    return out;
  }
}

/** What the base is called, and what to fetch if it is not here; the same rules as `waybill check`. */
function named(remote) {
  const given = input('base');
  if (given) return { name: given, source: ID.test(given) ? given : `refs/heads/${short(given, remote)}` };
  const branch = process.env.GITHUB_BASE_REF;
  if (branch) return { name: `refs/remotes/${remote}/${branch}`, source: `refs/heads/${branch}` };
  const event = eventOf();
  const id = event.merge_group?.base_sha ?? event.before;
  // A push that makes a branch has no commit before it.
  if (typeof id === 'string' && ID.test(id) && !NONE.test(id)) return { name: id, source: id };
  return {};
}

function short(name, remote) {
  for (const prefix of [`refs/remotes/${remote}/`, `${remote}/`, 'refs/heads/']) {
    if (name.startsWith(prefix)) return name.slice(prefix.length);
  }
  return name;
}

function eventOf() {
  const path = process.env.GITHUB_EVENT_PATH;
  if (!path) return {};
  try {
    return JSON.parse(readFileSync(path, 'utf8')) ?? {};
  } catch {
    return {};
  }
}
