// SPDX-License-Identifier: Apache-2.0
#include "server/dialects/hami/hami_dialect.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "server/dialects/hami/hami_binding.h"
#include "server/dialects/vgpu/vgpu_devices.h"
#include "server/wire/pod/pod_needs.h"
#include "server/wire/pod/recorded_devices.h"
#include "topology/links/wiring.h"

namespace berth::dialects {
namespace {

using wire::ContainerSpec;
using wire::Json;
using wire::PodParts;

constexpr std::string_view kModeKey = kHamiAskKeys[0];
constexpr std::string_view kUseTypeKey = kHamiAskKeys[1], kNoUseTypeKey = kHamiAskKeys[2];
constexpr std::string_view kNumaBindKey = kHamiAskKeys[3];
constexpr std::string_view kUseUuidKey = kHamiAskKeys[4], kNoUseUuidKey = kHamiAskKeys[5];
// Which profile: Berth does not read it.
constexpr std::string_view kProfileKey = kHamiAskKeys[6];
constexpr auto kMigChoiceKeys = std::span(kHamiAskKeys).subspan(3);  // numa-bind neither
constexpr auto kUuidKeys = std::span(kHamiAskKeys).subspan(4, 2);

// "A100, H100": in lower case.
Result<std::set<std::string>> WordsOf(const PodParts& parts, std::string_view key) {
  BERTH_TRY(const std::set<std::string> listed, ListIn(parts, key));
  std::set<std::string> words;
  for (std::string word : listed) {
    std::ranges::transform(word, word.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    words.insert(std::move(word));
  }
  return words;
}

Result<bool> Says(const PodParts& parts, std::string_view key, const char* word) {
  BERTH_TRY(const std::set<std::string> words, WordsOf(parts, key));
  return words.contains(word);
}

Status WantsMemory(const ContainerSpec& container) {
  if (container.ask.gpu_memory_percent > 0) {
    return Invalid("container " + container.name + ": want " + std::string(kHamiMemoryResource) +
                   " with vgpu-mode mig, got " + std::string(kHamiMemoryPercentResource) +
                   ", which depends on the size of the GPU");
  }
  if (container.ask.gpu_memory_mib_each > 0) return {};
  return Invalid("container " + container.name + ": want " + std::string(kHamiMemoryResource) +
                 " beside nvidia.com/gpu with vgpu-mode mig, got none");
}

// Of a pod that is of no mode, or of another one than mig.
Status RefuseOthers(const PodParts& parts, bool gives_devices) {
  bool wants_gpus = false;
  for (const ContainerSpec& container : parts.containers) {
    wants_gpus =
        wants_gpus || container.ask.gpus > 0 || container.ask.share_agent == kHamiWords.agent;
    if (std::ranges::find(kHamiResources, container.ask.part_resource) == kHamiResources.end()) {
      continue;
    }
    return Invalid("container " + container.name + ": " + std::string(container.ask.part_resource) +
                   " asks for a GPU share that only HAMi's scheduler assigns; want the annotation "
                   "nvidia.com/vgpu-mode: mig, or berth.dev/gpu-milli or berth.dev/gpu-memory-mib "
                   "instead of nvidia.com/gpu");
  }
  if (!wants_gpus) return {};
  const std::string* const mode = parts.Annotation(kModeKey);
  const bool any_mode = mode == nullptr || mode->empty() || (gives_devices && *mode == "hami-core");
  if (!any_mode) {
    const std::string_view want = gives_devices ? "mig or hami-core" : "mig";
    return wire::WrongAnnotation(
        kModeKey, wire::WantedText(want, *mode) + ", which only HAMi's scheduler assigns");
  }
  if (!parts.annotations.contains(kProfileKey)) return {};
  return wire::WrongAnnotation(
      kProfileKey, "not understood; want a resource with the profile, nvidia.com/mig-PROFILE");
}

Status RefuseForMig(const PodParts& parts, std::span<const std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (!parts.annotations.contains(key)) continue;
    return wire::WrongAnnotation(
        key, "not understood for MIG devices; leave it to a node selector or affinity");
  }
  return {};
}

// Want a list of at most kMaxGpus objects.
Status CheckList(const Json& json) {
  if (!json.is_array() || json.size() > kMaxGpus) {
    return Invalid("want a JSON list of at most " + std::to_string(kMaxGpus) + " GPUs");
  }
  for (std::size_t i = 0; i < json.size(); ++i) {
    if (!json[i].is_object()) return Invalid("[" + std::to_string(i) + "]: want an object");
  }
  return {};
}

// 0 where it is left out; nullopt for what is no whole number in range.
std::optional<int> NumberIn(const Json& object, const char* key, int most) {
  const auto found = object.find(key);
  if (found == object.end()) return 0;
  const double number = found->is_number_integer() ? found->get<double>() : -1;
  if (number < 0 || number > most) return std::nullopt;
  return static_cast<int>(number);
}

struct Registered {
  std::vector<std::string> uuids;  // by index
  std::vector<std::string> numa;   // the same
  std::map<std::string, int> index;
};

Result<Registered> ReadRegister(const Json& list) {
  BERTH_TRY_STATUS(CheckList(list));
  Registered gpus;
  gpus.uuids.resize(list.size());
  gpus.numa.resize(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = "[" + std::to_string(i) + "]";
    const std::string uuid = wire::TextIn(list[i], {"id"});
    if (uuid.empty()) return Invalid(place + ".id: want a UUID");
    const auto index = NumberIn(list[i], "index", static_cast<int>(list.size()) - 1);
    if (!index || !gpus.uuids[static_cast<std::size_t>(*index)].empty()) {
      return Invalid(place + ".index: want each of 0.." + std::to_string(list.size() - 1) +
                     " once");
    }
    if (!gpus.index.emplace(uuid, *index).second) return Invalid(place + ".id: is there twice");
    gpus.uuids[static_cast<std::size_t>(*index)] = uuid;
    constexpr int kMostNumaNodes = 1023;  // Linux' MAX_NUMNODES
    if (const auto numa = NumberIn(list[i], "numa", kMostNumaNodes)) {
      gpus.numa[static_cast<std::size_t>(*index)] = std::to_string(*numa);
    }
  }
  return gpus;
}

// The scores of one GPU to all others.
Status ReadScores(const Json& scores, const Registered& gpus, int from, LinkMatrix& matrix) {
  if (!scores.is_object()) return Invalid(".score: want an object");
  for (std::size_t to = 0; to < gpus.uuids.size(); ++to) {
    if (static_cast<int>(to) == from) continue;
    const auto found = scores.find(gpus.uuids[to]);
    const bool whole = found != scores.end() && found->is_number_integer();
    const double number = whole ? found->get<double>() : -1;
    constexpr double kBeyond = 1e6;  // far above any score
    const auto link = number >= 0 && number < kBeyond
                          ? LinkOfNvidiaScore(static_cast<std::int64_t>(number))
                          : std::nullopt;
    if (!link) {
      return Invalid(".score." + gpus.uuids[to].substr(0, 60) +
                     ": want a PCIe relation of 0..60 in tens and 100 per NVLink");
    }
    matrix.link(from, static_cast<int>(to)) = *link;
  }
  return {};
}

Result<HamiLinks> ReadMatrix(std::string_view text, Registered gpus) {
  BERTH_TRY(const Json list, ParseHamiList(text));
  BERTH_TRY_STATUS(CheckList(list));
  if (list.size() != gpus.uuids.size()) {
    return Invalid("want the " + std::to_string(gpus.uuids.size()) + " GPUs of " +
                   std::string(kHamiRegisterAnnotation) + ", got " + std::to_string(list.size()));
  }
  std::vector<std::string> names;
  for (std::size_t i = 0; i < list.size(); ++i) names.push_back("GPU" + std::to_string(i));
  BERTH_TRY(LinkMatrix matrix, MakeLinkMatrix(std::move(names), {}));
  std::vector<bool> seen(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    const std::string place = "[" + std::to_string(i) + "]";
    const auto known = gpus.index.find(wire::TextIn(list[i], {"uuid"}));
    if (known == gpus.index.end() || seen[static_cast<std::size_t>(known->second)]) {
      return Invalid(place + ".uuid: want each of the GPUs of " +
                     std::string(kHamiRegisterAnnotation) + " once");
    }
    seen[static_cast<std::size_t>(known->second)] = true;
    Status read = ReadScores(list[i].value("score", Json()), gpus, known->second, matrix);
    if (!read) return tl::unexpected(std::move(read).error().Within(place));
  }
  matrix.numa_affinity = std::move(gpus.numa);
  BERTH_TRY_STATUS(CompleteBySymmetry(matrix));
  return HamiLinks{std::move(matrix), std::move(gpus.uuids)};
}

// The registers of its agents for other vendors (hami.io/node-register-Ascend910B3, ...), and that
// of HAMi before 2.4, k8s-vgpu-scheduler. Its scheduler alone gives these GPUs.
constexpr auto kOtherRegisters = std::to_array<std::string_view>(
    {"hami.io/node-register-", "hami.io/node-amd-register", "hami.io/node-dcu-register",
     "hami.io/node-mlu-register", "4pd.io/node-nvidia-register"});

constexpr std::array kHamiNodeKeys = {
    kHamiRegisterAnnotation, kHamiCordonAnnotation, kHamiScoreAnnotation, kOtherRegisters[0],
    kOtherRegisters[1],      kOtherRegisters[2],    kOtherRegisters[3],   kOtherRegisters[4]};
constexpr std::array kHamiPodKeys = [] {
  std::array<std::string_view, kHamiAskKeys.size() + kHamiPolicyKeys.size()> keys;
  std::ranges::copy(kHamiPolicyKeys, std::ranges::copy(kHamiAskKeys, keys.begin()).out);
  return keys;
}();
constexpr std::array kHamiOffered = {kHamiMemoryResource};
constexpr std::array kHamiGrants = {kHamiMigAnnotation, kHamiDevicesAnnotation};

// One node of HAMi's. The register is parsed once, for MIG devices and for links.
class HamiNode final : public wire::NodeReading {
 public:
  HamiNode(const wire::NodeFacts& facts, bool gives_devices)
      : scores_(facts.Annotation(kHamiScoreAnnotation)),
        register_text_(facts.Annotation(kHamiRegisterAnnotation)),
        register_(ParseHamiRegister(register_text_)),
        gives_devices_(gives_devices),
        product_(facts.product),
        offered_mib_(facts.Resource(kHamiMemoryResource).capacity),
        mig_(ReadMig(facts, gives_devices)),
        others_(mig_ && gives_devices ? mig_->others.size() : 0) {}

