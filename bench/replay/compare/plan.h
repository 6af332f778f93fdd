// SPDX-License-Identifier: Apache-2.0
//
// Plan: the runs of a comparison - every policy on every trace with every seed - and how they are
// divided into shards.
#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/replay/compare/trace_set.h"
#include "bench/replay/policy.h"
#include "bench/replay/time/departures.h"

namespace berth::replay {

// One run of the plan. Runs are numbered: policies turn fastest, then seeds, then traces.
struct RunKey {
  std::size_t number = 0;
  std::size_t trace = 0;  // indices into the plan
  std::size_t policy = 0;
  std::uint64_t seed = 0;
};

struct Plan {
  std::vector<ReplayPolicy> policies;
  std::vector<Trace> traces;
  std::string orders_folder;  // published arrival orders; empty = drawn
  std::uint64_t first_seed = 42;
  std::uint64_t seeds = 1;
  double inflate = 1.3;
  DepartureOptions departures;

  [[nodiscard]] std::size_t runs() const { return policies.size() * traces.size() * seeds; }
  // Requires: number < runs().
  [[nodiscard]] RunKey Key(std::size_t number) const;
};

// Everything that the results depend on: of policies their names and the texts of configurations,
// of traces their names and fingerprints, and the models that their tasks want in vain
// (missing_models.h).
nlohmann::ordered_json PlanJson(const Plan& plan);

// Part I of N, written "I/N", 1 <= I <= N: the runs whose number is I - 1 modulo N, so that every
// part has its share of the slow policies and long traces.
struct Shard {
  std::size_t index = 1;
  std::size_t count = 1;
  [[nodiscard]] bool Has(std::size_t number) const { return number % count == index - 1; }
  friend bool operator==(const Shard&, const Shard&) = default;
};
Result<Shard> ParseShard(std::string_view text);

}  // namespace berth::replay
