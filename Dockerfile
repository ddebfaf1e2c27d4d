# syntax=docker/dockerfile:1
# Two stages: a toolchain that builds, and a small system that serves.
#
#   docker build -t throng .
#   docker run -p 5433:5433 -v throng:/var/lib/throng -e THRONG_PASSWORD=secret throng

FROM rust:1.95-bookworm AS build
WORKDIR /src
COPY . .
RUN --mount=type=cache,target=/usr/local/cargo/registry \
    --mount=type=cache,target=/target \
    CARGO_TARGET_DIR=/target cargo build --release --locked \
    && install -D /target/release/throng /out/throng

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install -y --no-install-recommends postgresql-client \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --system --uid 5433 --home-dir /var/lib/throng --create-home throng
COPY --from=build /out/throng /usr/local/bin/throng
COPY packaging/docker-entrypoint.sh /usr/local/bin/docker-entrypoint.sh
USER throng
VOLUME /var/lib/throng
EXPOSE 5433
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s \
    CMD ["pg_isready", "-q", "-h", "/tmp", "-p", "5433", "-U", "postgres"]
ENTRYPOINT ["docker-entrypoint.sh"]
CMD ["throng", "serve", "--data", "/var/lib/throng/data", "--listen", "0.0.0.0:5433"]
