// SPDX-License-Identifier: Apache-2.0
#include "cel/eval/evaluator.h"

#include <array>
#include <optional>
#include <utility>

#include "cel/eval/library.h"
#include "cel/maps.h"

namespace berth::cel {
namespace {

// Kubernetes' account of costs ends the evaluation where a version is looked up in a set.
bool BreaksOff(const Node& call, Args args) { return call.in_set && args[0].is(Kind::kVersion); }

bool IsKey(const Value& value) {
  return value.is(Kind::kInt) || value.is(Kind::kBool) || value.is(Kind::kString);
}

}  // namespace

void Evaluator::Charge(std::uint64_t cost) {
  cost_ += cost;
  if (cost_ <= kMostCost || stopped_) return;
  stopped_ = true;
  failure_ = "it costs more than Kubernetes lets an expression cost";
}

void Evaluator::CheckBounds() {
  if (arena_.bytes() > kMostBytes || arena_.steps() > kMostSteps) {
    arena_.GiveUp("so much work for one device");
  }
  if (!arena_.unsupported().empty()) stopped_ = true;
}

Value Evaluator::Eval(const Node& node) {
  if (stopped()) return Value::Null();
  switch (node.kind) {
    case NodeKind::kConst:
      return node.value;
    case NodeKind::kSelect:
      if (node.test_only) return EvalHas(node);
      break;
    case NodeKind::kCall:
      if (!node.is_path()) return EvalCall(node);
      break;
    case NodeKind::kName:
      break;
    case NodeKind::kList:
      return EvalList(node);
    case NodeKind::kFold:
      return EvalFold(node);
  }
  const Path path = Follow(node);
  if (!path.conditional) Charge(1);
  if (path.value.is(Kind::kError)) return path.value;
  if (path.absent) return Value::Optional(nullptr);
  return path.optional ? Value::Optional(&arena_.Keep(path.value)) : path.value;
}

Value Evaluator::Read(const Node& name) {
  if (name.slot < 0) return Value::Of(device_);
  Slot& slot = slots_[static_cast<std::size_t>(name.slot)];
  if (const Node* const init = std::exchange(slot.init, nullptr)) {
    Value value = Eval(*init);
    // What a fold begins with empty grows in place; a constant is shared, and does not.
    if (value.is(Kind::kList) && value.list->items.empty()) {
      value = Value::Of(arena_.NewList({}));
      value.list->grows = true;
    }
    slots_[static_cast<std::size_t>(name.slot)].value = value;
  }
  return slots_[static_cast<std::size_t>(name.slot)].value;
}

// Where the path begins, and on to the end of `node`.
Evaluator::Path Evaluator::Follow(const Node& node) {
  if (stopped()) return {};
  if (node.kind == NodeKind::kCall && node.function == Function::kConditional) {
    return FollowConditional(node);
  }
  if (!node.is_path() || node.kind == NodeKind::kName) {
    Path path{node.is_path() ? Read(node) : Eval(node)};
    if (path.value.is(Kind::kOptional)) {
      path.optional = true;
      path.absent = path.value.content == nullptr;
      if (!path.absent) path.value = *path.value.content;
    }
    return path;
  }
  Path path = Follow(*node.children[0]);
  if (path.value.is(Kind::kError) || path.absent) return path;
  const bool select = node.kind == NodeKind::kSelect;
  const Value key = select ? Value::Text(node.name) : KeyOf(*node.children[1]);
  path.optional = path.optional || node.function == Function::kOptionalIndex ||
                  node.function == Function::kOptionalSelect;
  if (key.is(Kind::kError)) {
    path.value = key;
    if (!path.optional) Charge(1);
    return path;
  }
  Qualify(path, key);
  return path;
}

Evaluator::Path Evaluator::FollowConditional(const Node& call) {
  const Value condition = Eval(*call.children[0]);
  Path path;
  if (condition.is(Kind::kBool)) {
    path = Follow(*call.children[condition.boolean ? 1 : 2]);
  } else {
    path.value = condition.is(Kind::kError) ? condition : NoOverload(arena_);
  }
  path.conditional = true;
  return path;
}

Value Evaluator::KeyOf(const Node& node) {
  if (!node.is_path()) return Eval(node);
  const Path path = Follow(node);
  if (path.value.is(Kind::kError)) return path.value;
  return path.absent || path.optional ? NoOverload(arena_) : path.value;
}

void Evaluator::Qualify(Path& path, const Value& key) {
  const Value from = path.value;
  if (!IsKey(key)) {
    path.value = NoOverload(arena_);
    Charge(1);
    return;
  }
  Found found;
  if (from.is_map()) {
    found = FindInMap(from, key, arena_);
  } else if (from.is(Kind::kList)) {
    if (!key.is(Kind::kInt)) {
      path.value = arena_.Error("a list has no such index");
      if (!path.optional) Charge(1);
      return;
    }
    found.found = key.integer >= 0 && key.integer < std::ssize(from.list->items);
    if (found.found) found.value = from.list->items[static_cast<std::size_t>(key.integer)];
  }
  if (found.found || !path.optional) Charge(1);
  if (found.found) {
    path.value = found.value;
  } else if (path.optional) {
    path.absent = true;
  } else {
    path.value = arena_.Error("no such key", key.is(Kind::kString) ? key.text() : "");
  }
}

Value Evaluator::EvalHas(const Node& select) {
  Path path = Follow(*select.children[0]);
  if (!path.value.is(Kind::kError) && !path.absent) {
    const bool was_optional = std::exchange(path.optional, true);
    const std::uint64_t before = cost_;
    Qualify(path, Value::Text(select.name));
    if (!was_optional && cost_ == before) Charge(1);
  }
  // Kubernetes takes off what a name at the beginning has cost, also where there was none: less
  // than nothing is more than anything to it.
  if (path.conditional && cost_-- == 0) Charge(0);
  return path.value.is(Kind::kError) ? path.value : Value::Bool(!path.absent);
}

// && (a false decides) and || (a true does): an error counts only where nothing decides.
Value Evaluator::EvalLogic(const Node& call, bool decides) {
  std::optional<Value> error;
  for (const NodePtr& term : call.children) {
    const Value value = Eval(*term);
    if (stopped()) return value;
    if (value.is(Kind::kBool)) {
      if (value.boolean == decides) return value;
    } else if (!error) {
      error = value.is(Kind::kError) ? value : NoOverload(arena_);
    }
  }
  return error.value_or(Value::Bool(!decides));
}

// or() and orValue().
Value Evaluator::EvalOr(const Node& call) {
  const Value left = Eval(*call.children[0]);
  if (left.is(Kind::kError)) return left;
  if (!left.is(Kind::kOptional)) return NoOverload(arena_);
  if (left.content == nullptr) return Eval(*call.children[1]);
  return call.function == Function::kOrValue ? *left.content : left;
}

Value Evaluator::EvalCall(const Node& call) {
  switch (call.function) {
    case Function::kAnd:
      return EvalLogic(call, false);
    case Function::kOr:
      return EvalLogic(call, true);
    case Function::kOrOptional:
    case Function::kOrValue:
      return EvalOr(call);
    default:
      break;
  }
  std::array<Value, 4> values;
  const std::size_t count = call.children.size();
  const Value* error = nullptr;
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = Eval(*call.children[i]);
    if (stopped()) return Value::Null();
    if (!values[i].is(Kind::kError)) continue;
    const bool ends = count > 2 || call.pattern;
    if (ends && i + 1 < count) return values[i];
    if (error == nullptr) error = &values[i];
  }
  const Args args(values.data(), count);
  Value result = Value::Null();
  if (call.function == Function::kNotStrictlyFalse) {
    result = args[0].is(Kind::kBool) ? args[0] : Value::Bool(true);
  } else {
    result = error != nullptr ? *error : Call(call, args, arena_);
  }
  if (BreaksOff(call, args)) {
    stopped_ = true;
    failure_ = "a list cannot be sorted, flattened or searched";
    return Value::Null();
  }
  if (!call.in_set) Charge(CallCost(call, args, arena_));
  CheckBounds();
  return result;
}