  // HAMi announces each GPU as several devices.
  void CountGpus(wire::GpuDraft& draft) override {
    // What cannot be read may be anything; HAMi's agent is there all the same.
    draft.partitioned += mig_ ? mig_->devices : 0;
    const std::int64_t unit = mig_ ? UnitOfMemory() : 1;
    if (unit > 1) {
      draft.AddProblem(std::string(kHamiMemoryResource) + ": want memoryFactor 1 in HAMi's " +
                       "settings, got " + std::to_string(unit) +
                       ", so only HAMi's scheduler assigns the GPUs");
      draft.served_by_other = draft.shared_by_other = true;
      return;
    }
    if (gives_devices_ && mig_ && !mig_->others.empty()) return Share(draft);
    draft.served_by_other = draft.served_by_other || !mig_ || mig_->serves_others;
    draft.shared_by_other = draft.shared_by_other || !mig_ || mig_->shares_others;
    if (!draft.served_by_other || !mig_ || mig_->others.empty()) return;
    draft.registered = std::ssize(mig_->others);
    const std::string& model = mig_->models.front();
    if (std::ranges::count(mig_->models, model) == draft.registered) draft.model = model;
  }

  std::optional<wire::AnnouncedLinks> Links() override {
    if (scores_.empty()) return NumaAlone();
    wire::AnnouncedLinks links{.annotation = kHamiScoreAnnotation, .matrix = {}, .uuids = {}};
    auto read = register_ ? ParseHamiLinks(scores_, *register_)
                          : Result<HamiLinks>(tl::unexpected(
                                Error(register_.error()).Within(kHamiRegisterAnnotation)));
    if (read) {
      links.matrix = std::move(read->matrix);
      links.uuids = std::move(read->uuids);
    } else {
      links.matrix = tl::unexpected(std::move(read).error());
    }
    return links;
  }

