// In the worker: reads the files in pieces and hands them to the verifier.

import { Verifier, isEvidence, version } from './pkg/waybill_wasm.js';
import { legible } from './report.js';

// How often the page hears of progress, in milliseconds.
const EVERY = 100;
const PIECE = 1 << 20;
// There is room for more, where the browser fills it by itself: fewer turns for a large file.
const ROOM = 4 * PIECE;

/** Does one job, and tells `post` of its progress and its end. */
export async function check(job, post) {
  try {
    const files = job.files.filter(({ path, inFolder }) => !inFolder || isEvidence(path));
    const options = {
      ...job.options,
      folder: job.folder,
      several: job.subjects > 1 || files.length > 2,
      shown: true,
    };
    const verifier = new Verifier(job.name, JSON.stringify(options));
    if (job.key) verifier.key(new Uint8Array(await job.key.arrayBuffer()));
    await read(verifier, files, post);
    const report = verifier.finish();
    const decoder = new TextDecoder();
    post(
      {
        version: version(),
        report: report.buffer,
        legible: legible(decoder.decode(report)),
        view: legible(decoder.decode(verifier.view())),
      },
      [report.buffer],
    );
  } catch (error) {
    post({ error: String(error?.message ?? error) });
  }
}

async function read(verifier, files, post) {
  const total = files.reduce((sum, { file }) => sum + file.size, 0);
  let done = 0;
  let told = performance.now();
  post({ done, total });
  for (const { path, file } of files) {
    verifier.open(path);
    try {
      for await (const piece of pieces(file)) {
        verifier.push(piece);
        done += piece.length;
        if (performance.now() - told > EVERY) {
          told = performance.now();
          post({ done, total });
        }
      }
    } catch (error) {
      throw new Error(`${path} can't be read: ${error.message ?? error}`);
    }
    verifier.close();
  }
}

/** The file's bytes in small pieces, each to be used before the next is asked for. */
async function* pieces(file) {
  const stream = file.stream();
  let room;
  try {
    // One buffer for all: new ones pile up by hundreds of megabytes before they are collected.
    room = stream.getReader({ mode: 'byob' });
  } catch {
    // Not every browser can; then the pieces are as they come.
    for (const reader = stream.getReader(); ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      for (let at = 0; at < value.length; at += PIECE) yield value.subarray(at, at + PIECE);
    }
  }
  for (let buffer = new ArrayBuffer(Math.min(ROOM, file.size) || 1); ; ) {
    const { value, done } = await room.read(new Uint8Array(buffer));
    if (done) return;
    yield value;
    buffer = value.buffer;
  }
}
