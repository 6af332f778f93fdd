// SPDX-License-Identifier: Apache-2.0
#include "cel/eval/library.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cel/maps.h"

namespace berth::cel {
namespace {

// Bit n: it takes n arguments.
using Counts = std::uint8_t;
constexpr Counts kZero = 1, kOne = 2, kTwo = 4, kThree = 8, kAny = 0xFF;

// Of a member the target is the first argument.
struct FunctionRow {
  std::string_view name;
  Function function;
  Counts plain;
  Counts member;
};

constexpr std::array kFunctions = std::to_array<FunctionRow>({
    {"_&&_", Function::kAnd, kAny, 0},
    {"_||_", Function::kOr, kAny, 0},
    {"_?_:_", Function::kConditional, kAny, 0},
    {"!_", Function::kNot, kAny, 0},
    {"@not_strictly_false", Function::kNotStrictlyFalse, kAny, 0},
    {"_==_", Function::kEquals, kAny, 0},
    {"_!=_", Function::kNotEquals, kAny, 0},
    {"_<_", Function::kLess, kAny, 0},
    {"_<=_", Function::kLessEquals, kAny, 0},
    {"_>_", Function::kGreater, kAny, 0},
    {"_>=_", Function::kGreaterEquals, kAny, 0},
    {"_+_", Function::kAdd, kAny, 0},
    {"_-_", Function::kSubtract, kAny, 0},
    {"_*_", Function::kMultiply, kAny, 0},
    {"_/_", Function::kDivide, kAny, 0},
    {"_%_", Function::kModulo, kAny, 0},
    {"-_", Function::kNegate, kAny, 0},
    {"@in", Function::kIn, kAny, 0},
    {"_[_]", Function::kIndex, kAny, 0},
    {"_[?_]", Function::kOptionalIndex, kAny, 0},
    {"_?._", Function::kOptionalSelect, kAny, 0},
    {"dyn", Function::kToDyn, kOne, 0},
    {"int", Function::kToInt, kOne, 0},
    {"string", Function::kToString, kOne, 0},
    {"size", Function::kSize, kOne, kOne},
    {"contains", Function::kContains, 0, kTwo},
    {"endsWith", Function::kEndsWith, 0, kTwo},
    {"startsWith", Function::kStartsWith, 0, kTwo},
    {"matches", Function::kMatches, kTwo, kTwo},
    {"lowerAscii", Function::kLowerAscii, 0, kOne},
    {"upperAscii", Function::kUpperAscii, 0, kOne},
    {"split", Function::kSplit, 0, kTwo | kThree},
    {"substring", Function::kSubstring, 0, kTwo | kThree},
    {"includes", Function::kIncludes, 0, kTwo},
    {"optional.of", Function::kOptionalOf, kOne, 0},
    {"optional.ofNonZeroValue", Function::kOptionalOfNonZero, kOne, 0},
    {"optional.none", Function::kOptionalNone, kZero, 0},
    {"value", Function::kValue, 0, kOne},
    {"hasValue", Function::kHasValue, 0, kOne},
    {"or", Function::kOrOptional, 0, kTwo},
    {"orValue", Function::kOrValue, 0, kTwo},
    {"quantity", Function::kQuantity, kOne, 0},
    {"isQuantity", Function::kIsQuantity, kOne, 0},
    {"semver", Function::kSemver, kOne | kTwo, 0},
    {"isSemver", Function::kIsSemver, kOne | kTwo, 0},
    {"isGreaterThan", Function::kIsGreaterThan, 0, kTwo},
    {"isLessThan", Function::kIsLessThan, 0, kTwo},
    {"compareTo", Function::kCompareTo, 0, kTwo},
    {"major", Function::kMajor, 0, kOne},
    {"minor", Function::kMinor, 0, kOne},
    {"patch", Function::kPatch, 0, kOne},
});

const FunctionRow* FindFunction(std::string_view name) {
  const auto* const row = std::ranges::find(kFunctions, name, &FunctionRow::name);
  return row == kFunctions.end() ? nullptr : row;
}

// "a.b" of a.b; "" where it is none.
std::string QualifiedName(const Node& node) {
  if (node.kind == NodeKind::kName) return node.name;
  if (node.kind != NodeKind::kSelect || node.test_only) return "";
  const std::string before = QualifiedName(*node.children[0]);
  return before.empty() ? "" : before + "." + node.name;
}

std::string_view Bare(std::string_view name) {
  if (name.starts_with('.')) name.remove_prefix(1);
  return name;
}

class Resolver {
 public:
  // False: failure() says why.
  bool Resolve(Node& node) {
    if (node.kind == NodeKind::kName) return ResolveName(node);
    if (node.kind == NodeKind::kFold) return ResolveFold(node);
    if (node.kind == NodeKind::kCall && !ResolveFunction(node)) return false;
    if (!std::ranges::all_of(node.children, [this](const NodePtr& c) { return Resolve(*c); })) {
      return false;
    }
    if (node.kind != NodeKind::kSelect && node.function != Function::kOptionalSelect) return true;
    const Node& of = *node.children[0];
    const bool of_device = of.kind == NodeKind::kName && of.slot < 0;
    const std::string_view field =
        node.kind == NodeKind::kSelect ? node.name : node.children[1]->value.text();
    return !of_device || IsDeviceField(field) ||
           Unsupported("the field " + std::string(field) + " of device");
  }

