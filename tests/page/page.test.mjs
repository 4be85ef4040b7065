// What a reviewer does with the page, served and from disk, in a real browser.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, test } from 'node:test';
import { AxeBuilder } from '@axe-core/playwright';
import { exported, receiptOf } from '../wasm/archives.mjs';
import { command, diverged, masterKey, signer, stranger, subjects, vectors, waybill } from '../wasm/cases.mjs';
import { ledger } from '../wasm/load.mjs';
import { cleanUp, content, drop, foreign, fromDisk, launch, open, saved, scratch, serve, single, verdict, verifyInPage } from './harness.mjs';
import { LONG, MARKUP, MISLEADING_SHOWN, hostile, hostileReceipt } from './hostile.mjs';

const receipt = (name) => join(vectors, 'receipt', name);
const good = receipt('ok-audit-mirrored');
const tampered = receipt('bad-journal-edit-in-window');
const keyFile = join(scratch, 'hmac.key');
const big = join(scratch, 'big.jsonl');

let browser;
let site;

before(async () => {
  browser = await launch();
  site = await serve();
  writeFileSync(keyFile, masterKey, { mode: 0o600 });
});

after(async () => {
  await browser?.close();
  site?.stop();
  cleanUp();
});

/** A test on the page from disk and on the served one; neither may ask for anything, or complain. */
function both(name, body, options) {
  for (const where of ['from disk', 'served']) {
    test(`${name} (${where})`, async () => {
      const url = where === 'served' ? site.url : fromDisk;
      const opened = await open(browser, url, options);
      await body(opened.page, opened);
      assert.deepEqual(foreign(opened.asked, url), [], 'requests');
      assert.deepEqual(opened.complaints, [], 'complaints');
      assert.equal(await opened.page.evaluate(() => window.stolen), 0, 'something ran');
      await opened.close();
    });
  }
}

const json = (given, options = {}, key = false) => command({ given, options, key }, scratch).json;

both('files that are dropped are checked together', async (page) => {
  const files = ['000000.jsonl'].map((name) => [name, content(join(vectors, 'ledger/torn-tail', name))]);
  await drop(page, files);
  await verdict(page);
  assert.equal((await saved(page, '#save-json')).text, json([join(vectors, 'ledger/torn-tail/000000.jsonl')]));

  const pair = diverged(scratch);
  await drop(page, [['laptop.jsonl', content(pair[0])], ['server.jsonl', content(pair[1])]]);
  await page.getByRole('heading', { name: 'Run goal-42 parts at entry 6' }).waitFor();
  assert.equal((await saved(page, '#save-json')).text, json(pair));
});

both('a folder that is chosen is checked as the command does', async (page) => {
  await page.setInputFiles('#folder', good);
  assert.equal(await verdict(page), 'incomplete');
  assert.equal((await saved(page, '#save-json')).text, json([good]));
});

both('a folder that is dropped is checked as the command does', async (page, { context }) => {
  const session = await context.newCDPSession(page);
  const box = await page.locator('#drop').boundingBox();
  const data = { items: [], files: [join(tampered, '.sdd')], dragOperationsMask: 1 };
  for (const type of ['dragEnter', 'dragOver', 'drop']) {
    await session.send('Input.dispatchDragEvent', { type, x: box.x + 20, y: box.y + 20, data });
  }
  assert.equal(await verdict(page), 'failed');
  assert.equal((await saved(page, '#save-json')).text, json([join(tampered, '.sdd')]));
});

both('a git bundle is checked, and its commit', async (page) => {
  const bundle = join(vectors, 'anchor/one-chunk/anchor.bundle');
  const { commit } = JSON.parse(readFileSync(join(bundle, '../expected.json'), 'utf8'));
  await drop(page, [['anchor.bundle', content(bundle)]]);
  assert.equal(await verdict(page), 'consistent');
  assert.equal((await saved(page, '#save-json')).text, json([bundle]));
  await page.click('#known > summary');
  await page.fill('#commit', commit);
  await page.click('#again');
  await page.locator('.verdict.good').waitFor();
  assert.equal(await verdict(page), 'verified');
  assert.equal((await saved(page, '#save-json')).text, json([bundle], { expected_commit: commit }));
});

