// The worker of the served page: a module, which fetches the verifier from beside it.

import { initSync } from './pkg/waybill_wasm.js';
import { check } from './checking.js';

self.onmessage = async ({ data }) => {
  try {
    const answer = await fetch(new URL('./pkg/waybill_wasm_bg.wasm', import.meta.url));
    initSync({ module: await answer.arrayBuffer() });
  } catch (error) {
    self.postMessage({ error: `the verifier can't be loaded: ${error.message}` });
    return;
  }
  await check(data, (message, transfer = []) => self.postMessage(message, transfer));
};
