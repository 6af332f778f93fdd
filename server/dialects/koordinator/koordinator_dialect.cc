// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/koordinator/koordinator_dialect.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "server/wire/json/strict_json.h"

namespace berth::dialects {
namespace {

using wire::ContainerSpec;
using wire::PodParts;
using wire::ResourceAsk;

constexpr std::int64_t kAllPercent = 100;
constexpr std::int64_t kMostPercent = std::int64_t{1} << 40;  // that no arithmetic overflows
constexpr std::int64_t kMilliOfPercent = kMilliPerGpu / kAllPercent;

// By resource, as ResourceAsk::agent_amounts has them.
enum Word : std::size_t { kGpu, kCore, kMemory, kRatio, kShared };
using Amounts = std::array<std::int64_t, 5>;
static_assert(std::tuple_size_v<decltype(kKoordinatorResources)> ==
              std::tuple_size_v<decltype(ResourceAsk::agent_amounts)>);

bool AsksAny(const Amounts& asked) {
  return std::ranges::any_of(asked, [](std::int64_t amount) { return amount > 0; });
}

std::string Name(Word word) { return std::string(kKoordinatorResources[word]); }

// The first of the resources that is asked for.
Word FirstOf(const Amounts& asked) {
  return static_cast<Word>(
      std::ranges::find_if(asked, [](std::int64_t amount) { return amount > 0; }) - asked.begin());
}

std::int64_t PercentOf(const Amounts& asked) { return asked[kGpu] + asked[kRatio]; }

std::int64_t CountOf(const Amounts& asked) {
  if (asked[kShared] > 0) return asked[kShared];
  return std::max<std::int64_t>(PercentOf(asked) / kAllPercent, 1);
}

Status CheckTogether(const ResourceAsk& all) {
  const Amounts& asked = all.agent_amounts;
  const Word first = FirstOf(asked);
  if (all.gpus > 0 || all.wants_share() || !all.mig.empty()) {
    return Invalid(Name(first) + ": want GPU resources of one agent, got another agent's too");
  }
  for (const Word other : {kCore, kMemory, kRatio, kShared}) {
    if (asked[kGpu] == 0 || asked[other] == 0) continue;
    return Invalid(Name(kGpu) + ": want it alone, got " + Name(other) + " beside it");
  }
  if (asked[kMemory] > 0 && asked[kRatio] > 0) {
    return Invalid(Name(kMemory) + ": want it or " + Name(kRatio) + ", got both");
  }
  if (asked[kMemory] == 0 && PercentOf(asked) == 0) {
    return Invalid(Name(first) + ": want " + Name(kMemory) + " or " + Name(kRatio) +
                   " beside it, got none");
  }
  return {};
}

// Of one of the amounts in percent.
Status CheckPercent(Word word, const Amounts& asked) {
  const std::int64_t percent = asked[word], gpus = asked[kShared];
  const std::string got = ", got " + std::to_string(percent);
  if (gpus == 0) {
    if (percent <= kAllPercent || percent % kAllPercent == 0) return {};
    return Invalid(Name(word) + ": want 1..100 percent of a GPU, or 100 for each of several" + got);
  }
  if (percent % gpus == 0 && percent / gpus <= kAllPercent) return {};
  return Invalid(Name(word) + ": want as many percent of each of " + std::to_string(gpus) +
                 " GPUs (" + Name(kShared) + "), 100 at most" + got);
}

// No GPU has more than all of its compute.
Status CheckCore(const Amounts& asked) {
  const std::int64_t gpus = CountOf(asked);
  if (asked[kCore] <= gpus * kAllPercent) return {};
  return Invalid(Name(kCore) + ": want 100 at most of each of " + std::to_string(gpus) +
                 (gpus > 1 ? " GPUs" : " GPU") + ", got " + std::to_string(asked[kCore]));
}

Status CheckAsk(const ResourceAsk& all) {
  BERTH_TRY_STATUS(CheckTogether(all));
  for (const Word word : {kGpu, kCore, kRatio}) {
    BERTH_TRY_STATUS(CheckPercent(word, all.agent_amounts));
  }
  return CheckCore(all.agent_amounts);
}

// Of all containers of the pod.
struct Pod {
  std::int64_t gpus = 1;
  bool by_memory = false;
  bool apart = false;  // other percent of compute than of memory
};

// What the container has of each GPU. Of pods that ask by percent of the memory the compute goes
// with it, unless they ask for other compute.
Status MakePart(const Pod& pod, ContainerSpec& container) {
  ResourceAsk& ask = container.ask;
  const Amounts& asked = ask.agent_amounts;
  for (const Word word : {kGpu, kCore, kRatio}) {
    if (asked[word] * kMilliOfPercent % pod.gpus == 0) continue;
    return Invalid("container " + container.name + ": " + Name(word) +
                   ": want as much of each of " + std::to_string(pod.gpus) +
                   " GPUs, in thousandths, got " + std::to_string(asked[word]));
  }
  const auto milli_of_each = [&pod](std::int64_t percent) {
    return percent * kMilliOfPercent / pod.gpus;
  };
  ask.share_gpus = pod.gpus;
  ask.share_bytes = (asked[kMemory] + pod.gpus - 1) / pod.gpus;
  if (pod.by_memory || pod.apart) ask.share_milli = milli_of_each(asked[kCore]);
  if (pod.apart) ask.share_memory_milli = milli_of_each(PercentOf(asked));
  if (!pod.by_memory && !pod.apart) ask.share_milli = milli_of_each(PercentOf(asked));
  return {};
}

// Containers may have parts of what the pod has together.
Status MakeWhole(std::int64_t gpus, ContainerSpec& container) {
  const std::int64_t percent = PercentOf(container.ask.agent_amounts);
  container.ask.gpus = percent / kAllPercent;
  if (percent % kAllPercent == 0) return {};
  return Invalid("container " + container.name + ": " + Name(kRatio) +
                 ": want 100 for each GPU in a pod with " + std::to_string(gpus) + ", got " +
                 std::to_string(percent));
}

bool HasWholeOnes(const ContainerSpec& container) {
  return PercentOf(container.ask.agent_amounts) % kAllPercent == 0;
}

using wire::Fields;
using wire::Json;

constexpr std::string_view kAllocatedKey = "scheduling.koordinator.sh/device-allocated";
constexpr const char* kMinorsKey = "scheduling.koordinator.sh/gpu-minors";
constexpr const char* kBoundKey = "scheduling.koordinator.sh/bind-timestamp";
constexpr std::array kKoordinatorGrants = {kAllocatedKey};
constexpr std::array kNodeAmounts = {kKoordinatorCore, kKoordinatorMemory};
// Of the Device too: they are left where it goes away.
constexpr std::string_view kVendorLabel = "node.koordinator.sh/gpu-vendor";
constexpr std::string_view kModelLabel = "node.koordinator.sh/gpu-model";

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
    if (core_ < kCorePerGpu) {
      draft.agent_lacks = std::string(kKoordinatorNoDevice);
      return;
    }
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

