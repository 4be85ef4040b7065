// Two lineages of one run, side by side from where they part.

import { scroller } from './ledger.js';
import { byNumber, counted, el, hashStart, shown, time } from './text.js';

/** A section for each fork. */
export function forks(list) {
  return list.slice(0, 20).map((fork, index) => {
    const id = `fork-${index}`;
    const [left, right] = fork.sides.map(({ entries }) => new Map(entries.map((entry) => [entry.entry, entry])));
    const numbers = [...new Set([...left.keys(), ...right.keys()])].sort(byNumber);
    return el(
      'section',
      { class: 'fork', 'aria-labelledby': id },
      el('h2', { id }, 'Run ', shown(fork.run_id, 120), ' parts at entry ', fork.entry),
      el('p', { class: 'hint' }, fork.entry === '0' ? 'They have no entry in common.' : `Up to there, ${counted(fork.entry, 'entry')} in common. Neither side is marked as right: nothing in the files says so.`),
      numbers.length === 0
        ? el('p', null, 'The files are too long to show their entries here.')
        : scroller(
            `Both lineages of ${shown(fork.run_id, 80)} around the fork`,
            el(
              'thead',
              null,
              el(
                'tr',
                null,
                el('th', { scope: 'col' }, 'Entry'),
                ...fork.sides.map((side) =>
                  el('th', { scope: 'col' }, shown(side.name, 120), el('span', { class: 'count' }, ` ${counted(side.entry_count, 'entry')}`)),
                ),
              ),
            ),
            el('tbody', null, ...numbers.map((number) => pair(number, fork.entry, left.get(number), right.get(number)))),
          ),
    );
  });
}

function pair(number, fork, left, right) {
  const order = byNumber(number, fork);
  return el(
    'tr',
    { class: order < 0 ? 'common' : order === 0 ? 'parts' : null },
    el('th', { scope: 'row' }, number, order === 0 && el('span', { class: 'tag bad' }, 'fork')),
    cell(left),
    cell(right),
  );
}

function cell(entry) {
  if (!entry) return el('td', { class: 'nothing' }, 'no entry');
  return el(
    'td',
    null,
    el('b', null, shown(entry.kind, 80)),
    entry.task_id && [' ', shown(entry.task_id, 80)],
    el('div', { class: 'under' }, time(entry.ts), hashStart(entry.entry_hash)),
  );
}
