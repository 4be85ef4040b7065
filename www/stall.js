// What a receipt holds fast: the last events before a stall, who stalled and why, what to do.

import { statusTag, verdictTag } from './marks.js';
import { byNumber, counted, el, hashed, hashStart, shown, time } from './text.js';

const RECEIPTS = 20;
// Checks that speak of the journal's events by their number.
const OF_EVENTS = /^journal\.|^receipt\.(window|fork)$/;

/** A section for each receipt. */
export function stalls(reports, every) {
  const receipts = reports.filter(({ subject }) => subject.kind === 'receipt');
  const sorted = receipts.sort((a, b) => (b.verdict === 'failed') - (a.verdict === 'failed'));
  const more = receipts.length - RECEIPTS;
  return [
    ...sorted.slice(0, RECEIPTS).map((report, index) => stall(report, index, receipts.length > 2 && index > 0, every)),
    more > 0 && el('p', null, `and ${counted(more, 'more receipt')}`),
  ];
}

function stall({ subject, facts, checks, verdict }, index, closed, every) {
  const id = `stall-${index}`;
  const file = checks.find((check) => check.id === 'journal.chain' && check.at)?.at.file;
  const findings = new Map();
  const own = checks.map((check) => ({ ...check, subject: subject.name }));
  for (const check of [...own, ...every.filter((one) => one.at && one.at.file === file)]) {
    if (check.status === 'fail' && check.at?.entry !== undefined && OF_EVENTS.test(check.id) && !findings.has(check.at.entry)) {
      findings.set(check.at.entry, check);
    }
  }
  const sides = el('div', { class: 'sides' }, timeline(facts, findings), projection(facts));
  return el(
    'section',
    { class: 'stall', 'aria-labelledby': `${id} ${id}-of` },
    el('h2', { id }, 'The stall'),
    el('p', { class: 'hint', id: `${id}-of` }, 'receipt ', hashed(subject.name), ' ', shown(checks.find((check) => check.at)?.at.file ?? '', 200)),
    closed
      ? el('details', { class: 'more' }, el('summary', null, `${shown(facts.stall_reason ?? 'What it says', 80)} `, verdictTag(verdict)), sides)
      : sides,
  );
}

function timeline(facts, findings) {
  const events = Array.isArray(facts.window) ? facts.window : [];
  if (events.length === 0) {
    const none = facts.journal_state !== 'present' && facts.journal_state !== undefined;
    const said = none ? 'When it was made there was no journal, and so there is no window.' : 'The journal is not here: of the last events, the receipt has the hashes only.';
    return el('p', { class: 'hint' }, said);
  }
  const last = lastSnapshot(events);
  const rows = events.map((event) => {
    const finding = findings.get(event.index);
    const isFork = event === last && facts.fork_step !== undefined && facts.fork_step !== null;
    return {
      index: event.index,
      element: el(
        'li',
        { class: finding ? 'at-fault' : null },
        el('span', { class: 'number' }, event.index),
        el('div', { class: 'what' }, el('b', null, shown(event.event, 120)), isFork && el('span', { class: 'tag plain' }, `fork point, step ${facts.fork_step}`), finding && told(finding)),
        event.ts !== undefined && event.ts !== null ? time(event.ts) : el('span', { class: 'time' }),
        hashStart(event.event_hash),
      ),
    };
  });
  // A row that does not hold is no event of the window; it is shown where it stands.
  const listed = new Set(events.map(({ index }) => index));
  const within = (index) => byNumber(index, events[0].index) >= 0 && byNumber(index, events.at(-1).index) <= 0;
  for (const [index, finding] of findings) {
    if (listed.has(index)) continue;
    const element = el(
      'li',
      { class: 'at-fault' },
      el('span', { class: 'number' }, index),
      el('div', { class: 'what' }, el('b', null, within(index) ? 'this row does not hold' : 'a row outside the window does not hold'), told(finding)),
    );
    rows.push({ index, element });
  }
  rows.sort((a, b) => byNumber(a.index, b.index));
  const title = facts.window_size === String(events.length) ? `The last ${counted(events.length, 'event')}` : `${events.length} of the last ${counted(facts.window_size, 'event')} hold`;
  return el(
    'div',
    { class: 'timeline' },
    el('h3', null, title),
    el('ol', null, ...rows.map(({ element }) => element)),
    el('p', { class: 'hint' }, 'Times are not covered by any hash.'),
  );
}

function told(finding) {
  return el('div', { class: 'finding' }, statusTag('fail'), ' ', el('code', null, finding.id), finding.fault && [' ', el('code', null, finding.fault)]);
}

function lastSnapshot(events) {
  return events.findLast(({ event }) => event === 'snapshot');
}

const PROJECTED = [
  ['worker_id', 'Worker'],
  ['run_id', 'Run'],
  ['session_id', 'Session'],
  ['worktree_id', 'Worktree'],
  ['respawn_budget_remaining', 'Respawns left'],
  ['journal_state', 'Journal'],
  ['install_rev', 'Installed'],
];

function projection(facts) {
  const row = (name, ...value) => el('div', null, el('dt', null, name), el('dd', null, ...value));
  const has = (name) => facts[name] !== undefined && facts[name] !== null && facts[name] !== '';
  if (!has('stall_reason') && !has('run_id')) return el('p', { class: 'hint' }, 'The receipt can\'t be read.');
  return el(
    'div',
    { class: 'projection' },
    el('p', { class: 'reason' }, el('span', null, 'Why'), el('b', null, shown(facts.stall_reason, 120))),
    el('p', { class: 'reason' }, el('span', null, 'Recommended'), el('b', null, shown(facts.recommended_action, 120))),
    el(
      'dl',
      null,
      ...PROJECTED.filter(([name]) => has(name)).map(([name, label]) => row(label, shown(facts[name], 200))),
      has('fork_step') && row('Fork at step', shown(facts.fork_step, 40)),
      has('fork_snapshot_sha') && row('Snapshot', hashStart(facts.fork_snapshot_sha)),
      has('timestamp') && row('Signed, says its signer', time(facts.timestamp)),
      has('journal_head_at_stall') && row('Journal head', hashStart(facts.journal_head_at_stall)),
      has('journal_entry_hash') && row('Anchored as', hashStart(facts.journal_entry_hash)),
    ),
  );
}
