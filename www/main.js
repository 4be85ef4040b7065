// The page: takes evidence, has a worker check it, and shows what it found.

import { start } from './engine.js';
import { examples } from './examples.js';
import { fromInput, fromTransfer, plan } from './given.js';
import { save, saveHtml } from './save.js';
import { bytes, counted, el, shown } from './text.js';
import { result } from './result.js';

const at = (id) => document.getElementById(id);
// Short checks don't flash a bar; a screen reader is not told of every percent.
const SHOW_AFTER = 250;
const SPEAK_EVERY = 3000;

/** What was given last, so that it can be checked again; the worker that is at it; what is shown. */
const state = { subjects: null, key: null, fromExample: false, running: null, shown: null };

/** Checks the subjects and shows the result; gives the report's bytes, or nothing if cancelled. */
export async function verify(subjects, options = known(), key = state.key) {
  cancel();
  state.subjects = subjects;
  state.shown = null;
  at('problem').replaceChildren();
  at('result').hidden = true;
  document.body.classList.remove('has-result');
  try {
    if (subjects.length === 0) throw new Error('there is no file in what was given');
    const answer = await run({ ...plan(subjects), options, key });
    if (!answer) return null;
    await show(answer);
    return answer.report;
  } catch (error) {
    problem(error);
    return null;
  } finally {
    at('again').disabled = false;
  }
}

/** Lets a worker do the job. */
function run(job) {
  return new Promise((give, fail) => {
    const worker = start(job);
    const watch = progress();
    const stop = (end, value) => {
      worker.terminate();
      watch.end();
      state.running = null;
      end(value);
    };
    state.running = () => stop(give, null);
    worker.onerror = (event) => stop(fail, new Error(event.message || 'the worker failed'));
    worker.onmessageerror = () => stop(fail, new Error('the worker sent what can\'t be read'));
    worker.onmessage = ({ data }) => {
      if (data.error !== undefined) stop(fail, new Error(data.error));
      else if (data.report) stop(give, { ...data, report: new Uint8Array(data.report) });
      else watch.tell(data);
    };
  });
}

function cancel() {
  state.running?.();
}

function progress() {
  const from = performance.now();
  let spoken = from;
  let measured = null;
  const paint = () => {
    if (!measured) return;
    const { done, total } = measured;
    const seconds = (performance.now() - from) / 1000;
    const rate = done > 0 ? `, ${bytes(done / seconds)}/s` : '';
    at('measure').textContent = `${bytes(done)} of ${bytes(total)}${rate}`;
    at('bar').value = total > 0 ? done / total : 0;
    if (performance.now() - spoken > SPEAK_EVERY) {
      spoken = performance.now();
      say(`Checking: ${Math.floor((100 * done) / (total || 1))} percent`);
    }
  };
  const late = setTimeout(() => {
    paint();
    at('progress').hidden = false;
  }, SHOW_AFTER);
  return {
    tell(data) {
      measured = data;
      if (!at('progress').hidden) paint();
    },
    end() {
      clearTimeout(late);
      if (at('progress').contains(document.activeElement)) at('choose-files').focus();
      at('progress').hidden = true;
      at('measure').textContent = '';
      at('bar').value = 0;
    },
  };
}

/** The verdict first; then the rest, a section a turn, so that the page never stands still. */
async function show(answer) {
  const article = at('result');
  const sections = result(answer);
  article.replaceChildren(sections.next().value);
  state.shown = answer;
  article.hidden = false;
  document.body.classList.add('has-result');
  announce(answer, article);
  for (const section of sections) {
    await turn();
    if (state.shown !== answer) return;
    if (section) article.append(section);
  }
  article.querySelector('#save-json').onclick = () => save(answer.report);
  article.querySelector('#save-html').onclick = () => saveHtml(article, answer.version);
}

function turn() {
  return new Promise((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      done();
    };
    port2.postMessage(null);
  });
}

function announce(answer, article) {
  const name = shown(answer.legible.subject.name, 60);
  document.title = `${answer.legible.verdict}: ${name} – waybill verify`;
  at('about').textContent = `waybill verify ${answer.version}`;
  const verdict = article.querySelector('#verdict');
  verdict.focus({ preventScroll: true });
  document.getElementById('main').scrollIntoView({ block: 'start' });
  say(`${answer.legible.verdict}. ${shown(answer.legible.summary, 300)}`);
}

