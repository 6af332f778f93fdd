// SPDX-License-Identifier: Apache-2.0
#include "server/wire/pod/pod_rules.h"

#include <algorithm>
#include <optional>

#include "base/quantity.h"
#include "cluster/node/node.h"
#include "cluster/values/held_bytes.h"
#include "server/wire/json/json_text.h"
#include "server/wire/pod/pod_needs.h"

namespace berth::wire {
namespace {

constexpr std::int64_t kBytesPerMib = 1 << 20;
constexpr std::ptrdiff_t kMostGpuContainers = 500;
std::int64_t Times(std::int64_t value, std::int64_t factor) {
  return value > kMostAsked / factor ? kMostAsked : value * factor;
}

// Where a resource of Kubernetes is counted that comes in bytes; nullptr: it is none.
std::int64_t ResourceAsk::*BytesOf(std::string_view resource) {
  if (resource == "memory") return &ResourceAsk::memory_bytes;
  return resource == "ephemeral-storage" ? &ResourceAsk::ephemeral_bytes : nullptr;
}

// What Kubernetes would refuse is no ask.
void AddOther(std::string_view resource, std::string_view text, OtherResources& others) {
  const auto quantity = Quantity::Parse(text);
  if (!quantity || quantity->Value() < 0 || !IsCountedElsewhere(resource)) return;
  if (std::int64_t* const amount = AmountOf(others, resource)) {
    *amount = Capped(*amount + Capped(quantity->Value()));
  }
}

bool BelongsOnAnyNode(const PodParts& parts, const ResourceAsk& ask) {
  constexpr int kSystemPriority = 2'000'000'000;  // of PriorityClass system-cluster-critical
  return parts.of_daemon_set || parts.claims_devices || ask.other_devices ||
         parts.priority >= kSystemPriority || parts.id.namespace_name == "kube-system";
}

GpuAsk GpuAskOf(const ResourceAsk& ask) {
  if (!ask.mig.empty()) return ask.mig.ToSlices();
  if (ask.gpus > 0) return WholeGpus{static_cast<int>(Capped(ask.gpus))};
  if (!ask.wants_share()) return NoGpu{};
  const std::int64_t mib = ask.share_bytes / kBytesPerMib + (ask.share_bytes % kBytesPerMib != 0);
  const std::int64_t milli = std::min<std::int64_t>(ask.share_milli, kMilliPerGpu);
  const std::int64_t memory = std::min<std::int64_t>(ask.share_memory_milli, kMilliPerGpu);
  return GpuShare{.milli = static_cast<int>(milli),
                  .memory_mib = mib,
                  .memory_milli = static_cast<int>(memory),
                  .count = static_cast<int>(std::max<std::int64_t>(ask.share_gpus, 1))};
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
    return "pod asks for whole GPUs and for a GPU share: want one of the two";
  }
  // Of replicas a pod may have more than a node has GPUs; agents hand out GPUs.
  const int most = ask.share_agent.empty() ? kMaxGpusPerPod : kMaxGpusPerNode;
  if (ask.gpus > most || ask.share_gpus > kMaxGpusPerNode)
    return "pod asks for more GPUs than any node has";
  if (ask.several_share_agents) return "pod asks for GPU shares through several agents";
  const bool too_large = std::max(ask.share_milli, ask.share_memory_milli) > kMilliPerGpu;
  if (too_large && !ask.share_by_container) return "pod asks for a GPU share larger than one GPU";
  return "";
}

// Each of them is kept.
Status CheckContainers(const PodParts& parts) {
  const auto with_gpus = std::ranges::count_if(
      parts.containers, [](const ContainerSpec& container) { return container.ask.wants_gpu(); });
  if (with_gpus <= kMostGpuContainers) return {};
  return Invalid("pod asks for GPUs in " + std::to_string(with_gpus) +
                 " containers: want at most " + std::to_string(kMostGpuContainers));
}

// Words of others on a pod without GPUs are none of Berth's.
Status CheckLengths(const PodParts& parts, const PodRequest& request) {
  const auto& [key, bytes] = parts.too_long;
  if (key.empty() || !(request.shape.wants_gpu() || key.starts_with("berth.dev/"))) return {};
  return WrongAnnotation(key, "want at most " + std::to_string(kMostAnnotationBytes) +
                                  " bytes, got " + std::to_string(bytes));
}

// A pod writes it while it runs. So it is read after everything else: what is wrong with it takes
// nothing from what the pod is known to hold.
Status ReadCheckpoint(PodParts& parts, PodRequest& request) {
  constexpr std::string_view kKey = "berth.dev/checkpointed-at";
  const std::string* const said = parts.Annotation(kKey);
  if (said == nullptr) return {};
  request.checkpointed = ParseTime(*said);
  if (request.checkpointed) return {};
  return WrongAnnotation(kKey, WantedText("a time such as 2026-11-23T00:15:00Z", *said));
}

// As for ReadCheckpoint, whatever is wrong with it.
Status ReadKeep(PodParts& parts, PodRequest& request) {
  constexpr std::string_view kKey = "berth.dev/keep";
  const std::string* const said = parts.Annotation(kKey);
  if (said == nullptr) return {};
  request.keep = *said == "true";
  if (request.keep || *said == "false") return {};
  return WrongAnnotation(kKey, WantedText("one of true, false", *said));
}

// As for ReadCheckpoint.
Status ReadRunTime(PodParts& parts, PodRequest& request) {
  request.deadline_seconds = parts.deadline_seconds;
  const std::string* const said = parts.Annotation(kExpectedDurationKey);
  if (said == nullptr) return {};
  BERTH_TRY(request.expected_seconds, ReadExpectedDuration(*said));
  return {};
}

Mobility MobilityOf(const PodParts& parts) {
  if (parts.of_daemon_set || parts.controller_kind == "Node") return Mobility::kComesBack;
  if (parts.controller.empty()) return Mobility::kNoController;
  return parts.move.mobility();
}

// Empty where one container asks for all of the GPUs, or all have their parts of the same.
std::vector<GpuStep> GpuStepsOf(const PodRequest& request, bool shares) {
  const std::vector<ContainerAsk>& containers = request.containers;
  std::vector<GpuStep> steps;
  if (containers.size() < 2 || containers.size() > kMostGpuSteps) return steps;
  for (const ContainerAsk& container : containers) {
    const auto* const whole = std::get_if<WholeGpus>(&container.gpus);
    const auto* const share = shares ? std::get_if<GpuShare>(&container.gpus) : nullptr;
    if (whole != nullptr) steps.push_back({whole->count, container.ends_first});
    if (share != nullptr) steps.push_back({share->count, container.ends_first, *share});
    if (whole == nullptr && share == nullptr) return {};
  }
  return steps;
}

}  // namespace

