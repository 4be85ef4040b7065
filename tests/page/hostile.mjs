// Evidence of somebody who wants the page, or the terminal, to do something for them.

import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { waybill } from '../wasm/cases.mjs';
import { Chain } from '../wasm/load.mjs';

export const MARKUP = '<img src=x onerror=alert(1)><script>alert(2)</script>';
// Right-to-left override, an escape sequence, a C1 control, a zero-width space.
export const MISLEADING = 'a\u202eb\u001b[31mc\u009bd\u200be';
export const MISLEADING_SHOWN = 'a\\u{202e}b\\u{1b}[31mc\\u{9b}d\\u{200b}e';
export const LONG = 'x'.repeat(1 << 20);

const TEXTS = [MARKUP, MISLEADING, LONG, "'\"><svg onload=alert(3)>", '</textarea></title></style>'];

/** A folder full of it. */
export function hostile(scratch) {
  const folder = join(scratch, 'hostile');
  const write = (path, bytes) => {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), bytes);
  };
  write('ledger.jsonl', ledger('goal-1', (chain, text) => chain.row(`{"note":${ascii(text)}}`, 'task.started', 'task-1')));
  write('kinds.jsonl', ledger('goal-2', (chain, text) => chain.row('{}', ascii(text).slice(1, -1), 'task-1')));
  write('tasks.jsonl', ledger('goal-3', (chain, text) => chain.row('{}', 'task.started', ascii(text).slice(1, -1))));
  write('journal.jsonl', journal());
  write(`${MARKUP.replaceAll('/', '')}.jsonl`, 'no ledger\n');
  write('b\u202egnp.jsonl', 'no ledger\n');
  return folder;
}

function ledger(run, row) {
  const chain = new Chain();
  return [chain.row(`{"run_id":"${run}"}`), ...TEXTS.map((text) => row(chain, text))].join('');
}

function journal() {
  let prev = '';
  const rows = TEXTS.map((text, index) => {
    const payload = { data: text, event: text };
    const payloadHash = sha256(`{"data":${ascii(text)},"event":${ascii(text)}}`);
    const eventHash = sha256(`{"event_type":${ascii(text)},"index":${index},"payload_hash":"${payloadHash}","prev_hash":"${prev}"}`);
    const row = `{"ts":1795976964.5,"elapsed_s":1,"index":${index},"event":${ascii(payload.event)},"prev_hash":"${prev}","payload_hash":"${payloadHash}","event_hash":"${eventHash}","data":${ascii(payload.data)}}\n`;
    prev = eventHash;
    return row;
  });
  return rows.join('');
}

/** A project whose stalled worker has a name to run, signed as anything else is. */
export function hostileReceipt(scratch) {
  const folder = join(scratch, 'hostile-project');
  mkdirSync(folder, { recursive: true });
  const env = { PATH: process.env.PATH, HOME: folder, BERNSTEIN_AUDIT_KEY_PATH: join(folder, 'audit.key') };
  const run = (args, input) => {
    const ran = spawnSync(waybill(), args, { cwd: folder, env, input, encoding: 'utf8' });
    if (ran.status !== 0) throw new Error(`waybill ${args.join(' ')}: ${ran.stderr}`);
  };
  run(['ledger', 'open', 'goal-42', '--goal', MARKUP]);
  run(['journal', 'record', 'goal-42', '--event', 'worker.started', '--data', JSON.stringify({ note: MARKUP })]);
  run(['keys', 'init']);
  run(['escalation', 'emit', 'goal-42', '--worker', MARKUP, '--session', MISLEADING, '--reason', 'heartbeat_stale', '--budget', '2']);
  return folder;
}

/** JSON text as the formats have it: ASCII only. */
function ascii(text) {
  return JSON.stringify(text).replace(/[\u007f-\uffff]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function sha256(text) {
  return createHash('sha256').update(text).digest('hex');
}
