// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/node_report.h"

#include <bit>

#include "cluster/node/mig_use.h"
#include "scoring/devices/container_shares.h"
#include "scoring/devices/device_picker.h"
#include "scoring/explain/other_limits.h"
#include "scoring/filters/device_fit.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

constexpr std::int64_t kMib = std::int64_t{1} << 20, kGib = std::int64_t{1} << 30;

NodeTenant TenantOf(const Node& node, const std::shared_ptr<const PodRecord>& record) {
  NodeTenant tenant{record, record->placement.grants, HasUnknownGpus(*record)};
  const auto is_anothers = [&](const DeviceGrant& grant) {
    return node.spec().FindGpu(grant.gpu) != nullptr && !node.HasOf(*record, grant);
  };
  tenant.gpus_unknown |= std::erase_if(tenant.grants, is_anothers) > 0;
  return tenant;
}

std::vector<GpuFacts> GpusOf(const Node& node, const std::vector<NodeTenant>& tenants) {
  std::vector<GpuFacts> gpus(node.gpus().size());
  for (const NodeTenant& tenant : tenants) {
    for (const DeviceGrant& grant : tenant.grants) {
      const GpuSpec* const gpu = node.spec().FindGpu(grant.gpu);
      if (gpu == nullptr) continue;
      gpus[static_cast<std::size_t>(gpu - node.spec().gpus.data())].held_by.push_back(
          tenant.name());
    }
  }
  if (node.claims() == nullptr) return gpus;
  for (const ClaimedGpu& claimed : *node.claims()) {
    ForEachGpu(HeldByClaims(node.spec(), std::span(&claimed, 1)), [&](int gpu) {
      gpus[static_cast<std::size_t>(gpu)].held_by.push_back("claim " +
                                                            WithParts(claimed.claim, claimed));
    });
  }
  return gpus;
}

// So many of that row alone fit on the GPU beside what is taken.
int CutsOf(const MigSpec& spec, std::size_t gpu, MigSet taken, int row) {
  int cuts = 0;
  while (true) {
    const MigSet free = spec.Free(gpu, taken) & spec.product->PlacementsOf(row);
    if (free == 0) return cuts;
    taken |= LowestBit(free);
    ++cuts;
  }
}

std::vector<MigFree> MigFreeOf(const MigSpec& spec, const MigUse& use) {
  std::vector<MigFree> free;
  for (std::size_t row = 0; row < spec.product->rows().size(); ++row) {
    int count = 0;
    for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
      count += CutsOf(spec, gpu, use.taken()[gpu], static_cast<int>(row));
    }
    if (count > 0) free.push_back({MigProfileName(spec.product->rows()[row].profile), count});
  }
  return free;
}

std::string IdleText(const Node& node, const RequestShape& shape) {
  const std::size_t gpus = node.gpus().size();
  std::string text =
      std::to_string(std::popcount(IdleGpus(node))) + " of " + CountText(gpus, "GPU") + " idle";
  const int closed = node.unhealthy_gpus();
  const char* const how = OffersNoneOfItsGpus(node.spec()) ? " not offered)" : " unhealthy)";
  if (closed > 0) text += " (" + std::to_string(closed) + how;
  if (shape.gpu_rules.empty()) return text;
  return text + ", " + std::to_string(std::popcount(FreeGpus(node, shape))) +
         " of them accepted by UUID";
}

// What a set of linked GPUs lacks, after the number of idle ones.
std::string LinkText(const Node& node, const RequestShape& shape) {
  const std::string shortage = LinkShortage(node, shape);
  const std::string idle = IdleText(node, shape);
  const LinkAsk& ask = shape.links;
  const GpuLinks& links = node.spec().links;
  if (shortage.empty()) return idle;
  if (!links.known()) return idle + "; " + shortage;
  const std::string wanted = std::to_string(shape.gpu_count());
  const GpuMask free = FreeGpus(node, shape);
  const int linked = std::popcount(links.LargestLinked(free));
  if (ask.link == LinkWish::kRequired && linked < shape.gpu_count()) {
    return idle + ", needs " + wanted + " linked (largest linked set " + std::to_string(linked) +
           ")";
  }
  if (ask.numa == NumaWish::kRequired && links.knows_numa()) {
    const int most = links.MostOfOneGroup(free);
    if (most < shape.gpu_count()) {
      return idle + ", needs " + wanted + " of one NUMA group (at most " + std::to_string(most) +
             " of one)";
    }
  }
  return idle + "; " + shortage;
}

