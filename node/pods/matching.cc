// SPDX-License-Identifier: Apache-2.0
#include "node/pods/matching.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <tuple>
#include <utility>

namespace berth::node {
namespace {

constexpr int kWholeMilli = 1000;
constexpr Duration kIsNew = std::chrono::seconds(3);  // a pod that was bound

bool HasAny(const ListedPod& pod, const std::string& resource) {
  return std::ranges::any_of(pod.containers, [&resource](const ListedContainer& container) {
    return container.devices.contains(resource);
  });
}

bool HasDevices(const ListedPod& pod) {
  return std::ranges::any_of(
      pod.containers, [](const ListedContainer& container) { return !container.devices.empty(); });
}

bool Has(const ListedPod& pod, const std::string& container, const std::string& resource) {
  return std::ranges::any_of(pod.containers, [&](const ListedContainer& listed) {
    return listed.name == container && listed.devices.contains(resource);
  });
}

// The entries of the list with the pod's name.
class ListIndex {
 public:
  explicit ListIndex(const std::vector<ListedPod>& listed) {
    for (const ListedPod& pod : listed) pods_.emplace(pod.namespace_name + "/" + pod.name, &pod);
  }

  // The one that has none of the resource, else any; nullptr: not listed.
  [[nodiscard]] const ListedPod* Find(const std::string& key, const std::string& resource) const {
    const ListedPod* found = nullptr;
    for (auto [entry, end] = pods_.equal_range(key); entry != end; ++entry) {
      if (found == nullptr || !HasAny(*entry->second, resource)) found = entry->second;
    }
    return found;
  }

 private:
  std::multimap<std::string, const ListedPod*> pods_;
};

// The container whose turn it is; "" = none with that many. `strict`: only the first that has none
// yet counts.
std::string TurnOf(const OwnPod& pod, const ListedPod* listed, const PreferredQuestion& question,
                   bool strict, const WasServed& was_served) {
  for (const OwnContainer& container : pod.containers) {
    const auto asked = container.asks.find(question.resource);
    if (asked == container.asks.end()) continue;
    const bool served = container.ends_first
                            ? !question.must.empty() || was_served(pod, container.name)
                        : listed != nullptr ? Has(*listed, container.name, question.resource)
                                            : was_served(pod, container.name);
    if (served) continue;
    if (asked->second == question.size) return container.name;
    if (strict) return "";
  }
  return "";
}

std::vector<Turn> Candidates(const PreferredQuestion& question, const OwnPods::Pods& own,
                             const ListIndex* index, bool strict, const WasServed& was_served) {
  std::vector<Turn> candidates;
  for (const auto& [key, pod] : own) {
    if (pod->over || pod->ending || !pod->Asks(question.resource)) continue;
    const ListedPod* const listed =
        index == nullptr ? nullptr : index->Find(key, question.resource);
    if (index != nullptr && listed == nullptr) continue;
    std::string container = TurnOf(*pod, listed, question, strict, was_served);
    if (!container.empty()) candidates.push_back({pod, std::move(container)});
  }
  std::ranges::sort(candidates, [](const Turn& a, const Turn& b) {
    return std::tie(a.pod->created, a.pod->namespace_name, a.pod->name) <
           std::tie(b.pod->created, b.pod->namespace_name, b.pod->name);
  });
  return candidates;
}

}  // namespace

Matched MatchPods(const PreferredQuestion& question, const OwnPods::Pods& own,
                  const std::vector<ListedPod>* listed, const WasServed& was_served) {
  Matched matched;
  std::optional<ListIndex> index;
  if (listed != nullptr) {
    index.emplace(*listed);
    for (const ListedPod& pod : *listed) {
      std::string key = pod.namespace_name + "/" + pod.name;
      if (!HasDevices(pod) && !own.contains(key)) matched.unknown.push_back(std::move(key));
    }
  }
  const ListIndex* const among = index ? &*index : nullptr;
  matched.candidates = Candidates(question, own, among, true, was_served);
  if (matched.candidates.empty()) {
    matched.candidates = Candidates(question, own, among, false, was_served);
  }
  return matched;
}

std::vector<OwnPodPtr> Waiting(const std::string& resource, const OwnPods::Pods& own,
                               const WasServed& was_served) {
  std::vector<OwnPodPtr> waiting;
  for (const auto& [key, pod] : own) {
    if (pod->over || !pod->Asks(resource)) continue;
    bool served = true;
    bool shows = false;
    for (const OwnContainer& container : pod->containers) {
      if (!container.asks.contains(resource)) continue;
      shows = shows || container.running || container.reports_devices;
      served = served && was_served(*pod, container.name);
    }
    if (!shows && !served) waiting.push_back(pod);
  }
  return waiting;
}

std::optional<Turn> TurnOfNext(const PreferredQuestion& question, const OwnPodPtr& pod, Instant now,
                               const WasServed& was_served) {
  if (pod->ending || pod->bound <= question.since || now - pod->bound > kIsNew) return std::nullopt;
  std::string container = TurnOf(*pod, nullptr, question, true, was_served);
  if (container.empty()) return std::nullopt;
  return Turn{pod, std::move(container)};
}

std::vector<std::string> PlannedForOthers(const PreferredQuestion& question,
                                          const OwnPods::Pods& own,
                                          const std::vector<ListedPod>& listed,
                                          const NodeFacts& facts) {
  const ListIndex index(listed);
  std::set<std::string> planned;
  for (const auto& [key, pod] : own) {
    if (pod->over || pod->ending || !pod->plan || !pod->Asks(question.resource)) continue;
    const ListedPod* const there = index.Find(key, question.resource);
    if (there != nullptr && HasAny(*there, question.resource)) continue;
    const auto devices = DevicesOf(pod->plan->Whole(), question.available, facts);
    planned.insert(devices.begin(), devices.end());
  }
  return {planned.begin(), planned.end()};
}

std::vector<std::string> Shared(const PreferredQuestion& question, const OwnPods::Pods& own,
                                const NodeFacts& facts) {
  ContainerPlan shares;
  for (const auto& [key, pod] : own) {
    if (pod->over || !pod->plan || pod->Asks(question.resource)) continue;
    for (const PlannedGpu& gpu : pod->plan->Whole().gpus) {
      if (gpu.milli < kWholeMilli) shares.gpus.push_back(gpu);
    }
  }
  // Of each GPU all replicas: the plan is asked for as often as there can be some.
  std::vector<std::string> found;
  std::vector<std::string> left = question.available;
  while (!shares.gpus.empty()) {
    const std::vector<std::string> devices = DevicesOf(shares, left, facts);
    if (devices.empty()) break;
    const std::set<std::string> taken(devices.begin(), devices.end());
    std::erase_if(left, [&taken](const std::string& id) { return taken.contains(id); });
    found.insert(found.end(), devices.begin(), devices.end());
  }
  return found;
}

}  // namespace berth::node
