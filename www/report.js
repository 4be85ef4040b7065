// The verifier's JSON as values to show. What is saved are always its own bytes.

// A page shows no more of one text, and of one list, than this.
const TEXT = 2000;
const LISTED = 500;

/**
 * The report, and what is shown besides it, as values: numbers stay the text that they are, so
 * that no digit is lost, and texts of any length are cut, so that nothing stalls over one.
 */
export function legible(json) {
  return cut(JSON.parse(quoteNumbers(json)));
}

/** JSON in which each number has become a string with the same digits. */
export function quoteNumbers(json) {
  const parts = [];
  for (let at = 0; at < json.length; ) {
    const open = json.indexOf('"', at);
    const between = json.slice(at, open < 0 ? json.length : open);
    parts.push(between.replace(/-?\d[\d.eE+-]*/g, '"$&"'));
    if (open < 0) break;
    let close = json.indexOf('"', open + 1);
    while (isEscaped(json, close)) close = json.indexOf('"', close + 1);
    parts.push(json.slice(open, close + 1));
    at = close + 1;
  }
  return parts.join('');
}

function isEscaped(json, at) {
  let slashes = 0;
  while (json[at - 1 - slashes] === '\\') slashes += 1;
  return slashes % 2 === 1;
}

function cut(value) {
  if (typeof value === 'string') return value.length > TEXT ? `${value.slice(0, TEXT)}…` : value;
  if (Array.isArray(value)) return worstFirst(value).slice(0, LISTED).map(cut);
  if (value === null || typeof value !== 'object') return value;
  const names = Object.keys(value).slice(0, LISTED);
  const kept = names.map((name) => [name.length > TEXT ? `${name.slice(0, TEXT)}…` : name, cut(value[name])]);
  const object = Object.fromEntries(kept);
  // How many there were, where not all of them are kept.
  if (value.subjects?.length > LISTED) object.subject_count = String(value.subjects.length);
  return object;
}

const BADNESS = ['failed', 'diverged', 'absent', 'incomplete', 'degraded', 'empty', 'consistent', 'verified'];

/** Reports with the worst first; other lists as they are. */
function worstFirst(list) {
  if (list.length <= LISTED || !list.every((one) => one?.schema && one.verdict)) return list;
  return [...list].sort((a, b) => BADNESS.indexOf(a.verdict) - BADNESS.indexOf(b.verdict));
}
