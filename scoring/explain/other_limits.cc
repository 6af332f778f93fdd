// SPDX-License-Identifier: Apache-2.0
#include "scoring/explain/other_limits.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "topology/gpu_vendor.h"

namespace berth {
namespace {

constexpr const char* kPods = "pods";  // as Kubernetes calls it

std::int64_t TakenOf(const Node& node, const std::string& name) {
  std::int64_t taken = 0;
  for (const auto& record : node.pods()) {
    if (record->pod.others == nullptr) continue;
    if (const OtherResource* const has = FindOther(*record->pod.others, name)) taken += has->amount;
  }
  return taken;
}

std::string AmountText(const OtherResource& other) {
  return std::to_string(other.amount) + " " + other.name;
}

// Of what the node has enough of it is kMostOtherAmount.
std::int64_t FreeOf(const Node& node, const std::string& name) {
  const NodeSpec& spec = node.spec();
  if (spec.most_pods < 0) return kMostOtherAmount;
  if (name == kPods) return spec.most_pods - std::ssize(node.pods());
  const OtherResource* const has = FindOther(spec.others, name);
  if (has == nullptr && spec.others.size() == kMostOtherResources)
    return kMostOtherAmount;  // maybe
  const std::int64_t free = (has == nullptr ? 0 : has->amount) - TakenOf(node, name);
  const std::int64_t cores = CoresPerGpu(spec);
  if (cores == 0 || name != CoresOf(spec.gpu_resource)) return free;
  return std::min(free, node.free_gpu_milli() * cores / kMilliPerGpu);
}

// Of a vendor of GPUs; some plugins offer access to all GPUs at once as a device more.
bool IsOfGpuVendor(const OtherResource& other) {
  return FindGpuVendor(other.name) != nullptr && !other.name.ends_with("monitoring");
}

}  // namespace

std::vector<std::string> DevicesBesideOn(const Node& node) {
  const NodeSpec& spec = node.spec();
  std::vector<std::string> texts;
  const auto add = [&texts](std::int64_t free, const OtherResource& all) {
    texts.push_back(std::to_string(std::max<std::int64_t>(free, 0)) + " of " + AmountText(all) +
                    " free");
  };
  for (std::size_t i = 0; spec.mig.known() && i < spec.mig->shared.size(); ++i) {
    const MigStock& stock = spec.mig->shared[i];
    add(stock.count - node.mig().shared_taken()[i],
        {"replicas of MIG " + MigProfileName(stock.resource.profile), stock.count});
  }
  for (const OtherResource& other : spec.other_gpus) add(node.FreeOtherGpus(other), other);
  for (const OtherResource& other : spec.others) {
    if (other.amount > 0 && IsOfGpuVendor(other)) add(FreeOf(node, other.name), other);
  }
  return texts;
}

std::string DevicesBesideOf(const PodRequest& pod) {
  OtherResources devices = pod.others == nullptr ? OtherResources() : *pod.others;
  std::erase_if(devices, [](const auto& one) { return !IsOfGpuVendor(one); });
  return Join(devices, ", ", AmountText);
}

std::string LackOf(const Node& node, const PodRequest& pod) {
  if (FreeOf(node, kPods) < 1) return kPods;
  if (pod.others == nullptr) return "";
  for (const OtherResource& asked : *pod.others) {
    if (asked.amount > 0 && FreeOf(node, asked.name) < asked.amount) return asked.name;
  }
  return "";
}

int PodsByOthers(const Node& node, const PodRequest& pod) {
  std::int64_t pods = FreeOf(node, kPods);
  if (pod.others != nullptr) {
    for (const OtherResource& asked : *pod.others) {
      if (asked.amount > 0) pods = std::min(pods, FreeOf(node, asked.name) / asked.amount);
    }
  }
  return static_cast<int>(std::clamp<std::int64_t>(pods, 0, std::numeric_limits<int>::max()));
}

bool HaveSameOthers(const Node& a, const Node& b, const PodRequest& pod, std::int64_t pods) {
  if (std::min(FreeOf(a, kPods), pods) != std::min(FreeOf(b, kPods), pods)) return false;
  return pod.others == nullptr || std::ranges::all_of(*pod.others, [&](const OtherResource& one) {
           return FreeOf(a, one.name) == FreeOf(b, one.name);
         });
}

std::vector<std::string> NotJudgedOf(const PodRequest& pod) {
  std::vector<std::string> what;
  const OwnToScheduler& own = pod.own_to_scheduler;
  if (own.host_ports) what.emplace_back("host ports");
  if (own.volumes) what.emplace_back("volumes");
  // Those of OtherResources are judged.
  const bool reads_all = pod.others != nullptr && pod.claims.empty();
  if (own.resources && !reads_all) what.emplace_back("resources that Berth does not read");
  if (own.keeps_apart) what.emplace_back("required anti-affinity");
  if (own.minds_others) what.emplace_back("required affinity or spread");
  return what;
}

std::string OfSchedulerAlone(const PodRequest& pod) {
  constexpr std::size_t kMostNamed = 3;
  std::vector<std::string> names;
  if (pod.others != nullptr) {
    for (const OtherResource& other : *pod.others) {
      if (!other.name.starts_with("hugepages-")) names.push_back(Shortened(other.name, 63));
    }
  }
  if (names.size() > kMostNamed) names.resize(kMostNamed);
  const bool claims = names.empty() && !pod.claims.empty();
  return (claims          ? "asks for devices by ResourceClaim alone"
          : names.empty() ? "asks for no GPU"
                          : "asks for " + Join(names, " and ") + ", which Berth does not place") +
         ": kube-scheduler alone chooses its node";
}

std::string MeantBy(const std::string& resource, const Snapshot& snapshot) {
  constexpr std::size_t kMostWrong = 2;  // letters
  std::string meant;
  std::size_t least = kMostWrong + 1;
  const auto look = [&](const std::string& name) {
    const std::size_t wrong = EditDistance(resource, name);
    if (name.empty() || wrong >= least) return;
    meant = name;
    least = wrong;
  };
  for (const char* name : {"berth.dev/gpu-milli", "berth.dev/gpu-memory-mib"}) look(name);
  const std::string* last = nullptr;
  for (NodeIndex i = 0; i < snapshot.size(); ++i) {
    const NodeSpec& spec = snapshot.node(i).spec();
    if (FindOther(spec.others, resource) != nullptr) return "";
    if (last == nullptr || *last != spec.gpu_resource) look(spec.gpu_resource);
    last = &spec.gpu_resource;
  }
  return meant;
}

std::string TextOfLacks(const std::map<std::string, int>& lacks, const Snapshot& snapshot) {
  std::string text;
  for (const auto& [what, nodes] : lacks) {
    text += (text.empty() ? "" : ", ") + std::to_string(nodes);
    if (what == kPods) {
      text += std::string(nodes == 1 ? " takes" : " take") +
              " no more pods: end one there, or raise maxPods";
    } else {
      const std::string meant = MeantBy(what, snapshot);
      text += (nodes == 1 ? " lacks " : " lack ") + what +
              (meant.empty() ? "" : ", did you mean " + meant + "?");
    }
  }
  return text;
}

}  // namespace berth
