// SPDX-License-Identifier: Apache-2.0
#include "scoring/filters/device_fit.h"

#include <algorithm>
#include <bit>

#include "scoring/devices/container_shares.h"
#include "scoring/devices/device_picker.h"
#include "scoring/mig/mig_tables.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

// The GPUs that the pod could get if all were free.
GpuMask SuitingGpus(const Node& node, const RequestShape& shape) {
  GpuMask suiting = shape.is_share() ? AllGpus(static_cast<int>(node.gpus().size()))
                                     : AcceptedGpus(node.spec(), shape);
  ForEachGpu(suiting, [&](int gpu) {
    const bool suits = shape.is_share() ? ShareOn(node, gpu, shape).has_value()
                                        : node.spec().gpus[static_cast<std::size_t>(gpu)].healthy;
    if (!suits) suiting &= ~GpuBit(gpu);
  });
  return suiting;
}

// Whether the pod cannot be sure of that many even if all are free: any may be the missing ones.
bool MayBeTooFew(const Node& node, const RequestShape& shape, int wanted) {
  return std::popcount(SuitingGpus(node, shape)) - node.spec().missing < wanted;
}

// Whether GPUs are linked as the pod asks: all that suit it, and then those that are free for it.
Reason CheckLinks(const Node& node, int wanted, const RequestShape& shape) {
  const GpuLinks& links = node.spec().links;
  const LinkAsk& ask = shape.links;
  if (!links.known()) return Reason::kLinksUnknown;
  if (ask.numa == NumaWish::kRequired && !links.knows_numa()) return Reason::kLinksUnknown;
  if (links.Choose(SuitingGpus(node, shape), wanted, ask) == 0) return Reason::kNeverLinked;
  const GpuMask free = FreeGpus(node, shape);
  if (std::popcount(free) < wanted) {
    return shape.is_share() ? Reason::kShareBusy : Reason::kGpusBusy;
  }
  return links.Choose(free, wanted, ask) == 0 ? Reason::kLinkedBusy : Reason::kFits;
}

// Whether the GPUs of a node with a Topology Manager's policy can be given together.
Reason CheckAligned(const Node& node, int wanted, const RequestShape& shape) {
  const NodeSpec& spec = node.spec();
  const bool linked = wanted > 1 && shape.links.limits();
  GpuMask healthy = 0;
  for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
    if (spec.gpus[gpu].healthy) healthy |= GpuBit(static_cast<int>(gpu));
  }
  if (NeverAdmits(spec, healthy, shape)) return Reason::kNumaNever;
  if (linked && spec.links.Choose(SuitingGpus(node, shape), wanted, shape.links) == 0) {
    return Reason::kNeverLinked;
  }
  const GpuMask idle = IdleGpus(node);
  const GpuMask free = idle & AcceptedGpus(spec, shape);
  if (std::popcount(free) < wanted) return Reason::kGpusBusy;
  const AlignedChoice choice = ChooseAligned(node, idle, free, shape);
  if (choice.gpus != 0) return Reason::kFits;
  return choice.admits && linked ? Reason::kLinkedBusy : Reason::kNumaBusy;
}

// Requires: that many of its GPUs are accepted (CheckModel).
Reason CheckWhole(const Node& node, int wanted, const RequestShape& shape) {
  if (node.healthy_gpus() < wanted) return Reason::kTooFewGpus;
  if (!node.spec().by_claims.empty() && std::popcount(SuitingGpus(node, shape)) < wanted) {
    return Reason::kTooFewGpus;
  }
  if (!shape.gpu_rules.empty() && MayBeTooFew(node, shape, wanted)) return Reason::kTooFewGpus;
  if (KubeletLimits(node.spec(), shape)) return CheckAligned(node, wanted, shape);
  if (wanted > 1 && shape.links.limits()) return CheckLinks(node, wanted, shape);
  return std::popcount(FreeGpus(node, shape)) < wanted ? Reason::kGpusBusy : Reason::kFits;
}