  void AddMig(wire::MigDraft& draft) override {
    if (!mig_) {
      draft.AddProblem("annotation " + std::string(kHamiRegisterAnnotation) + ": " +
                       mig_.error().message);
    } else if (!draft.spec) {
      draft.spec = std::move(spec_);
    }
  }

 private:
  // MiB in which pods there ask for memory. Where HAMi's own device plugin for such resources runs,
  // the node offers the register's memory in that unit (HAMi, memoryFactor; mock-device-plugin).
  [[nodiscard]] std::int64_t UnitOfMemory() const {
    if (!gives_devices_ || offered_mib_ <= 0 || mig_->devices > 0) return 1;
    std::int64_t registered = 0;
    for (const GpuSpec& gpu : mig_->others) registered += gpu.memory_mib;
    return registered / offered_mib_;
  }

  // Where its agent writes no scores: NUMA nodes, and the links of the product.
  std::optional<wire::AnnouncedLinks> NumaAlone() {
    auto gpus = register_ && others_ > 1 ? ReadRegister(*register_)
                                         : Result<Registered>(tl::unexpected(Error()));
    if (!gpus || gpus->numa.size() != others_) return std::nullopt;
    auto matrix = LinksOfProduct(product_, static_cast<int>(others_));
    if (!matrix) {
      std::vector<std::string> names;
      for (std::size_t i = 0; i < others_; ++i) names.push_back("GPU" + std::to_string(i));
      auto unknown = MakeLinkMatrix(std::move(names), {});
      if (!unknown) return std::nullopt;
      matrix = *std::move(unknown);
    }
    matrix->numa_affinity = std::move(gpus->numa);
    return wire::AnnouncedLinks{.annotation = kHamiRegisterAnnotation,
                                .matrix = *std::move(matrix),
                                .uuids = std::move(gpus->uuids)};
  }

