#!/usr/bin/env python3
"""Verifies evidence bundles without Tollgate: with Python, wasmtime's package and docs/evidence.md.

    pip install wasmtime
    python3 verify_evidence.py loyalty.evidence.tar

For each bundle: every digest of SHA256SUMS is computed again, the policy is asked again, and the
decision digest is computed from its answer as docs/decision-digest.md says. Prints the digest; exit
code 1 when any of it differs. What it holds against the answer is the decision, its digest, the
statements and the receipt's digests; `tollgate evidence verify` compares every member and every byte.
"""

import hashlib
import json
import re
import struct
import sys
import tarfile

from wasmtime import Engine, Store, component

GATE = "tollgate:policy/gate@1.0.0"
OPERATIONS = ["create-table", "drop-table", "insert", "delete"]
ACCESSES = ["create", "drop", "write", "read"]
SEVERITIES = ["error", "advisory"]
MANIFEST = b'{"format":"tollgate-evidence","version":1}'
STATEMENT = re.compile(r"statements/\d{4}\.sql")
BEFORE = [
    "manifest.json",
    "request.json",
    "payload.sql",
    "policy/component.wasm",
    "policy/policy.wit",
    "policy/pin.toml",
    "decision.json",
    "decision.bin",
]


def digest(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def u32(value):
    return struct.pack("<I", value)


def text(value):
    content = value.encode()
    return struct.pack("<Q", len(content)) + content


def listed(items, item):
    return struct.pack("<Q", len(items)) + b"".join(map(item, items))


def option(value, some):
    return b"\0" if value is None else b"\1" + some(value)


def span(it):
    return u32(it.start) + u32(it.end)


def table(it):
    return text(it.catalog) + text(it.name) + u32(ACCESSES.index(it.access))


def statement(it):
    return (
        u32(it.index)
        + u32(OPERATIONS.index(it.operation))
        + text(it.text)
        + listed(it.tables, table)
        + span(it.span)
    )


def diagnostic(it):
    return (
        text(it.code)
        + u32(SEVERITIES.index(it.severity))
        + option(it.statement, u32)
        + option(it.span, span)
    )


def decision(answer):
    # The package hands a variant's value over: a list is a denial, a record an allowance.
    if isinstance(answer, list):
        return u32(1) + listed(answer, diagnostic)
    return u32(0) + listed(answer.statements, statement) + listed(answer.advisories, diagnostic)


def decide(wasm, payload, catalog, protected_tables):
    """Asks a fresh instance of the policy. It gets no imports, since it asks for none."""
    engine = Engine()
    store = Store(engine)
    policy = component.Linker(engine).instantiate(store, component.Component(engine, wasm))
    gate = policy.get_export_index(store, GATE)
    function = policy.get_func(store, policy.get_export_index(store, "decide", gate))
    request = component.Record()
    request.__dict__.update(
        {"payload": payload, "catalog": catalog, "protected-tables": protected_tables}
    )
    return function(store, request)


def read(bundle):
    """The members: plain files, under the names and in the order of docs/evidence.md."""
    with tarfile.open(bundle, "r:") as archive:
        entries = archive.getmembers()
        if not all(it.isreg() for it in entries):
            raise ValueError("not every member is a plain file")
        members = {it.name: archive.extractfile(it).read() for it in entries}
    statements = [name for name in members if STATEMENT.fullmatch(name)]
    receipt = ["receipt.json"] if "receipt.json" in members else []
    wanted = BEFORE + statements + receipt + ["versions.json", "SHA256SUMS"]
    if wanted != [it.name for it in entries]:
        raise ValueError("its members are not those of a bundle, in their order")
    return members


def differences(bundle):
    members = read(bundle)
    sums = members.pop("SHA256SUMS").decode()
    if members["manifest.json"].rstrip() != MANIFEST:
        yield "it is of another format or version"
    computed = "".join(f"{digest(content)[7:]}  {name}\n" for name, content in members.items())
    if sums != computed:
        yield "SHA256SUMS is not that of the members"
    request = json.loads(members["request.json"])
    recorded = json.loads(members["decision.json"])
    wasm, payload = members["policy/component.wasm"], members["payload.sql"]
    if digest(payload) != request["payloadDigest"]:
        yield "the payload is not the one that was asked about"
    if digest(wasm) != recorded["policy"]["digest"]:
        yield "the component is not the one that decided"
    answer = decide(wasm, payload, request["catalog"], request["protectedTables"])
    preimage = (
        text("tollgate-decision-v1")
        + hashlib.sha256(wasm).digest()
        + hashlib.sha256(payload).digest()
        + text(request["catalog"])
        + listed(request["protectedTables"], text)
        + decision(answer)
    )
    if preimage != members["decision.bin"]:
        yield "decision.bin is not what the policy answers"
    if digest(preimage) != recorded["decisionDigest"]:
        yield f"the decision has the digest {digest(preimage)}, not {recorded['decisionDigest']}"
    said = "deny" if isinstance(answer, list) else "allow"
    if said != recorded["decision"]:
        yield f"the policy says {said}"
    texts = [] if isinstance(answer, list) else [it.text.encode() for it in answer.statements]
    if texts != [content for name, content in members.items() if name.startswith("statements/")]:
        yield "the statements are not those the policy prints"
    if "receipt.json" in members:
        receipt = json.loads(members["receipt.json"])
        for key, found in [
            ("contentHash", digest(payload)),
            ("policyDigest", digest(wasm)),
            ("decisionDigest", digest(preimage)),
            ("statementCount", len(texts)),
        ]:
            if receipt[key] != found:
                yield f"the receipt's {key} is {receipt[key]}, found is {found}"
    print(f"{digest(preimage)}  {bundle}")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    differs = False
    for bundle in sys.argv[1:]:
        try:
            found = list(differences(bundle))
        except (OSError, ValueError, KeyError, tarfile.TarError) as error:
            found = [f"it cannot be read: {error}"]
        for difference in found:
            print(f"{bundle}: {difference}", file=sys.stderr)
        differs = differs or bool(found)
    sys.exit(1 if differs else 0)


if __name__ == "__main__":
    main()
