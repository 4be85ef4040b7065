// Git objects, read by one `git cat-file --batch`.
//
// The verifier asks for one object at a time and can't wait, so what an anchor names is gathered
// before it is asked for: its commit, the anchors before it, their trees, and the files that an
// anchor has. What was not gathered is read when it is asked for, by a git of its own.

/** Anything larger than this is too large for the verifier: its bytes are not kept. */
const LARGEST = 256 << 20;
/** What is gathered of one anchor. */
const MAX_BYTES = 1 << 30;
const MAX_OBJECTS = 200_000;
const FILE = /^(?:LEDGER\.json|chunk-\d{6}\.jsonl)$/;

export class Objects {
  constructor(git) {
    this.git = git;
    this.clear();
    this.waiting = [];
    this.read = new Reader((found) => this.waiting.shift()?.(found));
  }

  clear() {
    this.known = new Map();
    this.bytes = 0;
  }

  end() {
    this.child?.stdin.end();
  }

  /** Gathers what a commit names. */
  async gather(commit) {
    this.start();
    let queue = [commit];
    const asked = new Set(queue);
    while (queue.length > 0) {
      const found = await Promise.all(queue.map((id) => this.ask(id)));
      const next = found.flatMap((object, index) => {
        if (object === undefined) return [];
        this.known.set(queue[index], object.bytes);
        this.bytes += object.bytes?.length ?? 0;
        return object.bytes ? named(object) : [];
      });
      queue = next.filter((id) => !asked.has(id) && asked.add(id));
      if (this.bytes > MAX_BYTES || asked.size > MAX_OBJECTS) return;
    }
  }

  /** An object with its header in front; nothing if there is none. */
  get(id) {
    if (this.known.has(id)) return this.known.get(id);
    const { stdout, error } = this.git.now(['cat-file', '--batch'], `${id}\n`);
    if (error && error.code !== 'ENOBUFS') throw error;
    let found;
    new Reader((object) => (found = object)).push(stdout);
    return found?.bytes;
  }

  ask(id) {
    return new Promise((done) => {
      this.waiting.push(done);
      if (this.child.exitCode === null && this.child.stdin.writable) this.child.stdin.write(`${id}\n`);
      else this.drop();
    });
  }

  start() {
    if (this.child) return;
    this.child = this.git.start(['cat-file', '--batch']);
    this.child.stdout.on('data', (piece) => this.read.push(piece));
    this.child.stdin.on('error', () => {});
    // What was not answered is asked for again, when it is needed.
    this.child.on('error', () => this.drop());
    this.child.on('close', () => this.drop());
  }

  drop() {
    for (const done of this.waiting.splice(0)) done(undefined);
  }
}

/** Takes what `cat-file --batch` prints: `<id> <kind> <size>\n<bytes>\n`, or `<id> missing\n`. */
class Reader {
  constructor(take) {
    this.take = take;
    this.line = [];
    this.body = undefined;
  }

  push(piece) {
    let at = 0;
    while (at < piece.length) at = this.body ? this.more(piece, at) : this.header(piece, at);
  }

  header(piece, at) {
    const end = piece.indexOf(10, at);
    this.line.push(piece.subarray(at, end < 0 ? piece.length : end));
    if (end < 0) return piece.length;
    const [, kind, size] = Buffer.concat(this.line).toString('latin1').split(' ');
    this.line = [];
    if (size === undefined || !/^\d+$/.test(size)) {
      this.take({ kind: 'missing', bytes: undefined });
    } else {
      const length = Number(size);
      this.body = { kind, left: length + 1, kept: length <= LARGEST, pieces: [Buffer.from(`${kind} ${size}\0`, 'latin1')] };
    }
    return end + 1;
  }

  more(piece, at) {
    const { body } = this;
    const end = Math.min(piece.length, at + body.left);
    body.left -= end - at;
    // Behind the bytes there is a newline, which is not kept.
    const bytes = piece.subarray(at, body.left === 0 ? end - 1 : end);
    if (body.kept && bytes.length > 0) body.pieces.push(bytes);
    if (body.left === 0) {
      this.body = undefined;
      this.take({ kind: body.kind, kept: body.kept, bytes: Buffer.concat(body.pieces) });
    }
    return end;
  }
}

/** The ids that an object names, as far as an anchor has such. */
function named({ kind, bytes }) {
  const body = bytes.subarray(bytes.indexOf(0) + 1);
  if (kind === 'commit') {
    const head = body.toString('latin1', 0, 64 << 10).split('\n\n', 1)[0];
    return [...head.matchAll(/^(?:tree|parent) ([0-9a-f]{40})$/gm)].map(([, id]) => id);
  }
  return kind === 'tree' ? [...files(body)] : [];
}

function* files(tree) {
  for (let at = 0; at < tree.length; ) {
    const space = tree.indexOf(32, at);
    const end = tree.indexOf(0, space);
    if (space < 0 || end < 0 || end + 21 > tree.length) return;
    if (FILE.test(tree.toString('latin1', space + 1, end))) yield tree.toString('hex', end + 1, end + 21);
    at = end + 21;
  }
}
