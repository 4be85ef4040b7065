// Loads what tools/wasm.sh built, and makes ledgers to check.

import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export const root = fileURLToPath(new URL('../../', import.meta.url));

/** The bindings in target/wasm/<name>/, instantiated. */
export async function load(name, stem) {
  const folder = new URL(`../../target/wasm/${name}/`, import.meta.url);
  const bindings = await import(new URL(`${stem}.js`, folder));
  const module = new WebAssembly.Module(readFileSync(new URL(`${stem}_bg.wasm`, folder)));
  const { memory } = bindings.initSync({ module });
  return { ...bindings, memory };
}

/** A chain that holds, row by row: `payload(seq)` is each row's canonical payload text. */
export class Chain {
  #prev = '0'.repeat(64);
  #seq = 0;

  row(payload, kind = this.#seq === 0 ? 'run.open' : 'task.started', task = kind === 'run.open' ? '' : 'task-7') {
    const covered = `"kind":"${kind}","payload":${payload},"prev_hash":"${this.#prev}"`;
    const hash = createHash('sha256').update(`{${covered},"task_id":"${task}"}`).digest('hex');
    const seq = this.#seq;
    this.#prev = hash;
    this.#seq += 1;
    const ts = `17959753${String(10 + (seq % 90))}.384364`;
    return `{"entry_hash":"${hash}",${covered},"redactions":0,"schema_version":1,"seq":${seq},"task_id":"${task}","ts":${ts.replace(/0+$/, '')}}\n`;
  }
}

/** A ledger of about `bytes` bytes whose rows are about 500 bytes, as a buffer. */
export function ledger(bytes) {
  const taken = [];
  let length = 0;
  for (const row of rows()) {
    taken.push(row);
    length += row.length;
    if (length >= bytes) return Buffer.from(taken.join(''), 'latin1');
  }
}

/** Such a ledger's rows, without an end. */
export function* rows() {
  const chain = new Chain();
  yield chain.row('{"goal":"measure","run_id":"bench"}');
  const note = 'a worker wrote some lines about what it did, and why, and what is left to do; '.repeat(2);
  for (let seq = 1; ; seq += 1) {
    yield chain.row(
      `{"attempt":${seq % 7},"cost":{"tokens":${seq * 13},"usd":0.${(seq % 89) + 11}5},"files":["src/a_${seq % 100}.rs","src/b.rs"],"note":"${note}"}`,
      seq % 3 ? 'task.completed' : 'task.started',
      `task-${seq % 500}`,
    );
  }
}
