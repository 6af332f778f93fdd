// SPDX-License-Identifier: Apache-2.0
//
// MPS by amounts: GPUs of NVIDIA's Multi-Process Service that are asked for by compute and memory
// instead of by places.
//
//   node  nvidia.com/mps-core     percent, 100 for each GPU; the GPUs are all alike
//         nvidia.com/mps-memory   GiB of all of them together
//   pod   nvidia.com/mps-core     percent of one GPU
//         nvidia.com/mps-memory   GiB of one GPU; either goes with the other where it is not said
//
// MPS keeps each client to its memory (CUDA_MPS_PINNED_DEVICE_MEM_LIMIT) and serves kMpsClients of
// them on a GPU. An agent learns from berth.dev/devices, or from berth.dev/visible-devices, which
// GPU that is. (docs.nvidia.com/deploy/mps: client limits, pinned memory. No public source of an
// agent with these resources is known; the units are those of its users.)
#include <algorithm>
#include <array>
#include <string>

#include "server/dialects/registry.h"

namespace berth::dialects {
namespace {

constexpr int kMpsClients = 48;
constexpr std::string_view kMpsAgent = "mps";
constexpr std::string_view kMpsCore = "nvidia.com/mps-core";
constexpr std::string_view kMpsMemory = "nvidia.com/mps-memory";
constexpr std::array kMpsResources = {kMpsCore, kMpsMemory};

constexpr std::int64_t kPercentPerGpu = 100;
constexpr std::int64_t kMpsMibPerGib = 1024;
constexpr std::int64_t kMostMpsGib = std::int64_t{1} << 30;

class MpsNode final : public wire::NodeReading {
 public:
  explicit MpsNode(const wire::NodeFacts& facts)
      : core_(facts.Resource(kMpsCore)), memory_(facts.Resource(kMpsMemory)) {}

  void CountGpus(wire::GpuDraft& draft) override {
    if (draft.shared) return;
    draft.shared = wire::SharedGpus{.agent = std::string(kMpsAgent),
                                    .resource = std::string(kMpsCore),
                                    .isolation = Isolation::kMemory};
    const std::int64_t gpus = core_.capacity / kPercentPerGpu;
    if (gpus < 1 || gpus > kMaxGpusPerNode || core_.capacity % kPercentPerGpu != 0) {
      draft.AddProblem(std::string(kMpsCore) + ": want 100 for each of 1.." +
                       std::to_string(kMaxGpusPerNode) + " GPUs, got " +
                       std::to_string(core_.capacity));
      return;
    }
    GpuSpec gpu;
    gpu.memory_mib =
        std::clamp<std::int64_t>(memory_.capacity, 0, kMostMpsGib) * kMpsMibPerGib / gpus;
    gpu.most_users = kMpsClients;
    draft.shared->gpus.assign(static_cast<std::size_t>(gpus), gpu);
    // What is unhealthy is not allocatable; which GPU that is remains unknown.
    const std::int64_t lost = std::max<std::int64_t>(core_.capacity - core_.allocatable, 0);
    draft.shared->missing =
        static_cast<int>(std::min((lost + kPercentPerGpu - 1) / kPercentPerGpu, gpus));
  }

 private:
  const wire::DeviceCount core_, memory_;
};

class MpsDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return kMpsAgent; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.resources = kMpsResources, .node_resources = kMpsResources};
  }

  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    if (facts.Resource(kMpsCore).capacity <= 0) return nullptr;
    return std::make_unique<MpsNode>(facts);
  }

  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    if (amount <= 0) return {};
    if (resource == kMpsCore) {
      ask.share_milli = wire::Capped(std::min(amount, kMostMpsGib) * kMilliPerGpu / kPercentPerGpu);
    } else {
      ask.share_bytes = std::min(amount, kMostMpsGib) << 30;
    }
    ask.share_agent = kMpsAgent;
    return {};
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeMps() { return std::make_unique<MpsDialect>(); }

}  // namespace berth::dialects
