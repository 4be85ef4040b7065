// A browser, the page served and from disk, and what the tests do with it.

import { createReadStream, existsSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';
import { root } from '../wasm/load.mjs';

export const single = join(root, 'target/page/waybill-verify.html');
const site = join(root, 'target/page/site');
const TYPES = { '.html': 'text/html', '.js': 'text/javascript', '.css': 'text/css', '.wasm': 'application/wasm' };

/** Where the browser is: CHROMIUM, or Debian's. */
export function browserPath() {
  const named = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'];
  const found = named.find((path) => path && existsSync(path));
  if (!found) throw new Error('there is no chromium here: tools/setup.sh chromium, or name it in CHROMIUM');
  return found;
}

/** A folder for what the tests make. */
export const scratch = mkdtempSync(join(tmpdir(), 'waybill-page-'));

/** The browser, with a new profile. */
export function launch() {
  return chromium.launch({
    executablePath: browserPath(),
    args: ['--headless=new', '--no-sandbox', '--disable-gpu', '--disable-background-networking'],
  });
}

/** Serves the site on the loopback: its address, and how to stop. */
export async function serve() {
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url, 'http://localhost');
    const path = join(site, pathname === '/' ? 'index.html' : pathname);
    if (request.method !== 'GET' || !path.startsWith(site) || !existsSync(path) || !statSync(path).isFile()) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'Content-Type': TYPES[extname(path)] ?? 'application/octet-stream' });
    createReadStream(path).pipe(response);
  });
  await new Promise((done) => server.listen(0, '127.0.0.1', done));
  return { url: `http://127.0.0.1:${server.address().port}/`, stop: () => server.close() };
}

export const fromDisk = pathToFileURL(single).href;

/** The page, opened; what it asks for and what it complains of is gathered. */
export async function open(browser, url, options = {}) {
  const context = await browser.newContext({ acceptDownloads: true, ...options });
  const page = await context.newPage();
  const asked = [];
  const complaints = [];
  context.on('request', (request) => asked.push(request.url()));
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
  page.on('pageerror', (error) => complaints.push(String(error)));
  await page.addInitScript(() => {
    // What hostile evidence would call.
    window.stolen = 0;
    window.alert = () => { window.stolen += 1; };
  });
  await page.goto(url);
  return { page, context, asked, complaints, close: () => context.close() };
}

/** Addresses that are not the page's own. */
export function foreign(asked, url) {
  const own = new URL(url);
  const isOwn = (address) => {
    const { protocol, origin, pathname, search } = new URL(address);
    if (protocol === 'blob:' || protocol === 'data:') return true;
    return own.protocol === 'file:' ? address === url : origin === own.origin && search === '' && existsSync(join(site, pathname));
  };
  return asked.filter((address) => !isOwn(address));
}

/** Waits for a result and gives what the page says. */
export async function verdict(page) {
  await page.locator('#result:not([hidden]) #verdict').waitFor();
  return (await page.locator('#verdict').innerText()).trim().toLowerCase();
}

/** A file for `verifyInPage`, from its path. */
export const content = (path) => readFileSync(path).toString('base64');

/** The page's own way of checking, as a drop takes it: the report's text. */
export function verifyInPage(page, subjects, options = {}, key = null) {
  return page.evaluate(
    async ([given, known, secret]) => {
      const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
      const made = given.map(({ name, file, tree }) =>
        tree ? { name, tree: tree.map((one) => ({ path: one.path, file: new File([bytes(one.file)], 'f') })) } : { name, file: new File([bytes(file)], name) },
      );
      const report = await window.waybill.verify(made, known, secret && new File([bytes(secret)], 'key'));
      return report && new TextDecoder().decode(report);
    },
    [subjects, options, key && Buffer.from(key).toString('base64')],
  );
}

/** Drops files on the page, as from a file manager. */
export async function drop(page, files) {
  const transfer = await page.evaluateHandle((given) => {
    const bytes = (text) => Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
    const data = new DataTransfer();
    for (const [name, text] of given) data.items.add(new File([bytes(text)], name));
    return data;
  }, files);
  await page.dispatchEvent('#drop', 'dragover', { dataTransfer: transfer });
  await page.dispatchEvent('#drop', 'drop', { dataTransfer: transfer });
}

/** Saves by a button: the file's text. */
export async function saved(page, button) {
  const [download] = await Promise.all([page.waitForEvent('download'), page.click(button)]);
  const path = join(scratch, `saved-${Math.random()}`);
  await download.saveAs(path);
  return { name: download.suggestedFilename(), text: readFileSync(path, 'utf8') };
}

export function cleanUp() {
  rmSync(scratch, { recursive: true, force: true });
}
