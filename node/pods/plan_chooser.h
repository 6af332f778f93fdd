// SPDX-License-Identifier: Apache-2.0
//
// PlanChooser: answers the kubelet with the devices that Berth planned for the very container that
// is being admitted. Where there is no such plan, or it cannot be had: with the plugin's own
// preference among the devices that nobody else was planned and that have no shares.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "node/facts/node_facts.h"
#include "node/interposer/ports.h"
#include "node/kubelet/registrar.h"
#include "node/pods/own_pods.h"
#include "server/telemetry/log.h"

namespace berth::node {

// Which pod the kubelet asks for. Its question names none, but at that moment its own list has the
// pod in question as the only one that asks for the resource and has none of it: it adds one pod to
// its list, admits it, and goes on to the next. Pure functions.

// A container that is being given devices.
struct Turn {
  OwnPodPtr pod;
  std::string container;
};

// Whether an init container has had its devices: the kubelet does not list them.
using WasServed = std::function<bool(const OwnPod& pod, const std::string& container)>;

// What the kubelet's list and the own pods say together.
struct Matched {
  std::vector<Turn> candidates;  // by creation time of the pods, then by name
  // Pods without devices that the list has and the own pods do not have (yet): "namespace/name".
  std::vector<std::string> unknown;
};

// The containers whose turn it is with exactly `size` of the resource. `must` not empty: an init
// container has had its devices. `listed` nullptr: the kubelet's list is not known, and every pod
// that is not over counts.
Matched MatchPods(const PreferredQuestion& question, const OwnPods::Pods& own,
                  const std::vector<ListedPod>* listed, const WasServed& was_served);

// The own pods that ask for the resource and are not known to have it: their status does not show
// it, and not all of their containers were served.
std::vector<OwnPodPtr> Waiting(const std::string& resource, const OwnPods::Pods& own,
                               const WasServed& was_served);

// The turn of a pod that is the only one that waits. nullopt: it is not sure that the kubelet means
// it, or its turn is one with another number.
//
// The kubelet gets the pods of its node in the order in which the own watch brings them, and admits
// them in that order. So a pod before which all have been served is the next one, where both have
// come anew: after the kubelet began to ask us (question.since) and not long before `now`. A pod
// that waits for longer was refused perhaps, or has its devices from somebody else.
std::optional<Turn> TurnOfNext(const PreferredQuestion& question, const OwnPodPtr& pod, Instant now,
                               const WasServed& was_served);

// The devices of the resource that are planned for own pods that still wait for them.
std::vector<std::string> PlannedForOthers(const PreferredQuestion& question,
                                          const OwnPods::Pods& own,
                                          const std::vector<ListedPod>& listed,
                                          const NodeFacts& facts);

// The devices on which pods have shares that do not ask for the resource.
std::vector<std::string> Shared(const PreferredQuestion& question, const OwnPods::Pods& own,
                                const NodeFacts& facts);

class PlanChooser final : public DeviceChooser {
 public:
  static constexpr Duration kMostList = std::chrono::milliseconds(500);
  // For a pod that the kubelet has and the watch has not brought yet.
  static constexpr Duration kMostWait = std::chrono::milliseconds(300);
  // For it to bring any pod that waits, before the kubelet is asked which one it has.
  static constexpr Duration kMostNews = std::chrono::milliseconds(20);
  static constexpr std::size_t kMostServed = 1024;  // containers that are remembered
  static constexpr std::size_t kMostMissed = 1024;  // pods that are waited for once only

  using GetFacts = std::function<std::shared_ptr<const NodeFacts>()>;

  // References: they live longer. on_given: a container was given devices; returns at once.
  PlanChooser(const OwnPods& pods, PodResources& kubelet, GetFacts facts, Log& log,
              std::function<void()> on_given);

  std::vector<std::string> Choose(const PreferredQuestion& question,
                                  const AskPlugin& ask_plugin) override BERTH_EXCLUDES(mutex_);
  void Given(const std::string& resource, const std::vector<std::string>& devices) override
      BERTH_EXCLUDES(mutex_);

 private:
  struct Look {
    OwnPods::Pods own;
    Result<std::vector<ListedPod>> listed;
    Matched matched;
    bool asked = true;  // the kubelet for its list
    Duration waited{};
  };
  // What was found, and what it says of the devices.
  struct Choice {
    std::vector<std::string> wanted;  // planned and available
    std::vector<std::string> answer;
    std::string_view by;
  };
  Choice ChooseFor(const Turn* turn, const PreferredQuestion& question, const Look& look,
                   const AskPlugin& ask_plugin);
  void Note(const PreferredQuestion& question, const Look& look, const Turn* turn,
            const Choice& choice) BERTH_EXCLUDES(mutex_);
  [[nodiscard]] bool WorthWaiting(const Matched& matched) const BERTH_EXCLUDES(mutex_);
  void Missed(const std::vector<std::string>& unknown) BERTH_EXCLUDES(mutex_);
  Look LookForPod(const PreferredQuestion& question) BERTH_EXCLUDES(mutex_);
  std::optional<Look> LookAtOwn(const PreferredQuestion& question) BERTH_EXCLUDES(mutex_);
  std::vector<std::string> Around(const PreferredQuestion& question, const Look& look,
                                  const std::vector<std::string>& wanted, const NodeFacts& facts,
                                  const AskPlugin& ask_plugin);
  [[nodiscard]] bool Served(const OwnPod& pod, const std::string& container) const
      BERTH_EXCLUDES(mutex_);

  const OwnPods& pods_;
  PodResources& kubelet_;
  const GetFacts facts_;
  Log& log_;
  const std::function<void()> on_given_;

  // What was answered last for a resource: the kubelet allocates right after.
  struct Last {
    std::string pod, uid, container;
    std::size_t size = 0;
    std::vector<std::string> answer;
  };
  mutable Mutex mutex_;
  std::set<std::string> missed_ BERTH_GUARDED_BY(mutex_);  // "namespace/name"
  std::map<std::string, Last> last_ BERTH_GUARDED_BY(mutex_);
  std::set<std::pair<std::string, std::string>> served_ BERTH_GUARDED_BY(mutex_);  // UID, container
  std::deque<std::pair<std::string, std::string>> served_order_ BERTH_GUARDED_BY(mutex_);
};

// Answers to the kubelet's question which devices a container should get. Pure functions.

// Whether these are exactly `size` different devices that are available, with all that must be.
bool IsAnswer(const PreferredQuestion& question, const std::vector<std::string>& devices);

// An answer for every question: what must be, then of `wanted` what is available, then what is not
// in `avoid`, then the rest, each by name. Fewer than `size` only where fewer are available.
std::vector<std::string> AnyAnswer(const PreferredQuestion& question,
                                   std::span<const std::string> wanted,
                                   std::span<const std::string> avoid);

// The available devices without those to avoid, but with all that must be.
std::vector<std::string> Without(const PreferredQuestion& question,
                                 std::span<const std::string> avoid);

}  // namespace berth::node
