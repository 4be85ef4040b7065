// The checks: by subject, the worst subject first, and in each the failing checks first.

import { rank, statusTag, verdictTag } from './marks.js';
import { counted, el, sentence, shown } from './text.js';

// From so many subjects on, those where all is well start closed.
const MANY = 3;
const SUBJECTS = 200;

/** The section with all checks. */
export function checks(report, reports) {
  const groups = reports
    .filter((one) => one.checks.length > 0)
    .map((one) => ({ report: one, worst: Math.min(...one.checks.map(({ status }) => rank(status))) }))
    .sort((a, b) => a.worst - b.worst);
  const total = groups.reduce((sum, { report: { checks: list } }) => sum + list.length, 0);
  const more = groups.length - SUBJECTS;
  return el(
    'section',
    { class: 'checks', 'aria-labelledby': 'checks' },
    el('h2', { id: 'checks' }, 'Checks'),
    el('p', { class: 'hint' }, tally(groups.flatMap(({ report: one }) => one.checks)), groups.length > 1 && `, of ${counted(groups.length, 'subject')}`),
    ...groups.slice(0, SUBJECTS).map((group) => groupOf(group, group.report === report && reports.length > 1, groups.length, total)),
    more > 0 && el('p', null, `and ${counted(more, 'more subject')}, all in the saved report`),
  );
}

function tally(list) {
  const words = { fail: 'failed', not_checked: 'not checked', warn: 'with a warning', pass: 'passed', not_applicable: 'not applicable' };
  return Object.entries(words)
    .map(([status, word]) => [list.filter((check) => check.status === status).length, word])
    .filter(([count]) => count > 0)
    .map(([count, word]) => `${count} ${word}`)
    .join(', ');
}

function groupOf({ report, worst }, whole, groups, total) {
  const sorted = [...report.checks].sort((a, b) => rank(a.status) - rank(b.status));
  const open = groups <= MANY || worst < rank('warn') || total <= 8;
  return el(
    'details',
    { class: 'group', open },
    el(
      'summary',
      null,
      el('span', { class: 'name' }, whole ? 'all of it together' : `${report.subject.kind} `, !whole && el('b', null, shown(report.subject.name, 120))),
      el('span', { class: 'count' }, tally(report.checks)),
      !whole && verdictTag(report.verdict),
    ),
    el('ul', null, ...sorted.map(row)),
  );
}

function row(check) {
  return el(
    'li',
    { class: `check ${check.status}` },
    statusTag(check.status),
    el('p', null, sentence(check.sentence)),
    el(
      'p',
      { class: 'meta' },
      el('code', null, check.id),
      check.fault && [' ', el('code', { class: 'fault' }, check.fault)],
      check.at && [' ', place(check.at)],
    ),
  );
}

/** A place in the evidence. */
export function place({ file, entry, line, byte }) {
  const where = entry === undefined ? '' : `: entry ${entry}, line ${line}, byte ${byte}`;
  return el('span', { class: 'place' }, shown(file, 200), where);
}
