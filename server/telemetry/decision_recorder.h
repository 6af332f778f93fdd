// SPDX-License-Identifier: Apache-2.0
//
// DecisionRecorder: decisions go to the log (binds at info, the rest at debug) and to the metrics.
#pragma once

#include "server/extender/ports/ports.h"
#include "server/telemetry/log.h"
#include "server/telemetry/metrics.h"

namespace berth {

class DecisionRecorder final : public DecisionSink {
 public:
  // References: they outlive the recorder.
  DecisionRecorder(Log& log, Metrics& metrics) : log_(log), metrics_(metrics) {}

  void Record(const Decision& decision) override;
  void Record(const GangNews& news) override;
  void Record(const PodWaits& news) override;
  void Record(const PodsEvicted& news) override;
  void Record(const RoomNews& news) override;

 private:
  Log& log_;
  Metrics& metrics_;
};

// BothSinks: two receivers of every decision.
class BothSinks final : public DecisionSink {
 public:
  // Both outlive the object. second: nullptr where there is none.
  BothSinks(DecisionSink& first, DecisionSink* second) : first_(first), second_(second) {}
  void Record(const Decision& decision) override { Both(decision); }
  void Record(const GangNews& news) override { Both(news); }
  void Record(const PodWaits& news) override { Both(news); }
  void Record(const PodsEvicted& news) override { Both(news); }
  void Record(const RoomNews& news) override { Both(news); }

 private:
  template <class News>
  void Both(const News& news) {
    first_.Record(news);
    if (second_ != nullptr) second_->Record(news);
  }

  DecisionSink& first_;
  DecisionSink* const second_;
};

}  // namespace berth
