// The result, in the order of its worth: the verdict and who says so, what does not hold, what
// happened, what is missing, what no check establishes.

import { checks, place } from './checks.js';
import { forks } from './fork.js';
import { journals, ledgers } from './ledger.js';
import { gloss, tone, verdictShape } from './marks.js';
import { stalls } from './stall.js';
import { counted, el, hashed, sentence, shown } from './text.js';

/** The elements that show an answer of the worker, one after the other. */
export function* result({ legible: report, view }) {
  const reports = [report, ...(report.subjects ?? [])];
  const every = reports.flatMap((one) => one.checks.map((check) => ({ ...check, subject: one.subject.name })));
  yield verdict(report, reports, every);
  yield* forks(view.forks);
  yield checks(report, reports);
  yield* stalls(reports, every);
  yield* ledgers(view.ledgers, every);
  yield* journals(view.journals, reports, every);
  yield missing(report, every);
  yield limits(report);
  yield facts(reports);
  yield el(
    'p',
    { class: 'actions saves' },
    el('button', { type: 'button', id: 'save-json' }, 'Save the report as JSON'),
    el('button', { type: 'button', id: 'save-html' }, 'Save as HTML'),
    el('span', { class: 'hint' }, 'The JSON is, byte for byte, what ', el('code', null, 'waybill verify --json'), ' prints.'),
  );
}

function verdict(report, reports, every) {
  const failed = every.find((check) => check.status === 'fail' && check.at);
  return el(
    'header',
    { class: `verdict ${tone(report.verdict)}` },
    el('p', { class: 'subject' }, ...named(report)),
    el('h1', { id: 'verdict', tabindex: '-1' }, verdictShape(report.verdict), el('span', null, capital(report.verdict))),
    el('p', { class: 'gloss' }, gloss(report.verdict)),
    el('p', { class: 'summary' }, sentence(report.summary)),
    failed && report.verdict === 'failed' && el('p', { class: 'first' }, 'First at ', place(failed.at), ', by the check ', el('code', null, failed.id)),
    who(report, reports, every),
  );
}

function named({ subject, subjects = [], subject_count: count }) {
  const name = el('b', null, shown(subject.name, 120));
  if (subject.kind !== 'set') return [`${subject.kind} `, name];
  return /^\d+ subjects$/.test(subject.name) ? [name] : [name, `, ${counted(count ?? subjects.length, 'subject')}`];
}

const STANDINGS = {
  none: ['bad', 'is named, but its signature does not hold'],
  unpinned: ['caution', 'not pinned: this key came with the evidence'],
  pinned: ['good', 'the signer that you pinned'],
  other: ['bad', 'not the signer that you pinned'],
};

const VOUCHERS = {
  'ledger.expected_head': 'the head that you gave',
  'ledger.contains': 'the entry that you gave',
  'anchor.expected_commit': 'the commit that you gave',
};

/** Who says so: signers, what vouches from outside, whether tags were checked. */
function who(report, reports, every) {
  const rows = [];
  const signers = new Map();
  for (const { facts: found, checks: own } of reports) {
    if (!found.signer) continue;
    // A key that is named in a receipt has signed it only if its signature holds.
    const signed = own.some(({ id, status }) => id === 'receipt.signature' && status === 'pass');
    if (!signed || !signers.has(found.signer)) signers.set(found.signer, signed ? found.signer_standing : 'none');
  }
  const listed = [...signers].slice(0, 3).map(([signer, standing]) => {
    const [colour, said] = STANDINGS[standing] ?? ['none', standing ?? 'unknown'];
    return el('dd', null, hashed(signer), ' ', el('span', { class: `standing ${colour}` }, said));
  });
  if (listed.length > 0) rows.push(el('dt', null, 'Signed by'), ...listed);
  if (signers.size > listed.length) rows.push(el('dd', null, `and ${counted(signers.size - listed.length, 'more signer')}`));

  const passed = new Set(every.filter(({ status }) => status === 'pass').map(({ id }) => id));
  const vouchers = Object.keys(VOUCHERS).filter((id) => passed.has(id)).map((id) => VOUCHERS[id]);
  if (report.verdict !== 'failed' && [...signers.values()].includes('pinned')) vouchers.push('the signer that you pinned');
  const vouched = vouchers.length > 0 ? vouchers.join(', ') : 'nothing outside the evidence';
  rows.push(el('dt', null, 'Vouched for by'), el('dd', null, vouched));

  const tags = every.filter(({ id }) => id === 'spine.hmac' || id === 'audit.hmac');
  if (tags.length > 0) {
    const statuses = tags.map(({ status }) => status);
    const said = statuses.includes('fail')
      ? 'do not fit the HMAC key'
      : statuses.includes('not_checked')
        ? 'not checked: the HMAC key is missing'
        : 'checked with the HMAC key that you gave';
    rows.push(el('dt', null, 'Tags'), el('dd', null, said));
  }
  return el('dl', { class: 'who' }, ...rows);
}

function missing(report, every) {
  const { missing: told = [] } = report.facts;
  if (told.length > 0) return list('Missing', 'With it, more could be checked.', [...new Set(told)]);
  const open = every.filter(({ status }) => status === 'not_checked');
  const lines = [...new Set(open.map((check) => `${check.id}: ${check.sentence}`))];
  return lines.length > 0 && list('Not checked', 'Why, says each.', lines);
}

function limits(report) {
  const lines = report.does_not_establish;
  return lines.length > 0 && list('Not established', 'What no check of these establishes, whatever the verdict.', lines);
}

function list(title, hint, lines) {
  const id = title.toLowerCase().replace(' ', '-');
  return el(
    'section',
    { 'aria-labelledby': id },
    el('h2', { id }, title),
    el('p', { class: 'hint' }, hint),
    el('ul', { class: 'lines' }, ...lines.slice(0, 100).map((line) => el('li', null, sentence(line)))),
  );
}

/** Everything else that was found: names and plain values. */
function facts(reports) {
  const groups = reports.slice(0, 50).map((report) => {
    const plain = Object.entries(report.facts).filter(([, value]) => value !== null && typeof value !== 'object');
    if (plain.length === 0) return null;
    return el(
      'div',
      { class: 'facts' },
      el('h3', null, `${report.subject.kind} `, shown(report.subject.name, 120)),
      el('dl', null, ...plain.slice(0, 60).map(([name, value]) => el('div', null, el('dt', null, shown(name, 80)), el('dd', null, sentence(value))))),
    );
  });
  const kept = groups.filter(Boolean);
  return kept.length > 0 && el('details', { class: 'more' }, el('summary', null, 'All facts'), ...kept);
}

function capital(word) {
  return word[0].toUpperCase() + word.slice(1);
}
