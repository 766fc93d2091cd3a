// Verifies evidence bundles without Tollgate: with Node.js, jco and docs/evidence.md.
//
//   npm install @bytecodealliance/jco-transpile
//   node verify-evidence.mjs loyalty.evidence.tar
//
// For each bundle: every digest of SHA256SUMS is computed again, the policy is asked again on this
// JavaScript engine, and the decision digest is computed from its answer as docs/decision-digest.md
// says. Prints the digest; exit code 1 when anything differs.

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

import { transpileBytes } from '@bytecodealliance/jco-transpile';

const GATE = 'tollgate:policy/gate@1.0.0';
const OPERATIONS = ['create-table', 'drop-table', 'insert', 'delete'];
const ACCESSES = ['create', 'drop', 'write', 'read'];
const SEVERITIES = ['error', 'advisory'];

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

/** The members of a bundle, as the system's tar reads them. */
function read(bundle) {
  const tar = (...args) => execFileSync('tar', args, { maxBuffer: 1 << 30 });
  const names = tar('--list', '--file', bundle).toString().trimEnd().split('\n');
  const content = (name) => tar('--extract', '--to-stdout', '--file', bundle, name);
  return new Map(names.map((name) => [name, content(name)]));
}

async function differences(bundle) {
  const found = [];
  const expect = (holds, what) => holds || found.push(what);
  const members = read(bundle);
  const sums = [...members].filter(([name]) => name !== 'SHA256SUMS');
  const computed = sums.map(([name, bytes]) => `${digest(bytes).slice(7)}  ${name}\n`).join('');
  expect(members.get('SHA256SUMS').toString() === computed, 'SHA256SUMS is not that of the members');

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
  for (const difference of await differences(bundle)) {
    console.error(`${bundle}: ${difference}`);
    process.exitCode = 1;
  }
}