std::string AskedMibText(std::int64_t asked, int unit) {
  const std::string mib = std::to_string(asked * unit);
  return unit == 1 ? mib : mib + " (" + std::to_string(asked) + " x " + std::to_string(unit) + ")";
}

std::string ShareText(const Node& node, const RequestShape& shape) {
  const auto& share = std::get<GpuShare>(shape.gpus);
  int milli = 0, needed = kMilliPerGpu, unit = node.spec().unit_mib();
  std::int64_t memory_mib = 0;
  const GpuMask kept = node.KeptFrom(shape);
  for (std::size_t gpu = 0; gpu < node.gpus().size(); ++gpu) {
    const GpuFree& free = node.gpus()[gpu];
    const bool is_open = node.IsOpen(static_cast<int>(gpu)) && (kept >> gpu & 1) == 0;
    if (!is_open || !HasPlace(node.spec().gpus[gpu], free)) continue;
    if (!shape.AdmitsGpu(node.spec().gpus[gpu].uuid)) continue;
    milli = std::max(milli, node.gpus()[gpu].milli);
    memory_mib = std::max(memory_mib, node.gpus()[gpu].memory_mib);
    const auto whole = GrantOfShare(node.spec().gpus[gpu], static_cast<int>(gpu), share);
    if (whole) needed = std::min(needed, whole->milli);
  }
  std::string text = "largest free part of a GPU ";
  if (share.milli > 0) {
    text += std::to_string(milli) + " thousandths, needs " + std::to_string(share.milli);
  }
  if (share.memory_mib > 0 || share.memory_milli > 0) {
    text += (share.milli > 0 ? "; " : "") + std::to_string(memory_mib) + " MiB, needs " +
            (share.memory_mib > 0 ? AskedMibText(share.memory_mib, unit)
                                  : std::to_string(share.memory_milli) + " thousandths of it");
  }
  if (share.milli == 0 && share.memory_mib * unit <= memory_mib && milli < needed) {
    text += "; the compute that goes with it: " + std::to_string(std::max(milli, 0)) +
            " thousandths, needs " + std::to_string(needed);
  }
  if (kept != 0) text += "; " + CountText(std::popcount(kept), "GPU") + " shared in another way";
  if (share.count == 1) return text;
  return text + "; " + CountText(std::popcount(FreeGpus(node, shape)), "GPU") +
         " with so much free, needs " + std::to_string(share.count);
}

std::string MigText(const Node& node, const MigSlices& ask) {
  const NodeMig& mig = node.spec().mig;
  if (!mig.known()) return std::string(PredicateOf(Reason::kNoMig));
  std::string text;
  if (mig->product != nullptr) {
    for (const MigFree& free : MigFreeOf(*mig, node.mig())) {
      text += (text.empty() ? "" : ", ") + std::to_string(free.free) + " " + free.profile;
    }
  }
  for (std::size_t i = 0; i < mig->shared.size(); ++i) {
    const MigStock& stock = mig->shared[i];
    const int free = std::max(stock.count - node.mig().shared_taken()[i], 0);
    text += (text.empty() ? "" : ", ") + std::to_string(free) + " of " +
            CountText(stock.count, "replica") + " of " + MigProfileName(stock.resource.profile);
  }
  text = (text.empty() ? "no MIG device" : text) + " free";
  if (!mig->gpus.empty()) text += " on " + CountText(std::ssize(mig->gpus), "partitioned GPU");
  return text + ", needs " + AskText(ask);
}

std::string TaintsText(const NodeSpec& spec, const PodRequest& pod) {
  std::string text;
  bool is_cordoned = false;
  for (const Taint& taint : spec.taints) {
    if (Tolerates(TolerationsOf(pod), taint)) continue;
    if (taint.key == kCordonTaint) {
      is_cordoned = true;
    } else {
      text += (text.empty() ? "has taint " : ", ") + TextOf(taint);
    }
  }
  if (!is_cordoned) return text;
  return "is cordoned" + (text.empty() ? "" : ", " + text);
}