// A node whose GPUs have several users, or one each where a mask has no room for all of them. Each
// container asks the device plugin for itself: several of one place each are as several pods.
Reason CheckPlaces(const Node& node, const RequestShape& shape) {
  const NodeSpec& spec = node.spec();
  const int wanted = shape.gpu_count();
  if (shape.is_share()) return Reason::kPlacesOnly;
  const bool is_certain = spec.gpu_contradiction.empty();
  const bool of_one_user = spec.places.count == spec.places.gpus;
  if (wanted > 1 && !of_one_user && !shape.one_per_container && !spec.places.several) {
    return is_certain ? Reason::kOnePlaceEach : Reason::kGpusUncertain;
  }
  if (wanted > 1 && shape.links.limits()) {
    return is_certain ? Reason::kNeverLinked : Reason::kGpusUncertain;
  }
  if (spec.places.count <= spec.missing) return Reason::kNoGpuOffered;
  if (spec.places.count - spec.missing < wanted) return Reason::kTooFewGpus;
  return node.free_places() >= wanted ? Reason::kFits : Reason::kGpusBusy;
}

// Whether the node's agent reads the words in which the GPUs are asked for.
bool IsOfOtherAgent(const NodeSpec& spec, const RequestShape& shape) {
  if (shape.is_share() && !spec.part_agent.empty()) {
    const bool is_its = shape.share_agent == spec.part_agent;
    if (is_its || spec.part_agent_ready) return !is_its;
  }
  if (shape.share_agent == spec.share_agent) return false;
  return !shape.share_agent.empty() || (shape.is_share() && !spec.agent_serves_all);
}

// Whether an agent gives a container the GPU that Berth has given it a share of.
Reason CheckCarrier(const NodeSpec& spec, const RequestShape& shape) {
  if (!spec.by_claims.empty()) return Reason::kSharesNotCarriedOut;
  if (!shape.share_agent.empty() && shape.share_agent == spec.part_agent) {
    return spec.part_agent_ready ? Reason::kFits : Reason::kShareAgentNotReady;
  }
  if (!spec.share_agent.empty() || !spec.shares_need_uuids) return Reason::kFits;
  // What tells a container its GPU is NVIDIA's; of a resource that is not known it may be.
  const GpuVendor* const vendor = FindGpuVendor(spec.gpu_resource);
  if (vendor != nullptr && vendor->name != kNvidiaVendor) return Reason::kSharesNotCarriedOut;
  return std::ranges::any_of(spec.gpus, &std::string::empty, &GpuSpec::uuid)
             ? Reason::kSharesNotCarriedOut
             : Reason::kFits;
}

// Of one set of GPUs, for all containers.
Reason CheckTogether(const Node& node, const RequestShape& shape) {
  const auto& share = std::get<GpuShare>(shape.gpus);
  const bool linked = share.count > 1 && shape.links.limits();
  const bool few =
      (share.count > 1 || !shape.gpu_rules.empty()) && MayBeTooFew(node, shape, share.count);
  int could = 0, free = 0;
  bool memory_known = false;
  for (int gpu = 0; gpu < static_cast<int>(node.gpus().size()); ++gpu) {
    memory_known = memory_known || node.spec().gpus[static_cast<std::size_t>(gpu)].memory_mib > 0;
    const auto choice = ShareOn(node, gpu, shape);
    if (!choice) continue;
    ++could;
    if (few || linked || !HasFree(node, gpu, *choice, shape)) continue;
    if (++free == share.count) return Reason::kFits;
  }
  const bool by_memory = share.memory_mib > 0 || share.memory_milli > 0;
  if (could == 0) {
    return by_memory && !memory_known ? Reason::kGpuMemoryUnknown : Reason::kShareNeverFits;
  }
  if (few) return Reason::kTooFewGpus;
  return linked ? CheckLinks(node, share.count, shape) : Reason::kShareBusy;
}

Reason CheckShare(const Node& node, const RequestShape& shape) {
  if (const Reason carrier = CheckCarrier(node.spec(), shape); carrier != Reason::kFits)
    return carrier;
  const Reason together = CheckTogether(node, shape);
  if (!shape.may_divide() || together == Reason::kFits) return together;
  if (!GrantsApart(node, shape).empty()) return Reason::kFits;
  return GrantsApart(node, shape, true).empty() ? together : Reason::kShareBusy;
}

