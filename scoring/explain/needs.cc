// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/needs.h"

#include <algorithm>
#include <utility>

#include "scoring/explain/node_access.h"
#include "scoring/explain/node_report.h"
#include "scoring/filters/device_fit.h"
#include "scoring/registry.h"

namespace berth {
namespace {

constexpr std::int64_t kLeastTold = std::int64_t{1} << 20;  // bytes

NodeConstraints ConstraintsOf(const PodRequest& pod) {
  return pod.constraints == nullptr ? NodeConstraints() : *pod.constraints;
}

// The largest of low..high that fits, low - 1 if none does. fits: false for all beyond some value.
template <class Fits>
std::int64_t Largest(std::int64_t low, std::int64_t high, Fits fits) {
  std::int64_t best = low - 1;
  while (low <= high) {
    const std::int64_t middle = low + (high - low) / 2;
    if (fits(middle)) {
      best = middle;
      low = middle + 1;
    } else {
      high = middle - 1;
    }
  }
  return best;
}

std::string FewerGpus(const RequestShape& shape, int wanted, const Node& node) {
  RequestShape fewer = shape;
  for (int count = wanted - 1; count > 0; --count) {
    fewer.gpus = WholeGpus{count};
    if (count == 1) fewer.links = {};
    if (!Fits(node, fewer)) continue;
    RequestShape unlinked = fewer;
    unlinked.gpus = WholeGpus{count + 1};
    unlinked.links = {};
    const bool by_links = count > 1 && shape.links != LinkAsk() && Fits(node, unlinked);
    return "with " + (by_links ? std::to_string(count) + " linked GPUs" : CountText(count, "GPU")) +
           " instead of " + std::to_string(wanted);
  }
  return "";
}

// The largest of the amounts below the asked one that fits; 0 = none does.
template <class Amount>
std::int64_t LessOf(Amount GpuShare::*amount, const RequestShape& shape, const Node& node) {
  RequestShape smaller = shape;
  GpuShare ask = std::get<GpuShare>(shape.gpus);
  return Largest(1, ask.*amount - 1, [&](std::int64_t tried) {
    ask.*amount = static_cast<Amount>(tried);
    smaller.gpus = ask;
    return Fits(node, smaller);
  });
}

std::string SmallerShare(const RequestShape& shape, const GpuShare& share, const Node& node) {
  const auto instead = [](std::int64_t amount, const char* of, std::int64_t asked) {
    return "with " + std::to_string(amount) + of + " instead of " + std::to_string(asked);
  };
  if (const auto gpus = LessOf(&GpuShare::count, shape, node); gpus > 0) {
    return "with shares of " + CountText(gpus, "GPU") + " instead of " +
           std::to_string(share.count);
  }
  // Of a share of both, one alone may be what is too much.
  if (const auto milli = LessOf(&GpuShare::milli, shape, node); milli > 0) {
    return instead(milli, " thousandths of a GPU", share.milli);
  }
  if (const auto memory = LessOf(&GpuShare::memory_mib, shape, node); memory > 0) {
    const char* const of = node.spec().unit_mib() == 1 ? " MiB of a GPU" : " units of memory";
    return instead(memory, of, share.memory_mib);
  }
  if (const auto memory = LessOf(&GpuShare::memory_milli, shape, node); memory > 0) {
    return instead(memory, " thousandths of a GPU's memory", share.memory_milli);
  }
  return "";
}

// The largest device that is free now and smaller than what is asked for.
std::string SmallerMig(const RequestShape& shape, const MigSlices& ask, const Node& node) {
  const NodeMig& mig = node.spec().mig;
  if (!mig.known() || mig->product == nullptr || !ask.by_name() || ask.wants.size() != 1) return "";
  const MigWant& want = ask.wants.front();
  RequestShape smaller = shape;
  for (int count = want.count - 1; count > 0; --count) {
    MigWant fewer = want;
    fewer.count = count;
    smaller.gpus = MigSlices{{fewer}};
    if (Fits(node, smaller)) {
      return "with " + std::to_string(count) + " " + MigProfileName(*want.profile) +
             " instead of " + std::to_string(want.count);
    }
  }
  const MigRow* const best = LargestSmallerMig(shape, want.count, node);
  if (best == nullptr) return "";
  return "with " + MigProfileName(best->profile) + " instead of " + MigProfileName(*want.profile);
}

std::string TolerationOf(const PodRequest& pod, const NodeSpec& spec) {
  const NodeConstraints constraints = ConstraintsOf(pod);
  std::string text;
  bool cordoned = false;
  for (const Taint& taint : spec.taints) {
    if (Tolerates(constraints.tolerations, taint)) continue;
    // It goes with its cause, or an autoscaler takes the node away.
    if (PassesByItself(taint) || IsOfLeaving(taint)) return "";
    if (taint.key == kCordonTaint) {
      cordoned = true;
      continue;
    }
    text += (text.empty() ? "with a toleration of " : " and ") + TextOf(taint);
  }
  if (!cordoned) return text;
  return (text.empty() ? "" : text + " and ") + "once the node is uncordoned";
}

// All that fail, because each of them alone keeps the pod away.
std::string SelectionOf(const PodRequest& pod, const NodeSpec& spec) {
  NodeConstraints constraints = ConstraintsOf(pod);
  std::string text;
  for (const LabelRequirement& wanted : constraints.selector) {
    if (Holds(wanted, spec.labels)) continue;
    text += (text.empty() ? "without the node selector " : " and ") + wanted.key;
  }
  constraints.selector.clear();
  if (SelectsNode(constraints, spec.name, spec.labels)) return text;
  return (text.empty() ? "without" : text + " and") + " the required node affinity";
}

std::string AccessOf(const PodRequest& pod, const NodeSpec& spec) {
  const std::string toleration = TolerationOf(pod, spec);
  return toleration.empty() ? "" : SelectionOf(pod, spec) + " and " + toleration;
}

std::string LessGpuMemory(const Node& node) {
  std::int64_t least = node.spec().places.memory_mib;
  if (!node.spec().gpus.empty()) {
    least = std::ranges::min(node.spec().gpus, {}, &GpuSpec::memory_mib).memory_mib;
  }
  if (least < 1024) return "without berth.dev/min-gpu-memory-gib";
  return "with berth.dev/min-gpu-memory-gib: " + std::to_string(least / 1024);
}

// Takes the need from the pod; whether it had it.
using GiveUp = bool (*)(PodRequest& pod);

template <class T>
bool Reset(T& value) {
  const bool had = value != T{};
  value = T{};
  return had;
}

template <class T>
bool Replace(T& value, const T& old, const T& by) {
  const bool had = value == old;
  if (had) value = by;
  return had;
}

bool GiveUpLinks(PodRequest& pod) {
  const LinkAsk links = std::exchange(pod.shape.links, {});
  const int limits = (links.link == LinkWish::kRequired ? 1 : 0) +
                     (links.numa == NumaWish::kRequired ? 1 : 0) +
                     (links.min_megabytes_per_s > 0 ? 1 : 0);
  return limits > 1;
}

bool GiveUpTaints(PodRequest& pod) {
  NodeConstraints constraints = ConstraintsOf(pod);
  constraints.tolerations = {{"", TolerationOperator::kExists, "", std::nullopt}};
  pod.constraints = std::make_shared<const NodeConstraints>(std::move(constraints));
  return true;
}

bool GiveUpSelection(PodRequest& pod) {
  NodeConstraints constraints = ConstraintsOf(pod);
  const bool had = constraints.selects();
  constraints.selector.clear();
  constraints.either.reset();
  pod.constraints = std::make_shared<const NodeConstraints>(std::move(constraints));
  return had;
}

// By Need.
struct NeedRow {
  std::string_view code;
  GiveUp give_up;
};
constexpr std::array<NeedRow, kNeeds.size()> kNeedRows = {{
    {"link",
     [](PodRequest& pod) {
       return Replace(pod.shape.links.link, LinkWish::kRequired, LinkWish::kPreferred);
     }},
    {"numa",
     [](PodRequest& pod) {
       return Replace(pod.shape.links.numa, NumaWish::kRequired, NumaWish::kPreferred);
     }},
    {"min_bandwidth", [](PodRequest& pod) { return Reset(pod.shape.links.min_megabytes_per_s); }},
    {"links", GiveUpLinks},
    {"required_domain", [](PodRequest& pod) { return Reset(pod.domain.required); }},
    {"isolation", [](PodRequest& pod) { return Reset(pod.shape.isolation); }},
    {"gpu_memory", [](PodRequest& pod) { return Reset(pod.shape.min_gpu_memory_mib); }},
    {"taints", GiveUpTaints},
    {"selection", GiveUpSelection},
    {"access", [](PodRequest& pod) { return GiveUpTaints(pod) && GiveUpSelection(pod); }},
    {"model",
     [](PodRequest& pod) {
       const bool named = Reset(pod.shape.models);
       return Reset(pod.shape.model_rules) || named;
     }},
    {"traits",
     [](PodRequest& pod) {
       const bool required = Reset(pod.shape.nodes.required);
       return Reset(pod.shape.nodes.forbidden) || required;
     }},
    {"gpu_uuids", [](PodRequest& pod) { return Reset(pod.shape.gpu_rules); }},
    {"resource", [](PodRequest& pod) { return Reset(pod.shape.gpu_resource); }},
    {"cpu", [](PodRequest& pod) { return Reset(pod.shape.cpu_milli); }},
    {"memory", [](PodRequest& pod) { return Reset(pod.shape.memory_bytes); }},
    {"disk", [](PodRequest& pod) { return Reset(pod.shape.ephemeral_bytes); }},
}};

}  // namespace

std::string_view CodeOf(Need need) { return kNeedRows[static_cast<std::size_t>(need)].code; }

std::optional<PodRequest> Without(const PodRequest& pod, Need need) {
  std::optional<PodRequest> other = pod;
  if (!kNeedRows[static_cast<std::size_t>(need)].give_up(*other)) return std::nullopt;
  return other;
}

std::string Instead(const PodRequest& pod, Need need, const Node& node) {
  const RequestShape& shape = pod.shape;
  switch (need) {
    case Need::kLink:
      return "with berth.dev/link: preferred";
    case Need::kNuma:
      return "with berth.dev/numa: preferred";
    case Need::kBandwidth:
      return "without berth.dev/min-bandwidth-gbps";
    case Need::kLinks:
      return "without requirements on links and NUMA nodes";
    case Need::kDomain:
      return "with a preferred topology domain instead of a required one";
    case Need::kIsolation:
      return "without berth.dev/isolation";
    case Need::kGpuMemory:
      return LessGpuMemory(node);
    case Need::kTaints:
      return TolerationOf(pod, node.spec());
    case Need::kSelection:
      return SelectionOf(pod, node.spec());
    case Need::kAccess:
      return AccessOf(pod, node.spec());
    case Need::kModel:
      if (const std::string model = node.spec().IsOfOtherGpus(shape)
                                        ? OtherModel(node.spec(), shape.gpu_resource)
                                        : node.spec().gpu_model;
          !model.empty()) {
        return "if it accepts GPU model " + model;
      }
      return "without berth.dev/gpu-model";
    case Need::kTraits:
      return "in another workload class";
    case Need::kGpuUuids:
      return "if it accepts any GPU of the node";
    case Need::kResource:
      return "if it asks for " + node.spec().gpu_resource;
    case Need::kCpu:
      if (node.free_cpu_milli() < 1) return "";
      return "with " + CpuText(node.free_cpu_milli()) + " CPUs instead of " +
             CpuText(shape.cpu_milli);
    case Need::kMemory:
      if (node.free_memory_bytes() < kLeastTold) return "";
      return "with " + MemoryText(node.free_memory_bytes()) + " of memory instead of " +
             MemoryText(shape.memory_bytes);
    case Need::kDisk:
      if (node.free_ephemeral_bytes() < kLeastTold) return "";
      return "with " + MemoryText(node.free_ephemeral_bytes()) +
             " of ephemeral storage instead of " + MemoryText(shape.ephemeral_bytes);
    case Need::kCount:
      break;
  }
  return "";
}

const MigRow* LargestSmallerMig(const RequestShape& shape, int count, const Node& node) {
  const MigWant& want = shape.mig()->wants.front();
  RequestShape smaller = shape;
  const MigRow* best = nullptr;
  for (const MigRow& row : node.spec().mig->product->rows()) {
    if (row.profile == *want.profile || row.profile.memory_gb > want.profile->memory_gb) continue;
    if (best != nullptr && row.memory_units <= best->memory_units) continue;
    MigWant other = want;
    other.profile = row.profile;
    other.count = count;
    smaller.gpus = MigSlices{{other}};
    if (Fits(node, smaller)) best = &row;
  }
  return best;
}

std::string WithLess(const PodRequest& pod, const Node& node) {
  const RequestShape& shape = pod.shape;
  if (const auto* const whole = std::get_if<WholeGpus>(&shape.gpus)) {
    return FewerGpus(shape, whole->count, node);
  }
  if (const auto* const share = std::get_if<GpuShare>(&shape.gpus)) {
    return SmallerShare(shape, *share, node);
  }
  const MigSlices* const mig = shape.mig();
  return mig == nullptr ? "" : SmallerMig(shape, *mig, node);
}

}  // namespace berth
