// SPDX-License-Identifier: Apache-2.0
//
// Volcano's vGPU: GPUs that volcano-vgpu-device-plugin hands out in parts, by HAMi-core.
//
//   node  volcano.sh/node-vgpu-register
//         GPU-a,10,81920,NVIDIA-NVIDIA A100-SXM4-80GB,true,hami-core:GPU-b,...:
//         per GPU, by index: UUID, how many pods it serves, MiB, type, healthy, mode. Of another
//         mode (mig, mps) Berth gives none: where all are, the node is Volcano's scheduler's.
//   pod   resources volcano.sh/vgpu-number with -memory, -memory-percentage, -cores
//         (vgpu/vgpu_devices.h), of main containers: the plugin serves no others
//   pod   annotations volcano.sh/vgpu-use-gpuuuid and vgpu-nouse-gpuuuid, and those of HAMi
//   pod   what Volcano's scheduler writes, and Berth with the Binding:
//         volcano.sh/vgpu-node, volcano.sh/vgpu-time     node and unix seconds of the decision
//         volcano.sh/vgpu-ids-new                        vgpu/vgpu_devices.h, of main containers
//         volcano.sh/devices-to-allocate                 the same; the plugin empties the segments
//         volcano.sh/bind-phase, volcano.sh/bind-time    "allocating", then success or failed
//
// Asked for so many devices, the plugin takes the pod of its node with the oldest vgpu-time that
// has as many left, whichever it was asked for: one pod at a time may be on its way
// (server/dialects/one_at_a_time.h). (Project-HAMi/volcano-vgpu-device-plugin at 0798272.)
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/dialects/registry.h"
#include "server/dialects/vgpu/vgpu_devices.h"
#include "topology/gpu_vendor.h"

namespace berth::dialects {
namespace {

constexpr std::string_view kVolcanoAgent = "volcano";
constexpr VgpuWords kVolcanoWords = {kVolcanoAgent, "volcano.sh/vgpu-number",
                                     "volcano.sh/vgpu-memory", "volcano.sh/vgpu-memory-percentage",
                                     "volcano.sh/vgpu-cores"};
constexpr std::array kVolcanoResources = {kVolcanoWords.number, kVolcanoWords.memory,
                                          kVolcanoWords.percent, kVolcanoWords.cores};
constexpr std::array kVolcanoOffered = {kVolcanoWords.number, kVolcanoWords.memory};

constexpr std::string_view kVolcanoRegister = "volcano.sh/node-vgpu-register";
constexpr std::string_view kVolcanoIds = "volcano.sh/vgpu-ids-new";
constexpr const char* kVolcanoToAllocate = "volcano.sh/devices-to-allocate";
constexpr const char* kVolcanoTime = "volcano.sh/vgpu-time";
constexpr const char* kVolcanoPhase = "volcano.sh/bind-phase";
constexpr const char* kVolcanoAllocating = "allocating";
// By which its users choose GPUs.
constexpr std::string_view kVolcanoMode = "volcano.sh/vgpu-mode";
constexpr std::string_view kVolcanoUse = "volcano.sh/vgpu-use-gpuuuid";
constexpr std::string_view kVolcanoNoUse = "volcano.sh/vgpu-nouse-gpuuuid";
constexpr std::array kVolcanoChoices = {kVolcanoMode, kVolcanoUse, kVolcanoNoUse};
constexpr std::array kVolcanoNodeKeys = {kVolcanoRegister};
constexpr std::array kVolcanoGrants = {kVolcanoIds};

constexpr std::int64_t kMostGpuMib = std::int64_t{1} << 40;
constexpr std::string_view kSharedMode = "hami-core";
constexpr std::int64_t kMostListedUnits = 60'000;  // devices that the kubelet takes in one list

struct VolcanoGpus {
  std::vector<GpuSpec> gpus;
  std::vector<std::string> models;  // of these
  std::string other_mode;           // of one of them; empty = none
  std::int64_t of_other_mode = 0;   // devices of these
  bool any_shared = false;          // one is of kSharedMode
};

Status ReadRegistered(std::string_view text, VolcanoGpus& read) {
  std::array<std::string_view, 6> fields;
  std::string_view rest = text;
  for (std::string_view& field : fields) field = NextPart(rest, ',');
  const auto users = ParseInt(fields[1], 0, kMaxGpuPlaces);
  const auto memory = ParseInt(fields[2], 0, kMostGpuMib);
  if (fields[0].empty() || !users || !memory) {
    return Invalid("[" + std::to_string(read.gpus.size()) +
                   "]: want UUID,COUNT,MIB,TYPE,HEALTHY,MODE, got \"" +
                   std::string(text.substr(0, 100)) + "\"");
  }
  const bool shared = fields[5].empty() || fields[5] == kSharedMode;
  read.any_shared = read.any_shared || shared;
  if (!shared) read.other_mode = fields[5];
  read.of_other_mode += shared ? 0 : *users;
  read.models.push_back(GfdNameOf(std::string(fields[3])));
  read.gpus.push_back({.uuid = std::string(fields[0]),
                       .memory_mib = *memory,
                       .healthy = shared && *users > 0 && fields[4] == "true",
                       .most_users = static_cast<int>(*users),
                       .foreign = !shared});
  return {};
}

Result<VolcanoGpus> ReadRegister(std::string_view text) {
  VolcanoGpus read;
  if (text.empty()) return Invalid("want the node's GPUs, got none");
  for (const std::string_view gpu : PartsOf(text, ':')) {
    BERTH_TRY_STATUS(ReadRegistered(gpu, read));
    if (read.gpus.size() <= static_cast<std::size_t>(kMaxGpusPerNode)) continue;
    return Invalid("want at most " + std::to_string(kMaxGpusPerNode) + " GPUs, got more");
  }
  return read;
}

class VolcanoNode final : public wire::NodeReading {
 public:
  VolcanoNode(std::string_view registered, const wire::NodeFacts& facts)
      : read_(ReadRegister(registered)),
        offered_(facts.Resource(kVolcanoWords.number)),
        memory_(facts.Resource(kVolcanoWords.memory)),
        product_(facts.product) {}

