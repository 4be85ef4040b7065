// The result, in the order of its worth: the verdict and who says so, what does not hold, what
// happened, what is missing, what no check establishes.

import { checks, place } from './checks.js';
import { forks } from './fork.js';
import { journals, ledgers } from './ledger.js';
import { gloss, tone, verdictShape } from './marks.js';
import { stalls } from './stall.js';
import { counted, el, hashed, sentence, shown } from './text.js';

/** The elements that show an answer of the worker. */
export function result({ legible: report, view }) {
  const reports = [report, ...(report.subjects ?? [])];
  const every = reports.flatMap((one) => one.checks.map((check) => ({ ...check, subject: one.subject.name })));
  return [
    verdict(report, reports, every),
    ...forks(view.forks),
    checks(report, reports),
    ...stalls(reports, every),
    ...ledgers(view.ledgers, every),
    ...journals(view.journals, reports, every),
    missing(report, every),
    limits(report),
    facts(reports),
    el(
      'p',
      { class: 'actions saves' },
      el('button', { type: 'button', id: 'save-json' }, 'Save the report as JSON'),
      el('button', { type: 'button', id: 'save-html' }, 'Save as HTML'),
      el('span', { class: 'hint' }, 'The JSON is, byte for byte, what ', el('code', null, 'waybill verify --json'), ' prints.'),
    ),
  ].filter(Boolean);
}

function verdict(report, reports, every) {
  const failed = every.find((check) => check.status === 'fail' && check.at);
  return el(
    'header',
    { class: `verdict ${tone(report.verdict)}` },
    el('p', { class: 'subject' }, `${kindOf(report)} `, el('b', null, shown(report.subject.name, 120))),
    el('h2', { id: 'verdict', tabindex: '-1' }, verdictShape(report.verdict), el('span', null, capital(report.verdict))),
    el('p', { class: 'gloss' }, gloss(report.verdict)),
    el('p', { class: 'summary' }, sentence(report.summary)),
    failed && report.verdict === 'failed' && el('p', { class: 'first' }, 'First at ', place(failed.at), ', by the check ', el('code', null, failed.id)),
    who(reports, every),
  );
}

function kindOf(report) {
  return report.subject.kind === 'set' ? counted(report.subject_count ?? (report.subjects ?? []).length, 'subject') + ' in' : report.subject.kind;
}

const STANDINGS = {
  unpinned: ['caution', 'not pinned: this key came with the evidence, compare it by another way'],
  pinned: ['good', 'the signer that you pinned'],
  other: ['bad', 'not the signer that you pinned'],
};

const VOUCHERS = {
  'ledger.expected_head': 'the head that you gave',
  'ledger.contains': 'the entry that you gave',
  'anchor.expected_commit': 'the commit that you gave',
};

/** Who says so: signers, what vouches from outside, whether tags were checked. */
function who(reports, every) {
  const rows = [];
  const signers = new Map();
  for (const { facts: found } of reports) {
    if (found.signer) signers.set(found.signer, found.signer_standing);
  }
  const listed = [...signers].slice(0, 5).map(([signer, standing]) => {
    const [colour, said] = STANDINGS[standing] ?? ['none', standing ?? 'unknown'];
    return el('dd', null, hashed(signer), ' ', el('span', { class: `standing ${colour}` }, said));
  });
  if (listed.length > 0) rows.push(el('dt', null, 'Signed by'), ...listed);
  if (signers.size > listed.length) rows.push(el('dd', null, `and ${counted(signers.size - listed.length, 'more signer')}`));

  const passed = new Set(every.filter(({ status }) => status === 'pass').map(({ id }) => id));
  const vouchers = Object.keys(VOUCHERS).filter((id) => passed.has(id)).map((id) => VOUCHERS[id]);
  if ([...signers.values()].includes('pinned')) vouchers.push('the signer that you pinned');
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
  const named = report.facts.missing ?? [];
  const open = every.filter(({ status }) => status === 'not_checked');
  const said = [...new Set(open.map((check) => `${check.id}: ${check.sentence}`))];
  const lines = [...(Array.isArray(named) ? named : []), ...said];
  return lines.length > 0 && list('Not checked', 'For want of what is missing here.', lines);
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
    el('h3', { id }, title),
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
      el('h4', null, `${report.subject.kind} `, shown(report.subject.name, 120)),
      el('dl', null, ...plain.slice(0, 60).map(([name, value]) => el('div', null, el('dt', null, shown(name, 80)), el('dd', null, sentence(value))))),
    );
  });
  const kept = groups.filter(Boolean);
  return kept.length > 0 && el('details', { class: 'more' }, el('summary', null, 'All facts'), ...kept);
}

function capital(word) {
  return word[0].toUpperCase() + word.slice(1);
}
