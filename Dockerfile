# Build: docker build -t berth .
# Run:   docker run --read-only -p 8888:8888 -v "$PWD/cluster.json:/cluster.json:ro" berth serve --cluster /cluster.json
FROM debian:12 AS build
WORKDIR /src
RUN apt-get update -qq && apt-get install -y -qq --no-install-recommends make
COPY . .
# Without symbols: 64 MB become 8.5 MB. release/release.sh keeps them apart.
RUN make build \
 && strip build/release/bin/berth build/release/bin/berth-replay build/release/bin/berth-node

FROM debian:12-slim
RUN apt-get update -qq \
 && apt-get install -y -qq --no-install-recommends \
      libssl3 libyaml-cpp0.7 libspdlog1.10 libfmt9 libprometheus-cpp-core1.0 libsimdjson14 \
      libcpprest2.10 libpugixml1v5 libre2-9 \
 && rm -rf /var/lib/apt/lists/*
COPY --from=build /src/build/release/bin/berth /src/build/release/bin/berth-replay /src/build/release/bin/berth-node \
     /usr/local/bin/
# No name is looked up and nothing is written: any UID and a read-only root will do.
USER 65532:65532
EXPOSE 8888
ENTRYPOINT ["/usr/local/bin/berth"]
CMD ["serve"]
