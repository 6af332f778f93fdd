// SPDX-License-Identifier: Apache-2.0
//
// Streams of pods that ask for parts of GPUs in two dimensions - compute and memory of one card -
// on a fleet; drawn from a seed.
//
// A mix is a list of classes. A class has a weight (of its pods among all), and asks for whole
// GPUs, or for a share: compute and memory, each drawn from its own list with equal chances and
// without regard to the other. What pods really ask for is not published in two dimensions (openb
// has compute alone), so all of this is an assumption, said in share_workload.cc and in
// docs/replay.md. CPUs and main memory are there for all: what is judged is the choice of
// a card.
//
// Arrivals are Poisson, running times log-normal (time/stream.h), and at the start as many pods
// come as if the stream had always run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/replay/time/stream.h"
#include "cluster/node/node.h"
#include "cluster/values/pod_request.h"

namespace berth::replay {

// So many nodes that have so many cards of one memory size.
struct ShareNodes {
  int nodes = 1, gpus = 8;
  std::int64_t memory_mib = 81'920;
};

struct ShareOptions {
  // Mean demand over the fleet's capacity, in the scarcer of compute and memory; > 0.
  double load = 1.0;
  double hours = 12;
  double mean_lifetime_s = 3600;
  std::uint64_t seed = 1;
  std::vector<ShareNodes> fleet = {{16, 8, 81'920}};
};

struct SharePod {
  std::size_t kind = 0;  // of ShareWorkload::kinds
  Millis at{0};
  Millis runs{0};
};

struct ShareWorkload {
  std::string mix;
  std::vector<NodeSpec> nodes;
  std::vector<RequestShape> kinds;  // each once
  std::vector<double> gpus;         // per kind: what one pod counts (GpusOf)
  std::vector<SharePod> pods;       // by time
  std::size_t primed = 0;           // the first so many stand for what was running before
  Millis horizon{0};
};

//   notebooks   little of both
//   inference   much memory, little compute
//   training    much compute, little memory
//   both        inference and training, such that as much is asked of the one dimension as of the
//               other
//   whole       both, beside pods with 1, 2, 4 and 8 whole GPUs
std::vector<std::string_view> ShareMixNames();

// "16x8x81920,8x4x24576": nodes x cards x MiB of a card. Error: kInvalidArgument.
Result<std::vector<ShareNodes>> ParseShareFleet(const std::string& text);

// Same seed, same workload. Error: kInvalidArgument naming the mixes there are; or more pods than
// kMostArrivals.
Result<ShareWorkload> DrawShareWorkload(const std::string& mix, const ShareOptions& options);

// How many GPUs a pod counts: the whole ones; of a share the larger of its two parts, the memory
// over the mean memory of the fleet's cards.
double GpusOf(const RequestShape& shape, double mean_card_mib);

}  // namespace berth::replay