// A node that has MIG devices, or each of whose GPUs is one, or that is in trouble with them.
Reason CheckWithMig(const Node& node, const RequestShape& shape) {
  const MigSpec& spec = *node.spec().mig;
  if (const Reason trouble = ReasonOf(spec.trouble); trouble != Reason::kFits) return trouble;
  const MigSlices* const ask = shape.mig();
  if (ask == nullptr) {
    return spec.single && shape.is_share() ? Reason::kMigNotShared : Reason::kFits;
  }
  if (const int devices = GpusInsteadOfMig(node, shape); devices > 0) {
    return CheckWhole(node, devices, shape);
  }
  if (spec.single && !ask->by_name()) return Reason::kNoMigProfile;
  return CheckMig(node, *ask);
}

// GPUs of a resource that the node has beside the counted ones.
Reason CheckOtherGpus(const Node& node, const RequestShape& shape) {
  const OtherResource& other = *FindOther(node.spec().other_gpus, shape.gpu_resource);
  if (other.amount == 0) return Reason::kNoGpuOffered;
  if (other.amount < shape.gpu_count()) return Reason::kTooFewGpus;
  if (shape.gpu_count() > 1 && shape.links.limits()) return Reason::kLinksUnknown;
  // Nobody says whether they have several users.
  if (shape.isolation >= Isolation::kMemory) return Reason::kSharedSomehow;
  if (shape.min_gpu_memory_mib > 0) {
    const std::int64_t mib = OtherMemoryMib(node.spec(), shape.gpu_resource);
    if (mib == 0) return Reason::kGpuMemoryUnknown;
    if (mib < shape.min_gpu_memory_mib) return Reason::kGpuTooSmall;
  }
  return node.FreeOtherGpus(other) < shape.gpu_count() ? Reason::kGpusBusy : Reason::kFits;
}

Reason CheckDevices(const Node& node, const RequestShape& shape) {
  if (node.spec().mig.known()) {
    const Reason reason = CheckWithMig(node, shape);
    if (shape.mig() != nullptr || reason != Reason::kFits) return reason;
  }
  if (shape.mig() != nullptr) return Reason::kNoMig;
  if (node.spec().places.foreign) return Reason::kGpusForeign;
  const bool has_gpus = node.spec().places.count > 0 || !node.gpus().empty();
  const bool of_places = node.spec().places.count > 0 && shape.share_agent.empty();
  if (has_gpus && !of_places && IsOfOtherAgent(node.spec(), shape)) {
    return Reason::kShareOfOtherAgent;
  }
  if (node.spec().places.count > 0) return CheckPlaces(node, shape);
  if (node.gpus().empty()) return Reason::kNoGpu;
  if (node.healthy_gpus() == 0) return Reason::kNoGpuOffered;
  if (shape.is_share()) return CheckShare(node, shape);
  return CheckWhole(node, shape.gpu_count(), shape);
}

// Whether one of the MIG devices has other users.
bool GetsSharedMig(const Node& node, const MigSlices& ask) {
  const NodeMig& mig = node.spec().mig;
  return mig.known() && std::ranges::any_of(mig->shared, [&ask](const MigStock& stock) {
           return std::ranges::find(ask.wants, std::optional(stock.resource.profile),
                                    &MigWant::profile) != ask.wants.end();
         });
}

Reason LackOf(GpuSharing sharing, Isolation isolation) {
  if (isolation == Isolation::kHardware) return Reason::kNotItsOwn;
  switch (sharing) {
    case GpuSharing::kTimeSlicing:
      return Reason::kTimeSliced;
    case GpuSharing::kMps:
      return Reason::kFits;
    case GpuSharing::kUnknown:
      break;
  }
  return Reason::kSharedSomehow;
}