  // Those that it does not cut are Berth's to give.
  void Share(wire::GpuDraft& draft) {
    if (draft.shared) return;
    const auto count =
        std::ranges::find(draft.devices, kHamiWords.number, &wire::DeviceCount::resource);
    if (count == draft.devices.end()) {  // its agent calls them otherwise (resourceCountName)
      draft.served_by_other = draft.shared_by_other = true;
      return;
    }
    draft.shared = wire::SharedGpus{.agent = std::string(kHamiAgent),
                                    .resource = std::string(kHamiWords.number),
                                    .isolation = Isolation::kMemory,
                                    .gpus = std::move(mig_->others),
                                    .models = std::move(mig_->models)};
    CountRegistered(count->allocatable - mig_->devices, draft);
  }

  Result<HamiMig> ReadMig(const wire::NodeFacts& facts, bool gives_devices) {
    if (!facts.annotations.contains(kHamiRegisterAnnotation)) return HamiMig();
    if (!register_) return tl::unexpected(register_.error());
    if (register_->is_discarded() && !register_text_.starts_with('[')) {
      return HamiMig{std::nullopt, 0, true, true};
    }
    BERTH_TRY(HamiMig read, ReadHamiMig({.registered = *register_,
                                         .cordoned = facts.Annotation(kHamiCordonAnnotation),
                                         .label = facts.product,
                                         .give = gives_devices}));
    if (read.announced) {
      BERTH_TRY(spec_,
                wire::BuildMig(*std::move(read.announced), "", facts.product, facts.library));
    }
    return read;
  }

