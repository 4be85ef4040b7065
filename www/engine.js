// How the served page starts its worker. The single file has engine.single.js instead.

/** A worker that does one job. */
export function start(job) {
  const worker = new Worker(new URL('./worker.js', import.meta.url), { type: 'module' });
  worker.postMessage(job);
  return worker;
}
