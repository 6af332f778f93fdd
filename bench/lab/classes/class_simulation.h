// SPDX-License-Identifier: Apache-2.0
//
// Training, inference and batch under one policy (time/event_loop.h). A pod whose node is reclaimed
// waits again, for the rest of its work (KeptAfter).
#pragma once

#include <array>
#include <cstdint>

#include "base/result.h"
#include "bench/lab/classes/class_policies.h"
#include "bench/lab/classes/class_workload.h"

namespace berth::replay {

struct WorkService {
  // Pods that were not there at the start. One that never started has waited until the horizon.
  std::int64_t arrived = 0, never = 0;
  double mean_wait_s = 0, p99_wait_s = 0;  // to the first start
  std::int64_t reclaimed = 0;              // times that a pod, of any, lost its node
  // Within the horizon: what pods would have run had none waited; what they ran, without what a
  // reclaim undid; and what they had, that included, by the family of the node.
  double demand_gpu_hours = 0, served_gpu_hours = 0;
  std::array<double, kFamilies> held_gpu_hours{};
  double paid = 0;  // for the GPUs that they had

  [[nodiscard]] double held() const;
  [[nodiscard]] double served_pct() const {
    return demand_gpu_hours > 0 ? 100 * served_gpu_hours / demand_gpu_hours : 0;
  }
  // Of the GPU-hours that they had, in percent.
  [[nodiscard]] double PctOn(std::size_t family) const {
    return held() > 0 ? 100 * held_gpu_hours[family] / held() : 0;
  }
  // For a GPU-hour that was of use.
  [[nodiscard]] double price() const { return served_gpu_hours > 0 ? paid / served_gpu_hours : 0; }
};

// The last is all of them.
struct ClassResult : std::array<WorkService, kWorkClasses + 1> {
  std::uint64_t trace = 0;  // EventTrace
};

Result<ClassResult> SimulateClasses(const ClassWorkload& workload, const ClassPolicy& policy,
                                    std::uint64_t seed);

}  // namespace berth::replay
