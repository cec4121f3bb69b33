# One file, one image a role; so far the worker. The base is an argument, so that it also builds where no registry can be
# reached: BASE_IMAGE is any image with Python 3.11+, and PIP_ARGS="--no-index --find-links /src/wheels" takes wheels that
# were put beside the sources.
ARG BASE_IMAGE=python:3.11-slim

FROM ${BASE_IMAGE} AS build
ARG PIP_ARGS=""
COPY . /src
RUN python3 -m venv /opt/rocketfleet \
 && /opt/rocketfleet/bin/pip install --no-cache-dir --disable-pip-version-check ${PIP_ARGS} /src

FROM ${BASE_IMAGE} AS worker
COPY --from=build /opt/rocketfleet /opt/rocketfleet
ENV PATH=/opt/rocketfleet/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# A number, so that runAsNonRoot can be checked by the kubelet.
USER 65532:65532
WORKDIR /tmp
ENTRYPOINT ["rocketfleet"]
