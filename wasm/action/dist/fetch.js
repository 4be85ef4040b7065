// The refs beside branches: no checkout fetches them by itself.
//
// They are fetched into names of our own, so that refs that somebody made here are neither
// overwritten nor taken for the remote's; reports call them by their real names.

import { Failure, input, warn } from './runner.js';

const ANCHORS = 'refs/bernstein/work-ledger/';
const ASIDE = 'refs/waybill/aside/';
const FETCHED = 'refs/waybill/fetched/';
const HOW = ['fetch', '--quiet', '--no-tags', '--no-recurse-submodules', '--no-write-fetch-head', '--no-filter'];

export class SideRefs {
  constructor(git, remote, mode) {
    this.git = git;
    this.remote = remote;
    this.mode = mode;
    this.root = '';
  }

  /** Fetches them, as the input `fetch` says. */
  static async of(git) {
    const remote = input('remote') || 'origin';
    const mode = input('fetch') || 'auto';
    if (!['auto', 'always', 'never'].includes(mode)) throw new Failure(64, 'fetch is auto, always or never');
    if (remote.startsWith('-')) throw new Failure(64, 'remote is the name or URL of a remote');
    const side = new SideRefs(git, remote, mode);
    if (mode === 'never') return side;
    const why = await side.fetch('--prune', `+${ANCHORS}*:${FETCHED}work-ledger/*`, `+${ASIDE}*:${FETCHED}aside/*`);
    if (why === undefined) side.root = FETCHED;
    else if (mode === 'always') throw new Failure(74, `can't fetch the ledgers' refs: ${why}`);
    else warn(`can't fetch the ledgers' refs, so those that are here are looked at: ${why}`);
    return side;
  }

  /** Fetches, and gives the reason if it could not. */
  async fetch(...args) {
    const options = args.filter((arg) => arg.startsWith('--'));
    const refs = args.filter((arg) => !arg.startsWith('--'));
    const { code, err } = await this.git.run([...HOW, ...options, '--', this.remote, ...refs], { network: true });
    return code === 0 ? undefined : err || `git fetch ended with ${code}`;
  }

  /** Fetches a commit, by its id or by a ref; gives it, or nothing if it can't be had. */
  async commit(source) {
    if (this.mode === 'never') return undefined;
    const depth = this.git.shallow().length > 0 ? ['--depth=1'] : [];
    const name = `${FETCHED}base`;
    return (await this.fetch(...depth, `+${source}:${name}`)) === undefined ? this.git.commit(name) : undefined;
  }

  /** The anchors: the ref, the run, the commit (nothing if it can't be read). */
  async anchors() {
    const found = await this.list(this.root ? `${this.root}work-ledger/` : ANCHORS);
    return found.map(({ rest, commit }) => ({ name: ANCHORS + rest, run: rest, commit }));
  }

  /** The lineages that were set aside. */
  async asides() {
    const found = await this.list(this.root ? `${this.root}aside/` : ASIDE);
    return found
      .filter(({ rest, commit }) => commit && rest.includes('/'))
      .map(({ rest, commit }) => ({ name: ASIDE + rest, run: rest.slice(0, rest.indexOf('/')), commit }));
  }

  async list(prefix) {
    const format = '--format=%(objectname) %(refname) %(symref)';
    const { code, out, err, all } = await this.git.run(['for-each-ref', format, prefix]);
    if (code !== 0) throw new Failure(74, `can't list refs: ${err}`);
    const found = out.toString('utf8').split('\n').filter(Boolean).map((line) => {
      const [commit, name, symbolic] = line.split(' ');
      return { rest: name.slice(prefix.length), commit: symbolic ? undefined : commit };
    });
    // What git leaves out, it says: a ref that is there and can't be read.
    for (const [, name] of all.matchAll(/^warning: ignoring (?:broken|dangling).* (refs\/\S+)$/gm)) {
      if (name.startsWith(prefix)) found.push({ rest: name.slice(prefix.length), commit: undefined });
    }
    return found.sort((left, right) => Buffer.compare(Buffer.from(left.rest), Buffer.from(right.rest)));
  }
}
