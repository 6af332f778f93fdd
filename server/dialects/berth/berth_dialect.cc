// SPDX-License-Identifier: Apache-2.0
//
// Berth's own annotations:
//
//   node  berth.dev/topology, berth.dev/mig (wire/node/topology_json.h, wire/node/mig_json.h)
//   node  berth.dev/gpu-uuids: GPU-a,GPU-b, by index, as nvidia-smi lists them
//   node  berth.dev/gpu-models (wire/node/agent_annotations.h)
//   pod   berth.dev/gpu-model: A100|H100, berth.dev/link, numa, pattern, min-bandwidth-gbps,
//         mig-min-slices, mig-min-memory-gib (wire/pod/pod_parts.h), isolation, min-gpu-memory-gib
//         (wire/pod/pod_needs.h)
//   pod   berth.dev/devices, berth.dev/visible-devices, written with the binding
//         (wire/pod/devices_annotation.h)
#include <algorithm>
#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/dialects/registry.h"
#include "server/wire/node/agent_annotations.h"
#include "server/wire/node/gpu_conditions.h"
#include "server/wire/node/mig_json.h"
#include "server/wire/node/topology_json.h"
#include "server/wire/pod/devices_annotation.h"
#include "server/wire/pod/given_json.h"
#include "server/wire/pod/pod_needs.h"
#include "server/wire/pod/pod_object.h"
#include "server/wire/pod/pod_parts.h"