  void CountGpus(wire::GpuDraft& draft) override {
    const bool is_left_over =  // since its plugin gave way to another
        offered_.allocatable == 0 &&
        std::ranges::any_of(draft.devices, [](const auto& other) { return other.allocatable > 0; });
    if (draft.shared || is_left_over) return;
    const std::string place = "annotation " + std::string(kVolcanoRegister) + ": ";
    if (read_ && !read_->other_mode.empty()) {
      draft.AddProblem(place + "GPUs of mode \"" + read_->other_mode.substr(0, 40) +
                       "\" are assigned only by Volcano's scheduler");
      if (!read_->any_shared) {
        draft.served_by_other = draft.shared_by_other = true;
        draft.registered = std::ssize(read_->gpus);
        return draft.devices.push_back(std::move(offered_));
      }
    }
    draft.shared = wire::SharedGpus{.agent = std::string(kVolcanoAgent),
                                    .resource = std::string(kVolcanoWords.number),
                                    .isolation = Isolation::kMemory};
    if (!read_) {
      draft.contradiction =
          "restart Volcano's device plugin there: " + place + read_.error().message;
      return;
    }
    CountMib(draft);
    draft.shared->gpus = std::move(read_->gpus);
    draft.shared->models = std::move(read_->models);
    CountRegistered(offered_.allocatable - read_->of_other_mode, draft);
  }

 private:
  // The plugin registers memory in the unit by which pods ask for it (gpuMemoryFactor), known by
  // what the GPUs have. Until October 2024 it registered MiB all the same, and offered units.
  void CountMib(wire::GpuDraft& draft) {
    std::int64_t known = 0, known_mib = 0, all = 0;
    for (std::size_t i = 0; i < read_->gpus.size(); ++i) {
      const std::string& model = read_->models[i];
      std::int64_t has = product_.empty() || product_ == model ? draft.gpu_memory_mib : 0;
      // A bare name has several sizes: an A100 has 40 or 80 GiB.
      if (has == 0 && FindGpuModel(model) == nullptr) has = CataloguedMemoryMib(model);
      if (read_->gpus[i].foreign) continue;
      all += read_->gpus[i].memory_mib;
      if (has == 0) continue;
      known += read_->gpus[i].memory_mib;
      known_mib += has;
    }
    std::int64_t unit = known > 0 ? (known_mib + known / 2) / known : 1;
    const bool has_units = unit > 1;
    if (!has_units && memory_.allocatable > 0) {
      unit = all / std::max(memory_.capacity, memory_.allocatable);
    }
    unit = std::clamp<std::int64_t>(unit, 1, kMostMemoryUnit);
    for (GpuSpec& gpu : read_->gpus) {
      gpu.unit_mib = static_cast<int>(unit);
      if (has_units) gpu.memory_mib = std::min(gpu.memory_mib * unit, kMostGpuMib);
    }
    if (memory_.resource.empty() || memory_.allocatable > 0 || all <= kMostListedUnits) return;
    draft.AddProblem("set gpuMemoryFactor of Volcano's device plugin to " +
                     std::to_string((all * unit + kMostListedUnits - 1) / kMostListedUnits) +
                     ", since of " + std::to_string(all) + " units the kubelet offers none as " +
                     std::string(kVolcanoWords.memory));
  }

