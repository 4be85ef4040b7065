// A ledger as a board of its tasks, with its last entries; a journal's last events.

import { statusTag } from './marks.js';
import { counted, el, hashStart, shown, time } from './text.js';

// So many ledgers, and so many tasks a column, are shown.
const LEDGERS = 20;
const TASKS = 60;

/** A section for each ledger. */
export function ledgers(list, every) {
  const more = list.length - LEDGERS;
  return [
    ...list.slice(0, LEDGERS).map((ledger, index) => section(ledger, index, every)),
    more > 0 && el('p', null, `and ${counted(more, 'more ledger')}`),
  ];
}

function section(ledger, index, every) {
  const id = `ledger-${index}`;
  const state = [
    ledger.holds === false ? 'as far as it holds' : ledger.run_closed ? 'closed' : 'open',
    ledger.resumes !== '0' && `resumed ${counted(ledger.resumes, 'time')}`,
  ];
  return el(
    'section',
    { class: 'ledger', 'aria-labelledby': `${id} ${id}-of` },
    el('h2', { id }, 'Run ', shown(ledger.run_id ?? ledger.name, 120)),
    el('p', { class: 'hint' }, el('span', { id: `${id}-of` }, shown(ledger.file, 200)), ...state.filter(Boolean).map((word) => ` · ${word}`)),
    el('ul', { class: 'board', 'aria-label': 'Tasks by state' }, ...ledger.board.map(column)),
    entries(ledger, every),
  );
}

function column({ state, count, tasks }) {
  const listed = tasks.slice(0, TASKS);
  const more = BigInt(count) - BigInt(listed.length);
  return el(
    'li',
    { class: count === '0' ? 'column none' : 'column' },
    el('p', { class: 'state' }, el('b', null, count), ` ${state}`),
    listed.length > 0 &&
      el(
        'ul',
        null,
        ...listed.map(({ task_id: task, attempts, last_seq: last }) =>
          el('li', { title: `last entry ${last}` }, shown(task, 80), attempts !== '0' && attempts !== '1' && el('span', { class: 'times', title: `${attempts} attempts` }, ` ×${attempts}`)),
        ),
        more > 0n && el('li', { class: 'rest' }, `and ${more} more`),
      ),
  );
}

function entries({ entries: list, file, holds }, every) {
  if (list.length === 0) return null;
  const faults = every.filter(({ id, status, at }) => status === 'fail' && id.startsWith('ledger.') && at?.file === file && at.entry !== undefined);
  const newest = [...list].reverse();
  const listed = new Set(list.map(({ entry }) => entry));
  const elsewhere = faults.filter(({ at }) => !listed.has(at.entry));
  return el(
    'details',
    { class: 'more', open: faults.length > 0 },
    el('summary', null, list.length === 1 ? 'The last entry' : `The last ${list.length} entries`, holds === false && ' that hold'),
    scroller(
      `Last entries of ${shown(file, 80)}, newest first`,
      el('thead', null, el('tr', null, ...['Entry', 'Kind', 'Task', 'Time', 'Hash'].map((name) => el('th', { scope: 'col' }, name)))),
      el(
        'tbody',
        null,
        ...elsewhere.map(({ at, id, fault }) =>
          el('tr', { class: 'at-fault' }, el('td', null, at.entry), el('td', { colspan: 4 }, statusTag('fail'), ' ', el('code', null, id), ' ', el('code', null, fault ?? ''))),
        ),
        ...newest.map((entry) => {
          const fault = faults.find(({ at }) => at.entry === entry.entry);
          return el(
            'tr',
            { class: fault ? 'at-fault' : null },
            el('td', null, entry.entry),
            el('td', null, shown(entry.kind, 80), fault && [' ', statusTag('fail')]),
            el('td', null, shown(entry.task_id, 80)),
            el('td', null, time(entry.ts)),
            el('td', null, hashStart(entry.entry_hash)),
          );
        }),
      ),
    ),
    el('p', { class: 'hint' }, 'Times are not covered by any hash.'),
  );
}

/** The last events of journals that no receipt shows. */
export function journals(list, reports, every) {
  if (reports.some(({ facts }) => Array.isArray(facts.window))) return [];
  return list.slice(0, LEDGERS).map(({ file, events }, index) => {
    const id = `journal-${index}`;
    const faults = every.filter(({ status, at }) => status === 'fail' && at?.file === file && at.entry !== undefined);
    return el(
      'section',
      { 'aria-labelledby': `${id} ${id}-of` },
      el('h2', { id }, 'Journal'),
      el('p', { class: 'hint', id: `${id}-of` }, shown(file, 200)),
      scroller(
        `Last events of ${shown(file, 80)}, newest first`,
        el('thead', null, el('tr', null, ...['Event', 'What', 'Time', 'Hash'].map((name) => el('th', { scope: 'col' }, name)))),
        el(
          'tbody',
          null,
          ...[...events].reverse().map((event) =>
            el(
              'tr',
              { class: faults.some(({ at }) => at.entry === event.index) ? 'at-fault' : null },
              el('td', null, event.index),
              el('td', null, shown(event.event, 120)),
              el('td', null, event.ts === null ? '' : time(event.ts)),
              el('td', null, hashStart(event.event_hash)),
            ),
          ),
        ),
      ),
    );
  });
}

/** A table that scrolls in itself, also by keyboard. */
export function scroller(label, ...parts) {
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label }, el('table', null, ...parts));
}
