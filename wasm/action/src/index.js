// The gate as a GitHub action: what `waybill check` does, on the verifier's WebAssembly.
//
// Nothing is judged here: this reads refs, objects and files, hands them in, and writes down what
// comes out. Nothing from the evidence is printed but what the verifier made safe to print.

import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Gate, initSync } from './waybill_wasm.js';
import { Base } from './base.js';
import { Git } from './git.js';
import { SideRefs } from './fetch.js';
import { Objects } from './objects.js';
import { Failure, failed, input, list, output, print, report, say, summary } from './runner.js';
import { feed, now, given } from './workspace.js';

const HEADS = '.waybill/heads.json';
const POLICY = '.waybill/policy.toml';

try {
  process.exitCode = await main();
} catch (error) {
  process.exitCode = failed(error);
}

async function main() {
  const module = new WebAssembly.Module(readFileSync(fileURLToPath(new URL('waybill_wasm_bg.wasm', import.meta.url))));
  initSync({ module });
  const git = await Git.at(input('working-directory') || '.');
  const side = await SideRefs.of(git);
  const base = await Base.of(git, side);
  const gate = gateOf(
    given('policy') ?? (await base.file(POLICY)),
    given('heads') ?? (await base.file(HEADS)),
    now(git.top, POLICY),
    now(git.top, HEADS),
  );
  await refs(gate, git, side);
  const key = process.env.BERNSTEIN_AUDIT_KEY_PATH;
  if (key) gate.key(readFileSync(key));
  feed(gate, git.folder);
  const bytes = Buffer.from(gate.finish());
  said(gate, bytes);
  return JSON.parse(bytes.toString('utf8')).exit_code;
}

function gateOf(policy, baseHeads, newPolicy, newHeads) {
  try {
    return new Gate(policy, baseHeads, newPolicy, newHeads, list('require'));
  } catch (error) {
    throw new Failure(64, error.message);
  }
}

/** Gives the gate each anchor, and what was set aside. */
async function refs(gate, git, side) {
  const objects = new Objects(git);
  const shallow = git.shallow();
  const take = async (kind, { name, run, commit }) => {
    await objects.gather(commit);
    gate[kind](name, run, commit, shallow, (id) => objects.get(id));
    objects.clear();
  };
  try {
    for (const found of await side.anchors()) {
      if (!gate.wants(found.run)) continue;
      if (found.commit) await take('anchor', found);
      else gate.unreadable(found.run);
    }
    for (const found of await side.asides()) {
      if (gate.wants(found.run)) await take('aside', found);
    }
  } finally {
    objects.end();
  }
}

/** Says what came out, in all the ways that were asked for. */
function said(gate, bytes) {
  const { verdict, exit_code: code, facts, checks, subjects = [] } = JSON.parse(bytes.toString('utf8'));
  print(gate.github());
  summary(gate.markdown());
  const first = [checks, ...subjects.map((subject) => subject.checks)].flat().find((check) => check.status === 'fail');
  const outputs = {
    verdict,
    'exit-code': code,
    entries: facts.entries,
    head: facts.head_hash ?? '',
    signer: facts.signers.length === 1 ? facts.signers[0] : '',
    // Names of ours only: whoever puts an output into a script puts no evidence there.
    'first-failure': first ? [first.id, first.fault].filter(Boolean).join(': ') : '',
    'report-file': report('report-file', bytes, join(process.env.RUNNER_TEMP || '.', 'waybill-report.json')),
    'sarif-file': report('sarif-file', Buffer.from(gate.sarif())),
    'junit-file': report('junit-file', Buffer.from(gate.junit(), 'utf8')),
  };
  for (const [name, value] of Object.entries(outputs)) output(name, value);
  say(`exit code ${code}`);
}
