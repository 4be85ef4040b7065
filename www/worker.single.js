// The worker of the single file: a classic script, which is sent the verifier.

import { initSync } from './pkg/waybill_wasm.js';
import { check } from './checking.js';

self.onmessage = async ({ data: { wasm, job } }) => {
  initSync({ module: decoded(wasm) });
  await check(job, (message, transfer = []) => self.postMessage(message, transfer));
};

function decoded(base64) {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let at = 0; at < bytes.length; at += 1) bytes[at] = binary.charCodeAt(at);
  return bytes;
}
