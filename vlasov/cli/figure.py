"""The command about the papers' figures: figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from vlasov.cli.options import JsonOption, command
from vlasov.cli.pictures import Picture
from vlasov.cli.printing import print_json
from vlasov.errors import InputError


@command()
def figure(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which figures; their names if none are given.")
    ] = None,
    *,
    every: Annotated[bool, typer.Option("--all", help="Every figure.")] = False,
    picture: Picture,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="The picture, or a folder; NAME.png here if not given.")
    ] = None,
    threads: Annotated[int | None, typer.Option("--threads", help="How many to use; all if not given.")] = None,
    as_json: JsonOption = False,
) -> None:
    """Draw the papers' figures, and print the facts of their captions as numbers."""
    from vlasov.errors import choose
    from vlasov.jit import set_threads
    from vlasov.postprocess.drawing.paper import printed
    from vlasov.postprocess.papers import figure_names, paper_figure, parameters
    from vlasov.solvers.progress import waiting

    known = figure_names()
    if not names and not every and as_json:
        print_json([{"name": name, "title": parameters(name)["title"]} for name in known])
        return
    if not names and not every:
        width = max(map(len, known))
        for name in known:
            print(f"{name:<{width}}  {parameters(name)['title']}")
        return
    if names and every:
        raise InputError("stands beside names; give either", "--all")
    chosen = known if every else [choose(name, known, "figure") for name in names or []]
    alone = len(chosen) == 1 and output is not None and bool(output.suffix)
    folder = output or Path()
    targets = {name: picture.place(output if alone else None, folder / name, sources=[name]) for name in chosen}
    set_threads(threads)
    found: dict[str, Any] = {}
    for name, target in targets.items():
        with waiting(f"figure {name}"), printed(picture.width):
            drawn, facts = paper_figure(name)
        picture.write(lambda drawn=drawn: drawn, target)  # type: ignore[misc]
        found[name] = facts | {"picture": str(target.path)}
        if not as_json:
            _tell(name, parameters(name)["title"], facts)
            print(target.path)
    if as_json:
        print_json(found)


def _tell(name: str, title: str, facts: dict[str, Any]) -> None:
    """A line for each fact, under the panel that it is about."""
    from vlasov.postprocess.papers.told import told

    print(f"{name}: {title}")
    for panel, words in told(facts):
        if isinstance(words, str):
            print(f"  {panel}: {words}")
            continue
        print(f"  {panel}")
        for what, one in words:
            print(f"    {what}: {one}")