Reason CheckIsolation(const Node& node, const RequestShape& shape) {
  if (shape.isolation < Isolation::kMemory) return Reason::kFits;
  if (shape.is_share()) {
    const bool keeps = shape.isolation <= node.spec().share_isolation;
    return keeps ? Reason::kFits : Reason::kSharesUnguarded;
  }
  if (const MigSlices* const ask = shape.mig()) {
    if (!GetsSharedMig(node, *ask)) return Reason::kFits;
    // NVIDIA's MPS serves no MIG devices: nothing is known of them where a label says so.
    const bool by_mps = std::ranges::any_of(node.spec().labels, [](const auto& label) {
      return label.first.ends_with(".sharing-strategy") && label.second == "mps";
    });
    return LackOf(by_mps ? GpuSharing::kUnknown : GpuSharing::kTimeSlicing, shape.isolation);
  }
  if (!node.spec().gpu_contradiction.empty()) return Reason::kGpusUncertain;
  if (shape.isolation == Isolation::kHardware && IsVgpu(node.spec())) return Reason::kNotItsOwn;
  const GpuPlaces& places = node.spec().places;
  const bool shared = places.count > places.gpus;
  return shared ? LackOf(places.sharing, shape.isolation) : Reason::kFits;
}

Reason CheckMemory(const NodeSpec& spec, const RequestShape& shape) {
  const std::int64_t wanted_mib = shape.min_gpu_memory_mib;
  if (wanted_mib == 0) return Reason::kFits;
  if (!spec.gpus.empty() && GivesTheVeryGpu(spec)) {
    const bool enough = std::popcount(AcceptedGpus(spec, shape)) >= shape.gpu_count();
    if (enough) return Reason::kFits;
  }
  std::int64_t least = spec.places.memory_mib;
  if (!spec.gpus.empty()) {
    least = std::ranges::min(spec.gpus, {}, &GpuSpec::memory_mib).memory_mib;
  }
  if (least == 0) return Reason::kGpuMemoryUnknown;
  return least < wanted_mib ? Reason::kGpuTooSmall : Reason::kFits;
}

// Whether what the pod would get is what it needs (RequestShape::isolation, min_gpu_memory_mib):
//
//   a whole GPU, a MIG device      hardware keeps it apart
//   a place by MPS                 its memory is kept apart
//   a share of a GPU               as the node's agent does (NodeSpec::share_isolation)
//   a place by time slicing, a user of a shared MIG device      nothing is
//
// The memory of a place is its part of the GPU's. If the GPUs of a node differ, the smallest
// counts where the kubelet may give any of them.
//
// Requires: the node has what the pod asks for, free or not.
Reason CheckNeeds(const Node& node, const RequestShape& shape) {
  const Reason isolation = CheckIsolation(node, shape);
  return isolation == Reason::kFits ? CheckMemory(node.spec(), shape) : isolation;
}

Reason CheckGpus(const Node& node, const RequestShape& shape) {
  if (!shape.wants_gpu()) return Reason::kFits;
  if (node.spec().IsOfOtherGpus(shape)) return CheckOtherGpus(node, shape);
  const Reason reason = CheckDevices(node, shape);
  if (VerdictOf(reason) == Verdict::kUnresolvable) return reason;
  const Reason needs = CheckNeeds(node, shape);
  return needs == Reason::kFits ? reason : needs;
}

// Whether enough GPUs are of a model and a compute capability that the pod accepts; all of them
// where the device plugin may give any. Requires: JudgesKinds.
Reason CheckKinds(const NodeSpec& spec, const RequestShape& shape) {
  int of_model = 0, suiting = 0;
  for (std::size_t gpu = 0; gpu < spec.gpus.size(); ++gpu) {
    of_model += spec.AdmitsModelOf(gpu, shape) ? 1 : 0;
    suiting += spec.AdmitsKindOf(gpu, shape) ? 1 : 0;
  }
  const bool is_sure = shape.is_share() || GivesTheVeryGpu(spec);
  // A pod for more GPUs than there are lacks GPUs, and no model.
  const auto all = static_cast<int>(spec.gpus.size());
  const int wanted = is_sure ? std::min(shape.gpu_count(), all) : all;
  if (of_model < wanted) return Reason::kModelMismatch;
  return suiting < wanted ? Reason::kCapabilityTooLow : Reason::kFits;
}

// 62500 MB/s -> "62.5".
std::string Gigabytes(int megabytes_per_s) {
  std::string text = std::to_string(megabytes_per_s / 1000);
  if (const int tenths = megabytes_per_s % 1000 / 100; tenths > 0) {
    text += "." + std::to_string(tenths);
  }
  return text;
}

}  // namespace