namespace berth::dialects {
namespace {

constexpr std::string_view kPrefix = "berth.dev/";
constexpr std::string_view kGpuModelKey = "berth.dev/gpu-model";
constexpr std::string_view kMinBandwidthKey = "berth.dev/min-bandwidth-gbps";
constexpr int kMostGigabytes = 100'000;  // per second: beyond any link

// What is read elsewhere: what a binding has written; a group, and its topology levels.
constexpr std::array<std::string_view, 13> kOtherKeys = {
    wire::kDevicesKey,         wire::kVisibleDevicesKey,    wire::kDecisionKey,
    wire::kGivenKey,           "berth.dev/required-domain", "berth.dev/preferred-domain",
    "berth.dev/gang",          "berth.dev/gang-by",         "berth.dev/gang-size",
    "berth.dev/gang-min",      "berth.dev/checkpointed-at", "berth.dev/keep",
    wire::kExpectedDurationKey};

constexpr std::size_t kLongestUuid = 64;

constexpr std::array kNodeKeys = {
    wire::kTopologyAnnotation, wire::kMigAnnotation, wire::kGpuUuidsKey, wire::kCarriesOutKey,
    wire::kKubeletKey,         wire::kGpuHealthKey,  wire::kGpuModelsKey};
constexpr std::array kPodKeys = {kPrefix};
constexpr std::array kGrants = {wire::kDevicesKey};

// "A100|H100": the models that will do.
std::vector<std::string> ParseModels(std::string_view text) {
  const std::vector<std::string_view> parts = PartsOf(text, '|');
  std::vector<std::string> models(parts.begin(), parts.end());
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

// An annotation of one word. Each sets a part of the LinkAsk.
struct LinkWord {
  std::string_view key, word;
  void (*set)(LinkAsk&);
};
constexpr std::array<LinkWord, 9> kLinkWords = {{
    {"berth.dev/link", "required", [](LinkAsk& ask) { ask.link = LinkWish::kRequired; }},
    {"berth.dev/link", "preferred", [](LinkAsk& ask) { ask.link = LinkWish::kPreferred; }},
    {"berth.dev/link", "none", [](LinkAsk& ask) { ask.link = LinkWish::kNone; }},
    {"berth.dev/numa", "required", [](LinkAsk& ask) { ask.numa = NumaWish::kRequired; }},
    {"berth.dev/numa", "preferred", [](LinkAsk& ask) { ask.numa = NumaWish::kPreferred; }},
    {"berth.dev/pattern", "ring", [](LinkAsk& ask) { ask.pattern = LinkPattern::kRing; }},
    {"berth.dev/pattern", "all-to-all", [](LinkAsk& ask) { ask.pattern = LinkPattern::kAllToAll; }},
    {"berth.dev/pattern", "pairs", [](LinkAsk& ask) { ask.pattern = LinkPattern::kPairs; }},
    {"berth.dev/pattern", "grid", [](LinkAsk& ask) { ask.pattern = LinkPattern::kGrid; }},
}};

bool IsLinkKey(std::string_view key) {
  return key == kMinBandwidthKey ||
         std::ranges::find(kLinkWords, key, &LinkWord::key) != kLinkWords.end();
}

// Reads one of the annotations of links; returns what was wanted where it is something else.
std::string ReadLinkAsk(std::string_view key, std::string_view value, LinkAsk& ask) {
  if (key == kMinBandwidthKey) {
    const auto gigabytes = ParseInt(value, 0, kMostGigabytes);
    if (!gigabytes) return gigabytes.error().message;
    ask.min_megabytes_per_s = static_cast<int>(*gigabytes) * 1000;
    return "";
  }
  std::string wanted;
  for (const LinkWord& word : kLinkWords) {
    if (word.key != key) continue;
    if (word.word == value) {
      word.set(ask);
      return "";
    }
    wanted.append(wanted.empty() ? "" : ", ").append(word.word);
  }
  return wire::WantedText("one of " + wanted, value);
}

// The models, or what is wrong with them.
Status ReadModels(const std::string& key, std::string_view value, RequestShape& shape) {
  shape.models = ParseModels(value);
  if (shape.models.empty()) return wire::WrongAnnotation(key, "want GPU models joined by |");
  const std::size_t count = shape.models.size();
  if (count <= wire::kMostListed) return {};
  shape.models.clear();
  return wire::WrongAnnotation(key, "want at most " + std::to_string(wire::kMostListed) +
                                        " GPU models, got " + std::to_string(count));
}

// Names of resources by which pods ask unless it is configured otherwise.
constexpr std::array<std::string_view, 2> kResources = {"berth.dev/gpu-milli",
                                                        "berth.dev/gpu-memory-mib"};

// The name behind kPrefix that the key may stand for, with it; "": none.
std::string MeantBy(std::string_view key) {
  constexpr std::size_t kLongest = 64;
  constexpr std::string_view kNames =
      "gpu-model link numa pattern min-bandwidth-gbps isolation min-gpu-memory-gib "
      "mig-min-slices mig-min-memory-gib spread spread-by near far min-driver min-cuda "
      "min-compute-capability workload-class prefer required-domain preferred-domain gang "
      "gang-by gang-size gang-min checkpointed-at keep expected-duration";
  if (!key.starts_with(kPrefix) || key.size() > kLongest) return "";
  const auto words = PartsOf(kNames, ' ');
  const std::vector<std::string> names(words.begin(), words.end());
  const std::string name = NearestWord(key.substr(kPrefix.size()), names);
  return name.empty() ? "" : std::string(kPrefix) + name;
}

Status ReadAnnotation(const std::string& key, const std::string& value, RequestShape& shape,
                      MigWant& need) {
  if (key == kGpuModelKey) return ReadModels(key, value, shape);
  if (IsLinkKey(key)) {
    const std::string wrong = ReadLinkAsk(key, value, shape.links);
    return wrong.empty() ? Status() : wire::WrongAnnotation(key, wrong);
  }
  if (wire::IsMigNeedKey(key)) {
    const Status read = wire::ReadMigNeed(key, value, need);
    return read ? Status() : wire::WrongAnnotation(key, read.error().message);
  }
  if (wire::IsGpuNeedKey(key)) {
    const Status read = wire::ReadGpuNeed(key, value, shape);
    return read ? Status() : wire::WrongAnnotation(key, read.error().message);
  }
  const bool is_read_elsewhere = std::ranges::find(kOtherKeys, key) != kOtherKeys.end() ||
                                 wire::IsSpreadKey(key) || wire::IsNeighbourKey(key) ||
                                 wire::IsVersionKey(key) || wire::IsClassKey(key);
  if (is_read_elsewhere) return {};
  if (std::ranges::find(kResources, key) != kResources.end()) {
    return wire::WrongAnnotation(key,
                                 "want this as a resource, under resources.limits of a container");
  }
  const std::string meant = MeantBy(key);
  return wire::WrongAnnotation(key, "not known to this version of berth" +
                                        (meant.empty() ? "" : ", did you mean " + meant + "?"));
}

// "GPU-a,GPU-b", or a line for each as nvidia-smi prints them: by index.
Result<std::vector<std::string>> ReadUuids(std::string_view text) {
  std::vector<std::string> uuids;
  text = Trimmed(text);
  for (bool more = !text.empty(); more;) {
    const std::size_t end = std::min(text.find_first_of(",\n"), text.size());
    const std::string_view uuid = Trimmed(text.substr(0, end));
    more = end < text.size();
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::string place = "[" + std::to_string(uuids.size()) + "]: ";
    if (uuid.empty() || uuid.size() > kLongestUuid ||
        uuid.find_first_of(" ;\"'[]{}") != std::string_view::npos) {
      return Invalid(place + "want a UUID of 1.." + std::to_string(kLongestUuid) +
                     " characters, got \"" + std::string(uuid.substr(0, kLongestUuid)) + "\"");
    }
    if (std::ranges::find(uuids, uuid) != uuids.end()) {
      return Invalid(place + "\"" + std::string(uuid) + "\" is there twice");
    }
    uuids.emplace_back(uuid);
    text = Trimmed(text);
  }
  return uuids;
}

class BerthNode final : public wire::NodeReading {
 public:
  explicit BerthNode(const wire::NodeFacts& facts) : facts_(facts) {}

  void CountGpus(wire::GpuDraft& draft) override {
    const std::string_view text = facts_.Annotation(wire::kGpuUuidsKey);
    if (!text.empty()) draft.uuids = wire::AnnouncedUuids{wire::kGpuUuidsKey, ReadUuids(text)};
    Take(wire::kCarriesOutKey, wire::ParseCarriesOut, draft.carried_out, draft);
    Take(wire::kKubeletKey, wire::ParseKubelet, draft.topology_manager, draft);
    Take(wire::kGpuModelsKey, wire::ParseGpuKinds, draft.kinds, draft);
  }

  std::optional<wire::AnnouncedLinks> Links() override {
    const std::string_view text = facts_.Annotation(wire::kTopologyAnnotation);
    if (text.empty()) return std::nullopt;
    return wire::AnnouncedLinks{wire::kTopologyAnnotation, wire::ParseTopologyAnnotation(text), {}};
  }

  void AddMig(wire::MigDraft& draft) override {
    const auto read = [this](std::string_view text) { return Read(text); };
    Take(wire::kMigAnnotation, read, draft.spec, draft);
  }

 private:
  // What cannot be read is passed over: the node is then one without it, or without an agent.
  template <class Value, class Parse, class Draft>
  void Take(std::string_view key, Parse parse, Value& value, Draft& draft) const {
    const std::string_view text = facts_.Annotation(key);
    if (text.empty()) return;
    if (auto read = parse(text)) {
      value = *std::move(read);
    } else {
      draft.AddProblem("annotation " + std::string(key) + ": " + read.error().message);
    }
  }

  Result<MigSpec> Read(std::string_view text) const {
    const wire::Json json = wire::Json::parse(text, nullptr, false);
    if (json.is_discarded()) return Invalid("want JSON, got something else");
    BERTH_TRY(MigSpec spec, wire::ReadMig(json, "", facts_.product, facts_.library));
    if (!spec.by_claims()) return spec;
    return Invalid("allocator: want one of berth, first-fit, driver, hami, got \"kube-scheduler\"");
  }

  const wire::NodeFacts facts_;
};

// What the request leaves open follows on the node alone (cluster/node/given_grants.h).
void TakeAmounts(const RequestShape& shape, std::vector<DeviceGrant>& gpus) {
  const int none = shape.share_agent.empty() ? 0 : DeviceGrant::kAsAsked;
  for (DeviceGrant& grant : gpus) {
    const GpuShare share = AskedOf(grant, shape);
    const bool says_memory = share.memory_mib > 0 || share.memory_milli > 0;
    grant.milli = share.milli;
    grant.memory_mib = share.memory_mib;
    const int part = says_memory ? share.memory_milli : share.milli;
    grant.memory_milli = part > 0 || share.milli == 0 ? part : none;
  }
}

Status CheckWhole(const std::vector<DeviceGrant>& gpus) {
  for (const DeviceGrant& grant : gpus) {
    if (grant.milli == kMilliPerGpu) continue;
    return Invalid("containers: want " + std::to_string(kMilliPerGpu) + " milli of GPU " +
                   std::to_string(grant.gpu) + ", as the pod asks, got " +
                   std::to_string(grant.milli));
  }
  return {};
}

class BerthDialect final : public wire::Dialect {
 public:
  [[nodiscard]] std::string_view name() const override { return "berth"; }
  [[nodiscard]] wire::DialectKeys keys() const override {
    return {.of_nodes = kNodeKeys, .of_pods = kPodKeys, .grants = kGrants};
  }

  [[nodiscard]] std::unique_ptr<wire::NodeReading> ReadNode(
      const wire::NodeFacts& facts) const override {
    return std::make_unique<BerthNode>(facts);
  }

  [[nodiscard]] Status FinishAsk(const wire::PodParts& parts, PodRequest& pod,
                                 MigWant& need) const override {
    for (const auto& [key, value] : parts.annotations) {
      if (!key.starts_with(kPrefix)) continue;
      BERTH_TRY_STATUS(ReadAnnotation(key, value, pod.shape, need));
    }
    BERTH_TRY_STATUS(wire::ReadNeighbours(parts, pod.shape));
    return wire::ReadSpread(parts, pod.shape);
  }

  [[nodiscard]] Status ReadGrants(std::string_view, const std::string& text, const wire::PodParts&,
                                  wire::ObservedPod& observed) const override {
    BERTH_TRY(PodDevices granted, wire::DecodeDevices(text, observed.pod, observed.node));
    if (observed.pod.shape.is_share()) {
      TakeAmounts(observed.pod.shape, granted.grants);
    } else {
      BERTH_TRY_STATUS(CheckWhole(granted.grants));
    }
    SetDevices(std::move(granted), observed.placement);
    return {};
  }
  void WriteGrants(const PodRequest& pod, const Placement& placement, const NodeSpec& node,
                   WallTime, wire::Annotations& annotations) const override {
    if (DevicesOf(placement).empty()) return;
    annotations.emplace_back(wire::kDevicesKey, wire::EncodeDevices(pod, placement, node));
    if (std::string visible = wire::VisibleDevices(pod, placement, node); !visible.empty()) {
      annotations.emplace_back(wire::kVisibleDevicesKey, std::move(visible));
    }
  }
};

}  // namespace

std::unique_ptr<const wire::Dialect> MakeBerth() { return std::make_unique<BerthDialect>(); }

}  // namespace berth::dialects
