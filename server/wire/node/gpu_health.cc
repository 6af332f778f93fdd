// SPDX-License-Identifier: Apache-2.0
#include "server/wire/node/gpu_health.h"

#include <algorithm>

#include "base/text.h"

namespace berth::wire {
namespace {

constexpr std::string_view kSaidBy = "annotation berth.dev/gpu-health";

}  // namespace

std::string CloseUnwell(std::string_view ids, NodeSpec& spec) {
  const bool has_names = !std::ranges::all_of(spec.gpus, &std::string::empty, &GpuSpec::uuid);
  if (ids.empty() || (!has_names && !spec.mig.known())) return "";
  const std::string key = std::string(kSaidBy) + ": ";
  std::string problem;
  std::size_t read = 0;
  for (const std::string_view id : PartsOf(ids, ',')) {
    if (++read > kMostUnwellIds) {
      problem = key + "want at most " + std::to_string(kMostUnwellIds) + " IDs, got more";
      break;
    }
    const bool known = CloseNamed(spec, id, kSaidBy);
    if (!known && has_names && problem.empty() && !id.starts_with("MIG-")) {
      problem = key + "want UUIDs of the node's " + std::to_string(spec.gpus.size()) +
                " GPUs, got \"" + Shortened(id, 64) + "\"";
    }
  }
  return problem;
}

}  // namespace berth::wire