Reason CheckFit(const Node& node, const RequestShape& shape) {
  const Reason gpus = CheckGpus(node, shape);
  if (VerdictOf(gpus) == Verdict::kUnresolvable) return gpus;
  if (shape.cpu_milli > node.spec().cpu_milli) return Reason::kTooFewCpus;
  if (shape.memory_bytes > node.spec().memory_bytes) return Reason::kTooLittleMemory;
  if (shape.ephemeral_bytes > node.spec().ephemeral_bytes.value_or(Node::kNotTracked)) {
    return Reason::kTooLittleDisk;
  }
  if (gpus != Reason::kFits) return gpus;
  // A pod that asks for none of a resource fits even if it is overcommitted.
  if (shape.cpu_milli > 0 && shape.cpu_milli > node.free_cpu_milli()) return Reason::kCpuShort;
  if (shape.memory_bytes > 0 && shape.memory_bytes > node.free_memory_bytes()) {
    return Reason::kMemoryShort;
  }
  if (shape.ephemeral_bytes > 0 && shape.ephemeral_bytes > node.free_ephemeral_bytes()) {
    return Reason::kDiskShort;
  }
  return Reason::kFits;
}

bool IsVgpu(const NodeSpec& spec) {
  const auto without_digits = [](std::string_view text) {
    return text.substr(0, text.find_last_not_of("0123456789") + 1);
  };
  std::string_view name = spec.gpu_model;
  const bool has_type = !name.empty() && std::string_view("ABCQ").find(name.back()) != name.npos;
  if (has_type) name.remove_suffix(1);
  const std::string_view board = without_digits(name);
  const bool is_named = has_type && board.size() < name.size() && board.ends_with('-');
  if (!is_named) return LabelText(spec.labels, "nvidia.com/vgpu.present") == "true";
  name = board.substr(0, board.size() - 1);
  return name.size() - without_digits(name).size() != 1 || !without_digits(name).ends_with('-');
}

Reason CheckHealth(const Node& node, const RequestShape& shape) {
  if (!node.spec().ready) return Reason::kNodeNotReady;
  if (!shape.wants_gpu()) return Reason::kFits;
  if (!node.spec().gpu_condition.empty()) return Reason::kGpuCondition;
  return node.spec().refuses_gpu_pods ? Reason::kRefusesGpuPods : Reason::kFits;
}

Reason CheckTraits(const Node& node, const RequestShape& shape) {
  const auto has = [&](const std::string& trait) { return HasTrait(node.spec().traits, trait); };
  if (!std::ranges::all_of(shape.nodes.required, has)) return Reason::kTraitMissing;
  return std::ranges::any_of(shape.nodes.forbidden, has) ? Reason::kTraitForbidden : Reason::kFits;
}

Reason CheckModel(const Node& node, const RequestShape& shape) {
  const NodeSpec& spec = node.spec();
  const bool has_gpus = !spec.gpus.empty() || spec.places.count > 0;
  const bool by_name = shape.gpu_resource != kOfClaims;
  if (spec.IsOfOtherGpus(shape)) {
    const bool suits = shape.Admits(OtherModel(spec, shape.gpu_resource));
    return suits && shape.gpu_rules.empty() ? Reason::kFits : Reason::kModelMismatch;
  }
  if (has_gpus && by_name && !spec.GivesGpusAs(shape.gpu_resource)) return Reason::kOtherResource;
  if (!shape.wants_gpu()) return Reason::kFits;
  // Of several models the labels name one.
  const bool asks_for_kind = !shape.models.empty() || shape.min_capability > 0;
  if (asks_for_kind && spec.places.count > 0 && !spec.gpu_contradiction.empty()) {
    return Reason::kGpusUncertain;
  }
  if (JudgesKinds(spec, shape)) {
    const Reason kinds = CheckKinds(spec, shape);
    if (kinds != Reason::kFits) return kinds;
  } else if (!shape.Admits(spec.gpu_model)) {
    return has_gpus || spec.mig.known() ? Reason::kModelMismatch : Reason::kNoGpu;
  }
  const bool named = has_gpus && !shape.gpu_rules.empty();
  return named && std::popcount(AcceptedGpus(spec, shape)) < shape.gpu_count()
             ? Reason::kGpuMismatch
             : Reason::kFits;
}