  Result<VolcanoGpus> read_;
  wire::DeviceCount offered_, memory_;
  const std::string_view product_;
};

Status RefuseInitContainers(const wire::PodParts& parts) {
  for (const wire::ContainerSpec& container : parts.containers) {
    const bool asks = container.ask.share_agent == kVolcanoAgent ||
                      container.ask.gpu_resource == kVolcanoWords.number;
    if (!asks || container.kind == wire::ContainerKind::kMain) continue;
    return Invalid("container " + container.name + ": " + std::string(kVolcanoWords.number) +
                   ": want it in spec.containers, since Volcano's device plugin serves no others");
  }
  return {};
}

bool IsVolcanos(const PodRequest& pod) {
  return pod.shape.share_agent == kVolcanoAgent || pod.shape.gpu_resource == kVolcanoWords.number;
}

class VolcanoDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return kVolcanoAgent; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.of_nodes = kVolcanoNodeKeys,
            .of_pods = kVolcanoChoices,
            .resources = kVolcanoResources,
            .node_resources = kVolcanoOffered,
            .grants = kVolcanoGrants,
            .grants_of_own_nodes = true};
  }

  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    const std::string_view registered = facts.Annotation(kVolcanoRegister);
    if (registered.empty() && facts.Resource(kVolcanoWords.number).capacity == 0) return nullptr;
    return std::make_unique<VolcanoNode>(registered, facts);
  }

  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    if (resource != kVolcanoWords.number) {
      AddVgpuAsk(kVolcanoWords, resource, amount, ask);
      return {};
    }
    ask.gpus = wire::Capped(amount);
    if (amount > 0) ask.gpu_resource = kVolcanoWords.number;
    return {};
  }
  [[nodiscard]] Status FindShares(wire::PodParts& parts) const override {
    BERTH_TRY_STATUS(FindVgpuShares(kVolcanoWords, parts));
    return RefuseInitContainers(parts);
  }

  [[nodiscard]] Status FinishAsk(const wire::PodParts& parts, PodRequest& pod,
                                 MigWant&) const override {
    if (!IsVolcanos(pod)) return {};
    BERTH_TRY_STATUS(ReadVgpuUuids(parts, kVolcanoUse, kVolcanoNoUse, pod.shape));
    const std::string* const mode = parts.Annotation(kVolcanoMode);
    if (mode == nullptr || *mode == kSharedMode) return {};
    return wire::WrongAnnotation(kVolcanoMode, wire::WantedText(kSharedMode, *mode) +
                                                   ", which only Volcano's scheduler assigns");
  }

  [[nodiscard]] Status ReadGrants(std::string_view, const std::string& text,
                                  const wire::PodParts& asked,
                                  wire::ObservedPod& observed) const override {
    return ReadVgpuDevices(kVolcanoWords, text, asked, observed);
  }
  void WriteGrants(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                   WallTime now, wire::Annotations& annotations) const override {
    if (placement.grants.empty() || node.share_agent != kVolcanoAgent) return;
    const std::vector<VgpuDevice> devices = VgpuDevicesOf(pod, placement, node);
    std::string segments;
    for (int i = pod.init_container_count; i < pod.container_count; ++i) {
      segments += (i > pod.init_container_count ? ";" : "") + VgpuSegment(devices, i);
    }
    const std::string time = std::to_string(std::chrono::system_clock::to_time_t(now));
    const std::pair<std::string, std::string> all[] = {
        {"volcano.sh/vgpu-node", placement.node}, {kVolcanoTime, time},
        {std::string(kVolcanoIds), segments},     {kVolcanoToAllocate, segments},
        {kVolcanoPhase, kVolcanoAllocating},      {"volcano.sh/bind-time", time}};
    annotations.insert(annotations.end(), std::begin(all), std::end(all));
  }
};

std::optional<WallTime> WaitsForVolcano(const wire::Json& annotations) {
  if (wire::TextIn(annotations, {kVolcanoPhase}) != kVolcanoAllocating) return std::nullopt;
  if (wire::TextIn(annotations, {kVolcanoToAllocate}).find(',') == std::string::npos)
    return std::nullopt;
  const auto seconds =
      ParseInt(wire::TextIn(annotations, {kVolcanoTime}), 0, std::int64_t{1} << 40);
  return WallTime(std::chrono::seconds(seconds.value_or(0)));
}

}  // namespace

std::unique_ptr<const wire::Dialect> MakeVolcano() { return std::make_unique<VolcanoDialect>(); }

Handover VolcanoHandover() { return {kVolcanoAgent, kVolcanoWords.number, WaitsForVolcano}; }

}  // namespace berth::dialects
