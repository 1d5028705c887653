"""What the terminal says of a Dataset."""

import io

from rich.console import Console

from vlasov.cli.printing import laid_out
from vlasov.postprocess.panels import notes_of, tables_of


def printed(dataset, columns=200):
    """Return tables, notes and doubts as text, in so many columns."""
    out = io.StringIO()
    for table in tables_of(dataset):
        Console(width=columns, file=out).print(laid_out(table, columns))
    return "\n".join([out.getvalue(), *notes_of(dataset), str(dataset.attrs.get("doubt", ""))])
