"""The lineage spine, schemes 1 and 2."""

from __future__ import annotations

import base64
import dataclasses
import hmac
import json
from pathlib import Path
from typing import Any

from peer.common import Args, key_of, load, op, plain, sdd_dir


def open_spine(args: Args) -> Any:
    """The spine of ``root``/``run_id`` (root: ``.sdd/lineage`` of ``workdir``)."""
    module = load("core.lineage.spine")
    root = Path(args["root"]) if "root" in args else sdd_dir(args) / "lineage"
    return module.LineageSpine(
        root,
        run_id=args["run_id"],
        hmac_key=key_of(args),
        hash_profile=args.get("hash_profile", module.HASH_PROFILE_LEGACY),
    )


@op("spine.append")
def spine_append(args: Args) -> Any:
    """Append ``entries``; the artifact's bytes are ``content`` or ``content_b64``."""
    spine = open_spine(args)
    rows = []
    for item in args["entries"]:
        fields = dict(item)
        if "content_b64" in fields:
            fields["content"] = base64.b64decode(fields.pop("content_b64"))
        else:
            fields["content"] = fields["content"].encode()
        rows.append(spine.record_entry(**fields))
    return {"rows": rows, "head_hash": spine.head_hash(), "path": str(spine.spine_path)}


@op("spine.append_v1")
def spine_append_v1(args: Args) -> Any:
    """Append rows of scheme 1, which the reference reads and no longer writes.

    Hash and tag come from the reference's own functions, called for scheme 1;
    ``spine.head`` is left as it is.
    """
    module = load("core.lineage.spine")
    spine = open_spine(args)
    key = key_of(args)
    spine.run_dir.mkdir(parents=True, exist_ok=True)
    previous = spine.head_hash()
    rows = []
    for item in args["entries"]:
        fields = dict(item)
        content = fields.pop("content").encode()
        fields |= {"prev_hash": previous, "content_hash": module.content_hash_of(content)}
        entry = module.SpineEntry(
            v=1, entry_hash=module.compute_entry_hash(**fields), hmac="", **fields
        )
        tag = hmac_hex(key, entry.body())
        entry = dataclasses.replace(entry, hmac=tag)
        if not module.verify_entry(entry, key):
            raise RuntimeError("the reference refuses the row that was made for it")
        with spine.spine_path.open("ab") as file:
            file.write(entry.to_row().rstrip(b"\n") + b"\n")
        rows.append(entry)
        previous = entry.entry_hash
    return {"rows": rows, "head_hash": previous, "path": str(spine.spine_path)}


@op("spine.verify")
def spine_verify(args: Args) -> Any:
    """Recompute a spine's chain and tags."""
    result = open_spine(args).verify()
    return {"ok": result.ok, **plain(result)}


@op("spine.rows")
def spine_rows(args: Args) -> Any:
    """The entries as the reference reads them, and its head."""
    spine = open_spine(args)
    return {"rows": list(spine.iter_entries()), "head_hash": spine.head_hash()}


def hmac_hex(key: bytes, body: dict[str, Any]) -> str:
    """The scheme 1 tag: HMAC-SHA256 with the master key over the ``utf8`` encoding."""
    text = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hmac.new(key, text.encode(), "sha256").hexdigest()