function problem(error) {
  const message = shown(error?.message ?? error);
  at('problem').replaceChildren(el('p', null, el('strong', null, 'Not checked. '), `${message[0]?.toUpperCase() ?? ''}${message.slice(1)}`));
  if (/^option |^the key /.test(message)) at('known').open = true;
}

function say(text) {
  at('said').textContent = text;
}

/** What the form says, as the verifier's options. */
function known() {
  const text = (id) => at(id).value.trim();
  const signers = signersIn(text('signer'));
  return {
    ...(signers.length > 0 && { signers }),
    ...(text('head') && { expected_head: text('head').toLowerCase() }),
    ...(text('commit') && { expected_commit: text('commit').toLowerCase() }),
  };
}

/** PEM blocks, and each line beside them. */
function signersIn(text) {
  const blocks = /-----BEGIN [^-]*-----[^-]*-----END [^-]*-----/g;
  const found = (text.match(blocks) ?? []).map((block) => `${block.split('\n').map((line) => line.trim()).join('\n')}\n`);
  const lines = text.replace(blocks, '').split('\n').map((line) => line.trim());
  return [...found, ...lines.filter((line) => line !== '')];
}

function knownChanged() {
  const count = Object.keys(known()).length + (state.key ? 1 : 0);
  at('known-count').textContent = count === 0 ? '' : `${counted(count, 'thing')} given`;
  at('key-name').textContent = state.key ? `${shown(state.key.name, 60)} is loaded. ` : '';
}

function forget() {
  at('options').reset();
  state.key = null;
  state.fromExample = false;
  knownChanged();
}

/** Evidence of the user's own: what an example brought along is not about it. */
function given(subjects) {
  if (state.fromExample) forget();
  return verify(subjects);
}

function example(name) {
  const { folder, files, key, signer } = examples[name];
  forget();
  at('signer').value = signer;
  state.key = new File([key], 'example-hmac.key');
  state.fromExample = true;
  knownChanged();
  const tree = Object.entries(files).map(([path, text]) => ({ path, file: new File([text], path.split('/').pop()) }));
  return verify([{ name: folder, tree }]);
}

function listen() {
  at('choose-files').onclick = () => at('files').click();
  at('choose-folder').onclick = () => at('folder').click();
  for (const id of ['files', 'folder']) {
    at(id).onchange = ({ target }) => {
      const subjects = fromInput(target.files);
      // The same files can be chosen once more.
      target.value = '';
      if (subjects.length > 0) given(subjects);
    };
  }
  at('example-good').onclick = () => example('good');
  at('example-tampered').onclick = () => example('tampered');
  at('cancel').onclick = () => {
    cancel();
    say('Cancelled');
  };
  at('key').onchange = ({ target }) => {
    state.key = target.files[0] ?? null;
    knownChanged();
  };
  at('options').oninput = knownChanged;
  at('options').onsubmit = (event) => {
    event.preventDefault();
    if (state.subjects) verify(state.subjects);
  };
  at('forget').onclick = forget;
  document.addEventListener('click', ({ target }) => {
    const button = target.closest('[data-copy]');
    if (button) copy(button);
  });
  // Everywhere: a drop beside the field must not open the file in place of this page.
  document.addEventListener('dragover', (event) => {
    event.preventDefault();
    at('drop').classList.add('over');
  });
  document.addEventListener('dragleave', ({ relatedTarget }) => {
    if (!relatedTarget) at('drop').classList.remove('over');
  });
  document.addEventListener('drop', async (event) => {
    event.preventDefault();
    at('drop').classList.remove('over');
    const reading = fromTransfer(event.dataTransfer);
    try {
      await given(await reading);
    } catch (error) {
      problem(error);
    }
  });
}

async function copy(button) {
  const text = button.dataset.copy;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = el('textarea', { class: 'for-readers', 'aria-hidden': 'true' });
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand('copy');
    area.remove();
    button.focus();
  }
  button.classList.add('done');
  setTimeout(() => button.classList.remove('done'), 1200);
  say('Copied');
}

listen();
knownChanged();

/** The same door as a drop, for whoever drives this page: gives the report's bytes. */
window.waybill = { verify: (subjects, options, key = null) => verify(subjects, options ?? {}, key) };
