// SPDX-License-Identifier: Apache-2.0
#include "node/pods/plan_chooser.h"

#include <algorithm>
#include <chrono>
#include <tuple>

#include "base/text.h"

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

// The container whose turn it is; "" = none with that many. `strict`: the first without any alone.
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

std::int64_t Micros(Duration time) {
  return std::chrono::duration_cast<std::chrono::microseconds>(time).count();
}

// What is planned for the container; where its own plan has another number of devices, as of an
// init container that the plan does not name, what is planned for the pod.
std::vector<std::string> WantedFor(const Turn& turn, const PreferredQuestion& question,
                                   const NodeFacts& facts) {
  if (!turn.pod->plan) return {};
  const auto own = turn.pod->plan->containers.find(turn.container);
  if (own != turn.pod->plan->containers.end()) {
    std::vector<std::string> devices = DevicesOf(own->second, question.available, facts);
    if (IsAnswer(question, devices)) return devices;
  }
  return DevicesOf(turn.pod->plan->Whole(), question.available, facts);
}

using Names = std::set<std::string, std::less<>>;

Names NamesOf(std::span<const std::string> devices) { return {devices.begin(), devices.end()}; }

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

PlanChooser::PlanChooser(const OwnPods& pods, PodResources& kubelet, GetFacts facts, Log& log,
                         std::function<void()> on_given)
    : pods_(pods),
      kubelet_(kubelet),
      facts_(std::move(facts)),
      log_(log),
      on_given_(std::move(on_given)) {}

// The pod where the own pods alone say which one is meant, and its plan can be had: the kubelet
// need not be asked, which answers few questions in a second. nullopt: they do not.
std::optional<PlanChooser::Look> PlanChooser::LookAtOwn(const PreferredQuestion& question) {
  const Instant began = Instant::clock::now();
  const auto served = [this](const OwnPod& pod, const std::string& container) {
    return Served(pod, container);
  };
  Look look;
  look.asked = false;
  while (pods_.Live()) {
    const std::uint64_t version = pods_.Version();
    look.own = pods_.All();
    const std::vector<OwnPodPtr> waiting = Waiting(question.resource, look.own, served);
    const Instant now = Instant::clock::now();
    if (waiting.size() == 1) {
      std::optional<Turn> turn = TurnOfNext(question, waiting.front(), now, served);
      if (!turn || !IsAnswer(question, WantedFor(*turn, question, *facts_()))) return std::nullopt;
      look.matched.candidates.push_back(*std::move(turn));
      look.waited = now - began;
      return look;
    }
    if (!waiting.empty() || now >= began + kMostNews) return std::nullopt;
    pods_.WaitForChange(version, began + kMostNews);
  }
  return std::nullopt;
}

PlanChooser::Look PlanChooser::LookForPod(const PreferredQuestion& question) {
  const Instant began = Instant::clock::now();
  if (std::optional<Look> own = LookAtOwn(question)) return *std::move(own);
  Look look;
  look.listed = kubelet_.List(kMostList);
  const Instant end = Instant::clock::now() + kMostWait;
  const auto served = [this](const OwnPod& pod, const std::string& container) {
    return Served(pod, container);
  };
  while (true) {
    const std::uint64_t version = pods_.Version();
    look.own = pods_.All();
    look.matched = MatchPods(question, look.own, look.listed ? &*look.listed : nullptr, served);
    if (!look.listed || !pods_.NewsExpected() || !WorthWaiting(look.matched)) break;
    if (Instant::clock::now() >= end) {
      Missed(look.matched.unknown);
      break;
    }
    pods_.WaitForChange(version, end);
  }
  look.waited = Instant::clock::now() - began;
  return look;
}

bool PlanChooser::WorthWaiting(const Matched& matched) const {
  const MutexLock lock(mutex_);
  return std::ranges::any_of(matched.unknown, [this](const std::string& pod) BERTH_REQUIRES(
                                                  mutex_) { return !missed_.contains(pod); });
}

void PlanChooser::Missed(const std::vector<std::string>& unknown) {
  const MutexLock lock(mutex_);
  if (missed_.size() + unknown.size() > kMostMissed) missed_.clear();
  if (unknown.size() <= kMostMissed) missed_.insert(unknown.begin(), unknown.end());
}

std::vector<std::string> PlanChooser::Choose(const PreferredQuestion& question,
                                             const AskPlugin& ask_plugin) {
  const Look look = LookForPod(question);
  const std::vector<Turn>& candidates = look.matched.candidates;
  const Turn* const turn = candidates.empty() ? nullptr : &candidates.front();
  const Choice choice = ChooseFor(turn, question, look, ask_plugin);
  Note(question, look, turn, choice);
  return choice.answer;
}

PlanChooser::Choice PlanChooser::ChooseFor(const Turn* turn, const PreferredQuestion& question,
                                           const Look& look, const AskPlugin& ask_plugin) {
  const std::shared_ptr<const NodeFacts> facts = facts_();
  Choice choice;
  if (turn != nullptr) choice.wanted = WantedFor(*turn, question, *facts);
  // One set for all containers of the pod may have more than this one asks for.
  choice.answer = AnyAnswer(question, choice.wanted, {});
  const auto is_wanted = [&choice](const std::string& device) {
    return std::ranges::find(choice.wanted, device) != choice.wanted.end();
  };
  choice.by = "plan";
  if (IsAnswer(question, choice.answer) && std::ranges::all_of(choice.answer, is_wanted)) {
    return choice;
  }
  choice.by = choice.wanted.empty() ? "plugin" : "part";
  choice.answer = Around(question, look, choice.wanted, *facts, ask_plugin);
  return choice;
}

