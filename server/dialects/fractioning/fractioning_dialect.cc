// SPDX-License-Identifier: Apache-2.0
//
// GPU fractioning: shares of GPUs whose memory NVIDIA's driver limits. kai-gpu-fractioning has an
// NRI plugin and MPS on each node; it gives a container the GPUs that an annotation names.
//
//   node  condition gpu-fractioning.nvidia.com/Ready, in older versions
//                   gpu-sharing.nvidia.com/Ready: "True" where it serves pods
//   pod   annotations nvidia.com/container.NAME.
//         gpu-memory.request    8Gi: what the container has of a GPU for certain; Berth packs it
//         gpu-memory.limit      16Gi: its end; one that is missing is as the other
//         gpu-compute.mode      time-slicing (also without it) or sm-sharing, one for all on a GPU
//   pod   annotation gpu-fraction-num-devices: 2
//                               the same of each of so many GPUs (KAI's word; CheckRepeated has
//                               the others)
//   pod   what KAI's binder writes, and Berth with the Binding:
//         nvidia.com/container.NAME.gpus.devices    UUIDs or indices of the GPUs, joined by commas
//
// One container of a pod has a share. The device plugin gives whole GPUs on the same node, and
// knows nothing of the shares. (kai-scheduler/kai-gpu-fractioning at 0ee10b4, fractiond/internal/
// annotations; KAI-Scheduler at 5b5be5b, pkg/common/resources/gpu_sharing_validation.go.)
#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "base/quantity.h"
#include "base/text.h"
#include "server/dialects/nvidia/nvidia_dialect.h"
#include "server/dialects/registry.h"
#include "server/wire/pod/recorded_devices.h"

