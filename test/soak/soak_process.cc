// SPDX-License-Identifier: Apache-2.0
#include "test/soak/soak_process.h"

#include <algorithm>
#include <chrono>

#include "config/load.h"

namespace berth::test {
namespace {

constexpr std::size_t kMostAtOnce = 4;
// A long list is not brought in more steps than that.
constexpr std::size_t kMostSteps = 50;

bool HasNode(const std::string& pod) { return pod.find(R"("nodeName")") != pod.npos; }

}  // namespace

// --- SoakMirror

void SoakMirror::Step(Random& random, bool disturbed) {
  switch (phase_) {
    case Phase::kToList:
      sink_.ListBegins();
      phase_ = Phase::kAsked;
      return;
    case Phase::kAsked:
      list_ = api_.List(kind_);
      at_once_ = std::max(kMostAtOnce, list_.size() / kMostSteps);
      version_ = api_.version();
      phase_ = Phase::kBringing;
      return;
    case Phase::kBringing:
      return Bring(random);
    case Phase::kWatching:
      return Watch(random, disturbed);
  }
}

void SoakMirror::Bring(Random& random) {
  for (std::size_t i = 0; i < at_once_ && !list_.empty(); ++i) {
    auto& [name, object] = list_.back();
    if (HasNode(object)) brought_.insert(name);
    sink_.Listed(PaddedText(std::move(object)));
    list_.pop_back();
  }
  if (!list_.empty() || random.Below(3) == 0) return;
  sink_.ListEnds();
  synced_ = true;
  ++lists_;
  phase_ = Phase::kWatching;
}

void SoakMirror::Watch(Random& random, bool disturbed) {
  if (version_ < api_.oldest()) {  // 410
    phase_ = Phase::kToList;
    return;
  }
  std::vector<SoakEvent> events = api_.Since(kind_, version_, 1 + random.Below(kMostAtOnce));
  if (events.empty()) return;
  version_ = events.back().version;
  if (disturbed) {
    if (random.Below(8) == 0) events.push_back(events[random.Below(events.size())]);
    if (random.Below(8) == 0) std::swap(events.back(), events[random.Below(events.size())]);
  }
  for (SoakEvent& event : events) {
    const bool has_node = HasNode(event.object);
    const PaddedText object(std::move(event.object));
    if (event.change == SoakChange::kChanged) {
      sink_.Changed(object);
      if (has_node) brought_.insert(event.name);
    } else {
      sink_.Deleted(object);
    }
  }
}

void SoakMirror::Cut() {
  if (phase_ != Phase::kWatching) phase_ = Phase::kToList;
}

void SoakMirror::Restart() {
  phase_ = Phase::kToList;
  synced_ = false;
}

bool SoakMirror::caught_up() const {
  return phase_ == Phase::kWatching && version_ >= api_.oldest() &&
         api_.Since(kind_, version_, 1).empty();
}

// --- SoakProcess

SoakProcess::SoakProcess(SoakApi& api, int number, const Clock& clock,
                         std::function<void(Duration)> sleep)
    : client_(api, number),
      binder(
          {.write = {.client = client_, .clock = clock, .fence = fence_, .sleep = std::move(sleep)},
           .rules = pod_rules_}),
      extender(
          {.state = state, .binder = binder, .sink = silent_, .clock = clock, .waiting = &waiting},
          {std::make_shared<Engine>(*BuildProfile(*FindBuiltinProfile("best-fit"), TypicalMix())),
           std::chrono::seconds(30)}),
      nodes(api, SoakKind::kNode, node_sink_),
      pods(api, SoakKind::kPod, pod_sink_) {}

PodRequest SoakProcess::RequestOf(const SoakPod& pod) const {
  return wire::DecodeObservedPod(PaddedText(TextOf(pod)), pod_rules_)->pod;
}

}  // namespace berth::test