both('an expected head vouches, and a wrong one fails', async (page) => {
  const file = join(vectors, 'ledger/truncated-on-boundary/000000.jsonl');
  const { head } = JSON.parse(readFileSync(join(file, '../expected.json'), 'utf8')).strict.with_expected_head;
  await page.click('#known > summary');
  await page.fill('#head', head);
  await drop(page, [['000000.jsonl', content(file)]]);
  assert.equal(await verdict(page), 'failed');
  assert.equal((await saved(page, '#save-json')).text, json([file], { expected_head: head }));
  const last = JSON.parse(readFileSync(file, 'utf8').trim().split('\n').at(-1)).entry_hash;
  await page.fill('#head', last.toUpperCase());
  await page.click('#again');
  await page.locator('.verdict.good').waitFor();
  await page.getByText('the head that you gave').waitFor();
  await page.fill('#head', 'no hash');
  await page.click('#again');
  await page.getByRole('alert').getByText('Option expected_head: is not 64 lowercase hex digits').waitFor();
  assert.equal(await page.locator('#result').isVisible(), false);
});

both('a signer is pinned by fingerprint and by PEM, and a stranger fails', async (page) => {
  await page.setInputFiles('#folder', good);
  await verdict(page);
  await page.locator('.who').getByText('not pinned: this key came with the evidence').waitFor();
  await page.click('#known > summary');
  await page.setInputFiles('#key', keyFile);
  await page.fill('#signer', signer);
  await page.click('#again');
  await page.locator('.who').getByText('the signer that you pinned').first().waitFor();
  assert.equal((await saved(page, '#save-json')).text, json([good], { signers: [signer] }, true));
  const pem = readFileSync(join(good, '.sdd/identity/escalation-identity-public.pem'), 'utf8');
  await page.fill('#signer', `\n  ${pem.replaceAll('\n', '\r\n  ')}\n`);
  await page.click('#again');
  await page.locator('.who').getByText('the signer that you pinned').first().waitFor();
  assert.equal(await verdict(page), 'consistent');
  await page.fill('#signer', stranger);
  await page.click('#again');
  await page.locator('.who').getByText('not the signer that you pinned').waitFor();
  assert.equal(await verdict(page), 'failed');
  assert.equal((await saved(page, '#save-json')).text, json([good], { signers: [stranger] }, true));
  await page.fill('#signer', '-----BEGIN PRIVATE KEY-----\nMC4CAQ\n-----END PRIVATE KEY-----');
  await page.click('#again');
  await page.getByRole('alert').getByText('Option signers').waitFor();
});

both('an HMAC key that is loaded checks the tags, and one that is none is refused', async (page) => {
  await page.setInputFiles('#folder', good);
  assert.equal(await verdict(page), 'incomplete');
  await page.locator('.who').getByText('not checked: the HMAC key is missing').waitFor();
  await page.click('#known > summary');
  await page.setInputFiles('#key', keyFile);
  await page.click('#again');
  await page.getByText('checked with the HMAC key that you gave').waitFor();
  assert.equal((await saved(page, '#save-json')).text, json([good], {}, true));
  await page.setInputFiles('#key', { name: 'short', mimeType: 'text/plain', buffer: Buffer.from('short') });
  await page.click('#again');
  await page.getByRole('alert').getByText('The key can\'t be used').waitFor();
});