  [[nodiscard]] bool has_agent() const override { return core_ >= kCorePerGpu; }

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
    const std::string* const vendor = FindLabel(facts.labels, kVendorLabel);
    const std::string* const model = FindLabel(facts.labels, kModelLabel);
    const bool offers = facts.Resource(kKoordinatorCore).allocatable >= kCorePerGpu;
    if (!offers && vendor == nullptr && model == nullptr) return nullptr;
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

void AddKoordinatorAsk(std::string_view resource, std::int64_t amount, ResourceAsk& ask) {
  if (amount <= 0) return;
  const auto word = std::ranges::find(kKoordinatorResources, resource);
  const bool bytes = *word == kKoordinatorMemory;
  ask.agent_amounts[static_cast<std::size_t>(word - kKoordinatorResources.begin())] =
      bytes ? wire::Capped(amount) : std::min(amount, kMostPercent);
  ask.part_resource = *word;
}

Status FindKoordinatorShares(PodParts& parts) {
  const auto asks = [](const ContainerSpec& container) {
    return AsksAny(container.ask.agent_amounts);
  };
  if (std::ranges::none_of(parts.containers, asks)) return {};
  const ResourceAsk all = EffectiveAsk(parts);
  const Amounts& asked = all.agent_amounts;
  BERTH_TRY_STATUS(CheckAsk(all));
  const std::int64_t percent = PercentOf(asked);
  const Pod pod{.gpus = CountOf(asked),
                .by_memory = asked[kMemory] > 0,
                .apart = percent > 0 && asked[kCore] > 0 && asked[kCore] != percent};
  // What the containers of one GPU have together may be all of it.
  const bool whole = percent == pod.gpus * kAllPercent && !pod.apart &&
                     (pod.gpus > 1 || std::ranges::all_of(parts.containers, HasWholeOnes));
  for (ContainerSpec& container : parts.containers) {
    if (!asks(container)) continue;
    container.ask.part_resource = {};
    BERTH_TRY_STATUS(whole ? MakeWhole(pod.gpus, container) : MakePart(pod, container));
    if (container.ask.wants_gpu()) container.ask.share_agent = kKoordinatorAgent;
  }
  return {};
}

wire::RecordedAsk KoordinatorAskOf(const PodParts& parts) {
  const Amounts asked = EffectiveAsk(parts).agent_amounts;
  if (!AsksAny(asked)) return wire::PlainAsk(parts);
  const std::int64_t gpus = CountOf(asked), percent = PercentOf(asked);
  const auto milli_of_each = [gpus](std::int64_t of_all) {
    return static_cast<int>(std::min<std::int64_t>(of_all * kMilliOfPercent / gpus, kMilliPerGpu));
  };
  wire::RecordedAsk ask{.count = gpus};
  ask.part.milli = milli_of_each(asked[kCore] > 0 ? asked[kCore] : percent);
  ask.part.memory_mib = ((asked[kMemory] + gpus - 1) / gpus + (1 << 20) - 1) >> 20;
  ask.part.memory_milli = milli_of_each(percent);
  return ask;
}

Status RefuseKoordinatorChoices(const PodParts& parts) {
  for (const std::string_view key : kKoordinatorChoices) {
    if (!parts.annotations.contains(key)) continue;
    return wire::WrongAnnotation(
        key,
        "not understood; want berth.dev/gpu-model, berth.dev/link, berth.dev/numa, a "
        "node selector or affinity");
  }
  return {};
}

std::unique_ptr<const wire::Dialect> MakeKoordinator() {
  return std::make_unique<KoordinatorDialect>();
}

}  // namespace berth::dialects
