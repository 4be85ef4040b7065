// Builds the page, without dependencies: `node tools/page.mjs` (tools/page.sh sees to what it needs).
//
//   target/page/site/                 www/ with its examples and the verifier: to serve
//   target/page/waybill-verify.html   all of that in one file, which opens from disk
//
// In the single file the modules of each script stand in one scope, in the order of their
// imports, without `import` and `export`; two modules must not use one name. The same sources
// give the same bytes.

import { createHash } from 'node:crypto';
import { cpSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('../', import.meta.url));
const out = join(root, 'target/page');
const site = join(out, 'site');
const vectors = join(root, 'tests/vectors');

rmSync(site, { recursive: true, force: true });
mkdirSync(site, { recursive: true });
cpSync(join(root, 'www'), site, { recursive: true, filter: (path) => basename(path) !== 'package.json' });
mkdirSync(join(site, 'pkg'));
for (const name of ['waybill_wasm.js', 'waybill_wasm_bg.wasm']) {
  cpSync(join(root, 'target/wasm/pkg', name), join(site, 'pkg', name));
}
writeFileSync(join(site, 'examples.js'), examples());

const file = single();
writeFileSync(join(out, 'waybill-verify.html'), file);
const sha256 = createHash('sha256').update(file).digest('hex');
console.log(`target/page/waybill-verify.html: ${Buffer.byteLength(file)} bytes, sha256 ${sha256}`);

/** The single file's text. */
function single() {
  const page = wrapped(joined('main.js', { './engine.js': 'engine.single.js' }));
  const worker = wrapped(joined('worker.single.js', {}));
  const wasm = readFileSync(join(site, 'pkg/waybill_wasm_bg.wasm')).toString('base64');
  const style = readFileSync(join(site, 'style.css'), 'utf8');
  const policy = [
    "default-src 'none'",
    `script-src '${hash(page)}' 'wasm-unsafe-eval'`,
    `style-src '${hash(style)}'`,
    'img-src data:',
    'worker-src blob:',
    "connect-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
  ].join('; ');
  let html = readFileSync(join(site, 'index.html'), 'utf8');
  const replace = (what, by) => {
    if (html.split(what).length !== 2) throw new Error(`index.html must have one ${what}`);
    html = html.split(what).join(by);
  };
  const [declared] = html.match(/(?<=Content-Security-Policy" content=")[^"]*/);
  replace(declared, policy);
  replace('<link rel="stylesheet" href="style.css">', `<style>${style}</style>`);
  replace('<script type="module" src="main.js"></script>\n', '');
  // Neither of the first two runs: they are texts for the worker.
  const scripts = [
    `<script type="text/plain" id="verifier">${wasm}</script>`,
    `<script type="text/plain" id="worker-script">${inert(worker)}</script>`,
    `<script>${inert(page)}</script>`,
  ];
  replace('</body>', `${scripts.join('\n')}\n</body>`);
  return html;
}

function hash(text) {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}

/** Refuses what would end or change an inline script. */
function inert(script) {
  if (/<\/script|<!--|<script/i.test(script)) throw new Error('a script has a text that ends it');
  return script;
}

function wrapped(script) {
  return `'use strict';\n(() => {\n${script}})();\n`;
}

/** A module and those that it imports, in one scope. */
function joined(entry, instead) {
  const seen = new Set();
  const names = new Map();
  const parts = [];
  const take = (path) => {
    if (seen.has(path)) return;
    seen.add(path);
    let text = readFileSync(join(site, path), 'utf8');
    text = text.replace(/^import (?:\{[^}]*\}) from '([^']+)';\n/gm, (_, from) => {
      take(join(dirname(path), instead[from] ?? from));
      return '';
    });
    if (basename(path) === 'waybill_wasm.js') text = classic(text);
    text = text.replace(/^export (?=(?:async )?function|class|const)/gm, '');
    if (/^\s*(?:import|export)\b|import\.meta/m.test(text)) throw new Error(`${path} has an import or export that is not understood`);
    for (const [, name] of text.matchAll(/^(?:async )?(?:function|class|const|let)\*? (\w+)/gm)) {
      if (names.has(name)) throw new Error(`${path} and ${names.get(name)} both have ${name}`);
      names.set(name, path);
    }
    parts.push(`// ${path}\n${text}`);
  };
  take(entry);
  return parts.join('\n');
}

/** The bindings without what fetches them: they are given the module. */
function classic(text) {
  const without = text
    .replace(/^export \{[^}]*\};\s*$/m, '')
    .replace(/^async function __wbg_(?:init|init_once|load)\([\s\S]*?^\}\n/gm, '');
  if (/\bfetch\b|import\.meta/.test(without)) throw new Error('the bindings have changed: they still fetch');
  return without;
}

/** Two receipts with their projects, from the tests' vectors, with the key and signer that fit. */
function examples() {
  const key = readFileSync(join(vectors, 'hmac.key'), 'latin1');
  const of = (name, folder) => {
    const below = join(vectors, 'receipt', name);
    const files = Object.fromEntries(filesIn(join(below, '.sdd'), '.sdd/').map(([path, from]) => [path, readFileSync(from, 'utf8')]));
    const receipt = Object.keys(files).find((path) => path.startsWith('.sdd/escalation/receipts/'));
    const pem = JSON.parse(files[receipt]).signer_public_key_pem ?? files['.sdd/identity/escalation-identity-public.pem'];
    return { folder, files, key, signer: fingerprint(pem) };
  };
  const both = { good: of('ok-audit-mirrored', 'example'), tampered: of('bad-journal-edit-in-window', 'example-tampered') };
  return `// Made by tools/page.mjs from tests/vectors/receipt.\n\nexport const examples = ${JSON.stringify(both, null, 1)};\n`;
}

function filesIn(folder, under) {
  const entries = readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
  return entries.flatMap((entry) => {
    const from = join(folder, entry.name);
    if (entry.isDirectory()) return filesIn(from, `${under}${entry.name}/`);
    return entry.name.endsWith('.lock') ? [] : [[under + entry.name, from]];
  });
}

function fingerprint(pem) {
  const der = Buffer.from(pem.replace(/-----[^-]*-----|\s/g, ''), 'base64');
  return `SHA256:${createHash('sha256').update(der).digest('base64').replace(/=+$/, '')}`;
}