PodRules::PodRules(std::shared_ptr<const Dialects> dialects,
                   const std::vector<ResourceRule>& resources, TopologyLevels levels,
                   const PodGroups* groups, const DeviceClasses* classes, WorkloadClasses workloads)
    : dialects_(std::move(dialects)),
      words_(std::make_shared<const GpuWords>(resources)),
      levels_(std::move(levels)),
      groups_(groups),
      classes_(classes),
      workloads_(std::make_shared<CurrentClasses>(std::move(workloads))) {}

bool PodRules::CountsGpus(std::string_view resource) const {
  const auto word = words_->Find(resource);
  return word && word->meaning == ResourceMeaning::kWholeGpus;
}

Status PodRules::Add(std::string_view resource, std::string_view text, ResourceAsk& ask) const {
  const bool is_cpu = resource == "cpu";
  std::int64_t ResourceAsk::*const bytes = BytesOf(resource);
  const bool is_native = is_cpu || bytes != nullptr;
  if (!is_native && words_->IsIgnored(resource)) {
    ask.other_devices = ask.unread = true;
    return {};
  }
  const auto word = is_native ? std::nullopt : words_->Find(resource);
  const bool is_other = !is_native && !word;
  // What only the catalogue knows may be what DRA gives out by that name here.
  const bool may_be_class = is_other || (word && word->rank != GpuRank::kConfigured);
  const auto of_class = may_be_class && classes_ != nullptr ? classes_->ClassOf(resource)
                                                            : std::optional<DeviceClass>();
  if (of_class && !of_class->profile && !of_class->whole) {
    ask.other_devices = ask.unread = true;
    return {};
  }
  const Dialect* const dialect =
      is_other && !of_class ? dialects_->ReaderOfResource(resource) : nullptr;
  if (is_other && !of_class && dialect == nullptr) {
    ask.other_devices = ask.other_devices || IsExtendedResource(resource);
    BERTH_TRY_STATUS(CheckMigName(resource));
    AddOther(resource, text, ask.others);
    ask.rdma_devices = ask.rdma_devices || IsRdma(resource);
    ask.unread = true;
    return {};
  }
  auto quantity = Quantity::Parse(text);
  if (!quantity) return tl::unexpected(std::move(quantity).error().Within(resource));
  if (quantity->MilliValue() < 0) {
    return Invalid(std::string(resource) + ": want 0 or more, got \"" + std::string(text) + "\"");
  }
  ResourceAsk added;
  if (is_cpu) {
    added.cpu_milli = Capped(quantity->MilliValue());
  } else if (bytes != nullptr) {
    added.*bytes = Capped(quantity->Value());
  } else if (of_class && of_class->whole) {
    added.gpus = Capped(quantity->Value());
    if (added.gpus > 0) added.gpu_resource = resource;
  } else if (of_class) {
    added.mig.Add({*of_class->profile, false}, Capped(quantity->Value()));
  } else if (dialect != nullptr) {
    BERTH_TRY_STATUS(dialect->AddAsk(resource, quantity->Value(), added));
  } else {
    const std::int64_t amount = Times(quantity->Value(), word->factor);
    switch (word->meaning) {
      case ResourceMeaning::kWholeGpus:
        added.gpus = amount;
        if (amount > 0) added.gpu_resource = word->CountedAs(resource);
        break;
      case ResourceMeaning::kIgnored:
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

Status PodRules::ReadAnnotations(const PodParts& parts, PodRequest& request) const {
  BERTH_TRY_STATUS(CheckLengths(parts, request));
  MigWant need;
  for (const Dialect& dialect : *dialects_) {
    BERTH_TRY_STATUS(dialect.FinishAsk(parts, request, need));
  }
  if (need != MigWant{}) BERTH_TRY_STATUS(ApplyMigNeed(need, request));
  RequestShape& shape = request.shape;
  BERTH_TRY_STATUS(CheckGpuNeeds(shape));
  // One GPU has no links to choose among; how many come by claims is not known here.
  const bool by_claims = !shape.wants_gpu() && !parts.claims.empty();
  if (shape.gpu_count() < 2 && !by_claims) shape.links = {};
  return {};
}

std::string PodRules::ClassOfGpus(const RequestShape& shape) const {
  if (classes_ == nullptr || shape.gpu_resource.empty()) return "";
  if (!std::holds_alternative<WholeGpus>(shape.gpus)) return "";
  auto found = classes_->ClassOf(shape.gpu_resource);
  return found ? std::move(found->name) : "";
}

void PodRules::ReadGroup(const PodParts& parts, PodRequest& request) const {
  GroupAsk ask;
  for (const Dialect& dialect : *dialects_) dialect.ReadGroup(parts, levels_, ask);
  request.gang = std::move(ask.gang);
  request.role = std::move(ask.role);
  request.leads = ask.leads;
  if (ask.domain) request.domain = *ask.domain;
  std::optional<PodGroup> group;
  if (groups_ != nullptr && !request.gang.empty()) {
    group = groups_->Read(request);
  }
  // A pod without GPUs is placed by kube-scheduler, whatever its group is to be.
  if (!request.refusal.empty() || !request.shape.wants_gpu()) return;
  if (group && !group->refusal.empty()) {
    const bool is_group = request.gang.controller.empty();
    request.refusal = (is_group ? "PodGroup" : request.gang.controller.kind) + " " + group->name +
                      ": " + group->refusal;
  }
  if (!ask.sizes) request.refusal = ask.sizes.error().message;
  if (ask.domain) return;
  // Levels of others may be theirs alone: who holds the pod back chooses its nodes by them.
  const std::string& why = ask.domain.error().message;
  if (!parts.gated || why.find("annotation berth.dev/") != why.npos) request.refusal = why;
}

PodRequest PodRules::ToRequest(PodParts parts) const {
  PodRequest request;
  for (const Dialect& dialect : *dialects_) {
    const Status found = dialect.FindShares(parts);
    if (!found && parts.problem.empty()) parts.problem = found.error().message;
  }
  const ResourceAsk ask = EffectiveAsk(parts);
  request.refusal = parts.problem.empty() ? Objection(ask) : parts.problem;
  request.shape.cpu_milli = ask.cpu_milli;
  request.shape.memory_bytes = ask.memory_bytes;
  request.shape.ephemeral_bytes = ask.ephemeral_bytes;
  if (request.refusal.empty()) {
    request.shape.gpus = GpuAskOf(ask);
    request.shape.gpu_resource = ask.gpu_resource;
    if (request.shape.gpu_count() > 0) request.shape.share_agent = ask.share_agent;
    const bool has_devices = request.shape.gpu_count() > 0 || !parts.claims.empty();
    request.shape.beside_nic = ask.rdma_devices && has_devices;
    const auto asks_for_one = [](const ContainerSpec& container) {
      return container.ask.gpus <= 1;
    };
    request.shape.one_per_container =
        ask.mig.empty() && ask.gpus > 1 && std::ranges::all_of(parts.containers, asks_for_one);
    const Status counted = CheckContainers(parts);
    if (!counted) request.refusal = counted.error().message;
    int index = 0;
    for (const ContainerSpec& container : parts.containers) {
      const int at = index++;
      if (container.kind != ContainerKind::kMain) ++request.init_container_count;
      if (!container.ask.wants_gpu() || !counted) continue;
      request.containers.push_back(
          {container.name, GpuAskOf(container.ask), container.kind == ContainerKind::kInit, at});
    }
    request.container_count = index;
    if (counted) request.shape.gpu_steps = GpuStepsOf(request, ask.share_by_container);
    if (!counted) {
      request.containers.clear();
    } else if (const Status read = ReadAnnotations(parts, request); !read) {
      request.refusal = read.error().message;
    } else if (const Status named = workloads_->Now()->Apply(parts, request); !named) {
      request.refusal = named.error().message;
    }
  }
  for (const auto& reads : {ReadVersionNeeds, ReadCheckpoint, ReadKeep, ReadRunTime}) {
    const Status read = reads(parts, request);
    if (!read && request.refusal.empty()) request.refusal = read.error().message;
  }
  if (request.shape.wants_gpu()) request.series = SeriesOf(parts);
  if (!request.shape.wants_gpu()) {
    parts.constraints.versions = {};
    request.shape.min_capability = 0;
  }
  if (request.refusal.empty()) request.device_class = ClassOfGpus(request.shape);
  ReadGroup(parts, request);
  request.belongs_on_any_node = BelongsOnAnyNode(parts, ask);
  request.own_to_scheduler = parts.own_to_scheduler;
  request.own_to_scheduler.resources = ask.unread || parts.claims_devices;
  if (!ask.others.empty()) request.others = std::make_shared<const OtherResources>(ask.others);
  request.mobility = MobilityOf(parts);
  request.deletion_cost = parts.move.deletion_cost;
  request.grace_seconds = parts.move.grace_seconds;
  if (parts.controller.size() <= kMostControllerBytes) request.controller = parts.controller;
  request.priority = parts.priority;
  request.may_preempt = parts.may_preempt;
  request.scheduler = std::move(parts.scheduler);
  request.claims = std::move(parts.claims);
  request.made_claim = parts.made_claim;
  request.id = std::move(parts.id);
  if (request.id.uid.empty()) request.id.uid = request.id.namespace_name + "/" + request.id.name;
  if (!parts.labels.empty()) {
    request.labels = std::make_shared<const Labels>(std::move(parts.labels));
  }
  if (parts.constraints != NodeConstraints{}) {
    request.constraints = std::make_shared<const NodeConstraints>(std::move(parts.constraints));
  }
  BoundRequest(request);
  return request;
}

}  // namespace berth::wire
