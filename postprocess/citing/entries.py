"""The entries of ``references.bib`` as texts, by their keys: nothing of BibTeX is needed but where an entry begins."""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

SOFTWARE = "vlasov"
_BEGINS = re.compile(r"^@\w+\{([^,\s]+),", re.MULTILINE)


@cache
def read() -> dict[str, str]:
    """All entries, in the order of the file."""
    text = files("vlasov.postprocess.citing").joinpath("references.bib").read_text(encoding="utf-8")
    begins = [(found.start(), found.group(1)) for found in _BEGINS.finditer(text)]
    ends = [start for start, _ in begins[1:]] + [len(text)]
    return {key: text[start:end].strip() for (start, key), end in zip(begins, ends, strict=True)}


def completed(entry: str, **fields: str) -> str:
    """An entry with more fields at its end."""
    body = entry.removesuffix("}").rstrip()
    return "\n".join([body, *(f"  {name} = {{{value}}}," for name, value in fields.items()), "}"])
