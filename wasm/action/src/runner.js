// What the runner gives to an action, and takes from it.

import { randomUUID } from 'node:crypto';
import { appendFileSync, closeSync, constants, openSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, resolve, sep } from 'node:path';

/** Why nothing could be judged: the command's exit code, and a line. */
export class Failure extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/** An input, trimmed; empty if it was not given. */
export function input(name) {
  return (process.env[`INPUT_${name.toUpperCase()}`] ?? '').trim();
}

/** An input that is a list, by commas, spaces or lines. */
export function list(name) {
  return input(name).split(/[\s,]+/).filter(Boolean);
}

export function workspace() {
  return process.env.GITHUB_WORKSPACE || process.cwd();
}

/** Gives an output to later steps. What ends it is not known before, so no value can end it. */
export function output(name, value) {
  const file = process.env.GITHUB_OUTPUT;
  if (!file) return;
  const end = `end-${randomUUID()}`;
  appendFileSync(file, `${name}<<${end}\n${value}\n${end}\n`);
}

export function summary(markdown) {
  const file = process.env.GITHUB_STEP_SUMMARY;
  if (file) appendFileSync(file, markdown);
}

/** Prints what is safe to print: the verifier's own lines. */
export function print(text) {
  process.stdout.write(text);
}

/** Prints a line that can hold anything, and be no command to the runner. */
export function say(message) {
  print(`waybill: ${line(message)}\n`);
}

/** Says that something is not as it should be, and that the check goes on. */
export function warn(message) {
  print(`::warning title=waybill::${data(message)}\n`);
}

/** Says why nothing could be judged; gives the exit code. */
export function failed(error) {
  const code = error instanceof Failure ? error.code : 70;
  const message = error instanceof Failure ? error.message : `internal error: ${error?.message ?? error}`;
  print(`::error title=waybill::${data(message)}\n`);
  output('verdict', '');
  output('exit-code', code);
  return code;
}

function line(text) {
  const plain = String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' ').replaceAll('##[', '# #[');
  return plain.length > 1000 ? `${plain.slice(0, 1000)}…` : plain;
}

function data(text) {
  return line(text).replaceAll('%', '%25');
}

/** Writes a file that an input names, or `otherwise`; gives its path, or nothing if none is wanted.
 *
 *  A pull request may have put a link there: what is there is taken away and not written through. */
export function report(name, bytes, otherwise = '') {
  const path = input(name) || otherwise;
  if (!path) return '';
  const asked = resolve(workspace(), path);
  let at;
  try {
    at = join(realpathSync(dirname(asked)), basename(asked));
  } catch {
    throw new Failure(74, `${name}: the folder of ${path} is not there`);
  }
  const roots = [workspace(), process.env.RUNNER_TEMP].filter(Boolean).map((root) => realpathSync(root) + sep);
  if (!roots.some((root) => at.startsWith(root))) {
    throw new Failure(64, `${name}: ${path} is neither in the workspace nor in the runner's folder for temporary files`);
  }
  try {
    rmSync(at, { force: true });
    const file = openSync(at, constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL, 0o644);
    try {
      writeFileSync(file, bytes);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    throw new Failure(74, `${name}: can't write ${path}: ${error.code ?? error.message}`);
  }
  return asked;
}