  [[nodiscard]] const Failure& failure() const { return failure_; }
  [[nodiscard]] int slots() const { return slots_; }

 private:
  struct Variable {
    std::string_view name;
    int slot;
  };

  bool Unsupported(std::string why) {
    failure_ = {FailureKind::kUnsupported, std::move(why)};
    return false;
  }

  bool ResolveName(Node& node) {
    const auto variable = std::find_if(variables_.rbegin(), variables_.rend(),
                                       [&node](const Variable& v) { return v.name == node.name; });
    if (variable != variables_.rend()) {
      node.slot = variable->slot;
      return true;
    }
    return Bare(node.name) == "device" || Unsupported("the name " + node.name);
  }

  bool ResolveFunction(Node& call) {
    const FunctionRow* row = nullptr;
    if (call.member) {
      // a.b.f(...) may be a function of the name "a.b.f".
      const std::string before = QualifiedName(*call.children[0]);
      if (!before.empty()) row = FindFunction(before + "." + call.name);
      if (row != nullptr) {
        call.member = false;
        call.children.erase(call.children.begin());
      }
    }
    if (row == nullptr) row = FindFunction(Bare(call.name));
    if (row == nullptr) return Unsupported("the function " + call.name);
    call.function = row->function;
    const Counts counts = call.member ? row->member : row->plain;
    const std::size_t args = call.children.size();
    if (counts == kAny || (args < 8 && (counts >> args & 1) != 0)) return true;
    return Unsupported("the function " + call.name + " of " + std::to_string(args) + " arguments");
  }

  void Declare(Node& node, fold::Variable which) {
    node.slots[which] = slots_++;
    variables_.push_back({node.variables[which], node.slots[which]});
  }

  bool ResolveFold(Node& node) {
    const auto resolve = [&](fold::Part part) { return Resolve(*node.children[part]); };
    if (!resolve(fold::kRange) || !resolve(fold::kInit)) return false;
    const std::size_t outer = variables_.size();
    Declare(node, fold::kAccumulator);
    Declare(node, fold::kItem);
    if (!node.variables[fold::kSecondItem].empty()) Declare(node, fold::kSecondItem);
    if (!resolve(fold::kCondition) || !resolve(fold::kStep)) return false;
    variables_.resize(outer + 1, {});
    const bool good = resolve(fold::kResult);
    variables_.resize(outer, {});
    return good;
  }

