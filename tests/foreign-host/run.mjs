// Runs the published policy components outside Tollgate, on this JavaScript engine, over the whole
// corpus, and compares every decision digest with the one `tollgate check` gives in the same run.
//
//   node run.mjs TOLLGATE_BINARY REPOSITORY

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { transpileBytes } from '@bytecodealliance/jco-transpile';

import { preimage, sha256, written } from './preimage.mjs';

const CATALOG = 'plugin_preview';
const PROTECTED_TABLES = ['factory_plugin_target_receipt'];
const GATE = 'tollgate:policy/gate@1.0.0';

const [tollgate, repository] = process.argv.slice(2);

/** A command's JSON lines. A denial is exit code 1, and no failure. */
function jsonLines(folder, ...args) {
  const options = { cwd: folder, encoding: 'utf8', maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'inherit'] };
  let stdout;
  try {
    stdout = execFileSync(tollgate, args, options);
  } catch (error) {
    if (error.status !== 1 || error.stdout === '') throw error;
    stdout = error.stdout;
  }
  return stdout.trimEnd().split('\n').map((line) => JSON.parse(line));
}

/** Both corpora and a few payloads that are not even text, as bytes. */
function payloads() {
  const corpus = (name) =>
    readFileSync(join(repository, 'tests/corpus', name), 'utf8').trimEnd().split('\n').map((line) => JSON.parse(line));
  const sql = [...corpus('decisions.jsonl'), ...corpus('fidelity.jsonl')].map((it) =>
    Buffer.from(it.sql.replaceAll('{db}', CATALOG), 'utf8'),
  );
  const raw = ['', 'DROP TABLE IF EXISTS t\0', 'INSERT IGNORE INTO t VALUES (\xc3'];
  return [...sql, ...raw.map((it) => Buffer.from(it, 'latin1'))];
}

/** Compiles a component to JavaScript and core modules; gives a function that asks a fresh instance. */
async function load(component, folder) {
  const { files, imports } = await transpileBytes(component, {
    name: 'policy',
    instantiation: 'sync',
    outDir: folder,
  });
  assert.deepEqual(imports, [], 'a policy imports nothing');
  const modules = new Map();
  for (const [path, bytes] of Object.entries(files)) {
    if (path.endsWith('.wasm')) modules.set(path.slice(folder.length + 1), new WebAssembly.Module(bytes));
  }
  // By another name than it was given: only `.mjs` is a module for every version of Node.
  const entry = join(folder, 'policy.mjs');
  writeFileSync(entry, files[join(folder, 'policy.js')]);
  const { instantiate } = await import(pathToFileURL(entry).href);
  return (request) => instantiate((name) => modules.get(name), {})[GATE].decide(request);
}

/** The decision of this engine on a payload: its word and its digest. */
function decide(ask, component, payload) {
  const answer = ask({ payload, catalog: CATALOG, protectedTables: PROTECTED_TABLES });
  const subject = { component: sha256(component), payload: sha256(payload), catalog: CATALOG };
  const bytes = preimage({ ...subject, protectedTables: PROTECTED_TABLES, answer });
  return { decision: answer.tag, decisionDigest: written(sha256(bytes)) };
}

/** Compares one policy over all payloads; returns how many digests differ. */
async function compare(pin, all, folder) {
  const component = readFileSync(join(repository, 'policies', pin.file));
  assert.equal(written(sha256(component)), pin.digest, `${pin.file} is not the pinned one`);
  const ask = await load(component, mkdtempSync(join(folder, 'js-')));
  const payloadFolder = mkdtempSync(join(folder, 'payloads-'));
  all.forEach((payload, at) => writeFileSync(join(payloadFolder, `${String(at).padStart(5, '0')}.sql`), payload));
  const ours = jsonLines(payloadFolder, 'check', '--format', 'json', '--executor', pin.executor, '--catalog', CATALOG, '.');
  assert.equal(ours.length, all.length, 'every payload has a line');

  let divergences = 0;
  const seen = { allow: 0, deny: 0 };
  ours.forEach((line, at) => {
    assert.equal(line.payloadDigest, written(sha256(all[at])), `${line.path} is another payload`);
    const theirs = decide(ask, component, all[at]);
    seen[theirs.decision] += 1;
    if (theirs.decision !== line.decision || theirs.decisionDigest !== line.decisionDigest) {
      divergences += 1;
      console.error(`${line.path}: ${line.decision} ${line.decisionDigest}, elsewhere`, theirs);
    }
  });
  // A comparison that saw one kind of decision alone, or cannot tell two apart, compared nothing.
  assert.ok(seen.allow > 0 && seen.deny > 0, 'allows and denials were compared');
  assert.equal(new Set(ours.map((line) => line.decisionDigest)).size, new Set(all.map(String)).size);
  console.log(
    `${pin.name} ${pin.version} on V8 ${process.versions.v8}: ${all.length} cases ` +
      `(${seen.allow} allowed, ${seen.deny} denied), divergences ${divergences}`,
  );
  return divergences;
}

/** The bytes of the example in docs/decision-digest.md hash to the digest it names. */
function checkExample() {
  const page = readFileSync(join(repository, 'docs/decision-digest.md'), 'utf8');
  const digits = page.split('```text\n')[1].split('```')[0].replace(/#.*$/gm, '').replace(/\s/g, '');
  assert.ok(page.includes(`\`${written(sha256(Buffer.from(digits, 'hex')))}\``), 'the documented example');
}

const folder = mkdtempSync(join(tmpdir(), 'tollgate-foreign-host-'));
try {
  checkExample();
  const all = payloads();
  let divergences = 0;
  const pins = jsonLines(repository, 'policy', 'list', '--format', 'json');
  for (const pin of pins) divergences += await compare(pin, all, folder);
  assert.ok(pins.length > 0, 'there is a published policy');
  process.exitCode = divergences === 0 ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
