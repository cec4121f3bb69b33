"""The drain's time budget as a table: `python -m tests.unit.control.budget_table` writes it to DESIGN.md."""

from tests.unit.design import DESIGN, with_part

from rocketfleet.control.budget import Margin


def table() -> str:
    rows = [f"| {_name(one)} | {one.seconds:,g} | {one.beyond.value} | {one.why} |" for one in Margin]
    return "\n".join(["| margin | seconds | beyond | why |", "|---|---|---|---|", *rows, ""])


def _name(margin: Margin) -> str:
    return margin.name.lower().replace("_", " ")


def written(document: str) -> str:
    """The document with the table of now between its marks."""
    return with_part(document, "drain budget", table())


if __name__ == "__main__":
    DESIGN.write_text(written(DESIGN.read_text()))
