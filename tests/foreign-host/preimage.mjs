// The decision digest as docs/decision-digest.md describes it, written from that page alone.
//
// Nothing here is shared with the host's Rust code, and it must stay so: it is the second opinion.

import { createHash } from 'node:crypto';

const FORMAT = 'tollgate-decision-v1';

const OPERATIONS = ['create-table', 'drop-table', 'insert', 'delete'];
const ACCESSES = ['create', 'drop', 'write', 'read'];
const SEVERITIES = ['error', 'advisory'];

/** SHA-256 of bytes, as bytes. */
export const sha256 = (bytes) => createHash('sha256').update(bytes).digest();

/** A digest as Tollgate writes it. */
export const written = (digest) => `sha256:${digest.toString('hex')}`;

const u32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

const u64 = (value) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};

const text = (value) => {
  const bytes = Buffer.from(value, 'utf8');
  return Buffer.concat([u64(bytes.length), bytes]);
};

const list = (items, item) => Buffer.concat([u64(items.length), ...items.map(item)]);

const option = (value, some) =>
  value === undefined || value === null
    ? Buffer.from([0])
    : Buffer.concat([Buffer.from([1]), some(value)]);

const tag = (names, name) => {
  const index = names.indexOf(name);
  if (index < 0) throw new Error(`\`${name}\` is none of ${names.join(', ')}`);
  return u32(index);
};

const span = ({ start, end }) => Buffer.concat([u32(start), u32(end)]);

const table = ({ catalog, name, access }) =>
  Buffer.concat([text(catalog), text(name), tag(ACCESSES, access)]);

const statement = (it) =>
  Buffer.concat([
    u32(it.index),
    tag(OPERATIONS, it.operation),
    text(it.text),
    list(it.tables, table),
    span(it.span),
  ]);

const diagnostic = (it) =>
  Buffer.concat([
    text(it.code),
    tag(SEVERITIES, it.severity),
    option(it.statement, u32),
    option(it.span, span),
  ]);

const decision = ({ tag: kind, val }) =>
  kind === 'allow'
    ? Buffer.concat([u32(0), list(val.statements, statement), list(val.advisories, diagnostic)])
    : Buffer.concat([u32(1), list(val, diagnostic)]);

/**
 * The bytes whose SHA-256 is the decision digest. `component` and `payload` are digests, as bytes;
 * `answer` is what the component returned.
 */
export function preimage({ component, payload, catalog, protectedTables, answer }) {
  return Buffer.concat([
    text(FORMAT),
    component,
    payload,
    text(catalog),
    list(protectedTables, text),
    decision(answer),
  ]);
}
