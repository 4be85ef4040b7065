// The page in a browser gives the command's report, byte for byte, for every kind of evidence.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { cases, command, firstDifference, masterKey, subjects } from '../wasm/cases.mjs';
import { cleanUp, content, foreign, fromDisk, launch, open, scratch, serve, verifyInPage } from './harness.mjs';

let browser;
let site;

before(async () => {
  browser = await launch();
  site = await serve();
});

after(async () => {
  await browser?.close();
  site?.stop();
  cleanUp();
});

const all = cases(scratch);

for (const [where, wanted] of [['from disk', all], ['served', all.filter((_, index) => index % 5 === 0)]]) {
  test(`${wanted.length} cases, ${where}: the report is the command's`, async () => {
    const url = where === 'served' ? site.url : fromDisk;
    const { page, asked, complaints, close } = await open(browser, url);
    for (const one of wanted) {
      const theirs = command(one, scratch);
      const ours = await verifyInPage(page, subjects(one.given, content), one.options, one.key ? masterKey : null);
      assert.ok(ours, `${one.name}: ${await page.innerText('#problem')}`);
      assert.ok(ours === theirs.json, `${one.name}:\n${firstDifference(theirs.json, ours)}${theirs.said}`);
      const { verdict } = JSON.parse(ours);
      assert.equal((await page.innerText('#verdict')).trim().toLowerCase(), verdict, one.name);
    }
    assert.deepEqual(complaints, []);
    assert.deepEqual(foreign(asked, url), []);
    await close();
  });
}
