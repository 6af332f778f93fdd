// SPDX-License-Identifier: Apache-2.0
//
// Evaluator: one evaluation of a plan. Source: github.com/google/cel-go, interpreter.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "cel/device.h"
#include "cel/program.h"
#include "cel/value.h"

namespace berth::cel {

// For one thread, and for one evaluation.
class Evaluator {
 public:
  // References: they outlive it.
  Evaluator(const Plan& plan, const Device& device)
      : plan_(plan), device_(device), slots_(static_cast<std::size_t>(plan.slots)) {}

  // Means nothing where failure() or arena().unsupported() say something.
  Value Run() { return Eval(*plan_.root); }

  [[nodiscard]] std::uint64_t cost() const { return cost_; }
  // Why Kubernetes breaks off the evaluation, whatever || and && would make of an error.
  [[nodiscard]] std::string_view failure() const { return failure_; }
  [[nodiscard]] const Arena& arena() const { return arena_; }

 private:
  // A path from a value on, a.b[c]: what it has led to. An optional part makes the rest of it
  // optional, and its end an optional value.
  struct Path {
    Value value;
    bool optional = false;
    bool absent = false;
    bool conditional = false;  // it begins with c ? a : b, which costs nothing
  };
  struct Slot {
    Value value;
    const Node* init = nullptr;  // not evaluated yet
  };

  Value Eval(const Node& node);
  Value EvalCall(const Node& call);
  Value EvalLogic(const Node& call, bool decides);
  Value EvalOr(const Node& call);
  Value EvalList(const Node& node);
  Value EvalFold(const Node& node);
  Value EvalHas(const Node& select);
  bool FoldItem(const Node& node, const Value& item, const Value& second);

  Path Follow(const Node& node);
  Path FollowConditional(const Node& call);
  void Qualify(Path& path, const Value& key);
  Value KeyOf(const Node& node);
  Value Read(const Node& name);

  void Charge(std::uint64_t cost);
  [[nodiscard]] bool stopped() const { return stopped_; }
  void CheckBounds();

  const Plan& plan_;
  const Device& device_;
  std::vector<Slot> slots_;
  Arena arena_;
  std::uint64_t cost_ = 0;
  std::string_view failure_;
  bool stopped_ = false;
};

}  // namespace berth::cel