// Requires: the pod needs it.
std::string VersionText(const char* name, Versioned what, const NodeSpec& spec,
                        const PodRequest& pod) {
  const auto has = VersionOf(spec.labels, what);
  const Version least = *pod.constraints->versions.least[static_cast<std::size_t>(what)];
  return std::string(name) + " " + (has ? TextOf(*has) : "unknown") + ", needs " + TextOf(least);
}

// What the pod's workload class wants otherwise.
std::string TraitsText(const NodeSpec& spec, const PodRequest& pod) {
  std::string text;
  const auto add = [&](const std::string& trait, const char* what) {
    text += (text.empty() ? "" : ", ") + std::string(what) + trait;
  };
  for (const std::string& trait : pod.shape.nodes.required) {
    if (!HasTrait(spec.traits, trait)) add(trait, "lacks ");
  }
  for (const std::string& trait : pod.shape.nodes.forbidden) {
    if (HasTrait(spec.traits, trait)) add(trait, "has ");
  }
  const std::string name = pod.classes.empty() ? "its workload" : pod.classes.front();
  return text + ", required by class " + name;
}

// "a or b", with the first of many.
std::string AnyOf(const std::vector<std::string>& texts) {
  constexpr std::size_t kMost = 3;
  return Join(FirstOf(texts, kMost), " or ") + (texts.size() > kMost ? " or others" : "");
}

std::string ModelText(const NodeSpec& spec, const RequestShape& shape) {
  std::string wanted = AnyOf(shape.models);
  for (const ModelRule& rule : shape.model_rules.rules()) {
    wanted += (wanted.empty() ? "" : ", ") + std::string(rule.refused ? "none with \"" : "\"") +
              rule.part + "\"" + (rule.refused ? " in its name" : "");
  }
  if (JudgesKinds(spec, shape)) {
    const std::string needs = ", needs " + CountText(shape.gpu_count(), "GPU");
    return "has " + KindsText(spec, shape) + ", the pod accepts " + wanted + needs;
  }
  const bool other = spec.IsOfOtherGpus(shape);
  std::string model = other ? OtherModel(spec, shape.gpu_resource) : spec.gpu_model;
  if (model.empty()) model = "GPUs of unknown model";
  return "has " + model + ", the pod accepts " + wanted;
}

// How many GPUs the pod accepts by their UUIDs, and why not more.
std::string UuidText(const NodeSpec& spec, const RequestShape& shape) {
  const auto accepted = std::ranges::count_if(
      spec.gpus, [&](const GpuSpec& gpu) { return shape.AdmitsGpu(gpu.uuid); });
  const auto unknown = std::ranges::count(spec.gpus, "", &GpuSpec::uuid);
  std::string text = std::to_string(accepted) + " of " + CountText(std::ssize(spec.gpus), "GPU") +
                     " accepted by UUID, needs " + std::to_string(shape.gpu_count());
  if (unknown > 0) return text + " (" + CountText(unknown, "UUID") + " unknown)";
  if (accepted >= shape.gpu_count()) text += " (the device plugin picks the GPU itself)";
  return text;
}

// Of the label that the requirement does not hold for.
std::string LabelText(const LabelRequirement& wanted, const Labels& labels) {
  const std::string* const label = FindLabel(labels, wanted.key);
  const std::string has = (label == nullptr ? "has no label " : "has label ") + wanted.key +
                          (label == nullptr ? "" : "=" + *label);
  if (wanted.op != LabelOperator::kIn) return has;
  return has + ", the pod accepts " + AnyOf(wanted.values);
}

// Of all labels that are in the way of a node selector, and of an affinity with one alternative.
std::string SelectionText(const NodeSpec& spec, const PodRequest& pod) {
  std::vector<std::string> texts;
  const auto add = [&](const LabelSelector& labels) {
    for (const LabelRequirement& one : labels) {
      if (!Holds(one, spec.labels)) texts.push_back(LabelText(one, spec.labels));
    }
  };
  if (pod.constraints != nullptr) {
    add(pod.constraints->selector);
    const auto& either = pod.constraints->either;
    if (either && either->size() == 1) add(either->front().labels);
  }
  if (texts.empty()) return std::string(PredicateOf(Reason::kNodeNotSelected));
  return Join(texts, " and ");
}

