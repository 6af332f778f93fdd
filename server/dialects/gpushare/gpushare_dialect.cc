// SPDX-License-Identifier: Apache-2.0
//
// gpushare: GPUs that AliyunContainerService's gpushare-device-plugin hands out by memory. It keeps
// nobody to their part.
//
//   node  aliyun.com/gpu-count   GPUs, all alike
//         aliyun.com/gpu-mem     the memory of all of them together, in units
//   pod   aliyun.com/gpu-mem     units of one GPU, of one main container: the plugin compares what
//                                a container asks for with the whole pod. One with more than one
//                                aliyun.com/gpu-count beside it is refused: the plugin gives a pod
//                                one GPU
//   pod   what its scheduler writes, and Berth with the Binding:
//         ALIYUN_COM_GPU_MEM_IDX             index of the GPU
//         ALIYUN_COM_GPU_MEM_DEV, _POD       units of that GPU, and of the pod
//         ALIYUN_COM_GPU_MEM_ASSUME_TIME     unix nanoseconds of the decision
//         ALIYUN_COM_GPU_MEM_ASSIGNED        "false"; "true" by the plugin
//
// A unit is a GiB, or a MiB where the plugin runs with --memory-unit=MiB (gpushare.memoryUnit in
// the configuration). Asked for so many units, the plugin takes the pod of its node with the oldest
// assume time that asks for as many, whichever pod it was asked for: one pod at a time may be on
// its way to its GPU (server/dialects/one_at_a_time.h). (gpushare-device-plugin at 0f2eade,
// pkg/gpu/nvidia/allocate.go; gpushare-scheduler-extender v0.2.0, pkg/utils/const.go.)
#include <array>
#include <string>

#include "base/text.h"
#include "server/dialects/registry.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::dialects {
namespace {

constexpr std::string_view kGpushareAgent = "gpushare";
constexpr std::string_view kUnitsResource = "aliyun.com/gpu-mem";
constexpr std::string_view kCountResource = "aliyun.com/gpu-count";
constexpr std::array kGpushareResources = {kUnitsResource, kCountResource};

constexpr std::string_view kIndexKey = "ALIYUN_COM_GPU_MEM_IDX";
constexpr const char* kAssignedKey = "ALIYUN_COM_GPU_MEM_ASSIGNED";
constexpr const char* kAssumeTimeKey = "ALIYUN_COM_GPU_MEM_ASSUME_TIME";
constexpr std::array kGpushareGrants = {kIndexKey};

constexpr std::int64_t kMibPerGib = 1024;
// No GPU has so many GiB, and none so few MiB.
constexpr std::int64_t kBetweenUnits = 1024;
constexpr std::int64_t kMostUnits = std::int64_t{1} << 40;

class GpushareNode final : public wire::NodeReading {
 public:
  GpushareNode(const wire::NodeFacts& facts, MemoryUnit unit)
      : units_(facts.Resource(kUnitsResource)),
        count_(facts.Resource(kCountResource)),
        unit_(unit) {}

  void CountGpus(wire::GpuDraft& draft) override {
    if (draft.shared) return;
    draft.shared = wire::SharedGpus{.agent = std::string(kGpushareAgent),
                                    .resource = std::string(kUnitsResource)};
    if (count_.capacity < 1 || count_.capacity > kMaxGpusPerNode) {
      draft.agent_lacks = "offers aliyun.com/gpu-mem of " + std::to_string(count_.capacity) +
                          " aliyun.com/gpu-count, want 1.." + std::to_string(kMaxGpusPerNode) +
                          ": run gpushare's device plugin, or leave its pods to ACK's scheduler";
      return;
    }
    const std::int64_t each = std::min(units_.capacity, kMostUnits) / count_.capacity;
    if ((each >= kBetweenUnits) != (unit_ == MemoryUnit::kMib)) {
      draft.AddProblem(std::string(kUnitsResource) + ": want " +
                       std::string(WordOf(kMemoryUnitWords, unit_)) +
                       " (gpushare.memoryUnit), got " + std::to_string(each) + " for each GPU");
      return;
    }
    const std::int64_t mib = unit_ == MemoryUnit::kMib ? each : each * kMibPerGib;
    GpuSpec gpu;
    gpu.memory_mib = mib;
    draft.shared->gpus.assign(static_cast<std::size_t>(count_.capacity), gpu);
    // What is unhealthy is not allocatable; which GPU that is remains unknown.
    const std::int64_t lost = std::max<std::int64_t>(units_.capacity - units_.allocatable, 0);
    draft.shared->missing = static_cast<int>(std::min((lost + each - 1) / each, count_.capacity));
  }

