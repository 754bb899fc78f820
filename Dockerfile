# traceconv with the extras for tables and SQL:
#   docker build -t traceconv . && docker run --rm -v "$PWD:/data" traceconv report profile.json
FROM python:3.13-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev
COPY . /source
RUN python -m venv /opt/traceconv && /opt/traceconv/bin/pip install --no-cache-dir '/source[sql,zstd]'

FROM python:3.13-slim
COPY --from=build /opt/traceconv /opt/traceconv
WORKDIR /data
ENTRYPOINT ["/opt/traceconv/bin/traceconv"]