namespace berth::dialects {
namespace {

constexpr std::string_view kFractionsAgent = "gpu-fractioning";
constexpr std::string_view kContainerKeys = "nvidia.com/container.";
constexpr std::string_view kCountKey = "gpu-fraction-num-devices";
constexpr std::string_view kMemoryKey = "gpu-memory";  // in MiB
constexpr std::string_view kContainerKey = "gpu-fraction-container-name";
constexpr std::string_view kSharingModeKey = "kai.scheduler/gpu-compute-sharing-mode";
constexpr std::array kFractionPods = {kContainerKeys, kCountKey, kMemoryKey, kContainerKey,
                                      kSharingModeKey};
constexpr std::array<std::string_view, 1> kFractionGrants = {"nvidia.com/container.*.gpus.devices"};
constexpr std::array<std::string_view, 2> kReadyConditions = {"gpu-fractioning.nvidia.com/Ready",
                                                              "gpu-sharing.nvidia.com/Ready"};

// What is behind the name of the container.
constexpr std::string_view kMemoryRequest = "gpu-memory.request";
constexpr std::string_view kMemoryLimit = "gpu-memory.limit";
constexpr std::string_view kComputeMode = "gpu-compute.mode";
constexpr std::string_view kFractionDevices = "gpus.devices";
constexpr std::string_view kComputePortion = "gpu-compute.portion";  // by KAI's binder

constexpr std::int64_t kBytesOfMib = std::int64_t{1} << 20;
constexpr std::size_t kLongestFractionUuid = 64;

struct ContainerKey {
  std::string_view container, what;
};
// Requires: it begins with kContainerKeys. Names of containers have no dots.
ContainerKey SplitKey(std::string_view key) {
  key.remove_prefix(kContainerKeys.size());
  const std::size_t dot = std::min(key.find('.'), key.size());
  return {key.substr(0, dot), key.substr(std::min(dot + 1, key.size()))};
}
std::string FractionKey(std::string_view container, std::string_view what) {
  return std::string(kContainerKeys).append(container).append(".").append(what);
}

Result<std::int64_t> ReadFractionMib(std::string_view key, const std::string& text) {
  const auto quantity = Quantity::Parse(text);
  if (!quantity) return wire::WrongAnnotation(key, quantity.error().message);
  const std::int64_t bytes = wire::Capped(quantity->Value());
  if (bytes < kBytesOfMib) return wire::WrongAnnotation(key, wire::WantedText("1Mi or more", text));
  return wire::Capped(bytes / kBytesOfMib + (bytes % kBytesOfMib != 0 ? 1 : 0));
}

struct FractionMemory {
  std::int64_t request_mib = 0, limit_mib = 0;  // 0 = not said
};

// By the name of the container. Error: kInvalidArgument with the key.
Result<std::map<std::string, FractionMemory>> ReadFractions(const wire::PodParts& parts) {
  std::map<std::string, FractionMemory> asked;
  for (const auto& [key, text] : parts.annotations) {
    if (!key.starts_with(kContainerKeys)) continue;
    const auto [container, what] = SplitKey(key);
    if (what != kMemoryRequest && what != kMemoryLimit) continue;
    FractionMemory& memory = asked[std::string(container)];
    BERTH_TRY((what == kMemoryRequest ? memory.request_mib : memory.limit_mib),
              ReadFractionMib(key, text));
  }
  for (auto& [container, memory] : asked) {
    if (memory.request_mib == 0) memory.request_mib = memory.limit_mib;
    if (memory.limit_mib == 0 || memory.request_mib <= memory.limit_mib) continue;
    return wire::WrongAnnotation(FractionKey(container, kMemoryRequest),
                                 "want no more than the limit, " +
                                     std::to_string(memory.limit_mib) + "Mi, got " +
                                     std::to_string(memory.request_mib) + "Mi");
  }
  return asked;
}

bool AsksForFraction(const wire::PodParts& parts, std::string_view container) {
  return parts.Annotation(FractionKey(container, kMemoryRequest)) != nullptr ||
         parts.Annotation(FractionKey(container, kMemoryLimit)) != nullptr;
}

// Every annotation is known, and of the container with the share.
Status CheckFractionKeys(const wire::PodParts& parts, const std::string& container) {
  for (const auto& [name, value] : parts.annotations) {
    if (!name.starts_with(kContainerKeys)) continue;
    const ContainerKey key = SplitKey(name);
    if (key.what == kFractionDevices || key.what == kComputePortion) continue;
    if (key.what != kMemoryRequest && key.what != kMemoryLimit && key.what != kComputeMode) {
      return wire::WrongAnnotation(name, "not known to this version of berth");
    }
    if (key.container == container) continue;
    const bool is_one = std::ranges::find(parts.containers, key.container,
                                          &wire::ContainerSpec::name) != parts.containers.end();
    if (!is_one) return wire::WrongAnnotation(name, "the pod has no container of that name");
    return wire::WrongAnnotation(name,
                                 "want a share in one container of a pod, got it beside that of "
                                 "container " +
                                     container);
  }
  return {};
}

// What the pod says once more has to be the same: KAI goes by it, and the node's agent does not.
Status CheckRepeated(const wire::PodParts& parts, const std::string& container,
                     std::int64_t request_mib) {
  struct Repeated {
    std::string_view key;
    std::string wanted, of;
  };
  const std::string mode = FractionKey(container, kComputeMode);
  const std::string* const said = parts.Annotation(mode);
  const std::array all = {
      Repeated{kMemoryKey, std::to_string(request_mib), FractionKey(container, kMemoryRequest)},
      Repeated{kContainerKey, container, FractionKey(container, "*")},
      Repeated{kSharingModeKey, std::string(said == nullptr ? "time-slicing" : Trimmed(*said)),
               mode}};
  for (const auto& [key, wanted, of] : all) {
    const std::string* const got = parts.Annotation(key);
    if (got == nullptr || got->empty() || *got == wanted) continue;
    return wire::WrongAnnotation(key, wire::WantedText(wanted + ", as in " + of, *got));
  }
  return {};
}

class FractionsNode final : public wire::NodeReading {
 public:
  FractionsNode(bool ready, const Labels& labels) : ready_(ready), nri_(NriVendor(labels)) {}

  void CountGpus(wire::GpuDraft& draft) override {
    if (draft.shared || !draft.agent_beside.empty()) return;
    draft.part_agent = kFractionsAgent;
    draft.part_agent_ready = ready_;
    if (!ready_ || nri_.empty()) return;
    draft.AddProblem(
        "label " + std::string(kNriLabel) +
        ": has no effect while GPU fractioning is ready on the node; want one of both");
  }

