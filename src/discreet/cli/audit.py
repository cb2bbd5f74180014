"""`discreet audit`: lower bounds on ε from runs, and a ledger recomputed from the noise that it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

Out = Annotated[Path | None, typer.Option(help="Write the report here, as one HTML page.")]
Json = Annotated[str, typer.Option("--format", help="table or json.")]


def register(app: typer.Typer) -> None:
    audit = typer.Typer(no_args_is_help=True, help="Audit mechanisms and ledgers.", rich_markup_mode=None)
    audit.command()(mechanism)
    audit.command()(ledger)
    app.add_typer(audit, name="audit")


def mechanism(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A mechanism, or all.")],
    runs: Annotated[int, typer.Option(help="How often to run it on each of two neighbors.")] = 1_000_000,
    confidence: Annotated[float, typer.Option(help="Of the lower bound.")] = 0.999999,
    out: Out = None,
    format: Json = "table",
) -> None:
    """Prove a lower bound on a mechanism's ε from runs alone, and hold it beside the claim."""
    from discreet.audit.epsilon import AUDITS, audited
    from discreet.audit.report import mechanisms_page

    findings = [audited(each, runs=runs, confidence=confidence) for each in (AUDITS if name == "all" else (name,))]
    if out is not None:
        out.write_text(mechanisms_page(findings), encoding="utf-8")
    if format == "json":
        told = [
            {"mechanism": each.mechanism, "claimed": each.claimed, "delta": each.delta, "proved": each.proved}
            | {"runs": each.runs, "confidence": each.confidence, "sound": each.sound}
            for each in findings
        ]
        print(json.dumps(told))
    else:
        for each in findings:
            verdict = "holds" if each.sound else "BROKEN"
            proved = f"proved {each.proved:.4g} in {each.runs:,} runs"
            print(f"{each.mechanism}: claimed ε {each.claimed:.4g}, {proved}: {verdict}")
    if not all(each.sound for each in findings):
        raise typer.Exit(1)


def ledger(
    policy: Annotated[str, typer.Argument(metavar="POLICY", help="The policy file.")],
    out: Out = None,
    format: Json = "table",
) -> None:
    """Verify a ledger's chain and recompute every charge from the noise that it names."""
    from discreet.audit.ledger import audited
    from discreet.audit.report import ledger_page
    from discreet.budget import number
    from discreet.policy import Policy

    read = Policy.read(policy)
    found = audited(read)
    currency = "ε" if read.budget.accountant == "sum" else "ρ"
    if out is not None:
        out.write_text(ledger_page(found, currency=currency), encoding="utf-8")
    broken = [each.id for each in found.charges if not each.covered]
    if format == "json":
        told = {"rows": found.rows, "charges": len(found.charges), "not_covered": broken, "sound": found.sound}
        print(json.dumps(told | {"spent": str(found.spent.amount), "limit": str(found.limit.amount)}))
    else:
        spent = f"{currency} = {number(found.spent.amount)} spent of {number(found.limit.amount)}"
        verdict = "Sound." if found.sound else "BROKEN."
        print(f"{found.rows} rows verified, {len(found.charges)} charges recomputed: {spent}. {verdict}")
        for id in broken:
            print(f"Charge {id} costs more than was charged.")
    if not found.sound:
        raise typer.Exit(1)