// What the largest of its GPUs, or a place on one, has.
std::string GpuMemoryText(const NodeSpec& spec, const RequestShape& shape) {
  std::int64_t most_mib = spec.places.memory_mib;
  for (const GpuSpec& gpu : spec.gpus) most_mib = std::max(most_mib, gpu.memory_mib);
  if (most_mib <= 0) return std::string(PredicateOf(Reason::kGpuTooSmall));
  return (spec.places.count > 0 ? "a GPU replica has " : "GPUs have ") +
         MemoryText(most_mib * kMib) + ", needs " + MemoryText(shape.min_gpu_memory_mib * kMib);
}

// What the first of the containers lacks that finds no room beside those before it.
std::string DividedText(const Node& node, const RequestShape& shape) {
  RequestShape next = shape;
  do {
    next.gpu_steps.pop_back();
  } while (!next.gpu_steps.empty() && GrantsApart(node, next).empty());
  const std::size_t held = std::exchange(next.gpu_steps, {}).size();
  next.gpus = shape.gpu_steps[held].share;
  return ShareText(node, next) + "; room for " + std::to_string(held) + " of its " +
         CountText(shape.gpu_steps.size(), "container");
}

std::string DevicesText(const Node& node, const RequestShape& shape) {
  if (const MigSlices* const mig = shape.mig()) return MigText(node, *mig);
  if (shape.is_share()) return ShareText(node, shape);
  const std::string needs = ", needs " + std::to_string(shape.gpu_count());
  if (node.spec().IsOfOtherGpus(shape)) {
    const OtherResource& other = *FindOther(node.spec().other_gpus, shape.gpu_resource);
    return std::to_string(std::max<std::int64_t>(node.FreeOtherGpus(other), 0)) + " of " +
           std::to_string(other.amount) + " " + other.name + " free" + needs;
  }
  if (node.spec().places.count > 0) {
    return std::to_string(std::max(node.free_places(), 0)) + " of " +
           CountText(node.spec().places.count, "GPU replica") + " free" + needs;
  }
  return IdleText(node, shape) + needs;
}

// Empty: the node does not say it.
std::string SaidVersion(const Labels& labels, Versioned what) {
  const std::optional<Version> version = VersionOf(labels, what);
  return version ? TextOf(*version) : std::string();
}

std::vector<std::string> TextsOf(const RefusedAsks& asks) {
  std::vector<std::string> texts;
  if (asks == nullptr) return texts;
  for (const RefusedAsk& ask : *asks) texts.push_back(AskText(ask));
  return texts;
}

// Devices that may be GPUs: those of a vendor of GPUs, else any of a node that should have some.
std::string OtherGpus(const NodeSpec& spec) {
  std::string found;
  for (const OtherResource& other : spec.others) {
    if (!IsExtendedResource(other.name) || IsNetwork(other.name)) continue;
    if (other.amount > 0 && FindGpuVendor(other.name) != nullptr) return other.name;
    if (found.empty() && spec.gpus_to_come && other.amount > 0) found = other.name;
  }
  return found;
}

// Why no agent gives the pod a share.
std::string AgentText(const NodeSpec& spec, const RequestShape& shape) {
  const bool is_its =
      spec.agents.empty() || std::ranges::find(spec.agents, shape.share_agent) != spec.agents.end();
  if (!spec.agent_lacks.empty() && is_its && !shape.share_agent.empty()) return spec.agent_lacks;
  if (!shape.share_agent.empty()) {
    return "has no agent " + std::string(shape.share_agent) + ", which the pod asks for its GPUs";
  }
  const std::string& has = spec.share_agent.empty() ? spec.part_agent : spec.share_agent;
  return "has agent " + has + " for GPU shares: ask for them by its resources or annotations";
}

constexpr const char* kPluginGone = "its device plugin is gone, or offers no GPU";

// A plugin ran: the kubelet keeps the name of its resource, with 0 devices.
bool OfferedOnce(const NodeSpec& spec, Reason lacks) {
  const std::string_view names = lacks == Reason::kNoMig ? kMigResourcePrefix : "";
  return spec.gpus_to_come && std::ranges::any_of(spec.others, [names](const auto& other) {
           return other.amount == 0 && other.name.starts_with(names);
         });
}

}  // namespace

