"""Canonical JSON and the scrubber."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from typing import Any

from peer.common import Args, load, op


def encode_text(text: str, jcs: Callable[[Any], bytes] | None) -> dict[str, Any]:
    """All encodings of one JSON text, or why CPython refuses it."""
    flags: set[str] = set()

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(items)
        if len(made) != len(items):
            flags.add("duplicate_key")
        return made

    def number(token: str) -> float:
        value = float(token)
        if math.isinf(value):
            flags.add("overflow")
        return value

    def constant(token: str) -> float:
        flags.add("constant")
        return float(token)

    try:
        value = json.loads(
            text, object_pairs_hook=pairs, parse_float=number, parse_constant=constant
        )
    except (ValueError, RecursionError) as error:
        return {"refused": type(error).__name__, "message": str(error)}

    result: dict[str, Any] = {"flags": sorted(flags)}
    compact = (",", ":")
    encoders: dict[str, Callable[[], str]] = {
        "ascii": lambda: json.dumps(value, sort_keys=True, separators=compact),
        "ascii_spaced": lambda: json.dumps(value, sort_keys=True),
        "utf8": lambda: (
            json.dumps(value, sort_keys=True, separators=compact, ensure_ascii=False)
            .encode()
            .decode()
        ),
    }
    if jcs is not None:
        encoders["jcs_v2"] = lambda: jcs(value).decode()
    for name, encode in encoders.items():
        try:
            result[name] = encode()
        except (ValueError, TypeError, RecursionError) as error:
            result[name + "_refused"] = type(error).__name__
    return result


@op("json.encode")
def json_encode(args: Args) -> Any:
    """Encode JSON texts (``texts``, or ``texts_b64`` for raw bytes)."""
    jcs = None
    if args.get("jcs", True):
        jcs = load("core.security.agent_card_signer").canonicalize_jcs
    results: list[dict[str, Any]] = [encode_text(text, jcs) for text in args.get("texts", [])]
    for coded in args.get("texts_b64", []):
        try:
            text = base64.b64decode(coded, validate=True).decode("utf-8")
        except UnicodeDecodeError as error:
            results.append({"refused": type(error).__name__, "message": str(error)})
        else:
            results.append(encode_text(text, jcs))
    return {"results": results}


@op("redact")
def redact(args: Args) -> Any:
    """What the reference's scrubber makes of ``texts``, and how many hits it counts."""
    scrub = load("core.security.redactor").redact_text
    pairs = [scrub(text) for text in args["texts"]]
    return {"results": [{"text": text, "count": count} for text, count in pairs]}
