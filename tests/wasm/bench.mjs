// How fast a ledger is checked in WebAssembly, beside bare SHA-256: `node tests/wasm/bench.mjs [MB]`.

import { createHash } from 'node:crypto';
import { ledger, load } from './load.mjs';

const PIECE = 1 << 20;
const ROUNDS = 7;

const { Verifier } = await load('pkg', 'waybill_wasm');
const { Preimages } = await load('bare', 'bare');

const bytes = ledger(Number(process.argv[2] ?? 128) * 1e6);
const preimages = new Preimages(bytes);
const hashed = Number(preimages.length());

// In turns, so that a busy machine slows all alike.
const [verify, bare, whole] = best([
  () => {
    const verifier = new Verifier('bench');
    verifier.open('bench');
    for (let at = 0; at < bytes.length; at += PIECE) verifier.push(bytes.subarray(at, at + PIECE));
    verifier.close();
    const report = JSON.parse(Buffer.from(verifier.finish()).toString());
    if (report.verdict !== 'consistent') throw new Error(report.summary);
    verifier.free();
  },
  () => preimages.hash(),
  () => createHash('sha256').update(bytes).digest(),
]);

console.log(`ledger: ${show(bytes.length)} MB, of which the hashes cover ${show(hashed)} MB`);
console.log(`checked in WebAssembly:                  ${rate(bytes.length, verify)} of ledger`);
console.log(`bare SHA-256 in WebAssembly, preimages:  ${rate(bytes.length, bare)} of ledger, ${rate(hashed, bare)} hashed`);
console.log(`Node's own SHA-256, whole file:          ${rate(bytes.length, whole)}`);
console.log(`checking / bare SHA-256 there:           ${(bare / verify).toFixed(2)} (at least 0.5)`);

/** The fastest of some rounds of each, in seconds. */
function best(works) {
  const fastest = works.map(() => Infinity);
  for (let round = 0; round < ROUNDS; round += 1) {
    works.forEach((work, index) => {
      const from = performance.now();
      work();
      fastest[index] = Math.min(fastest[index], (performance.now() - from) / 1000);
    });
  }
  return fastest;
}

function show(count) {
  return (count / 1e6).toFixed(0);
}

function rate(count, seconds) {
  return `${(count / 1e6 / seconds).toFixed(0)} MB/s`.padStart(9);
}
