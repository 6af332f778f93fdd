// SPDX-License-Identifier: Apache-2.0
//
// SoakProcess: one Berth as the soak runs it, everything between the bytes of the API server and
// the books being the real thing, and each of its threads being steps that somebody else takes.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "config/config.h"
#include "scoring/registry.h"
#include "server/extender/extender.h"
#include "server/kube/watch/cluster_sync.h"
#include "server/kube/write/pod_writes.h"
#include "test/soak/soak_api.h"
#include "test/support/dialects.h"

namespace berth::test {

// What a Reflector does, one small step at a time: list, then watch, as in reflector.h.
class SoakMirror {
 public:
  SoakMirror(const SoakApi& api, SoakKind kind, kube::ObjectSink& sink)
      : api_(api), kind_(kind), sink_(sink) {}

  // The next step, whatever it is: ask for a list, have it answered, bring some objects of it, end
  // it, bring some changes. Disturbed changes come twice and out of order.
  void Step(Random& random, bool disturbed);
  // The watch breaks, or the list is lost on its way.
  void Cut();
  // A process that begins to lead has listed nothing yet.
  void Restart();

  [[nodiscard]] bool synced() const { return synced_; }
  [[nodiscard]] bool watches() const { return phase_ == Phase::kWatching; }
  // It watches, and has brought all that there is.
  [[nodiscard]] bool caught_up() const;
  // Names of the pods that were brought with a node since they were last taken from here.
  std::set<std::string>& brought() { return brought_; }
  [[nodiscard]] std::uint64_t lists() const { return lists_; }

 private:
  enum class Phase { kToList, kAsked, kBringing, kWatching };
  void Bring(Random& random);
  void Watch(Random& random, bool disturbed);

  const SoakApi& api_;
  const SoakKind kind_;
  kube::ObjectSink& sink_;
  Phase phase_ = Phase::kToList;
  bool synced_ = false;
  std::int64_t version_ = 0;
  std::vector<std::pair<std::string, std::string>> list_;  // what is still to be brought of it
  std::size_t at_once_ = 1;                                // so many of it in a step
  std::set<std::string> brought_;
  std::uint64_t lists_ = 0;
};

class SoakProcess {
 public:
  SoakProcess(SoakApi& api, int number, const Clock& clock, std::function<void(Duration)> sleep);

  [[nodiscard]] bool ready() const { return nodes.synced() && pods.synced(); }
  [[nodiscard]] bool caught_up() const { return nodes.caught_up() && pods.caught_up(); }

  // Writes are allowed while the process leads.
  bool leads = false;

  ClusterState state;
  WaitingPods waiting;

 private:
  class Fence final : public kube::WriteFence {
   public:
    explicit Fence(const bool& leads) : leads_(leads) {}
    [[nodiscard]] Instant WritableUntil() const override {
      return leads_ ? Instant::max() : Instant::min();
    }

   private:
    const bool& leads_;
  };
  class Silent final : public DecisionSink {
   public:
    void Record(const Decision&) override {}
  };

  const wire::PodRules pod_rules_{test::AllDialects(), DefaultConfig().resources};
  const wire::NodeRules node_rules_{DefaultConfig(), test::AllDialects()};
  SoakClient client_;
  Fence fence_{leads};
  Silent silent_;
  kube::NodeSink node_sink_{kube::PublishTo(state), node_rules_, [](auto, auto, auto&) {}};
  kube::PodSink pod_sink_{state, pod_rules_, [](auto, auto, auto&) {}, {}, &waiting};

 public:
  kube::ApiBinder binder;
  Extender extender;
  SoakMirror nodes, pods;

  [[nodiscard]] const wire::PodRules& rules() const { return pod_rules_; }
  // What kube-scheduler would send.
  [[nodiscard]] PodRequest RequestOf(const SoakPod& pod) const;
};

}  // namespace berth::test
