// How the single file starts its worker: from its own text, without a request.

/** A worker that does one job. */
export function start(job) {
  const text = (id) => document.getElementById(id).textContent;
  const url = URL.createObjectURL(new Blob([text('worker-script')], { type: 'text/javascript' }));
  const worker = new Worker(url);
  URL.revokeObjectURL(url);
  worker.postMessage({ wasm: text('verifier').trim(), job });
  return worker;
}
