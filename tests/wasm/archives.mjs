// Every vector's evidence in one file: what `waybill evidence export` makes of it, or tar.

import { spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { signer, vectors, waybill } from './cases.mjs';

/** Adds a case for each vector that an archive can hold, and for archives that are damaged. */
export function archives(scratch, each, add) {
  const home = join(scratch, 'archives');
  const made = (name) => {
    const project = join(home, name);
    mkdirSync(join(project, '.sdd'), { recursive: true });
    return project;
  };
  const put = (from, to) => {
    mkdirSync(dirname(to), { recursive: true });
    cpSync(from, to, { recursive: true });
  };

  each('ledger', (folder, name, { run_id: id = 'goal-42', strict: { exit } }) => {
    const project = made(name);
    put(join(folder, '000000.jsonl'), join(project, `.sdd/runtime/ledger/${id}/000000.jsonl`));
    add(`${name}, exported`, [exported(project, join(home, `${name}.tar`), id)], {}, { exit });
  });
  each('step-journal', (folder, name, { strict: { exit } }) => {
    const project = made(name);
    put(join(folder, '000000.jsonl'), join(project, '.sdd/runtime/journal/agent-1/000000.jsonl'));
    add(`${name}, packed`, [packed(project, join(home, `${name}.tar`))], {}, { exit });
  });
  each('anchor', (folder, name, { ref, run_id: id, strict: { exit } }) => {
    const project = made(name);
    git(project, 'init', '-q');
    git(project, 'fetch', '-q', join(folder, 'anchor.bundle'), `${ref}:${ref}`);
    add(`${name}, exported`, [exported(project, join(home, `${name}.tar`), id)]);
    const third = join(home, `${name}-v3.bundle`);
    git(project, 'bundle', 'create', '-q', '--version=3', third, ref);
    add(`${name}, as a bundle of version 3`, [third], {}, { exit });
    const tree = join(home, `${name}-tree`);
    mkdirSync(tree, { recursive: true });
    git(project, '-c', 'core.symlinks=false', `--work-tree=${tree}`, 'checkout', '-q', '-f', ref, '--', '.');
    add(`${name}, its tree`, [tree]);
    add(`${name}, its tree's files`, readdirSync(tree).sort().map((file) => join(tree, file)));
  });
  each('receipt', (folder, name, { strict: { exit } }) => {
    const receipt = exported(folder, join(home, `${name}.tar`));
    // A torn tail behind the window is nothing to the receipt, but to the journal, which is there, too.
    const whole = name.endsWith('/ok-journal-torn-after-window') ? 2 : exit;
    add(`${name}, exported`, [receipt], {}, { key: true, exit: whole });
    add(`${name}, exported, without the key`, [receipt], { signers: [signer] });
    const [run] = existsSync(join(folder, '.sdd/runs')) ? readdirSync(join(folder, '.sdd/runs')) : [];
    if (run) add(`${name}, its run exported`, [exported(folder, join(home, `${name}-run.tar`), run)], {}, { key: true });
  });
  each('spine', (folder, name) => {
    const project = made(name);
    for (const file of ['spine.jsonl', 'spine.head']) {
      if (existsSync(join(folder, file))) put(join(folder, file), join(project, '.sdd/lineage/goal-42', file));
    }
    add(`${name}, exported`, [exported(project, join(home, `${name}.tar`), 'goal-42')], {}, { key: true });
  });
  each('audit', (folder, name) => {
    const project = made(name);
    put(join(folder, 'audit'), join(project, '.sdd/audit'));
    add(`${name}, packed`, [packed(project, join(home, `${name}.tar`))], {}, { key: true });
  });
  damaged(join(home, 'receipt/ok-audit-mirrored.tar'), home, add);
  loose(join(home, 'loose'), add);
}

/** Exports a run of a project, or the receipt in it, to `tar`: its path. */
export function exported(project, tar, name = receiptOf(project)) {
  mkdirSync(dirname(tar), { recursive: true });
  run(waybill(), ['evidence', 'export', name, '--output', tar, '--quiet', '--workdir', project], dirname(tar));
  return tar;
}

/** Packs a whole project to `tar`, as tar does it: what export does not take alone. */
export function packed(project, tar) {
  mkdirSync(dirname(tar), { recursive: true });
  run('tar', ['--sort=name', '--mtime=@0', '--owner=0', '--group=0', '--format=ustar', '-cf', tar, '-C', project, '.sdd'], project);
  return tar;
}

/** The id of the first receipt in a project. */
export function receiptOf(project) {
  return basename(readdirSync(join(project, '.sdd/escalation/receipts')).sort()[0], '.json');
}

/** An archive that was cut, changed in its middle, doubled, or compressed. */
function damaged(path, home, add) {
  const whole = readFileSync(path);
  const changed = Buffer.from(whole);
  const at = whole.indexOf('"event"');
  if (at < 0) throw new Error(`${path} has no events`);
  changed[at] ^= 1;
  const table = {
    'cut in a file': whole.subarray(0, 700),
    'cut between files': whole.subarray(0, whole.length - 1024),
    'with something behind its end': Buffer.concat([whole, Buffer.from('more')]),
    'and another behind it': Buffer.concat([whole, whole]),
    'with a changed byte': changed,
    'compressed': spawnSync('gzip', ['-nc'], { input: whole, maxBuffer: 1 << 26 }).stdout,
  };
  for (const [name, bytes] of Object.entries(table)) {
    const file = join(home, `damaged-${name.replaceAll(' ', '-')}.tar`);
    writeFileSync(file, bytes);
    add(`an archive ${name}`, [file], {}, { key: true, exit: 2 });
  }
}

/** Files of each kind, alone: not where they lie, where a receipt's project would be looked at. */
function loose(home, add) {
  const receipt = join(vectors, 'receipt/ok-audit-mirrored/.sdd');
  const folders = ['runs/run-7', 'escalation/receipts', 'identity', 'audit'].map((folder) => join(receipt, folder));
  const archived = join(vectors, 'audit/ok-archived/audit');
  const alone = (name, bytes) => {
    const path = join(home, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, bytes);
    add(`${name}, alone`, [path], {}, { key: true });
  };
  for (const folder of [...folders, archived, join(archived, 'archive')]) {
    for (const entry of readdirSync(folder, { withFileTypes: true })) {
      if (entry.isFile()) alone(entry.name, readFileSync(join(folder, entry.name)));
    }
  }
  const ledger = readFileSync(join(vectors, 'ledger/ok-small/000000.jsonl'));
  for (const name of ['chunk-000000.jsonl', 'LEDGER.json', 'MANIFEST.json', 'spine.head']) {
    alone(`empty/${name}`, '');
    alone(`a ledger called ${name}/${name}`, ledger);
  }
}

function git(folder, ...args) {
  run('git', args, folder, { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null' });
}

function run(program, args, folder, more = {}) {
  const env = { PATH: process.env.PATH, HOME: folder, ...more };
  const ran = spawnSync(program, args, { cwd: folder, env, encoding: 'utf8' });
  if (ran.error) throw ran.error;
  if (ran.status !== 0) throw new Error(`${program} ${args.join(' ')}: ${ran.stderr}`);
}
