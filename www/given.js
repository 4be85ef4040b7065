// What was given, as the command takes it: files and folders, and what a report calls each.
//
// A subject is `{ name, file }`, or a folder `{ name, tree: [{ path, file }] }` with paths
// relative to it. `plan` says which files are read, in which order and under which names; it
// must stay what `waybill verify` does (writer/src/cli/verify/evidence.rs).

const MAX_FILES = 100_000;
const MAX_DEPTH = 16;
const PROJECT = '.sdd';

/** The files to read, and how the whole is called. */
export function plan(subjects) {
  const names = new Set();
  const free = (name) => {
    let taken = name;
    for (let number = 2; names.has(taken); number += 1) taken = `${name} (${number})`;
    names.add(taken);
    return taken;
  };
  const files = [];
  const loose = (name) => subjects.find((subject) => subject.file && subject.name === name);
  // A spine's head file belongs to it.
  const head = loose('spine.jsonl') && loose('spine.head');
  const given = subjects.filter((subject) => subject !== head);
  const [only] = given;
  for (const subject of given) {
    if (subject.tree) {
      const root = given.length === 1 ? '' : `${free(subject.name)}/`;
      for (const { path, file } of inFolder(subject, root)) files.push({ path: free(path), file, inFolder: true });
    } else {
      files.push({ path: free(subject.name), file: subject.file });
      if (head && subject.name === 'spine.jsonl') files.push({ path: free(head.name), file: head.file });
    }
  }
  if (files.length > MAX_FILES) throw new Error(tooMany());
  return {
    name: given.length === 1 ? only.name : `${given.length} subjects`,
    folder: given.length === 1 && Boolean(only.tree),
    subjects: given.length,
    files,
  };
}

/** The evidence in a folder: of a project that is in it, or all of its files. */
function inFolder({ name, tree }, root) {
  // Of a project only its evidence; of an unpacked archive everything.
  const unpacked = tree.some(({ path }) => path === 'MANIFEST.json');
  const inner = name !== PROJECT && !unpacked && tree.some(({ path }) => path.startsWith(`${PROJECT}/`));
  const start = inner || (name === PROJECT && root === '') ? `${root}${PROJECT}/` : root;
  return tree
    .filter(({ path }) => !inner || path.startsWith(`${PROJECT}/`))
    .map(({ path, file }) => ({ parts: path.split('/').slice(inner ? 1 : 0), file }))
    .filter(({ parts }) => parts.length <= MAX_DEPTH + 1 && !parts.slice(0, -1).some(isHidden))
    .sort((a, b) => byParts(a.parts, b.parts))
    .map(({ parts, file }) => ({ path: start + parts.join('/'), file }));
}

function isHidden(name) {
  return name.startsWith('.') && name !== PROJECT;
}

function byParts(a, b) {
  for (let index = 0; index < a.length && index < b.length; index += 1) {
    const order = byCodePoints(a[index], b[index]);
    if (order !== 0) return order;
  }
  return a.length - b.length;
}

/** The order of the names' bytes in UTF-8. */
function byCodePoints(a, b) {
  const left = [...a];
  const right = [...b];
  for (let index = 0; index < left.length && index < right.length; index += 1) {
    const order = left[index].codePointAt(0) - right[index].codePointAt(0);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

function tooMany() {
  return `there are more than ${MAX_FILES.toLocaleString('en')} files: give the ones that are evidence`;
}

/** The subjects in a file input's list. */
export function fromInput(list) {
  const folders = new Map();
  const subjects = [];
  for (const file of list) {
    const [name, ...rest] = file.webkitRelativePath.split('/');
    if (rest.length === 0) {
      subjects.push({ name: file.name, file });
      continue;
    }
    if (!folders.has(name)) {
      const folder = { name, tree: [] };
      folders.set(name, folder);
      subjects.push(folder);
    }
    folders.get(name).tree.push({ path: rest.join('/'), file });
  }
  return subjects;
}

/** The subjects in what was dropped. Must be called in the event itself. */
export function fromTransfer(transfer) {
  const items = [...transfer.items].filter((item) => item.kind === 'file');
  // All three end with the event.
  const found = items.map((item) => ({
    entry: item.webkitGetAsEntry?.(),
    handle: item.getAsFileSystemHandle?.().catch(() => null),
    file: item.getAsFile(),
  }));
  return Promise.all(found.map(subject));
}

async function subject({ entry, handle, file }) {
  if (!entry?.isDirectory) return { name: file.name, file };
  const tree = [];
  try {
    await walk(fromEntry(entry), '', 0, tree);
  } catch (error) {
    // Chromium reads no entries on a page from disk, but it does read handles.
    const other = await handle;
    if (error.name !== 'EncodingError' || tree.length > 0) throw error;
    if (!other) throw new Error('this browser reads no dropped folders on a page from disk: take "Choose a folder"');
    await walk(fromHandle(other), '', 0, tree);
  }
  return { name: entry.name, tree };
}

async function walk(folder, root, depth, tree) {
  const items = await folder.items();
  const project = depth === 0 && folder.name !== PROJECT && items.find((item) => item.items && item.name === PROJECT);
  for (const item of project ? [project] : items) {
    const path = root + item.name;
    if (item.items) {
      // What the command does not read is not looked into.
      if (depth < MAX_DEPTH + 1 && !isHidden(item.name)) await walk(item, `${path}/`, depth + 1, tree);
    } else {
      if (tree.length >= MAX_FILES * 2) throw new Error(tooMany());
      tree.push({ path, file: await item.file() });
    }
  }
}

/** A folder or file of the older interface, which every browser has. */
function fromEntry(entry) {
  if (!entry.isDirectory) return { name: entry.name, file: () => new Promise((give, fail) => entry.file(give, fail)) };
  return { name: entry.name, items: async () => (await listed(entry)).map(fromEntry) };
}

/** All of a folder's entries: a reader gives about a hundred at a time. */
async function listed(folder) {
  const reader = folder.createReader();
  const entries = [];
  for (;;) {
    const more = await new Promise((give, fail) => reader.readEntries(give, fail));
    if (more.length === 0) return entries;
    entries.push(...more);
  }
}

/** A folder or file of the newer one. */
function fromHandle(handle) {
  if (handle.kind !== 'directory') return { name: handle.name, file: () => handle.getFile() };
  const items = async () => {
    const all = [];
    for await (const item of handle.values()) all.push(fromHandle(item));
    return all;
  };
  return { name: handle.name, items };
}
