# One file, an image for each role, by its name: `docker build --target worker|operator|spark .`
#
# BASE_IMAGE is any image with Python 3.11 or newer and pip; the spark target needs one with Java 17 too, or a Debian that
# can install it. Where a build cannot reach a package index, put wheels into wheels/ beside this file first:
#     pip wheel --wheel-dir wheels '.[operator]'
# If there are any, nothing else is installed from; without, versions and hashes are those of release/requirements/.
# docs/install.md has the commands.
ARG BASE_IMAGE=python:3.11-slim

FROM ${BASE_IMAGE} AS build
# Without pip in it, and out of the base's own Python: all that the last stage needs is a copy of the directory.
RUN python3 -m venv --without-pip /opt/rocketfleet
COPY pyproject.toml README.md LICENSE /src/
COPY operator /src/operator
# A pattern that matches nothing is an error on its own; beside a file that is always there it is not.
COPY pyproject.toml wheel[s] /wheels/
COPY release /src/release

FROM ${BASE_IMAGE} AS runtime
# The root file system may be read-only: nothing is written, bytecode was compiled at the installation.
ENV PATH=/opt/rocketfleet/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 HOME=/tmp
# A number, so that the kubelet can tell that it is not root.
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["rocketfleet"]

# Docker's old builder makes every stage above the one it is asked for, so each role's stages follow those of a smaller one.
FROM build AS build-worker
RUN /src/release/install-rocketfleet ""

FROM runtime AS worker
COPY --from=build-worker /opt/rocketfleet /opt/rocketfleet

FROM build AS build-operator
# "operator,history" also brings pyarrow, for a history of lag in Parquet files.
ARG OPERATOR_EXTRAS=operator
RUN /src/release/install-rocketfleet "$OPERATOR_EXTRAS"

FROM runtime AS operator
COPY --from=build-operator /opt/rocketfleet /opt/rocketfleet

FROM build AS build-spark
RUN /src/release/install-rocketfleet spark

FROM runtime AS spark
USER 0
# Hadoop's libraries ask who they are, and take no number for an answer.
RUN grep -q ':65532:' /etc/passwd || echo 'rocketfleet:x:65532:65532:rocketfleet:/tmp:/usr/sbin/nologin' >> /etc/passwd
RUN command -v java > /dev/null || { apt-get update && apt-get install -y --no-install-recommends openjdk-17-jre-headless && rm -rf /var/lib/apt/lists/*; }
COPY --from=build-spark /opt/rocketfleet /opt/rocketfleet
ENV PYSPARK_PYTHON=/opt/rocketfleet/bin/python
USER 65532:65532
# Spark's scheduler starts executors by the one argument `executor`, where no pod template says otherwise.
ENTRYPOINT ["rocketfleet", "spark"]
