// SPDX-License-Identifier: Apache-2.0
//
// A cluster with idle nodes of 8 GPUs behind a SlowApi, and a `berth serve` that is ready.
#pragma once

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "bench/lab/gang_trials/slow_api.h"
#include "bench/replay/server_process.h"

namespace berth::gang_trials {

inline constexpr int kGpusPerNode = 8;

class World {
 public:
  // hold: gangs.holdSeconds. Ends the program with a message if berth does not come up.
  World(const std::string& berth, int nodes, Duration binding,
        std::chrono::seconds hold = std::chrono::seconds(50));

  [[nodiscard]] SlowApi& api() { return api_; }
  [[nodiscard]] const std::string& address() const { return berth_.address(); }  // of berth
  // Of the nodes, as the elements of a JSON list.
  [[nodiscard]] const std::string& names() const { return names_; }
  // That berth has used so far.
  [[nodiscard]] Duration cpu() const;

 private:
  SlowApi api_;
  std::string names_;
  replay::ServerProcess berth_;
};

std::string NodeName(int number);

// A pod in namespace "ns"; its UID is "uid-" and the name.
nlohmann::json APod(const std::string& name, int gpus, int cpu_milli = 1000);
nlohmann::json AMember(const std::string& gang, int number, int members, int gpus = 1,
                       int cpu_milli = 1000);

}  // namespace berth::gang_trials
