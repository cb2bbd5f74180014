"""The respondent's page: one HTML file with everything in it, the same bytes for the same survey
and address.
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
    """Write the page of a survey: it loads nothing and may talk to the collector's address
    alone.
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
    # In one pass: what is put in is not looked at again.
    return re.sub(r"\{(\w+)\}", lambda named: parts[named[1]], part("page.html")).encode()


def page_hash(content: bytes) -> str:
    """Return the hash that a respondent compares with `sha256sum` of the saved page."""
    return hashlib.sha256(content).hexdigest()


def part(name: str) -> str:
    return (files("discreet.local") / "web" / name).read_text(encoding="utf-8")


def _csp_hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