 private:
  const wire::DeviceCount units_, count_;
  const MemoryUnit unit_;
};

class GpushareDialect final : public wire::Dialect {
 public:
  explicit GpushareDialect(MemoryUnit unit)
      : unit_(unit), mib_per_unit_(unit == MemoryUnit::kMib ? 1 : kMibPerGib) {}

  [[nodiscard]] std::string_view name() const override { return kGpushareAgent; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.resources = kGpushareResources,
            .node_resources = kGpushareResources,
            .grants = kGpushareGrants,
            .grants_of_own_nodes = true};
  }

  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    if (facts.Resource(kUnitsResource).capacity <= 0) return nullptr;
    return std::make_unique<GpushareNode>(facts, unit_);
  }

  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    if (resource == kCountResource) {
      ask.other_devices = true;
      if (amount > 1) ask.part_resource = kCountResource;
      // kube-scheduler counts it, also of a pod that asks for nothing beside it.
      std::int64_t* const counted = amount > 0 ? AmountOf(ask.others, kCountResource) : nullptr;
      if (counted != nullptr) *counted = wire::Capped(*counted + wire::Capped(amount));
      return {};
    }
    if (amount <= 0) return {};
    ask.share_bytes = std::min(amount, kMostUnits) * mib_per_unit_ << 20;
    ask.share_agent = kGpushareAgent;
    return {};
  }
  [[nodiscard]] Status FindShares(wire::PodParts& parts) const override {
    const wire::ContainerSpec* first = nullptr;
    for (const wire::ContainerSpec& container : parts.containers) {
      if (container.ask.share_agent != kGpushareAgent) continue;
      if (container.ask.part_resource == kCountResource) {
        return Invalid("container " + container.name + ": " + std::string(kCountResource) +
                       ": want 1 beside " + std::string(kUnitsResource) +
                       ", since gpushare's device plugin gives a part of one GPU, got more");
      }
      if (first == nullptr && container.kind == wire::ContainerKind::kMain) {
        first = &container;
        continue;
      }
      return Invalid("container " + container.name + ": " + std::string(kUnitsResource) +
                     ": want it in one of spec.containers, since gpushare's device plugin serves "
                     "no others");
    }
    return {};
  }

  [[nodiscard]] Status ReadGrants(std::string_view, const std::string& text,
                                  const wire::PodParts& asked,
                                  wire::ObservedPod& observed) const override {
    BERTH_TRY(const std::int64_t gpu, ParseInt(text, 0, kMaxGpusPerNode - 1));
    if (wire::EffectiveAsk(asked).share_agent != kGpushareAgent) {
      return Invalid("want a pod that also asks for aliyun.com/gpu-mem");
    }
    wire::RecordedAsk share = wire::PlainAsk(asked);
    share.gpus = {{.gpu = static_cast<int>(gpu)}};
    return wire::TakeRecordedGpus({share}, observed);
  }
  void WriteGrants(const PodRequest&, const Placement& placement, const NodeSpec& node,
                   WallTime now, wire::Annotations& annotations) const override {
    if (placement.grants.empty() || node.share_agent != kGpushareAgent) return;
    const DeviceGrant& grant = placement.grants.front();
    const GpuSpec* const gpu = node.FindGpu(grant.gpu);
    if (gpu == nullptr) return;
    const auto units = [this](std::int64_t mib) { return std::to_string(mib / mib_per_unit_); };
    const auto nanoseconds =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
    annotations.emplace_back(kIndexKey, std::to_string(grant.gpu));
    annotations.emplace_back("ALIYUN_COM_GPU_MEM_DEV", units(gpu->memory_mib));
    annotations.emplace_back("ALIYUN_COM_GPU_MEM_POD", units(grant.memory_mib));
    annotations.emplace_back(kAssignedKey, "false");
    annotations.emplace_back(kAssumeTimeKey, std::to_string(nanoseconds));
  }

 private:
  const MemoryUnit unit_;
  const std::int64_t mib_per_unit_;
};

std::optional<WallTime> WaitsForGpushare(const wire::Json& annotations) {
  if (wire::TextIn(annotations, {kAssignedKey}) != "false") return std::nullopt;
  const auto time = ParseInt(wire::TextIn(annotations, {kAssumeTimeKey}), 0,
                             std::numeric_limits<std::int64_t>::max());
  return WallTime(
      std::chrono::duration_cast<WallTime::duration>(std::chrono::nanoseconds(time.value_or(0))));
}

}  // namespace

std::unique_ptr<const wire::Dialect> MakeGpushare(const GpushareConfig& config) {
  return std::make_unique<GpushareDialect>(config.memory_unit);
}

Handover GpushareHandover() { return {kGpushareAgent, kUnitsResource, WaitsForGpushare}; }

}  // namespace berth::dialects
