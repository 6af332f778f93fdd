// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod_rules.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

#include "base/number.h"
#include "cluster/node.h"
#include "cluster/quantity.h"
#include "server/wire/hami_ask.h"
#include "server/wire/hami_mig.h"
#include "server/wire/pod_group.h"

namespace berth::wire {
namespace {

constexpr std::int64_t kBytesPerMib = 1 << 20;
constexpr std::string_view kGpuModelKey = "berth.dev/gpu-model";
constexpr std::string_view kGangPrefix = "berth.dev/gang";
constexpr std::string_view kMinBandwidthKey = "berth.dev/min-bandwidth-gbps";
constexpr int kMostGigabytes = 100'000;  // per second: beyond any link
constexpr std::size_t kMostModels = 64;  // that a pod may name; each node is compared with them

// Of a pod that is bound: what Berth wrote with the binding, and what HAMi did before.
constexpr std::array<std::string_view, 3> kRecordKeys = {"berth.dev/devices", "berth.dev/decision",
                                                         kHamiMigAnnotation};

// Sums and products of asks stop at a bound that no node reaches, so that no input overflows.
constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 4;

std::int64_t Capped(std::int64_t value) { return std::min(value, kMost); }
std::int64_t Times(std::int64_t value, std::int64_t factor) {
  return value > kMost / factor ? kMost : value * factor;
}

ResourceAsk Effective(const PodParts& parts) {
  ResourceAsk together, sidecars, highest_init;
  for (const ContainerSpec& container : parts.containers) {
    switch (container.kind) {
      case ContainerKind::kMain:
        together += container.ask;
        break;
      case ContainerKind::kSidecar:
        sidecars += container.ask;
        highest_init.Raise(sidecars);
        break;
      case ContainerKind::kInit: {
        ResourceAsk with_sidecars = sidecars;
        with_sidecars += container.ask;
        highest_init.Raise(with_sidecars);
        break;
      }
    }
  }
  together += sidecars;
  together.Raise(highest_init);
  if (parts.pod_cpu_milli) together.cpu_milli = *parts.pod_cpu_milli;
  if (parts.pod_memory_bytes) together.memory_bytes = *parts.pod_memory_bytes;
  together += parts.overhead;
  return together;
}

GpuAsk GpuAskOf(const ResourceAsk& ask) {
  if (!ask.mig.empty()) return ask.mig.ToSlices();
  if (ask.gpus > 0) return WholeGpus{static_cast<int>(std::min<std::int64_t>(ask.gpus, kMost))};
  if (!ask.wants_share()) return NoGpu{};
  const std::int64_t mib = ask.share_bytes / kBytesPerMib + (ask.share_bytes % kBytesPerMib != 0);
  return GpuShare{static_cast<int>(ask.share_milli), mib};
}

// Why no node could ever take such an ask; empty = fine.
std::string Objection(const ResourceAsk& ask) {
  if (!ask.other_gpu_resource.empty()) {
    return "pod asks for " + std::string(ask.gpu_resource) + " and for " +
           std::string(ask.other_gpu_resource) + ": want one of the two";
  }
  if (!ask.mig.empty() && (ask.gpus > 0 || ask.wants_share())) {
    return "pod asks for MIG devices and for GPUs: want one of the two";
  }
  if (ask.mig.total() > kMaxMigDevicesPerPod)
    return "pod asks for more MIG devices than any node has";
  if (ask.gpus > 0 && ask.wants_share()) {
    return "pod asks for whole GPUs and for a share of one: want one of the two";
  }
  if (ask.gpus > kMaxGpusPerNode) return "pod asks for more GPUs than any node has";
  if (ask.share_milli > kMilliPerGpu) return "pod asks for a share above one GPU";
  return "";
}

std::string_view Trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// "A100|H100": the models that will do.
std::vector<std::string> ParseModels(std::string_view text) {
  std::vector<std::string> models;
  while (true) {
    const std::size_t end = text.find('|');
    const std::string_view model = Trimmed(text.substr(0, end));
    if (!model.empty()) models.emplace_back(model);
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  std::ranges::sort(models);
  models.erase(std::unique(models.begin(), models.end()), models.end());
  return models;
}

// Groups of our own are not planned as a whole yet: who asks for one is told so.
bool IsKnown(std::string_view key) {
  if (key.starts_with(kGangPrefix)) return false;
  return IsGroupAnnotation(key) || IsHamiAskKey(key) ||
         std::ranges::find(kRecordKeys, key) != kRecordKeys.end();
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
  return "want one of " + wanted + ", got \"" + std::string(value.substr(0, 40)) + "\"";
}

// Reads the pod's berth.dev/ annotations; returns what is wrong with them.
std::string ReadAnnotations(const PodParts& parts, PodRequest& pod) {
  RequestShape& shape = pod.shape;
  MigWant need;
  for (const auto& [key, value] : parts.annotations) {
    if (key == kGpuModelKey) {
      shape.models = ParseModels(value);
      if (shape.models.empty()) return "annotation " + key + ": want GPU models joined by |";
      if (const std::size_t count = shape.models.size(); count > kMostModels) {
        shape.models.clear();
        return "annotation " + key + ": want at most " + std::to_string(kMostModels) +
               " GPU models, got " + std::to_string(count);
      }
    } else if (IsLinkKey(key)) {
      const std::string wrong = ReadLinkAsk(key, value, shape.links);
      if (!wrong.empty()) return "annotation " + key + ": " + wrong;
    } else if (IsMigNeedKey(key)) {
      const Status read = ReadMigNeed(key, value, need);
      if (!read) return "annotation " + key + ": " + read.error().message;
    } else if (!IsKnown(key) && (shape.wants_gpu() || !key.starts_with(kGangPrefix))) {
      return "annotation " + key + ": not known to this version of berth";
    }
  }
  if (need == MigWant{}) {
    const auto asked = ReadHamiAsk(parts);
    if (!asked) return asked.error().message;
    need = asked->value_or(need);
  }
  if (need != MigWant{}) {
    if (const Status applied = ApplyMigNeed(need, pod); !applied) return applied.error().message;
  }
  // One GPU has no links to choose among.
  if (!std::holds_alternative<WholeGpus>(shape.gpus) || shape.gpu_count() < 2) shape.links = {};
  return "";
}

}  // namespace

ResourceAsk& ResourceAsk::operator+=(const ResourceAsk& other) {
  cpu_milli = Capped(cpu_milli + other.cpu_milli);
  memory_bytes = Capped(memory_bytes + other.memory_bytes);
  gpus = Capped(gpus + other.gpus);
  share_milli = Capped(share_milli + other.share_milli);
  share_bytes = Capped(share_bytes + other.share_bytes);
  mig += other.mig;
  AddWords(other);
  return *this;
}

void ResourceAsk::Raise(const ResourceAsk& other) {
  cpu_milli = std::max(cpu_milli, other.cpu_milli);
  memory_bytes = std::max(memory_bytes, other.memory_bytes);
  gpus = std::max(gpus, other.gpus);
  share_milli = std::max(share_milli, other.share_milli);
  share_bytes = std::max(share_bytes, other.share_bytes);
  mig.Raise(other.mig);
  AddWords(other);
}

void ResourceAsk::AddWords(const ResourceAsk& other) {
  hami_memory_mib = std::max(hami_memory_mib, other.hami_memory_mib);
  hami_memory_percent = hami_memory_percent || other.hami_memory_percent;
  if (hami_share.empty()) hami_share = other.hami_share;
  if (gpu_resource.empty()) gpu_resource = other.gpu_resource;
  for (const std::string_view resource : {other.gpu_resource, other.other_gpu_resource}) {
    if (other_gpu_resource.empty() && resource != gpu_resource) other_gpu_resource = resource;
  }
}

PodRules::PodRules(const std::vector<ResourceRule>& resources, TopologyLevels levels,
                   const PodGroups* groups, const DeviceClasses* classes)
    : levels_(std::move(levels)), groups_(groups), classes_(classes) {
  for (const ResourceRule& rule : resources) {
    rules_.push_back({rule.name, rule.meaning, UnitFactor(rule)});
  }
  several_gpu_resources_ =
      std::ranges::count(rules_, ResourceMeaning::kWholeGpus, &Rule::meaning) > 1;
}

Status PodRules::Add(std::string_view resource, std::string_view text, ResourceAsk& ask) const {
  const bool is_cpu = resource == "cpu";
  const bool is_memory = resource == "memory";
  const auto rule = std::ranges::find(rules_, resource, &Rule::name);
  const bool is_other = !is_cpu && !is_memory && rule == rules_.end();
  const bool is_hami = is_other && IsHamiResource(resource);
  const auto of_class =
      is_other && classes_ != nullptr ? classes_->ClassOf(resource) : std::optional<DeviceClass>();
  if (of_class && !of_class->profile) return {};
  if (is_other && !of_class && !is_hami && !resource.starts_with(kMigResourcePrefix)) return {};
  auto quantity = Quantity::Parse(text);
  if (!quantity) return tl::unexpected(std::move(quantity).error().Within(resource));
  if (quantity->MilliValue() < 0) {
    return Invalid(std::string(resource) + ": want 0 or more, got \"" + std::string(text) + "\"");
  }
  ResourceAsk added;
  if (is_cpu) {
    added.cpu_milli = Capped(quantity->MilliValue());
  } else if (is_memory) {
    added.memory_bytes = Capped(quantity->Value());
  } else if (of_class) {
    added.mig.Add({*of_class->profile, false}, Capped(quantity->Value()));
  } else if (is_hami) {
    if (resource == kHamiMemoryResource) added.hami_memory_mib = Capped(quantity->Value());
    added.hami_memory_percent = resource == kHamiMemoryPercentResource;
    added.hami_share = HamiShareResource(resource, quantity->Value());
  } else if (is_other) {
    BERTH_TRY(const MigResource device, ParseMigResource(resource));
    added.mig.Add(device, Capped(quantity->Value()));
  } else {
    const std::int64_t amount = Times(quantity->Value(), rule->factor);
    switch (rule->meaning) {
      case ResourceMeaning::kWholeGpus:
        added.gpus = amount;
        if (amount > 0) added.gpu_resource = rule->name;
        break;
      case ResourceMeaning::kShareCompute:
        added.share_milli = amount;
        break;
      case ResourceMeaning::kShareMemory:
        added.share_bytes = amount;
        break;
    }
  }
  ask += added;
  return {};
}

void PodRules::ReadGroup(const PodParts& parts, PodRequest& request) const {
  request.gang = GangOf(parts);
  const Result<int> size = GangSizeOf(parts);
  const Result<DomainAsk> domain = DomainAskOf(parts, levels_);
  if (size) request.gang_size = *size;
  if (domain) request.domain = *domain;
  if (groups_ != nullptr && !request.gang.empty()) {
    if (const std::optional<PodGroup> group = groups_->Find(request.gang)) {
      if (request.gang_size == 0) request.gang_size = group->min_members;
      if (request.domain == DomainAsk{}) request.domain = group->domain;
    }
  }
  // A pod without GPUs is placed by kube-scheduler, whatever its group is to be.
  if (!request.refusal.empty() || !request.shape.wants_gpu()) return;
  if (!size) request.refusal = size.error().message;
  if (!domain) request.refusal = domain.error().message;
}

PodRequest PodRules::ToRequest(PodParts parts) const {
  PodRequest request;
  const ResourceAsk ask = Effective(parts);
  request.refusal = parts.problem.empty() ? Objection(ask) : parts.problem;
  request.shape.cpu_milli = ask.cpu_milli;
  request.shape.memory_bytes = ask.memory_bytes;
  if (request.refusal.empty()) {
    request.shape.gpus = GpuAskOf(ask);
    if (several_gpu_resources_) request.shape.gpu_resource = ask.gpu_resource;
    int index = 0;
    for (const ContainerSpec& container : parts.containers) {
      const int at = index++;
      if (!container.ask.wants_gpu()) continue;
      request.containers.push_back(
          {container.name, GpuAskOf(container.ask), container.kind == ContainerKind::kInit, at});
    }
    request.container_count = index;
    request.refusal = ReadAnnotations(parts, request);
  }
  ReadGroup(parts, request);
  request.priority = parts.priority;
  request.may_preempt = parts.may_preempt;
  request.id = std::move(parts.id);
  if (request.id.uid.empty()) request.id.uid = request.id.namespace_name + "/" + request.id.name;
  if (!parts.labels.empty()) {
    request.labels = std::make_shared<const Labels>(std::move(parts.labels));
  }
  if (parts.constraints != NodeConstraints{}) {
    request.constraints = std::make_shared<const NodeConstraints>(std::move(parts.constraints));
  }
  return request;
}

}  // namespace berth::wire
