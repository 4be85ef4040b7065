// How the page bears a large ledger: `node tests/page/bench.mjs [ENTRIES]`.
//
// Prints the time against bare SHA-256 in the same page, the renderer's peak memory, the longest
// gap in which the page did nothing else, and how long a cancel takes.

import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { root, rows } from '../wasm/load.mjs';
import { cleanUp, fromDisk, launch } from './harness.mjs';

const ENTRIES = Number(process.argv[2] ?? 1_000_000);
const SAMPLE = Math.min(ENTRIES, 200_000);
const ROUNDS = 5;

const folder = mkdtempSync(join(tmpdir(), 'waybill-bench-'));
const browser = await launch();
try {
  const large = write('large.jsonl', ENTRIES);
  const sample = write('sample.jsonl', SAMPLE);
  // Bare SHA-256 is no part of the page: its policy would refuse it.
  const context = await browser.newContext({ bypassCSP: true });
  const page = await context.newPage();
  await page.goto(fromDisk);
  await page.evaluate(watchGaps);
  await page.evaluate(watchChecks);
  const idle = await memory();
  let peak = idle;
  const sampling = setInterval(async () => (peak = highest(peak, await memory())), 50);

  // In turns, so that a busy machine slows all alike.
  let check = Infinity;
  let bare = Infinity;
  let gap = 0;
  for (let round = 0; round < ROUNDS; round += 1) {
    await page.evaluate(() => { window.longestGap = 0; });
    await page.setInputFiles('#files', large);
    check = Math.min(check, (await page.evaluate(() => window.checked)) / 1000);
    gap = Math.max(gap, await page.evaluate(() => window.longestGap));
    if (round === 0) clearInterval(sampling);
    bare = Math.min(bare, await bareSeconds(page, sample));
  }
  const said = await page.innerText('.summary');
  if (!said.startsWith(`${ENTRIES} entries hold`)) throw new Error(said);

  await page.setInputFiles('#files', large);
  await page.locator('#progress:not([hidden])').waitFor();
  const cancelled = await page.evaluate(() => {
    const from = performance.now();
    document.getElementById('cancel').click();
    return document.getElementById('progress').hidden ? performance.now() - from : NaN;
  });

  const size = statSync(large).size;
  const rate = size / 1e6 / check;
  const bareRate = statSync(sample).size / 1e6 / bare;
  console.log(`in the page: ${ENTRIES} entries, ${(size / 1e6).toFixed(0)} MB, ${await browser.version()}`);
  console.log(`checked, with reading and showing:       ${check.toFixed(2)} s, ${rate.toFixed(0)} MB/s of ledger`);
  console.log(`bare SHA-256 in the page, preimages:     ${bareRate.toFixed(0)} MB/s of ledger`);
  console.log(`checking / bare SHA-256 there:           ${(rate / bareRate).toFixed(2)} (at least 0.5)`);
  console.log(`renderer, peak memory:                   ${mega(peak.all)} MB, of it its own ${mega(peak.own)} MB (under 300); idle ${mega(idle.all)} and ${mega(idle.own)} MB`);
  console.log(`longest gap of the main thread:          ${gap.toFixed(0)} ms (under 100)`);
  console.log(`cancelled in:                            ${cancelled.toFixed(0)} ms`);
} finally {
  await browser.close();
  rmSync(folder, { recursive: true });
  cleanUp();
}

function write(name, entries) {
  const path = join(folder, name);
  const file = openSync(path, 'w');
  let held = [];
  let count = 0;
  for (const row of rows()) {
    held.push(row);
    count += 1;
    if (count % 10_000 === 0 || count === entries) {
      writeSync(file, held.join(''));
      held = [];
    }
    if (count === entries) break;
  }
  closeSync(file);
  return path;
}

/** Records the longest time between two turns of the main thread. */
function watchGaps() {
  const channel = new MessageChannel();
  let last = performance.now();
  window.longestGap = 0;
  channel.port1.onmessage = () => {
    const now = performance.now();
    window.longestGap = Math.max(window.longestGap, now - last);
    last = now;
    // Not in every turn: this must not slow the worker.
    setTimeout(() => channel.port2.postMessage(null), 4);
  };
  channel.port2.postMessage(null);
}

/** Records how long a check takes, from the choice of files to the verdict: `checked`, a promise. */
function watchChecks() {
  const result = document.getElementById('result');
  document.getElementById('files').addEventListener('change', () => {
    const from = performance.now();
    window.checked = new Promise((give) => {
      const seen = new MutationObserver(() => {
        if (result.hidden) return;
        seen.disconnect();
        requestAnimationFrame(() => give(performance.now() - from));
      });
      seen.observe(result, { attributes: true, attributeFilter: ['hidden'] });
    });
  }, { capture: true });
}

/** Hashes the sample's preimages in a worker of the page: seconds. */
async function bareSeconds(page, sample) {
  const glue = readFileSync(join(root, 'target/wasm/bare/bare.js'), 'utf8').replace(/^export (?=class|function)/gm, '').replace(/^export \{[^}]*\};\s*$/m, '').replaceAll('import.meta.url', "''");
  const wasm = readFileSync(join(root, 'target/wasm/bare/bare_bg.wasm')).toString('base64');
  await page.setInputFiles('#key', sample);
  const seconds = await page.evaluate(
    async ([script, module]) => {
      const run = `${script}
        onmessage = async ({ data: [file, module] }) => {
          initSync({ module: Uint8Array.from(atob(module), (one) => one.charCodeAt(0)) });
          const preimages = new Preimages(new Uint8Array(await file.arrayBuffer()));
          let best = Infinity;
          for (let round = 0; round < 3; round += 1) {
            const from = performance.now();
            preimages.hash();
            best = Math.min(best, (performance.now() - from) / 1000);
          }
          postMessage(best);
        };`;
      const worker = new Worker(URL.createObjectURL(new Blob([run])));
      const answer = await new Promise((give, fail) => {
        worker.onmessage = ({ data }) => give(data);
        worker.onerror = (event) => fail(new Error(event.message));
        worker.postMessage([document.getElementById('key').files[0], module]);
      });
      worker.terminate();
      return answer;
    },
    [glue, wasm],
  );
  await page.evaluate(() => document.getElementById('forget').click());
  return seconds;
}

/** The memory of the largest renderer: all that it has in memory, and what is not of files. */
async function memory() {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send('SystemInfo.getProcessInfo');
  await session.detach();
  const of = processInfo.filter(({ type }) => type === 'renderer').map(({ id }) => status(id));
  return of.reduce(highest, { all: 0, own: 0 });
}

function status(id) {
  let text;
  try {
    text = readFileSync(`/proc/${id}/status`, 'latin1');
  } catch {
    return { all: 0, own: 0 };
  }
  const field = (name) => 1024 * Number(text.match(new RegExp(`^${name}:\\s*(\\d+)`, 'm'))?.[1] ?? 0);
  return { all: field('VmRSS'), own: field('RssAnon') + field('RssShmem') };
}

function highest(a, b) {
  return { all: Math.max(a.all, b.all), own: Math.max(a.own, b.own) };
}

function mega(count) {
  return (count / 1e6).toFixed(0);
}
