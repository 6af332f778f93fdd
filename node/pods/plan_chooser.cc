// SPDX-License-Identifier: Apache-2.0
#include "node/pods/plan_chooser.h"

#include <algorithm>
#include <chrono>
#include <set>

#include "base/text.h"
#include "node/kubelet/plugin_file.h"

namespace berth::node {

namespace {

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

}  // namespace

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

namespace {

using Names = std::set<std::string, std::less<>>;

Names NamesOf(std::span<const std::string> devices) { return {devices.begin(), devices.end()}; }

}  // namespace

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
