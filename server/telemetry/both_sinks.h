// SPDX-License-Identifier: Apache-2.0
//
// BothSinks: two receivers of every decision.
#pragma once

#include "server/extender/ports.h"

namespace berth {

class BothSinks final : public DecisionSink {
 public:
  // Both outlive the object. second: nullptr where there is none.
  BothSinks(DecisionSink& first, DecisionSink* second) : first_(first), second_(second) {}
  void Record(const Decision& decision) override {
    first_.Record(decision);
    if (second_ != nullptr) second_->Record(decision);
  }

  void Record(const GangNews& news) override {
    first_.Record(news);
    if (second_ != nullptr) second_->Record(news);
  }

  void Record(const PodWaits& news) override {
    first_.Record(news);
    if (second_ != nullptr) second_->Record(news);
  }

  void Record(const PodsEvicted& news) override {
    first_.Record(news);
    if (second_ != nullptr) second_->Record(news);
  }

  void Record(const RoomNews& news) override {
    first_.Record(news);
    if (second_ != nullptr) second_->Record(news);
  }

 private:
  DecisionSink& first_;
  DecisionSink* const second_;
};

}  // namespace berth