bool MayOfferAs(const NodeSpec& spec, std::string_view resource) {
  const GpuVendor* const vendor = FindGpuVendor(resource);
  const bool is_labelled = spec.gpu_model.empty() || vendor == nullptr ||
                           vendor->name == kNvidiaVendor || !OtherModel(spec, resource).empty();
  return resource == kOfClaims || (spec.GivesGpusAs(resource) && is_labelled);
}

std::string OtherModel(const NodeSpec& spec, std::string_view resource) {
  const GpuVendor* const vendor = FindGpuVendor(resource);
  if (vendor == nullptr) return "";
  for (const std::string_view key : vendor->model_labels) {
    if (const std::string* const model = FindLabel(spec.labels, key)) return *model;
  }
  return std::string(ChipOf(*vendor, resource));
}

std::int64_t OtherMemoryMib(const NodeSpec& spec, std::string_view resource) {
  const GpuVendor* const vendor = FindGpuVendor(resource);
  const GpuResource* const row = FindGpuResource(resource);
  if (vendor == nullptr || (row != nullptr && IsPart(*row, resource))) return 0;
  const std::string* const cut = FindLabel(spec.labels, vendor->partitioning_label);
  const std::string model = OtherModel(spec, resource);
  if (cut != nullptr && PartsPerGpu(*cut, model) != 1) return 0;
  for (const std::string_view key : vendor->memory_labels) {
    const std::string* const text = FindLabel(spec.labels, key);
    const bool of_each = vendor->memory_unit == MemoryLabelUnit::kMib;
    if (text != nullptr) return of_each ? MemoryLabelMib(*text) : 0;
  }
  return CataloguedMemoryMib(model);
}

std::string LinkShortage(const Node& node, const RequestShape& shape) {
  const int size = shape.gpu_count();
  const LinkAsk& ask = shape.links;
  if (size < 2 || !ask.limits()) return "";
  const GpuLinks& links = node.spec().links;
  if (!links.known()) return "the links of the node's GPUs are not known";
  const GpuMask free = FreeGpus(node, shape);
  if (links.Choose(free, size, ask) != 0) return "";
  const std::string needs = "needs " + std::to_string(size);
  const std::string has = std::to_string(std::popcount(free)) + " free, ";
  if (std::popcount(free) < size) return needs + " GPUs; " + has + "too few";
  const int linked = std::popcount(links.LargestLinked(free));
  if (ask.link == LinkWish::kRequired && linked < size) {
    return needs + " linked GPUs; " + has + "largest linked set " + std::to_string(linked);
  }
  if (ask.numa == NumaWish::kRequired) {
    if (!links.knows_numa()) return "the NUMA groups of the node's GPUs are not known";
    const int most = links.MostOfOneGroup(free);
    if (most < size) {
      return needs + " GPUs of one NUMA group; " + has + "at most " + std::to_string(most) +
             " of one";
    }
  }
  const LinkAsk fastest_ring = {.pattern = LinkPattern::kRing};
  const int ring = links.Ring(links.Choose(free, size, fastest_ring));
  if (ring < ask.min_megabytes_per_s) {
    return "needs a ring of " + Gigabytes(ask.min_megabytes_per_s) + " GB/s through " +
           std::to_string(size) + " GPUs; " + has + "best ring " + Gigabytes(ring) + " GB/s";
  }
  return needs + " GPUs; " + has + "no set has all at once that the pod asks of their links";
}

std::optional<double> LinkQualityRatio(const Node& node, const Placement& placement) {
  const GpuLinks& links = node.spec().links;
  if (placement.grants.size() < 2 || !links.known()) return std::nullopt;
  const GpuMask gpus = GpusAmong(placement.grants, node.gpus().size());
  const int best = links.BestQuality(IdleGpus(node), static_cast<int>(placement.grants.size()));
  return best == 0 ? 1.0 : std::min(1.0, links.quality(gpus) / double(best));
}

}  // namespace berth
