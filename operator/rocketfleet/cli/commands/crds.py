"""`rocketfleet crds`: the custom resource definition, written from the models."""

from pathlib import Path

import click


@click.command(epilog="\b\nExample:\n  rocketfleet crds | kubectl apply --server-side -f -")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write it into this directory; by default it is printed.",
)
@click.option("--check", is_flag=True, help="Write nothing; end with 1 if what is there is stale. [--out crds]")
@click.option(
    "--reference",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    metavar="FILE",
    help="Write the tables of this document too, as docs/manifest.md has them.",
)
def crds(out: Path | None, check: bool, reference: Path | None) -> None:
    """Print or write the definition of ConsumerGroup for Kubernetes."""
    try:
        from rocketfleet.api.crd import FILE_NAME, definition_text
        from rocketfleet.api.reference import written
    except ModuleNotFoundError as error:
        raise click.ClickException(
            f"{error.name} is not installed: in a checkout, pip install '.[operator]'"
        ) from error

    if out is None and not check and reference is None:
        click.echo(definition_text(), nl=False)
        return
    wanted: dict[Path, str] = {}
    if out is not None or check:
        wanted[(out or Path("crds")) / FILE_NAME] = definition_text()
    if reference is not None:
        wanted[reference] = written(reference.read_text())
    for path, text in wanted.items():
        if path.is_file() and path.read_text() == text:
            continue
        if check:
            raise click.ClickException(f"{path} is not what the models say: run `make crds`")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        click.echo(f"wrote {path}", err=True)
