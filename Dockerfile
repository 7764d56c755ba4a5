# docker build -t fetchstash .
# docker run -i --rm --read-only -v fetchstash:/data fetchstash
# For a team, with the extra team, which is in it: deploy/compose.yaml and deploy/kubernetes.yaml.
# The base has glibc: RE2, the library of regular expressions, has no wheel for musl (Alpine).
ARG BASE=python:3.13-slim-bookworm
FROM ${BASE} AS build
COPY requirements/team.txt /tmp/requirements.txt
RUN python -m venv /opt/fetchstash \
 && /opt/fetchstash/bin/pip install --no-cache-dir --require-hashes --only-binary :all: -r /tmp/requirements.txt
# What builds the wheel is locked with the rest.
COPY pyproject.toml README.md LICENSE THIRD_PARTY.md /src/
COPY fetchstash /src/fetchstash
RUN /opt/fetchstash/bin/pip install --no-cache-dir --no-deps --no-build-isolation /src

FROM ${BASE}
COPY --from=build /opt/fetchstash /opt/fetchstash
# All that is written goes to the one volume, so that the root may be read-only.
RUN mkdir -m 0700 /data && chown 10001:10001 /data
ENV HOME=/data TMPDIR=/data FETCHSTASH_STORE_FOLDER=/data/store PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
VOLUME /data
WORKDIR /data
ENTRYPOINT ["/opt/fetchstash/bin/fetchstash"]
CMD ["serve"]
