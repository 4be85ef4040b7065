// Files of the workspace. No link is followed: what a pull request points to is not evidence.

import { closeSync, constants, fstatSync, lstatSync, openSync, readFileSync, readSync, readdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Failure, input, workspace } from './runner.js';

const MAX_DEPTH = 16;
const MAX_FILES = 100_000;
const MAX_FILE = 16 << 20;
const PIECE = 1 << 20;

/** A file that an input names; nothing if the input is not given. */
export function given(name) {
  const path = input(name);
  if (!path) return undefined;
  const bytes = read(resolve(workspace(), path));
  if (!bytes) throw new Failure(1, `${path} is not there: name the file that is`);
  return bytes;
}

/** A file of what asks to be merged; nothing if it has no such file. */
export function now(top, path) {
  const parts = path.split('/');
  for (let depth = 1; depth < parts.length; depth += 1) {
    const folder = join(top, ...parts.slice(0, depth));
    if (lstatSync(folder, { throwIfNoEntry: false })?.isSymbolicLink()) throw new Failure(74, `${folder} is a link`);
  }
  return read(join(top, path));
}

/** Gives the gate the files below `.sdd` that it takes. */
export function feed(gate, folder) {
  const files = [];
  const root = join(folder, '.sdd');
  if (lstatSync(root, { throwIfNoEntry: false })?.isDirectory()) walk(Buffer.from(root), '.sdd/', 0, files);
  const piece = Buffer.allocUnsafe(PIECE);
  for (const { path, name } of files) {
    if (!gate.takes(name)) continue;
    const file = open(path, name);
    try {
      gate.open(name);
      for (let size; (size = readSync(file, piece)) > 0; ) gate.push(piece.subarray(0, size));
      gate.close();
    } finally {
      closeSync(file);
    }
  }
}

function walk(folder, root, depth, files) {
  const entries = readdirSync(folder, { withFileTypes: true, encoding: 'buffer' });
  for (const entry of entries.sort((left, right) => Buffer.compare(left.name, right.name))) {
    const path = Buffer.concat([folder, Buffer.from('/'), entry.name]);
    const part = entry.name.toString('utf8');
    if (entry.isDirectory() && depth < MAX_DEPTH && !part.startsWith('.')) {
      walk(path, `${root}${part}/`, depth + 1, files);
    } else if (entry.isFile()) {
      if (files.length >= MAX_FILES) throw new Failure(64, `.sdd has more than ${MAX_FILES} files`);
      files.push({ path, name: root + part });
    }
  }
}

function read(path) {
  let file;
  try {
    file = open(path, path);
  } catch (error) {
    if (error.cause?.code === 'ENOENT') return undefined;
    throw error;
  }
  try {
    if (fstatSync(file).size > MAX_FILE) throw new Failure(74, `${path} has more than ${MAX_FILE} bytes`);
    return readFileSync(file);
  } finally {
    closeSync(file);
  }
}

function open(path, name) {
  const failed = (why, cause) => Object.assign(new Failure(74, `can't read ${name}: ${why}`), { cause });
  let file;
  try {
    file = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    throw failed(error.code, error);
  }
  if (!fstatSync(file).isFile()) {
    closeSync(file);
    throw failed('not a regular file');
  }
  return file;
}