bool IsNetwork(std::string_view resource) {
  return resource.starts_with("rdma/") || resource.starts_with("vpc.amazonaws.com/") ||
         resource.starts_with("devices.kubevirt.io/") ||
         resource.find("sriov") != std::string_view::npos ||
         resource.find("nic") != std::string_view::npos;
}

DriverUpgrade DriverUpgradeOf(const NodeSpec& spec) {
  for (const auto& [key, state] : spec.labels) {
    const bool is_there = key.ends_with("/gpu-driver-upgrade-state") && !state.empty();
    if (!is_there || state == "upgrade-done") continue;
    if (state != "upgrade-failed") return {"its GPU driver is being upgraded (" + state + ")"};
    return {"the upgrade of its GPU driver failed: read the log of its driver pod", true};
  }
  return {};
}

std::string TextOf(const Taint& taint) {
  return taint.key + (taint.value.empty() ? "" : "=" + taint.value) + ":" +
         std::string(kTaintEffectWords[static_cast<std::size_t>(taint.effect)]);
}

bool HasUnknownGpus(const PodRecord& record) {
  return record.unattributed() && record.placement.places == 0 &&
         record.placement.places_on.empty();
}

std::string TextOfPlaces(std::int64_t places, std::span<const int> on) {
  const std::int64_t count = std::max(places, static_cast<std::int64_t>(std::ssize(on)));
  std::string text = CountText(count, "GPU replica");
  if (on.empty()) return text;
  return text + " on " + Join(on, ", ", [](int gpu) { return "GPU " + std::to_string(gpu); });
}

std::string TextOf(const DeviceGrant& grant) {
  std::string text = "GPU " + (grant.gpu < 0 ? grant.uuid : std::to_string(grant.gpu));
  if (grant.milli < kMilliPerGpu) text += " (" + std::to_string(grant.milli) + " thousandths)";
  return text;
}

std::string ListDevices(const PodDevices& devices, std::int64_t replicas) {
  if (replicas > 0) return TextOfPlaces(replicas, devices.places_on);
  std::vector<std::string> texts;
  for (const DeviceGrant& grant : devices.grants) texts.push_back(TextOf(grant));
  for (const MigGrant& grant : devices.mig) texts.push_back(NameOf(grant));
  return Join(texts, ", ");
}

std::string CpuText(std::int64_t milli) {
  if (milli % 1000 == 0) return std::to_string(milli / 1000);
  std::string rest = std::to_string(std::abs(milli % 1000));
  rest.insert(0, 3 - rest.size(), '0');
  rest.erase(rest.find_last_not_of('0') + 1);
  return (milli < 0 && milli > -1000 ? "-" : "") + std::to_string(milli / 1000) + "." + rest;
}

std::string MemoryText(std::int64_t bytes) {
  if (bytes < 0) return "0 MiB";
  if (bytes < kGib) return std::to_string(bytes / kMib) + " MiB";
  return CpuText(bytes / kGib * 1000 + bytes % kGib * 10 / kGib * 100) + " GiB";
}

std::string AskText(const GpuAsk& ask, bool in_units) {
  if (const auto* const whole = std::get_if<WholeGpus>(&ask)) return CountText(whole->count, "GPU");
  if (const auto* const share = std::get_if<GpuShare>(&ask)) {
    std::string text = "a share of ";
    if (share->milli > 0) text += std::to_string(share->milli) + " thousandths";
    if (share->milli > 0 && share->memory_mib > 0) text += " and ";
    if (share->memory_mib > 0) {
      text += std::to_string(share->memory_mib) + (in_units ? " units of memory" : " MiB");
    }
    if (share->memory_milli > 0) {
      text += (share->milli > 0 ? " and " : "") + std::to_string(share->memory_milli) +
              " thousandths of the memory";
    }
    return text +
           (share->count > 1 ? " of each of " + CountText(share->count, "GPU") : " of a GPU");
  }
  const auto* const mig = std::get_if<MigSlices>(&ask);
  if (mig == nullptr) return "no GPU";
  std::string text;
  for (const MigWant& want : mig->wants) {
    if (!text.empty()) text += " and ";
    text += CountText(want.count, "MIG device");
    if (want.profile) {
      text += " " + MigProfileName(*want.profile) + (want.shared ? " (shared)" : "");
      continue;
    }
    if (want.min_slices > 0) text += " of " + CountText(want.min_slices, "slice");
    if (want.min_memory_mib > 0) text += " with " + std::to_string(want.min_memory_mib) + " MiB";
  }
  return text;
}