both('a long check shows its progress, and is cancelled', async (page) => {
  if (!existsSync(big)) writeFileSync(big, ledger(300e6));
  await page.setInputFiles('#files', big);
  await page.locator('#measure').getByText(/[\d.]+ MB of 300 MB, \d+ MB\/s/).waitFor();
  const first = await page.locator('#bar').evaluate((bar) => bar.value);
  await page.waitForFunction((before) => document.getElementById('bar').value > before, first);
  await page.getByRole('button', { name: 'Cancel' }).click();
  await page.locator('#progress').waitFor({ state: 'hidden' });
  assert.equal(await page.locator('#result').isVisible(), false);
  assert.equal(await page.locator('#said').innerText(), 'Cancelled');
  for (let wait = 0; page.workers().length > 0; wait += 1) {
    assert.ok(wait < 100, 'the worker goes on');
    await page.waitForTimeout(100);
  }
  // The page is as good as new.
  await page.setInputFiles('#files', join(vectors, 'ledger/torn-tail/000000.jsonl'));
  await verdict(page);
});

both('what is saved as HTML says the same and runs nothing', async (page) => {
  await page.click('#example-tampered');
  assert.equal(await verdict(page), 'failed');
  const { name, text } = await saved(page, '#save-html');
  assert.equal(name, 'waybill-report.html');
  assert.ok(!/<script|\son[a-z]+=|<button/i.test(text));
  const path = join(scratch, 'saved.html');
  writeFileSync(path, text);
  const other = await open(browser, `file://${path}`);
  assert.equal(await other.page.locator('#verdict').innerText(), 'Failed');
  await other.page.getByText('entry 19, line 20, byte 7025').first().waitFor();
  assert.deepEqual(other.asked, [`file://${path}`]);
  assert.deepEqual(other.complaints, []);
  await other.close();
});

