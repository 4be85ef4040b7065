// The worker of the single file: a classic script, which is sent the verifier.

import { initSync } from './pkg/waybill_wasm.js';
import { check } from './checking.js';

self.onmessage = async ({ data: { wasm, job } }) => {
  initSync({ module: Uint8Array.from(atob(wasm), (character) => character.charCodeAt(0)) });
  await check(job, (message, transfer = []) => self.postMessage(message, transfer));
};
