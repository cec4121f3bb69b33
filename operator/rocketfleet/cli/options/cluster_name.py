"""`--cluster`, for commands that change something at every broker of a cluster."""

import click

cluster_option = click.option(
    "--cluster", metavar="NAME", help="Only the brokers of this cluster. Default: all that the name server knows."
)
