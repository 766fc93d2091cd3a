// Verifies evidence bundles without Tollgate: with Node.js, jco and docs/evidence.md.
//
//   npm install @bytecodealliance/jco-transpile
//   node verify-evidence.mjs loyalty.evidence.tar
//
// For each bundle: every digest of SHA256SUMS is computed again, the policy is asked again on this
// JavaScript engine, and the decision digest is computed from its answer as docs/decision-digest.md
// says. Prints the digest; exit code 1 when any of it differs. What it holds against the answer is the
// decision, its digest, the statements and the receipt's digests; `tollgate evidence verify` compares
// every member and every byte.

import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { transpileBytes } from '@bytecodealliance/jco-transpile';

const GATE = 'tollgate:policy/gate@1.0.0';
const OPERATIONS = ['create-table', 'drop-table', 'insert', 'delete'];
const ACCESSES = ['create', 'drop', 'write', 'read'];
const SEVERITIES = ['error', 'advisory'];
const MANIFEST = '{"format":"tollgate-evidence","version":1}';
const BEFORE = [
  'manifest.json',
  'request.json',
  'payload.sql',
  'policy/component.wasm',
  'policy/policy.wit',
  'policy/pin.toml',
  'decision.json',
  'decision.bin',
];

const hash = (bytes) => createHash('sha256').update(bytes).digest();
const digest = (bytes) => `sha256:${hash(bytes).toString('hex')}`;

const u32 = (value) => Buffer.from(Uint32Array.of(value).buffer);
const u64 = (value) => Buffer.from(BigUint64Array.of(BigInt(value)).buffer);
const text = (value) => Buffer.concat([u64(Buffer.byteLength(value)), Buffer.from(value)]);
const list = (items, item) => Buffer.concat([u64(items.length), ...items.map(item)]);
const option = (value, some) =>
  value === undefined ? Buffer.of(0) : Buffer.concat([Buffer.of(1), some(value)]);
const span = (it) => Buffer.concat([u32(it.start), u32(it.end)]);
const table = (it) =>
  Buffer.concat([text(it.catalog), text(it.name), u32(ACCESSES.indexOf(it.access))]);
const statement = (it) =>
  Buffer.concat([
    u32(it.index),
    u32(OPERATIONS.indexOf(it.operation)),
    text(it.text),
    list(it.tables, table),
    span(it.span),
  ]);
const diagnostic = (it) =>
  Buffer.concat([
    text(it.code),
    u32(SEVERITIES.indexOf(it.severity)),
    option(it.statement, u32),
    option(it.span, span),
  ]);
const decision = ({ tag, val }) =>
  tag === 'allow'
    ? Buffer.concat([u32(0), list(val.statements, statement), list(val.advisories, diagnostic)])
    : Buffer.concat([u32(1), list(val, diagnostic)]);

/** Asks a fresh instance of the policy. It gets no imports, since it asks for none. */
async function decide(wasm, request) {
  const folder = mkdtempSync(join(tmpdir(), 'verify-evidence-'));
  try {
    const options = { name: 'policy', instantiation: 'sync', outDir: folder };
    const { files } = await transpileBytes(wasm, options);
    const entry = join(folder, 'policy.mjs');
    writeFileSync(entry, files[join(folder, 'policy.js')]);
    const { instantiate } = await import(pathToFileURL(entry).href);
    const module = (name) => new WebAssembly.Module(files[join(folder, name)]);
    return instantiate(module, {})[GATE].decide(request);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/**
 * The members of a bundle: plain files of a ustar archive, under the names and in the order of
 * docs/evidence.md. No other program is asked: a name is data, and never an argument.
 */
function read(bundle) {
  const archive = readFileSync(bundle);
  const members = new Map();
  let at = 0;
  const field = (from, to) => archive.toString('latin1', at + from, at + to).split('\0')[0];
  while (at + 512 <= archive.length && archive[at] !== 0) {
    const name = field(0, 100);
    const size = parseInt(field(124, 136), 8);
    const isFile = field(257, 263) === 'ustar' && field(156, 157) === '0' && field(345, 500) === '';
    if (!isFile || !(at + 512 + size <= archive.length)) {
      throw new Error('this is no archive of plain files');
    }
    if (members.has(name)) throw new Error(`\`${name}\` is there twice`);
    members.set(name, archive.subarray(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  const statements = [...members.keys()].filter((name) => /^statements\/\d{4}\.sql$/.test(name));
  const optional = ['receipt.json'].filter((name) => members.has(name));
  const wanted = [...BEFORE, ...statements, ...optional, 'versions.json', 'SHA256SUMS'];
  if (wanted.join() !== [...members.keys()].join()) {
    throw new Error('its members are not those of a bundle, in their order');
  }
  return members;
}

async function differences(bundle) {
  const found = [];
  const expect = (holds, what) => holds || found.push(what);
  const members = read(bundle);
  const sums = [...members].filter(([name]) => name !== 'SHA256SUMS');
  const computed = sums.map(([name, bytes]) => `${digest(bytes).slice(7)}  ${name}\n`).join('');
  expect(members.get('SHA256SUMS').toString() === computed, 'SHA256SUMS is not that of the members');
  const manifest = members.get('manifest.json').toString().trimEnd();
  expect(manifest === MANIFEST, 'it is of another format or version');

  const json = (name) => JSON.parse(members.get(name));
  const { catalog, protectedTables, payloadDigest } = json('request.json');
  const recorded = json('decision.json');
  const [wasm, payload] = [members.get('policy/component.wasm'), members.get('payload.sql')];
  expect(digest(payload) === payloadDigest, 'the payload is not the one that was asked about');
  expect(digest(wasm) === recorded.policy.digest, 'the component is not the one that decided');

  const answer = await decide(wasm, { payload, catalog, protectedTables });
  const preimage = Buffer.concat([
    text('tollgate-decision-v1'),
    hash(wasm),
    hash(payload),
    text(catalog),
    list(protectedTables, text),
    decision(answer),
  ]);
  const decided = digest(preimage);
  expect(preimage.equals(members.get('decision.bin')), 'decision.bin is not what the policy answers');
  expect(decided === recorded.decisionDigest, `the decision has the digest ${decided}`);
  expect(answer.tag === recorded.decision, `the policy says ${answer.tag}`);
  const texts = answer.tag === 'allow' ? answer.val.statements.map((it) => it.text) : [];
  const kept = [...members].filter(([name]) => name.startsWith('statements/'));
  const same = kept.length === texts.length && kept.every(([, it], at) => it.equals(Buffer.from(texts[at])));
  expect(same, 'the statements are not those the policy prints');
  if (members.has('receipt.json')) {
    const receipt = json('receipt.json');
    expect(receipt.contentHash === digest(payload), "the receipt's contentHash differs");
    expect(receipt.policyDigest === digest(wasm), "the receipt's policyDigest differs");
    expect(receipt.decisionDigest === decided, "the receipt's decisionDigest differs");
    expect(receipt.statementCount === texts.length, "the receipt's statementCount differs");
  }
  console.log(`${decided}  ${bundle}`);
  return found;
}

const bundles = process.argv.slice(2);
if (bundles.length === 0) {
  console.error('usage: node verify-evidence.mjs BUNDLE...');
  process.exit(2);
}
for (const bundle of bundles) {
  const found = await differences(bundle).catch((error) => [error.message]);
  for (const difference of found) {
    console.error(`${bundle}: ${difference}`);
    process.exitCode = 1;
  }
}