std::string AskText(const RefusedAsk& ask) {
  std::string text = AskText(ask.gpus);
  if (ask.containers.size() > 1) {
    text += " in " + std::to_string(ask.containers.size()) + " containers";
  }
  if (ask.ephemeral_bytes > 0) text += ", ephemeral storage " + MemoryText(ask.ephemeral_bytes);
  for (const OtherResource& other : ask.others) {
    text += ", " + std::to_string(other.amount) + " " + other.name;
  }
  return text + ", CPU " + CpuText(ask.cpu_milli) + " and memory " + MemoryText(ask.memory_bytes) +
         " or more";
}

NodeReport ReportOf(const Node& node) {
  const NodeSpec& spec = node.spec();
  NodeReport facts{.name = spec.name,
                   .node = node,
                   .refused_asks = TextsOf(spec.refused_asks),
                   .idle_gpus = std::popcount(IdleGpus(node)),
                   .missing = spec.gpus.empty() ? 0 : spec.missing,
                   .free_places = std::max(node.free_places(), 0)};
  facts.driver = SaidVersion(spec.labels, Versioned::kDriver);
  facts.cuda = SaidVersion(spec.labels, Versioned::kCuda);
  for (const Taint& taint : spec.taints) facts.taints.push_back(TextOf(taint));
  for (const Taint& taint : spec.soft_taints) facts.taints.push_back(TextOf(taint));
  for (const auto& pod : node.pods()) {
    const bool has_others = !DevicesBesideOf(pod->pod).empty();
    if (has_others || pod->pod.shape.wants_gpu()) facts.tenants.push_back(TenantOf(node, pod));
    facts.pods_on_other_gpus += pod->on_other_gpus() ? 1 : 0;
  }
  std::ranges::sort(facts.tenants, {}, &NodeTenant::name);
  facts.gpus = GpusOf(node, facts.tenants);
  if (!spec.mig.known()) return facts;
  facts.mig_gpus = static_cast<int>(std::ssize(spec.mig->gpus));
  if (spec.mig->product != nullptr) facts.mig = MigFreeOf(*spec.mig, node.mig());
  return facts;
}