  std::optional<MigSpec> spec_;  // nothing where no GPU is partitioned
  const std::string_view scores_;
  const std::string_view register_text_;
  const Result<wire::Json> register_;
  const bool gives_devices_;
  const std::string product_;
  const std::int64_t offered_mib_;
  Result<HamiMig> mig_;
  const std::size_t others_;  // GPUs that it does not cut
};

// A node whose GPUs, of another vendor than NVIDIA or by an old agent, HAMi hands out in parts:
// they are its scheduler's to give.
class HamiOtherNode final : public wire::NodeReading {
 public:
  explicit HamiOtherNode(std::string_view registered)
      : registered_(ParseHamiRegister(registered)) {}
  void CountGpus(wire::GpuDraft& draft) override {
    draft.served_by_other = draft.shared_by_other = true;
    if (registered_ && registered_->is_array()) draft.registered = std::ssize(*registered_);
  }

 private:
  const Result<wire::Json> registered_;
};

std::string_view OtherRegisterOf(const wire::NodeFacts& facts) {
  for (const auto& [key, value] : facts.annotations) {
    for (const std::string_view begin : kOtherRegisters) {
      if (key.starts_with(begin) && !value.empty()) return value;
    }
  }
  return "";
}

class HamiDialect final : public wire::Dialect {
 public:
  explicit HamiDialect(bool gives_devices) : gives_devices_(gives_devices) {}

  [[nodiscard]] std::string_view name() const override { return kHamiAgent; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.of_nodes = kHamiNodeKeys,
            .of_pods = kHamiPodKeys,
            .resources = kHamiResources,
            .node_resources = kHamiOffered,
            .grants = kHamiGrants,
            .grants_of_own_nodes = true};
  }

  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    if (!facts.annotations.contains(kHamiRegisterAnnotation) &&
        facts.Annotation(kHamiScoreAnnotation).empty()) {
      const std::string_view other = OtherRegisterOf(facts);
      return other.empty() ? nullptr : std::make_unique<HamiOtherNode>(other);
    }
    return std::make_unique<HamiNode>(facts, gives_devices_);
  }

  [[nodiscard]] Status AddAsk(std::string_view resource, std::int64_t amount,
                              wire::ResourceAsk& ask) const override {
    AddVgpuAsk(kHamiWords, resource, amount, ask);
    return {};
  }
  [[nodiscard]] Status FindShares(wire::PodParts& parts) const override {
    return gives_devices_ ? FindHamiShares(parts) : Status();
  }
  [[nodiscard]] Status FinishAsk(const wire::PodParts& parts, PodRequest& pod,
                                 MigWant& need) const override {
    BERTH_TRY_STATUS(ReadHamiChoices(parts, pod.shape));
    if (pod.shape.mig() != nullptr || need != MigWant{}) return RefuseMigUuids(parts);
    BERTH_TRY(const std::optional<MigWant> asked, ReadHamiAsk(parts, gives_devices_));
    need = asked.value_or(need);
    return {};
  }

  // Such a pod asks in HAMi's terms, for any profile with as much as nvidia.com/gpumem.
  [[nodiscard]] Status ReadGrants(std::string_view key, const std::string& text,
                                  const wire::PodParts& asked,
                                  wire::ObservedPod& observed) const override {
    if (key == kHamiDevicesAnnotation) return ReadVgpuDevices(kHamiWords, text, asked, observed);
    BERTH_TRY(std::vector<MigGrant> devices, ParseHamiMigAllocations(text));
    return wire::TakeRecordedMig(asked, std::move(devices), observed);
  }
  void WriteGrants(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                   WallTime now, wire::Annotations& annotations) const override {
    if (!SpeaksHami(placement, node)) return;
    for (auto& annotation : HamiAnnotations(pod, placement, node, now)) {
      annotations.push_back(std::move(annotation));
    }
  }

