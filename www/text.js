// Text from the evidence, safe to show, and elements that hold it: nothing is ever parsed as HTML.

// Control characters, and those that reorder or hide text; as the command escapes them.
const HIDES =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}\ud800-\udfff]/gu;

/** The text with what could mislead its reader as `\u{…}`. */
export function escape(text) {
  return String(text).replace(HIDES, (found) => `\\u{${found.codePointAt(0).toString(16)}}`);
}

/** The text, safe, and no longer than `length` characters. */
export function shown(text, length = 400) {
  const whole = String(text);
  return whole.length > length ? `${escape(whole.slice(0, length - 1)).replace(/\\u\{d[89ab]..\}$/, '')}…` : escape(whole);
}

/** An element with attributes and children; text becomes text nodes, escaped and cut. */
export function el(name, attributes, ...children) {
  return fill(document.createElement(name), attributes, children);
}

/** The same, of SVG. */
export function svg(name, attributes, ...children) {
  return fill(document.createElementNS('http://www.w3.org/2000/svg', name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes ?? {})) {
    if (value === true) element.setAttribute(key, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(key, value);
  }
  for (const child of children.flat()) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : shown(child, 2000));
  }
  return element;
}

// Hashes, commits' ids and fingerprints; and what the verifier's sentences quote.
const MARKED = /(?:sha256:)?\b[0-9a-f]{64}\b|\b[0-9a-f]{40}\b|SHA256:[A-Za-z0-9+/]{43}|`[a-z_]+`/g;

/** A sentence whose hashes can be copied. */
export function sentence(text) {
  const whole = shown(text, 2000);
  const parts = [];
  let from = 0;
  for (const { 0: found, index } of whole.matchAll(MARKED)) {
    parts.push(whole.slice(from, index), found[0] === '`' ? el('code', null, found.slice(1, -1)) : hashed(found));
    from = index + found.length;
  }
  parts.push(whole.slice(from));
  return parts.filter((part) => part !== '');
}

/** A hash in full, with a button that copies it. */
export function hashed(text) {
  const whole = shown(text);
  return el('span', { class: 'hash' }, el('code', null, whole), copier(whole));
}

/** A hash of which the start is seen; all of it is there to be copied. */
export function hashStart(text) {
  const whole = shown(text);
  return el('span', { class: 'hash start' }, el('code', { title: whole }, whole), copier(whole));
}

function copier(text) {
  const name = `Copy ${text.slice(0, 16)}`;
  const button = el('button', { type: 'button', class: 'copy', 'aria-label': name, title: 'Copy', 'data-copy': text });
  button.append(
    svg(
      'svg',
      { viewBox: '0 0 16 16', 'aria-hidden': 'true' },
      svg('path', { d: 'M5.5 5.5h8v8h-8z' }),
      svg('path', { d: 'M10.5 5.5v-3h-8v8h3' }),
    ),
  );
  return button;
}

/** Seconds since 1970, as digits, as a time of UTC; other text as it is. */
export function time(text) {
  const raw = shown(text, 40);
  const date = /^\d{1,11}(\.\d+)?$/.test(raw) ? new Date(Number(raw) * 1000) : new Date(NaN);
  const legible = Number.isNaN(date.getTime()) ? raw : `${date.toISOString().slice(0, 19).replace('T', ' ')}Z`;
  return el('span', { class: 'time', title: raw }, legible);
}

/** A count of bytes for people. */
export function bytes(count) {
  if (count < 1e3) return `${count} bytes`;
  if (count < 1e6) return `${(count / 1e3).toFixed(0)} kB`;
  return count < 1e9 ? `${(count / 1e6).toFixed(count < 1e7 ? 1 : 0)} MB` : `${(count / 1e9).toFixed(2)} GB`;
}

/** A word in its number. */
export function counted(count, one) {
  const many = one.endsWith('y') ? `${one.slice(0, -1)}ies` : `${one}s`;
  return `${count} ${String(count) === '1' ? one : many}`;
}

/** The order of whole numbers that are text, of any length. */
export function byNumber(a, b) {
  return a.length - b.length || (a < b ? -1 : a > b ? 1 : 0);
}
