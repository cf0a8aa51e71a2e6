# The bridge. It runs beside the server: give it the server's log folder, read-only, and a folder for its state.
#
#   docker build -t otel-bridge .
#   docker run -v server-logs:/app/logs:ro -v otel-bridge-state:/var/lib/otel-bridge \
#       otel-bridge tail /app/logs --endpoint http://collector:4318
FROM python:3.13 AS build
# The core is compiled, for which the image that is not slim has a compiler.
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1
WORKDIR /src
COPY requirements/ requirements/
RUN python -m venv /opt/otel-bridge \
    && /opt/otel-bridge/bin/pip install --require-hashes -r requirements/runtime.txt \
    && pip install --require-hashes -r requirements/build.txt -r requirements/compiled.txt
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY otel_bridge/ otel_bridge/
RUN pip wheel --no-deps --no-build-isolation --wheel-dir dist . \
    && /opt/otel-bridge/bin/pip install --no-deps dist/*-cp*.whl

FROM python:3.13-slim
COPY --from=build /opt/otel-bridge /opt/otel-bridge
# The state is private. A named volume takes over who owns the folder.
RUN install -d -m 0700 -o 1000 -g 1000 /var/lib/otel-bridge
ENV PATH=/opt/otel-bridge/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    OTEL_BRIDGE_STATE_DIR=/var/lib/otel-bridge
USER 1000:1000
ENTRYPOINT ["otel-bridge"]
CMD ["tail", "/app/logs"]