 private:
  const bool gives_devices_;
};

}  // namespace

Status FindHamiShares(PodParts& parts) {
  const std::string* const mode = parts.Annotation(kModeKey);
  if (mode != nullptr && *mode == "mig") return {};
  return FindVgpuShares(kHamiWords, parts);
}

Result<std::optional<MigWant>> ReadHamiAsk(const PodParts& parts, bool gives_devices) {
  const std::string* const mode = parts.Annotation(kModeKey);
  if (mode == nullptr || *mode != "mig") {
    BERTH_TRY_STATUS(RefuseOthers(parts, gives_devices));
    return std::nullopt;
  }
  std::optional<MigWant> need;
  for (const ContainerSpec& container : parts.containers) {
    if (container.ask.gpus == 0) continue;
    BERTH_TRY_STATUS(WantsMemory(container));
    const std::int64_t memory_mib = container.ask.gpu_memory_mib_each;
    if (need && need->min_memory_mib != memory_mib) {
      return Invalid("container " + container.name + ": want as much " +
                     std::string(kHamiMemoryResource) + " as in the containers before it (" +
                     std::to_string(need->min_memory_mib) + "), got " + std::to_string(memory_mib));
    }
    need = MigWant{.profile = {}, .min_memory_mib = memory_mib};
  }
  if (need) BERTH_TRY_STATUS(RefuseForMig(parts, kMigChoiceKeys));
  return need;
}

Status RefuseMigUuids(const PodParts& parts) { return RefuseForMig(parts, kUuidKeys); }

Status ReadHamiChoices(const PodParts& parts, RequestShape& shape) {
  constexpr std::array kSpreads = {Spread::kCard, Spread::kNode};
  if (!shape.wants_gpu()) return {};
  for (std::size_t i = 0; i < kSpreads.size() && shape.spread == Spread::kNone; ++i) {
    BERTH_TRY(const bool spreads, Says(parts, kHamiPolicyKeys[i], "spread"));
    if (spreads) wire::SpreadByController(parts, kSpreads[i], shape);
  }
  std::vector<ModelRule> rules;
  for (const std::string_view key : {kUseTypeKey, kNoUseTypeKey}) {
    BERTH_TRY(const std::set<std::string> words, WordsOf(parts, key));
    for (const std::string& type : words) {
      std::string part = type;  // as a register writes it, or GFD, or a part of either
      constexpr std::string_view kVendor = "nvidia-";
      if (part.size() > kVendor.size() && part.starts_with(kVendor)) part.erase(0, kVendor.size());
      std::ranges::replace(part, ' ', '-');
      rules.push_back({key == kNoUseTypeKey, std::move(part)});
    }
  }
  shape.model_rules = ModelRules(std::move(rules));
  if (shape.gpu_count() > 0) {
    BERTH_TRY_STATUS(ReadVgpuUuids(parts, kUseUuidKey, kNoUseUuidKey, shape));
  }
  if (shape.links.numa != NumaWish::kAmongEquals) return {};
  BERTH_TRY(const bool binds, Says(parts, kNumaBindKey, "true"));
  if (binds) shape.links.numa = NumaWish::kRequired;
  return {};
}

Result<HamiLinks> ParseHamiLinks(std::string_view scores, const Json& registered) {
  auto gpus = ReadRegister(registered);
  if (!gpus) return tl::unexpected(std::move(gpus).error().Within(kHamiRegisterAnnotation));
  return ReadMatrix(scores, *std::move(gpus));
}

std::unique_ptr<const wire::Dialect> MakeHami(bool gives_devices) {
  return std::make_unique<HamiDialect>(gives_devices);
}

}  // namespace berth::dialects
