"""The operations of driver.py, a module a subject.

Importing a module registers its operations. None of them imports the reference
before it is called.
"""

from __future__ import annotations

from peer import (
    anchor,
    audit,
    command,
    event_journal,
    ledger,
    receipt,
    spine,
    step_journal,
    text,
)

MODULES = (command, text, ledger, anchor, step_journal, event_journal, spine, audit, receipt)
