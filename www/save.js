// Saves the report: its very bytes, or a page without scripts.

import { el } from './text.js';

/** The report's own bytes. */
export function save(report) {
  download(new Blob([report], { type: 'application/json' }), 'waybill-report.json');
}

/** What is seen, as one file that asks for nothing and runs nothing. */
export function saveHtml(article, version) {
  download(new Blob([html(article, version)], { type: 'text/html' }), 'waybill-report.html');
}

function html(article, version) {
  const copy = article.cloneNode(true);
  copy.removeAttribute('hidden');
  copy.querySelectorAll('button, .actions').forEach((one) => one.remove());
  copy.querySelector('#verdict').removeAttribute('tabindex');
  const style = el('style');
  style.append([...document.styleSheets].flatMap((sheet) => [...sheet.cssRules].map((rule) => rule.cssText)).join('\n'));
  const page = el(
    'html',
    { lang: 'en' },
    el(
      'head',
      null,
      el('meta', { charset: 'utf-8' }),
      el('meta', { 'http-equiv': 'Content-Security-Policy', content: "default-src 'none'; style-src 'unsafe-inline'" }),
      el('meta', { name: 'viewport', content: 'width=device-width, initial-scale=1' }),
      el('meta', { name: 'color-scheme', content: 'light dark' }),
      el('title', null, document.title),
      style,
    ),
    el(
      'body',
      { class: 'has-result saved' },
      el('header', { class: 'top' }, el('p', { class: 'brand' }, el('b', null, 'waybill'), ' verify')),
      el('main', null, copy),
      el('footer', { class: 'bottom' }, el('p', null, `A saved report of waybill verify ${version}. It is no evidence itself: check the evidence again.`)),
    ),
  );
  return `<!doctype html>\n${page.outerHTML}\n`;
}

function download(blob, name) {
  const url = URL.createObjectURL(blob);
  const link = el('a', { href: url, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}