/** The page names each check that failed, and where, as the command's report does: how many. */
async function namesFailures(page, report) {
  const failed = report.subjects.flatMap(({ checks }) => checks).filter(({ status }) => status === 'fail');
  const shown = await page.locator('.check.fail').allInnerTexts();
  // Names between backquotes are set as code, long words are broken.
  const plain = (text) => text.replace(/[\s`]+/g, '');
  for (const { id, sentence, at } of failed) {
    const row = shown.find((text) => text.includes(id) && plain(text).includes(plain(sentence)));
    assert.ok(row, `${report.subject.name}: ${id} is shown: ${sentence}: ${shown.join("\n")}`);
    assert.ok(row.includes('FAIL') && (!at || row.includes(at.file)), row);
    if (at?.entry !== undefined) assert.ok(row.includes(`entry ${at.entry}, line ${at.line}, byte ${at.byte}`), row);
  }
  return failed.length;
}

both('a receipt that fails names the check and the place that the command names', async (page) => {
  const archive = exported(tampered, join(scratch, 'tampered.tar'));
  for (const [input, given] of [['#folder', tampered], ['#files', archive]]) {
    await page.reload();
    await page.setInputFiles(input, given);
    assert.equal(await verdict(page), 'failed');
    assert.equal(await namesFailures(page, JSON.parse(json([given]))), 3);
    const marked = await page.locator('.timeline .at-fault').allInnerTexts();
    assert.equal(marked.length, 1);
    assert.match(marked[0], /^19\s/);
    assert.match(marked[0], /journal\.chain/);
    const order = await page.locator('.timeline .number').allInnerTexts();
    assert.deepEqual(order, Array.from({ length: 16 }, (_, index) => String(16 + index)));
    await page.locator('.projection').getByText('respawn', { exact: true }).waitFor();
  }
});

both('every receipt that fails is exported, and the page says of the file what the command says', async (page) => {
  const failing = readdirSync(join(vectors, 'receipt')).filter((name) => {
    const { strict } = JSON.parse(readFileSync(join(receipt(name), 'expected.json'), 'utf8'));
    return strict.exit === 2;
  });
  assert.ok(failing.length > 30);
  for (const name of failing) {
    const archive = exported(receipt(name), join(scratch, `${name}.tar`));
    const report = JSON.parse(json([archive], {}, true));
    await verifyInPage(page, subjects([archive], content), {}, masterKey);
    assert.equal(await verdict(page), 'failed', name);
    assert.ok((await namesFailures(page, report)) > 0, name);
  }
});

both('the ledger is a board, with its last entries', async (page) => {
  const path = join(scratch, 'hundred.jsonl');
  if (!existsSync(path)) writeFileSync(path, ledger(45e6));
  await page.setInputFiles('#files', path);
  assert.equal(await verdict(page), 'consistent');
  const columns = await page.locator('.board .column .state').allInnerTexts();
  assert.ok(columns.some((text) => /^\d+\s+completed$/.test(text)), String(columns));
  await page.getByText('The last 100 entries').click();
  assert.equal(await page.locator('.ledger tbody tr').count(), 100);
});

both('all of it works by keyboard', async (page, { context }) => {
  await context.grantPermissions(['clipboard-read', 'clipboard-write']).catch(() => {});
  const focus = () => page.evaluate(() => document.activeElement.id || document.activeElement.textContent.trim());
  const tabTo = async (wanted) => {
    for (let press = 0; press < 60; press += 1) {
      await page.keyboard.press('Tab');
      if ((await focus()) === wanted) return;
    }
    assert.fail(`no way to ${wanted} by Tab`);
  };
  const chooser = page.waitForEvent('filechooser');
  await tabTo('choose-files');
  assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none');
  await page.keyboard.press('Enter');
  await (await chooser).setFiles(join(vectors, 'ledger/torn-tail/000000.jsonl'));
  await verdict(page);
  assert.equal(await focus(), 'verdict');
  await page.reload();
  await tabTo('example-tampered');
  await page.keyboard.press('Enter');
  await verdict(page);
  assert.equal(await focus(), 'verdict');
  assert.match(await page.locator('#said').innerText(), /^failed\. /);
  // On to the first hash, and copy it.
  await page.keyboard.press('Tab');
  const hash = await page.evaluate(() => document.activeElement.dataset.copy);
  assert.match(hash, /^[0-9a-f]{64}$/);
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.getElementById('said').textContent === 'Copied');
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), hash);
  // A closed group opens.
  await page.locator('.group:not([open]) > summary').first().focus();
  const closed = await page.locator('.group:not([open])').count();
  await page.keyboard.press('Enter');
  assert.equal(await page.locator('.group:not([open])').count(), closed - 1);
  const download = page.waitForEvent('download');
  await page.locator('#save-json').focus();
  await page.keyboard.press('Space');
  await download;
});

for (const scheme of ['light', 'dark']) {
  both(`nothing stands in the way of assistive technology, ${scheme}`, async (page) => {
    const check = async (state) => {
      const { violations } = await new AxeBuilder({ page }).analyze();
      assert.deepEqual(violations.map(({ id, nodes }) => `${state}: ${id}: ${nodes[0].html} ${nodes[0].failureSummary}`), []);
    };
    await check('empty');
    await page.click('#known > summary');
    await check('options');
    for (const [state, given, options] of [
      ['good', [good], {}],
      ['tampered', [tampered], {}],
      ['diverged', diverged(scratch), {}],
      ['degraded', [receipt('ok-degraded-journal-missing')], { key: true }],
    ]) {
      await verifyInPage(page, subjects(given, content), {}, options.key ? masterKey : null);
      await verdict(page);
      await page.evaluate(() => document.querySelectorAll('#result details').forEach((one) => { one.open = true; }));
      await check(state);
    }
    await page.fill('#head', 'x');
    await page.click('#again');
    await page.getByRole('alert').getByText('Not checked').waitFor();
    await check('problem');
  }, { colorScheme: scheme, bypassCSP: true });
}

both('it fits a phone', async (page) => {
  for (const id of ['#example-good', '#example-tampered']) {
    await page.evaluate(() => window.scrollTo(0, 0));
    if (await page.locator(id).isVisible()) await page.click(id);
    else await page.reload().then(() => page.click(id));
    await verdict(page);
    const [inner, whole] = await page.evaluate(() => [innerWidth, document.documentElement.scrollWidth]);
    assert.ok(whole <= inner, `${whole} px in ${inner}`);
  }
}, { viewport: { width: 360, height: 740 } });

both('an incomplete check is never green, and every verdict is a word and a shape', async (page) => {
  for (const [given, said, colour] of [
    [good, 'incomplete', 'caution'],
    [tampered, 'failed', 'bad'],
    [join(vectors, 'receipt/ok-full-window/.sdd/identity'), 'absent', 'bad'],
  ]) {
    await verifyInPage(page, subjects([given], content));
    assert.equal(await verdict(page), said);
    assert.equal(await page.locator(`.verdict.${colour} #verdict > .shape`).count(), 1);
  }
});

