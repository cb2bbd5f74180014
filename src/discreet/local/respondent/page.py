"""The respondent's page: a single HTML file. The same survey and address always give the same
bytes, so its hash can be published.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from importlib.resources import files

from discreet.local.question import Survey
from discreet.pages.style import page_style


def page(survey: Survey, *, collector: str) -> bytes:
    """Write the page of a survey. It loads nothing, and may only connect to the collector's
    address.
    """
    script = part("encode.js") + "\n" + part("page.js")
    style = page_style() + part("page.css")
    compiled = survey.as_json() | {
        "fingerprint": survey.fingerprint,
        "collector": collector.rstrip("/"),
    }
    parts = {
        "connect": html.escape(collector.rstrip("/") + "/reports", quote=True),
        "style_hash": _csp_hash(style),
        "script_hash": _csp_hash(script),
        "style": style,
        # "<" is written as an escape, so that no text of a question can end the script element.
        "survey": json.dumps(compiled, ensure_ascii=True, sort_keys=True).replace("<", "\\u003c"),
        "script": script,
    }
    # Replace all in one pass, so that braces in an inserted text are not replaced.
    return re.sub(r"\{(\w+)\}", lambda named: parts[named[1]], part("page.html")).encode()


def page_hash(content: bytes) -> str:
    """Return the hash that a respondent compares with `sha256sum` of the saved page."""
    return hashlib.sha256(content).hexdigest()


def part(name: str) -> str:
    """Return the text of one of the page's files."""
    return (files("discreet.local") / "web" / name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
