// Writes lib/options.ts from the core's table of options. With --check it only tells whether that is in step.
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const FILE = new URL('../lib/options.ts', import.meta.url);
const { options } = createRequire(import.meta.url)('../dist/native.js');

const TYPES = {
  duration: 'number',
  optional_duration: 'number | null',
  boolean: 'boolean',
  integer: 'number',
  text: 'string',
  info: 'string | Record<string, string>',
};
const UNITS = { duration: ' In milliseconds.', optional_duration: ' In milliseconds; null: without end.' };

const camelCase = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());

/** Prose in lines that are not too long, as a comment at a field. */
function comment(text) {
  const lines = [[]];
  for (const word of text.split(' ')) {
    if ([...lines.at(-1), word].join(' ').length > 110) lines.push([]);
    lines.at(-1).push(word);
  }
  const prose = lines.map((line) => line.join(' '));
  return prose.length === 1 ? `  /** ${prose[0]} */` : ['  /**', ...prose.map((line) => `   * ${line}`), '   */'].join('\n');
}

function field({ name, kind, default: usual, words, doc }) {
  const text = doc.replaceAll('`0s`', '`0`').replaceAll(/`([a-z]+_[a-z_]+)`/g, (_, other) => `\`${camelCase(other)}\``);
  const standard = usual === '' ? '' : ` Default: ${usual}.`;
  const type = words.length > 0 ? words.map((word) => `'${word}'`).join(' | ') : TYPES[kind];
  return `${comment(`${text}${UNITS[kind] ?? ''}${standard}`)}\n  ${camelCase(name)}?: ${type} | undefined;`;
}

function type(name, meaning, above, rows) {
  const head = `/** ${meaning} */\nexport interface ${name}${above ? ` extends ${above}` : ''} {`;
  return `${head}\n${rows.map(field).join('\n')}\n}\n`;
}

const table = JSON.parse(options());
const scope = (wanted) => table.filter((row) => row.scope === wanted);
const text = [
  "// Made from the core's table of options by `npm run options`.\n",
  type('HoldOptions', 'Options of whatever is held.', '', scope('hold')),
  type('WaitOptions', 'Options that a lock and an election have.', 'HoldOptions', scope('wait')),
  type('LockOptions', 'Options of a lock.', 'WaitOptions', scope('lock')),
  type('JobOptions', 'Options of a job.', 'HoldOptions', scope('job')),
  type('ElectionOptions', 'Options of an election.', 'WaitOptions', scope('election')),
  type('VersionOptions', 'Options of a version.', '', scope('version')),
  type('ClientOptions', 'Options of a client: its own, and the defaults of what it makes.', 'LockOptions, ElectionOptions, JobOptions, VersionOptions', scope('client')),
].join('\n');

if (!process.argv.includes('--check')) {
  writeFileSync(FILE, text);
} else if (readFileSync(FILE, 'utf8') !== text) {
  console.error('lib/options.ts is not in step with the table of options; run `npm run options`');
  process.exitCode = 1;
}