void PlanChooser::Note(const PreferredQuestion& question, const Look& look, const Turn* turn,
                       const Choice& choice) {
  Last last;
  last.size = question.size;
  last.answer = choice.answer;
  std::string problem = look.listed ? "" : look.listed.error().message;
  if (turn != nullptr) {
    last.pod = turn->pod->namespace_name + "/" + turn->pod->name;
    last.uid = turn->pod->uid;
    last.container = turn->container;
    if (problem.empty()) problem = turn->pod->plan_problem;
  }
  log_.Write(LogLevel::kInfo, "devices_chosen",
             {{"resource", question.resource},
              {"pod", last.pod},
              {"container", last.container},
              {"candidates", look.matched.candidates.size()},
              {"kubelet_asked", look.asked ? "yes" : "no"},
              {"by", choice.by},
              {"devices", Join(choice.answer, ",")},
              {"microseconds", Micros(look.waited)},
              {"problem", problem}});
  const MutexLock lock(mutex_);
  if (last_.size() < kMostResources || last_.contains(question.resource)) {
    last_[question.resource] = std::move(last);
  }
}

std::vector<std::string> PlanChooser::Around(const PreferredQuestion& question, const Look& look,
                                             const std::vector<std::string>& wanted,
                                             const NodeFacts& facts, const AskPlugin& ask_plugin) {
  const std::vector<std::string> shared = Shared(question, look.own, facts);
  std::vector<std::string> avoid = shared;
  if (look.listed) {
    for (std::string& device : PlannedForOthers(question, look.own, *look.listed, facts)) {
      if (std::ranges::find(wanted, device) == wanted.end()) avoid.push_back(std::move(device));
    }
  }
  std::vector<std::string> among = Without(question, avoid);
  if (among.size() < question.size) among = Without(question, shared);
  if (among.size() < question.size) among = question.available;
  if (wanted.empty() && !among.empty()) {
    const std::optional<std::vector<std::string>> preferred = ask_plugin(among);
    if (preferred && IsAnswer(question, *preferred)) return *preferred;
  }
  return AnyAnswer(question, wanted, avoid);
}

void PlanChooser::Given(const std::string& resource, const std::vector<std::string>& devices) {
  {
    const MutexLock lock(mutex_);
    const auto found = last_.find(resource);
    if (found != last_.end() && !found->second.uid.empty() &&
        found->second.size == devices.size()) {
      const Last& last = found->second;
      if (served_.emplace(last.uid, last.container).second) {
        served_order_.emplace_back(last.uid, last.container);
      }
      if (served_order_.size() > kMostServed) {
        served_.erase(served_order_.front());
        served_order_.pop_front();
      }
      std::vector<std::string> answer = last.answer;
      std::vector<std::string> given = devices;
      std::ranges::sort(answer);
      std::ranges::sort(given);
      if (answer != given) {
        log_.Write(LogLevel::kWarn, "devices_differ",
                   {{"resource", resource},
                    {"pod", last.pod},
                    {"container", last.container},
                    {"answered", Join(answer, ",")},
                    {"given", Join(given, ",")}});
      }
      last_.erase(found);
    }
  }
  on_given_();
}

bool PlanChooser::Served(const OwnPod& pod, const std::string& container) const {
  const MutexLock lock(mutex_);
  return served_.contains({pod.uid, container});
}

bool IsAnswer(const PreferredQuestion& question, const std::vector<std::string>& devices) {
  const Names chosen = NamesOf(devices);
  const Names available = NamesOf(question.available);
  return devices.size() == question.size && chosen.size() == devices.size() &&
         std::ranges::includes(available, chosen) &&
         std::ranges::includes(chosen, NamesOf(question.must));
}

std::vector<std::string> AnyAnswer(const PreferredQuestion& question,
                                   std::span<const std::string> wanted,
                                   std::span<const std::string> avoid) {
  const Names available = NamesOf(question.available);
  const Names avoided = NamesOf(avoid);
  std::vector<std::string> answer;
  Names chosen;
  const auto take = [&](const auto& from, bool avoided_too) {
    for (const std::string& device : from) {
      if (answer.size() >= question.size) return;
      if (!available.contains(device) || (!avoided_too && avoided.contains(device))) continue;
      if (chosen.insert(device).second) answer.push_back(device);
    }
  };
  take(question.must, true);
  take(wanted, true);
  take(available, false);
  take(available, true);
  return answer;
}

std::vector<std::string> Without(const PreferredQuestion& question,
                                 std::span<const std::string> avoid) {
  const Names avoided = NamesOf(avoid);
  const Names must = NamesOf(question.must);
  std::vector<std::string> left;
  for (const std::string& device : question.available) {
    if (!avoided.contains(device) || must.contains(device)) left.push_back(device);
  }
  return left;
}

}  // namespace berth::node
