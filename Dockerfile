# syntax=docker/dockerfile:1
# Berth's image: one program, no shell, no package manager, no root.
#
# Linked against glibc and laid on distroless/cc of the same Debian release, rather than built for musl and laid on `scratch`:
# the measured program and the shipped one then have the same C library and the same resolver, ring needs no second C
# toolchain, and the base brings what `scratch` lacks and Berth reads: time zone data and the public CA certificates.

FROM docker.io/library/rust:1.95.0-bookworm AS build
WORKDIR /berth

# The dependencies alone, behind an empty program: this layer is built again when the manifest or the lock file changes, not when
# a source file does. Cargo needs a file for every bench and every test program that the manifest names, although nothing here builds them.
COPY Cargo.toml Cargo.lock ./
COPY crates crates
RUN mkdir -p src benches tests \
    && touch src/lib.rs \
    && for bench in $(sed -n '/^\[\[bench\]\]/,/^$/s/^name = "\(.*\)"$/\1/p' Cargo.toml); do touch "benches/$bench.rs"; done \
    && for test in $(sed -n '/^\[\[test\]\]/,/^$/s/^name = "\(.*\)"$/\1/p' Cargo.toml); do touch "tests/$test.rs"; done \
    && echo 'fn main() {}' > src/main.rs \
    && cargo build --release --locked --package berth --no-default-features \
    && rm -r src

# The sandbox (the API server inside the process) is a default feature for the demo and the tests, and no part of the image.
# A copied file keeps its time, which may be older than the empty program's: without `touch` cargo would call that one fresh.
COPY . .
RUN touch src/lib.rs src/main.rs \
    && cargo build --release --locked --package berth --no-default-features

FROM gcr.io/distroless/cc-debian12:nonroot
ARG VERSION=0.1.0
ARG REVISION=unknown
LABEL org.opencontainers.image.title="berth" \
      org.opencontainers.image.description="GPU sharing for Kubernetes: an admission webhook and a binder in one binary" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.base.name="gcr.io/distroless/cc-debian12:nonroot"
COPY --from=build --chown=0:0 --chmod=0755 /berth/target/release/berth /berth
# By number, so that `runAsNonRoot` can be checked without reading /etc/passwd.
USER 65532:65532
EXPOSE 8443
ENTRYPOINT ["/berth"]
CMD ["serve"]