 private:
  const bool ready_;
  const std::string_view nri_;
};

class FractionsDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return kFractionsAgent; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.conditions = kReadyConditions, .of_pods = kFractionPods, .grants = kFractionGrants};
  }

  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    for (const std::string_view type : kReadyConditions) {
      const auto found = facts.conditions.find(type);
      if (found == facts.conditions.end()) continue;
      return std::make_unique<FractionsNode>(found->second == "True", facts.labels);
    }
    return nullptr;
  }

  [[nodiscard]] Status AddAnnotated(wire::PodParts& parts) const override {
    const auto read = ReadFractions(parts);
    if (!read) {  // once it runs it may have all of its GPU
      for (wire::ContainerSpec& container : parts.containers) {
        if (container.ask.wants_gpu() || !AsksForFraction(parts, container.name)) continue;
        container.ask.share_milli = kMilliPerGpu;
        container.ask.share_agent = kFractionsAgent;
      }
      return tl::unexpected(read.error());
    }
    const std::map<std::string, FractionMemory>& asked = *read;
    if (asked.empty()) return {};
    std::erase_if(parts.annotations, [&asked](const auto& annotation) {
      if (!annotation.first.starts_with(kContainerKeys)) return false;
      const ContainerKey key = SplitKey(annotation.first);
      return key.what == kFractionDevices && !asked.contains(std::string(key.container));
    });
    std::int64_t gpus = 1;
    if (const std::string* const count = parts.Annotation(kCountKey)) {
      const auto number = ParseInt(*count, 1, kMaxGpusPerNode);
      if (!number) return wire::WrongAnnotation(kCountKey, number.error().message);
      gpus = *number;
    }
    std::string others;  // a container that asks for GPUs in other words
    for (wire::ContainerSpec& container : parts.containers) {
      const bool has = container.ask.wants_gpu() || !container.ask.part_resource.empty();
      if (has && others.empty()) others = container.name;
      const auto its = asked.find(container.name);
      if (its == asked.end() || has) continue;
      container.ask.share_bytes = its->second.request_mib * kBytesOfMib;
      container.ask.share_gpus = gpus > 1 ? gpus : 0;
      container.ask.share_agent = kFractionsAgent;
    }
    const std::string& first = asked.begin()->first;
    if (!others.empty()) {
      return wire::WrongAnnotation(
          FractionKey(first, kMemoryRequest),
          "want no other GPUs in the pod, got some in container " + others);
    }
    const bool is_one = std::ranges::find(parts.containers, first, &wire::ContainerSpec::name) !=
                        parts.containers.end();
    BERTH_TRY_STATUS(CheckFractionKeys(parts, is_one ? first : std::string()));
    return CheckRepeated(parts, first, asked.begin()->second.request_mib);
  }

  [[nodiscard]] Status FinishAsk(const wire::PodParts& parts, PodRequest& pod,
                                 MigWant&) const override {
    if (pod.shape.share_agent != kFractionsAgent || pod.containers.empty()) return {};
    const std::string key = FractionKey(pod.containers.front().name, kComputeMode);
    const std::string* const said = parts.Annotation(key);
    const std::string_view mode = said == nullptr ? "" : Trimmed(*said);
    pod.shape.share_mode = mode == "sm-sharing" ? ShareMode::kSmSharing : ShareMode::kTimeSlicing;
    if (said == nullptr || mode == "time-slicing" || mode == "sm-sharing") return {};
    pod.shape.share_mode = ShareMode::kReserved;  // once it runs: unlike all others
    return wire::WrongAnnotation(key, wire::WantedText("time-slicing or sm-sharing", mode));
  }

  [[nodiscard]] Status ReadGrants(std::string_view key, const std::string& text,
                                  const wire::PodParts& asked,
                                  wire::ObservedPod& observed) const override {
    const auto container =
        std::ranges::find(asked.containers, SplitKey(key).container, &wire::ContainerSpec::name);
    if (container == asked.containers.end() || container->ask.share_agent != kFractionsAgent) {
      return Invalid("want a container that also asks for " + std::string(kMemoryRequest));
    }
    wire::RecordedAsk share = wire::PlainAsk(asked);
    for (const std::string_view device : PartsOf(text, ',')) {
      if (device.size() > kLongestFractionUuid || std::ssize(share.gpus) >= kMaxGpusPerNode) {
        return Invalid("want UUIDs or indices of GPUs, got \"" + text.substr(0, 100) + "\"");
      }
      const auto index = ParseInt(device, 0, kMaxGpusPerNode - 1);
      share.gpus.push_back(index ? wire::RecordedGpu{.gpu = static_cast<int>(*index)}
                                 : wire::RecordedGpu{.uuid = std::string(device)});
    }
    return wire::TakeRecordedGpus({share}, observed);
  }
  void WriteGrants(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                   WallTime, wire::Annotations& annotations) const override {
    if (pod.shape.share_agent != kFractionsAgent) return;
    for (const auto& [container, grants] : GrantsByContainer(pod, placement)) {
      const bool named = std::ranges::none_of(
          grants, [&node](const DeviceGrant& grant) { return node.UuidOf(grant.gpu).empty(); });
      const std::string devices = Join(grants, ",", [&](const DeviceGrant& grant) {
        return named ? node.UuidOf(grant.gpu) : std::to_string(grant.gpu);
      });
      annotations.emplace_back(FractionKey(container, kFractionDevices), devices);
    }
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeFractions() {
  return std::make_unique<FractionsDialect>();
}

}  // namespace berth::dialects