  std::vector<Variable> variables_;
  Failure failure_;
  int slots_ = 0;
};

// Of going through texts of that many characters.
std::uint64_t Tenth(double characters) {
  return static_cast<std::uint64_t>(std::ceil(characters * 0.1));
}

double Characters(const Value& value) { return static_cast<double>(SizeOf(value)); }

// Of going through all that the value consists of.
std::uint64_t Traversal(const Value& value, Arena& arena) {
  arena.Spend(1);
  if (arena.steps() > kMostSteps) return 0;
  std::uint64_t cost = 0;
  if (value.is(Kind::kString)) {
    return static_cast<std::uint64_t>(static_cast<double>(value.size) * 0.1);
  }
  if (value.is(Kind::kList)) {
    for (const Value& item : value.list->items) cost += Traversal(item, arena);
    return cost;
  }
  if (!value.is_map()) return 1;
  for (std::size_t i = 0; i < MapSize(value); ++i) {
    const MapEntry entry = MapEntryAt(value, i, arena);
    cost += Traversal(entry.key, arena) + Traversal(entry.value, arena);
  }
  return cost;
}

bool AreTexts(std::span<const Value> args) {
  return args[0].is(Kind::kString) && args[1].is(Kind::kString);
}

std::uint64_t RegexCost(std::span<const Value> args) {
  const auto pattern = static_cast<std::uint64_t>(std::ceil(Characters(args[1]) * 0.25));
  return Tenth(1 + Characters(args[0])) * pattern;
}

std::uint64_t EqualityCost(std::span<const Value> args) {
  return Tenth(std::min(Characters(args[0]), Characters(args[1])));
}

}  // namespace

Expected<int> ResolveNames(Node& root) {
  Resolver resolver;
  if (!resolver.Resolve(root)) return tl::unexpected(resolver.failure());
  return resolver.slots();
}

Value Call(const Node& call, Args args, Arena& arena) {
  const Function function = call.function;
  if (function < Function::kSize) return Operate(call, args, arena);
  if (function < Function::kIncludes) return CallText(call, args, arena);
  if (function == Function::kIncludes) return Includes(args[0], args[1], arena);
  if (function < Function::kQuantity) return CallOptional(function, args, arena);
  return CallQuantity(function, args, arena);
}

std::uint64_t CallCost(const Node& call, std::span<const Value> args, Arena& arena) {
  switch (call.function) {
    case Function::kIncludes:
      return Traversal(args[0], arena);
    case Function::kLowerAscii:
    case Function::kUpperAscii:
    case Function::kSubstring:
    case Function::kQuantity:
    case Function::kIsQuantity:
    case Function::kSemver:
    case Function::kIsSemver:
      return Tenth(Characters(args[0]));
    case Function::kSplit:
      return Tenth(Characters(args[0]) * 2);
    case Function::kMatches:
      return RegexCost(args);
    case Function::kEquals:
      if (args[0].is(Kind::kQuantity) || args[0].is(Kind::kVersion)) return 1;
      return EqualityCost(args);
    case Function::kNotEquals:
      return EqualityCost(args);
    case Function::kLess:
    case Function::kLessEquals:
    case Function::kGreater:
    case Function::kGreaterEquals:
      return AreTexts(args) ? EqualityCost(args) : 1;
    case Function::kAdd:
      if (!AreTexts(args)) return 1;
      return Tenth(Characters(args[0]) + Characters(args[1]));
    case Function::kIn:
      // What an attribute is Kubernetes does not know beforehand.
      return call.children[1]->is_path() || !args[1].is(Kind::kList) ? 1 : SizeOf(args[1]);
    case Function::kStartsWith:
    case Function::kEndsWith:
      return Tenth(Characters(args[1]));
    case Function::kContains:
      return Tenth(Characters(args[0])) * Tenth(Characters(args[1]));
    default:
      return 1;
  }
}

}  // namespace berth::cel
