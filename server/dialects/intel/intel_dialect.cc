// SPDX-License-Identifier: Apache-2.0
//
// How pods ask Intel's GPU Aware Scheduling for a part of a GPU, beside gpu.intel.com/i915 or
// gpu.intel.com/xe, per container:
//
//   1 GPU, millicores                 so many thousandths of its compute; 1000: the whole GPU
//   1 GPU, memory.max (bytes)         that much memory; compute goes with it
//   1 GPU, both                       both
//   several GPUs with either, tiles   refused: such parts are not Berth's to give
//
// They become shares on nodes of that resource. As no agent there learns which GPU was chosen, no
// node takes them unless shares that nobody carries out are allowed. (intel/platform-aware-
// scheduling, gpu-aware-scheduling/docs/usage.md.)
#include <array>
#include <string>

#include "server/dialects/registry.h"

namespace berth::dialects {
namespace {

constexpr std::string_view kMillicores = "gpu.intel.com/millicores";
constexpr std::string_view kMemoryMax = "gpu.intel.com/memory.max";
constexpr std::string_view kTiles = "gpu.intel.com/tiles";
constexpr std::array kIntelResources = {kMillicores, kMemoryMax, kTiles};

class IntelDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return "intel"; }
  [[nodiscard]] wire::DialectKeys keys() const override { return {.resources = kIntelResources}; }

  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    if (amount <= 0) return {};
    if (resource == kTiles) {
      return Invalid(std::string(kTiles) +
                     ": want whole GPUs, or a part of one by gpu.intel.com/millicores and "
                     "gpu.intel.com/memory.max");
    }
    const bool compute = resource == kMillicores;
    (compute ? ask.share_milli : ask.share_bytes) = wire::Capped(amount);
    ask.part_resource = compute ? kMillicores : kMemoryMax;
    return {};
  }

  [[nodiscard]] Status FindShares(wire::PodParts& parts) const override {
    for (wire::ContainerSpec& container : parts.containers) {
      wire::ResourceAsk& ask = container.ask;
      if (ask.part_resource != kMillicores && ask.part_resource != kMemoryMax) continue;
      if (ask.gpus != 1) {
        return Invalid("container " + container.name + ": " + std::string(ask.part_resource) +
                       ": want gpu.intel.com/i915: 1 or gpu.intel.com/xe: 1 beside it, since a "
                       "part is of one GPU, got " +
                       std::to_string(ask.gpus));
      }
      ask.part_resource = {};
      const bool whole = ask.share_milli == kMilliPerGpu;
      ask.gpus = whole ? 1 : 0;
      if (whole) ask.share_milli = ask.share_bytes = 0;
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeIntel() { return std::make_unique<IntelDialect>(); }

}  // namespace berth::dialects
