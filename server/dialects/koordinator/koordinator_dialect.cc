// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/koordinator/koordinator_dialect.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "server/dialects/koordinator/koordinator_ask.h"
#include "server/dialects/koordinator/koordinator_links.h"
#include "server/wire/json/strict_json.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::dialects {
namespace {

using wire::Fields;
using wire::Json;

constexpr std::string_view kAllocatedKey = "scheduling.koordinator.sh/device-allocated";
constexpr const char* kMinorsKey = "scheduling.koordinator.sh/gpu-minors";
constexpr const char* kBoundKey = "scheduling.koordinator.sh/bind-timestamp";
constexpr std::array kKoordinatorGrants = {kAllocatedKey};
constexpr std::array kNodeAmounts = {kKoordinatorCore, kKoordinatorMemory};
constexpr std::string_view kVendorLabel = "node.koordinator.sh/gpu-vendor";

constexpr int kCorePerGpu = 100;
constexpr int kMilliPerCorePercent = kMilliPerGpu / kCorePerGpu;

// What is not there was not asked for, or follows the rest.
Result<wire::GpuPart> ReadPart(const Json& resources, const std::string& path) {
  BERTH_TRY(const std::int64_t bytes, KoordinatorAmount(resources, path, kKoordinatorMemory));
  BERTH_TRY(const std::int64_t core, KoordinatorAmount(resources, path, kKoordinatorCore));
  BERTH_TRY(const std::int64_t ratio, KoordinatorAmount(resources, path, kKoordinatorRatio));
  const std::int64_t mib = bytes >> 20;
  const std::int64_t percent = std::max(core, ratio);
  const int least = mib > 0 ? 0 : 1;  // of little memory it is below one percent
  if (percent < least || percent > kCorePerGpu) {
    return Invalid(path + ": want 1 to 100 percent of a GPU in " + std::string(kKoordinatorCore) +
                   " or " + std::string(kKoordinatorRatio) + ", got " + std::to_string(percent));
  }
  return wire::GpuPart{static_cast<int>(core) * kMilliPerCorePercent, mib,
                       static_cast<int>(ratio) * kMilliPerCorePercent};
}

Status ReadGpu(const Json& json, const std::string& path, std::vector<wire::RecordedGpu>& gpus) {
  Fields fields(json, path);
  wire::RecordedGpu read;
  fields.Int("minor", 0, kMaxGpus - 1, read.gpu);
  fields.Object("resources", [&read](const Json& resources, const std::string& at) -> Status {
    BERTH_TRY(read.says, ReadPart(resources, at));
    return {};
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  if (read.gpu < 0) return Invalid(path + ".minor: want a number, got none");
  gpus.push_back(read);
  return {};
}

Result<std::vector<wire::RecordedGpu>> ParseAllocated(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return Invalid("want JSON, got something else");
  std::vector<wire::RecordedGpu> gpus;
  Fields fields(json, "");
  fields.List("gpu", [&gpus](const Json& gpu, const std::string& path) {
    return ReadGpu(gpu, path, gpus);
  });
  BERTH_TRY_STATUS(fields.FinishForeign());
  std::ranges::sort(gpus, {}, &wire::RecordedGpu::gpu);
  const auto twice = std::ranges::adjacent_find(gpus, {}, &wire::RecordedGpu::gpu);
  if (twice != gpus.end()) {
    return Invalid("gpu: want each minor once, got " + std::to_string(twice->gpu) + " twice");
  }
  return gpus;
}

class KoordinatorNode final : public wire::NodeReading {
 public:
  explicit KoordinatorNode(const wire::NodeFacts& facts)
      : core_(facts.Resource(kKoordinatorCore).allocatable),
        memory_(facts.Resource(kKoordinatorMemory).allocatable) {}

  void CountGpus(wire::GpuDraft& draft) override {
    if (draft.shared || draft.served_by_other) return;
    const bool counted = std::ranges::any_of(draft.devices, [](const wire::DeviceCount& count) {
      return std::max(count.capacity, count.allocatable) > 0;
    });
    if (counted) {  // by a device plugin
      draft.agent_beside = kKoordinatorAgent;
      draft.registered = core_ / kCorePerGpu;
      return;
    }
    draft.shared = wire::SharedGpus{.agent = std::string(kKoordinatorAgent),
                                    .resource = std::string(kKoordinatorCore),
                                    .serves_all = true};
    const std::int64_t gpus = core_ / kCorePerGpu;
    if (core_ % kCorePerGpu != 0 || gpus > kMaxGpusPerNode) {
      draft.AddProblem(std::string(kKoordinatorCore) + ": want 100 for each of 1.." +
                       std::to_string(kMaxGpusPerNode) + " GPUs, got " + std::to_string(core_));
      return;
    }
    GpuSpec gpu;
    gpu.memory_mib = std::max<std::int64_t>(memory_, 0) / gpus >> 20;
    draft.shared->gpus.assign(static_cast<std::size_t>(gpus), gpu);
  }

 private:
  const std::int64_t core_, memory_;
};

// As its scheduler rounds: down, and nothing is no part.
std::int64_t RatioOf(const DeviceGrant& grant, std::int64_t gpu_mib, const GpuShare* share) {
  std::int64_t ratio = grant.milli / kMilliPerCorePercent;
  if (share != nullptr && share->memory_milli > 0)
    ratio = share->memory_milli / kMilliPerCorePercent;
  if (share != nullptr && share->memory_mib > 0 && gpu_mib > 0) {
    ratio = grant.memory_mib * kCorePerGpu / gpu_mib;
  }
  return std::clamp<std::int64_t>(ratio, 1, kCorePerGpu);
}

Json GrantJson(const DeviceGrant& grant, const GpuSpec& gpu, const GpuShare* share) {
  const bool asks_compute = share == nullptr || share->milli > 0;
  Json resources = Json::object();
  if (asks_compute) {
    const int core = (grant.milli + kMilliPerCorePercent - 1) / kMilliPerCorePercent;
    resources[std::string(kKoordinatorCore)] = std::to_string(core);
  }
  if (grant.memory_mib > 0) {
    resources[std::string(kKoordinatorMemory)] = std::to_string(grant.memory_mib) + "Mi";
  }
  resources[std::string(kKoordinatorRatio)] = std::to_string(RatioOf(grant, gpu.memory_mib, share));
  Json json = {{"minor", grant.gpu}, {"resources", std::move(resources)}};
  if (!gpu.uuid.empty()) json["id"] = gpu.uuid;
  return json;
}

class KoordinatorDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return kKoordinatorAgent; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.of_pods = kKoordinatorChoices,
            .resources = kKoordinatorResources,
            .node_resources = kNodeAmounts,
            .grants = kKoordinatorGrants,
            .grants_of_own_nodes = true};
  }

  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    if (facts.Resource(kKoordinatorCore).allocatable < kCorePerGpu) return nullptr;
    const std::string* const vendor = FindLabel(facts.labels, kVendorLabel);
    if (vendor != nullptr && *vendor != "nvidia") return nullptr;
    return std::make_unique<KoordinatorNode>(facts);
  }

  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    AddKoordinatorAsk(resource, amount, ask);
    return {};
  }
  [[nodiscard]] Status FindShares(wire::PodParts& parts) const override {
    return FindKoordinatorShares(parts);
  }
  [[nodiscard]] Status FinishAsk(const wire::PodParts& parts, PodRequest& pod,
                                 MigWant&) const override {
    return pod.shape.share_agent == kKoordinatorAgent ? RefuseKoordinatorChoices(parts) : Status();
  }

  [[nodiscard]] Status ReadGrants(std::string_view, const std::string& text,
                                  const wire::PodParts& asked,
                                  wire::ObservedPod& observed) const override {
    BERTH_TRY(std::vector<wire::RecordedGpu> gpus, ParseAllocated(text));
    if (gpus.empty()) return {};  // other devices alone
    wire::RecordedAsk ask = KoordinatorAskOf(asked);
    ask.gpus = std::move(gpus);
    return wire::TakeRecordedGpus({ask}, observed);
  }

  void WriteGrants(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                   WallTime now, wire::Annotations& annotations) const override {
    if (placement.grants.empty() || node.share_agent != kKoordinatorAgent) return;
    const auto* const share = std::get_if<GpuShare>(&pod.shape.gpus);
    Json gpus = Json::array();
    std::string minors;
    for (const DeviceGrant& grant : placement.grants) {
      const GpuSpec* const gpu = node.FindGpu(grant.gpu);
      if (gpu == nullptr) return;
      gpus.push_back(GrantJson(grant, *gpu, share));
      minors += (minors.empty() ? "" : ",") + std::to_string(grant.gpu);
    }
    const auto nanoseconds =
        std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count();
    annotations.emplace_back(kAllocatedKey, wire::JsonText({{"gpu", std::move(gpus)}}));
    annotations.emplace_back(kMinorsKey, std::move(minors));
    annotations.emplace_back(kBoundKey, std::to_string(nanoseconds));
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeKoordinator() {
  return std::make_unique<KoordinatorDialect>();
}

}  // namespace berth::dialects