std::string LackText(const Node& node, const PodRequest& pod, Reason reason) {
  const NodeSpec& spec = node.spec();
  const RequestShape& shape = pod.shape;
  switch (ShortageOf(reason)) {
    case Reason::kGpusBusy:
    case Reason::kTooFewGpus:
    case Reason::kShareBusy:
    case Reason::kShareNeverFits:
    case Reason::kMigBusy:
    case Reason::kNoMigProfile:
    case Reason::kTooFewMig:
      if (!shape.wants_gpu()) return "has too few " + LackOf(node, pod) + " on free devices";
      if (shape.may_divide()) return DividedText(node, shape);
      return DevicesText(node, shape) +
             (shape.is_share() && shape.gpu_count() == 1 && pod.containers.size() > 1
                  ? "; its " + std::to_string(pod.containers.size()) + " containers share one GPU"
                  : "");
    case Reason::kLinkedBusy:
    case Reason::kNeverLinked:
      return LinkText(node, shape);
    case Reason::kNumaNever:
    case Reason::kNumaBusy:
      return IdleText(node, shape) + ", " + AlignmentText(spec, IdleGpus(node), shape);
    case Reason::kCpuShort:
    case Reason::kTooFewCpus:
      return CpuText(std::max<std::int64_t>(node.free_cpu_milli(), 0)) + " of " +
             CpuText(spec.cpu_milli) + " CPUs free, needs " + CpuText(shape.cpu_milli);
    case Reason::kMemoryShort:
    case Reason::kTooLittleMemory:
      return MemoryText(node.free_memory_bytes()) + " of " + MemoryText(spec.memory_bytes) +
             " of memory free, needs " + MemoryText(shape.memory_bytes);
    case Reason::kDiskShort:
    case Reason::kTooLittleDisk:
      return MemoryText(node.free_ephemeral_bytes()) + " of " +
             MemoryText(spec.ephemeral_bytes.value_or(0)) + " of ephemeral storage free, needs " +
             MemoryText(shape.ephemeral_bytes);
    case Reason::kModelMismatch:
      return ModelText(spec, shape);
    case Reason::kTraitMissing:
    case Reason::kTraitForbidden:
      return TraitsText(spec, pod);
    case Reason::kGpuMismatch:
      return UuidText(spec, shape);
    case Reason::kTaintNotTolerated:
      return TaintsText(spec, pod);
    case Reason::kDriverTooOld:
      return VersionText("driver", Versioned::kDriver, spec, pod);
    case Reason::kCudaTooOld:
      return VersionText("CUDA", Versioned::kCuda, spec, pod);
    case Reason::kCapabilityTooLow:
      if (JudgesKinds(spec, shape)) {
        return "has " + KindsText(spec, shape) + ", needs compute capability " +
               CapabilityText(shape.min_capability);
      }
      return VersionText("compute capability", Versioned::kCapability, spec, pod);
    case Reason::kGpuCondition:
      return "has condition " + spec.gpu_condition;
    case Reason::kNodeNotSelected:
      return SelectionText(spec, pod);
    case Reason::kGpusUncertain:
      return spec.gpu_contradiction;
    case Reason::kNotItsOwn:
      if (!IsVgpu(spec)) return std::string(PredicateOf(reason));
      return "has vGPUs, which share a GPU with other virtual machines";
    case Reason::kShareOfOtherAgent:
      if (spec.places.count > 0 && !spec.places.foreign) {
        return "gives replicas of its GPUs and no other parts: ask for " + spec.gpu_resource;
      }
      return AgentText(spec, shape);
    case Reason::kShareAgentNotReady:
      return "agent " + spec.part_agent + " is not ready: kubectl describe node has the cause";
    case Reason::kOnePlaceEach:
      return "shares its GPUs, and gives a container one replica";
    case Reason::kGpuTooSmall:
      return GpuMemoryText(spec, shape);
    case Reason::kNoGpu:
    case Reason::kNoMig:
    case Reason::kNoGpuOffered:
      if (reason == Reason::kNoMig && spec.mig.known()) {
        if (!spec.mig->single) return std::string(PredicateOf(reason));
        return "has MIG devices by the name " + spec.gpu_resource + " alone";
      }
      if (const int gpus = spec.beside.in_slices; gpus > 0) {
        return "offers its " + CountText(gpus, "GPU") +
               " by ResourceClaims alone: ask by a claim, or give their DeviceClass an "
               "extendedResourceName";
      }
      if (std::string upgrade = DriverUpgradeOf(spec).text; !upgrade.empty()) return upgrade;
      if (OffersNoneOfItsGpus(spec)) return kPluginGone;
      if (reason == Reason::kNoGpu) {
        if (!spec.gpu_contradiction.empty()) return spec.gpu_contradiction;
        if (!spec.agent_lacks.empty()) return spec.agent_lacks;
        if (spec.mig.known() && !spec.mig->gpus.empty()) {
          return "has MIG devices alone: its GPUs are partitioned";
        }
        if (const std::string other = OtherGpus(spec); !other.empty()) {
          return "offers " + other + ", which Berth does not place, and no GPUs";
        }
      }
      for (const auto& [key, use] : spec.labels) {
        if (!key.ends_with("/gpu.workload.config") || !use.starts_with("vm-")) continue;
        return "keeps its GPUs for virtual machines: label " + key + "=" + use;
      }
      if (OfferedOnce(spec, reason)) return kPluginGone;
      if (reason != Reason::kNoGpu || !spec.gpus_to_come) return std::string(PredicateOf(reason));
      return (spec.gpu_model.empty() ? "should have GPUs"
                                     : "has " + spec.gpu_model + " by its labels") +
             ", and no device plugin yet: start it, or ask by a claim";
    default:
      return std::string(PredicateOf(reason));
  }
}

}  // namespace berth