Value Evaluator::EvalList(const Node& node) {
  Charge(kListCost);
  std::vector<Value> items;
  items.reserve(node.children.size());
  for (std::size_t i = 0; i < node.children.size(); ++i) {
    Value item = Eval(*node.children[i]);
    if (stopped() || item.is(Kind::kError)) return item;
    if (node.optional[i]) {
      if (!item.is(Kind::kOptional)) return NoOverload(arena_);
      if (item.content == nullptr) continue;
      item = *item.content;
    }
    items.push_back(item);
  }
  const Value list = Value::Of(arena_.NewList(std::move(items)));
  CheckBounds();
  return list;
}

// False: the fold is over.
bool Evaluator::FoldItem(const Node& node, const Value& item, const Value& second) {
  slots_[static_cast<std::size_t>(node.slots[fold::kItem])].value = item;
  if (node.slots[fold::kSecondItem] >= 0) {
    slots_[static_cast<std::size_t>(node.slots[fold::kSecondItem])].value = second;
  }
  const Value condition = Eval(*node.children[fold::kCondition]);
  if (stopped() || condition.is_false()) return false;
  const Value next = Eval(*node.children[fold::kStep]);
  Slot& accumulator = slots_[static_cast<std::size_t>(node.slots[fold::kAccumulator])];
  accumulator.value = next;
  accumulator.init = nullptr;
  arena_.Spend(10);
  CheckBounds();
  return !stopped();
}

Value Evaluator::EvalFold(const Node& node) {
  const Value range = Eval(*node.children[fold::kRange]);
  if (stopped() || range.is(Kind::kError)) return range;
  if (!range.is(Kind::kList) && !range.is_map()) return NoOverload(arena_);
  slots_[static_cast<std::size_t>(node.slots[fold::kAccumulator])].init =
      node.children[fold::kInit].get();
  const bool two = node.slots[fold::kSecondItem] >= 0;
  if (range.is(Kind::kList)) {
    // By index: a list that grows may do so meanwhile, and Kubernetes then stays with its size.
    const std::size_t size = range.list->items.size();
    for (std::size_t i = 0; i < size; ++i) {
      const Value item = range.list->items[i];
      const Value index = Value::Int(static_cast<std::int64_t>(i));
      if (!FoldItem(node, two ? index : item, item)) break;
    }
  } else {
    for (std::size_t i = 0; i < MapSize(range); ++i) {
      const MapEntry entry = MapEntryAt(range, i, arena_);
      if (!FoldItem(node, entry.key, entry.value)) break;
    }
  }
  if (stopped()) return Value::Null();
  Value result = Eval(*node.children[fold::kResult]);
  // Constants, which threads share, never grow.
  if (result.is(Kind::kList) && result.list->grows) result.list->grows = false;
  return result;
}

}  // namespace berth::cel