both('hostile evidence is text', async (page) => {
  const folder = hostile(scratch);
  const from = Date.now();
  await page.setInputFiles('#folder', folder);
  assert.equal(await verdict(page), 'failed');
  assert.ok(Date.now() - from < 30_000, 'it stalled');
  await page.evaluate(() => document.querySelectorAll('#result details').forEach((one) => { one.open = true; }));
  const text = await page.locator('#result').innerText();
  assert.ok(text.includes('<img src=x onerror=alert(1)>'), 'markup is shown');
  assert.ok(text.includes(MISLEADING_SHOWN), 'what misleads is escaped');
  assert.ok(!/[\u202a-\u202e\u2066-\u2069\u001b\u009b\u200b]/.test(text), 'nothing misleads');
  assert.ok(!text.includes(LONG.slice(0, 5000)), 'long texts are cut');
  assert.equal(await page.locator('#result :is(img, script, iframe, object, embed, link, style, form, a)').count(), 0);
  assert.equal((await saved(page, '#save-json')).text, json([folder]));
  const { text: html } = await saved(page, '#save-html');
  const path = join(scratch, 'saved-hostile.html');
  writeFileSync(path, html);
  // Even where nothing forbids scripts.
  const other = await open(browser, `file://${path}`, { bypassCSP: true });
  assert.equal(await other.page.evaluate(() => window.stolen), 0);
  assert.equal(await other.page.locator('img, script, iframe, svg[onload]').count(), 0);
  assert.deepEqual(other.asked, [`file://${path}`]);
  await other.close();
});

both('a hostile receipt is text, on the page and in the terminal', async (page) => {
  const folder = existsSync(join(scratch, 'hostile-project')) ? join(scratch, 'hostile-project') : hostileReceipt(scratch);
  await page.setInputFiles('#folder', folder);
  await verdict(page);
  const text = await page.locator('.projection').innerText();
  assert.ok(text.includes(MARKUP));
  assert.ok(text.includes(MISLEADING_SHOWN));
  const { stdout } = spawnSync(waybill(), ['escalation', 'show', receiptOf(folder), '--workdir', folder], { encoding: 'utf8', env: { HOME: scratch, PATH: process.env.PATH } });
  assert.ok(!/[\u202e\u001b\u009b\u200b]/.test(stdout), 'the terminal is safe');
  assert.equal((await saved(page, '#save-json')).text, json([folder]));
});

test('the single file lets nothing out', async () => {
  const html = readFileSync(single, 'utf8');
  assert.ok(!/\bfetch\(|XMLHttpRequest|WebSocket|importScripts|sendBeacon|https?:\/\/(?!www\.w3\.org\/)/.test(html), 'no way out is even written down');
  const { page, close, complaints } = await open(browser, fromDisk);
  const refused = await page.evaluate(async (url) => {
    try {
      await fetch(url);
      return false;
    } catch {
      return true;
    }
  }, site.url);
  assert.ok(refused, 'the policy refuses a request');
  assert.ok(complaints.some((text) => text.includes('Content Security Policy')));
  await close();
});

test('the command prints the very file', { skip: !process.env.WAYBILL_PAGE_BIN && 'no command with the page in it (WAYBILL_PAGE_BIN)' }, () => {
  const ran = spawnSync(process.env.WAYBILL_PAGE_BIN, ['page'], { maxBuffer: 1 << 26 });
  assert.equal(ran.status, 0, String(ran.stderr));
  assert.ok(ran.stdout.equals(readFileSync(single)));
});
