"""The command about this installation: doctor."""

from __future__ import annotations

from typing import Any

from vlasov.cli.options import JsonOption, command
from vlasov.cli.printing import finite, print_json
from vlasov.errors import SolverError


@command()
def doctor(as_json: JsonOption = False) -> None:
    """Say what a bug report needs to say, and check sums and solvers against exact answers."""
    from vlasov import doctor as examine

    found = examine.environment()
    if not as_json:
        for key, value in found.items():
            print(f"{key:<15} {_plainly(value)}")
    checks = []
    for check in examine.self_check():
        checks.append(check)
        if not as_json:
            verdict = "right" if check.passed else "WRONG"
            print(f"  {verdict}  {check.name}: off by {check.error:.1e} ({check.seconds:.1f} s)", flush=True)
    if as_json:
        told = [check._asdict() | {"error": finite(check.error), "passed": check.passed} for check in checks]
        print_json(found | {"checks": told})
    if not all(check.passed for check in checks):
        raise SolverError("this installation computes wrong numbers; please report what was printed above")


def _plainly(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {entry}" for key, entry in value.items()) or "none set"
    return ", ".join(value) if isinstance(value, list) else str(value)
