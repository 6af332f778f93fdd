// SPDX-License-Identifier: Apache-2.0
//
// The types of CEL as its checker sees them, and how they are made to agree. Source:
// github.com/google/cel-go, checker/types.go.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace berth::cel {

enum class TypeKind : std::uint8_t {
  kDyn,
  kBool,
  kInt,
  kUint,
  kDouble,
  kString,
  kBytes,  // that no value has: the first that an unknown type becomes where bytes are taken
  kNull,
  kList,
  kMap,
  kOptional,
  kType,
  kQuantity,
  kVersion,
  kDevice,
  kVariable,  // stands for another type, yet unknown
};

struct StaticType;
using TypePtr = std::shared_ptr<const StaticType>;

struct StaticType {
  TypeKind kind = TypeKind::kDyn;
  std::vector<TypePtr> parameters;
  int variable = -1;
};

TypePtr Simple(TypeKind kind);
TypePtr ListOf(TypePtr item);
TypePtr MapOf(TypePtr key, TypePtr value);
TypePtr OptionalOf(TypePtr content);
TypePtr TypeOf(TypePtr what);
TypePtr VariableType(int variable);

bool SameType(const StaticType& a, const StaticType& b);

// "list(int)"
std::string TypeText(const StaticType& type);

// What the variables of one expression stand for. Nothing here takes more than kMostSteps in all;
// then everything agrees and exhausted() says that it means nothing.
class Unifier {
 public:
  static constexpr std::size_t kMostSteps = 2'000'000;

  TypePtr NewVariable() {
    bound_.emplace_back();
    return VariableType(static_cast<int>(bound_.size()) - 1);
  }

  // Whether a value of type `from` can be where `to` is wanted, for all of the pairs; if so, the
  // variables in them come to stand for what that takes, else nothing changes.
  bool Assign(const std::vector<TypePtr>& from, const std::vector<TypePtr>& to);
  bool Assign(const TypePtr& from, const TypePtr& to) {
    return Assign(std::vector{from}, std::vector{to});
  }

  // The type with its variables replaced; those that stand for nothing stay, or are dyn.
  TypePtr Resolve(const TypePtr& type, bool unbound_is_dyn = false);

  // Of two types that agree, the one that says less.
  TypePtr MostGeneral(const TypePtr& a, const TypePtr& b);

  [[nodiscard]] bool exhausted() const { return steps_ > kMostSteps; }

 private:
  bool AssignOne(const TypePtr& from, const TypePtr& to);
  enum class Substitution { kYes, kNoOther, kNo };  // kNoOther: it stands for another type already
  Substitution Substitute(const TypePtr& type, const TypePtr& variable);
  bool SaysLess(const StaticType& a, const StaticType& b);
  bool Occurs(const StaticType& variable, const StaticType& in);
  [[nodiscard]] const TypePtr* bound(const StaticType& type) const;
  void Bind(const StaticType& variable, TypePtr type);

  std::vector<TypePtr> bound_;
  std::vector<std::pair<int, TypePtr>> undo_;
  std::size_t steps_ = 0;
};

}  // namespace berth::cel
