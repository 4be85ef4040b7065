// Verdicts and statuses: each a word, a shape and a tone. The shape and the word say it; the
// colour only repeats it.

import { el, svg } from './text.js';

const VERDICTS = {
  verified: ['good', 'check-filled', 'All recomputes, and something outside the evidence vouches for it.'],
  consistent: ['plain', 'check', 'All recomputes. Nothing outside the evidence vouches for all of it.'],
  incomplete: ['caution', 'part', 'Nothing failed, but something could not be checked.'],
  degraded: ['caution', 'triangle', 'A receipt that was made where there was no journal.'],
  empty: ['plain', 'square', 'There is nothing in it.'],
  absent: ['bad', 'slashed', 'There is no evidence in what was given.'],
  failed: ['bad', 'cross', 'The evidence does not hold.'],
  diverged: ['bad', 'fork', 'Two lineages of one run: somebody has to keep one.'],
};

const STATUSES = {
  fail: ['bad', 'cross', 'FAIL'],
  not_checked: ['caution', 'part', 'NOT CHECKED'],
  warn: ['caution', 'triangle', 'WARN'],
  pass: ['good', 'check', 'PASS'],
  not_applicable: ['none', 'square', 'N/A'],
};

const SHAPES = {
  'check-filled': [['circle', { cx: 12, cy: 12, r: 10, class: 'fill' }], ['path', { d: 'm7.5 12.5 3 3 6-7', class: 'on' }]],
  check: [['circle', { cx: 12, cy: 12, r: 9.5 }], ['path', { d: 'm7.5 12.5 3 3 6-7' }]],
  part: [
    ['circle', { cx: 12, cy: 12, r: 9.5, 'stroke-dasharray': '3.7 2.27' }],
    ['path', { d: 'M12 7v6' }],
    ['path', { d: 'M12 16.5v.5' }],
  ],
  triangle: [['path', { d: 'M12 3.5 22 20.5H2z' }], ['path', { d: 'M12 10v5' }], ['path', { d: 'M12 17.5v.3' }]],
  square: [['path', { d: 'M4 4h16v16H4z' }], ['path', { d: 'M8.5 12h7' }]],
  slashed: [['circle', { cx: 12, cy: 12, r: 9.5 }], ['path', { d: 'm5.5 18.5 13-13' }]],
  cross: [
    ['path', { d: 'M8 2h8l6 6v8l-6 6H8l-6-6V8z', class: 'fill' }],
    ['path', { d: 'm8.5 8.5 7 7m0-7-7 7', class: 'on' }],
  ],
  fork: [['path', { d: 'M12 22v-8m0 0L4.5 5m7.5 9 7.5-9' }], ['path', { d: 'M4 10V4.5h5M20 10V4.5h-5' }]],
};

const WORST_FIRST = Object.keys(STATUSES);

/** The verdict's tone: the class of its colours. */
export function tone(verdict) {
  return (VERDICTS[verdict] ?? ['none'])[0];
}

/** What a verdict means, in a sentence. */
export function gloss(verdict) {
  return (VERDICTS[verdict] ?? ['', '', ''])[2];
}

/** The verdict's shape. */
export function verdictShape(verdict) {
  return shape((VERDICTS[verdict] ?? ['', 'square'])[1]);
}

/** A verdict, small: its shape and its word. */
export function verdictTag(verdict) {
  return el('span', { class: `tag ${tone(verdict)}` }, verdictShape(verdict), verdict);
}

/** A status: its shape and its word. */
export function statusTag(status) {
  const [colour, name, word] = STATUSES[status] ?? ['none', 'square', status];
  return el('span', { class: `tag ${colour}` }, shape(name), word);
}

/** Where a status stands among the others; failing ones first. */
export function rank(status) {
  const found = WORST_FIRST.indexOf(status);
  return found < 0 ? WORST_FIRST.length : found;
}

function shape(name) {
  const parts = SHAPES[name].map(([kind, attributes]) => svg(kind, attributes));
  return svg('svg', { viewBox: '0 0 24 24', class: 'shape', 'aria-hidden': 'true' }, ...parts);
}
