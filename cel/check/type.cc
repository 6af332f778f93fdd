// SPDX-License-Identifier: Apache-2.0
#include "cel/check/type.h"

#include <array>

namespace berth::cel {

TypePtr Simple(TypeKind kind) {
  static const auto kAll = [] {
    std::array<TypePtr, static_cast<std::size_t>(TypeKind::kVariable)> all;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = std::make_shared<StaticType>(StaticType{static_cast<TypeKind>(i), {}, -1});
    }
    return all;
  }();
  return kAll[static_cast<std::size_t>(kind)];
}

namespace {

TypePtr With(TypeKind kind, std::vector<TypePtr> parameters) {
  return std::make_shared<StaticType>(StaticType{kind, std::move(parameters), -1});
}

bool IsNullable(TypeKind kind) {
  return kind == TypeKind::kOptional || kind == TypeKind::kQuantity || kind == TypeKind::kVersion ||
         kind == TypeKind::kDevice || kind == TypeKind::kNull;
}

}  // namespace

TypePtr ListOf(TypePtr item) { return With(TypeKind::kList, {std::move(item)}); }
TypePtr MapOf(TypePtr key, TypePtr value) {
  return With(TypeKind::kMap, {std::move(key), std::move(value)});
}
TypePtr OptionalOf(TypePtr content) { return With(TypeKind::kOptional, {std::move(content)}); }
TypePtr TypeOf(TypePtr what) { return With(TypeKind::kType, {std::move(what)}); }
TypePtr VariableType(int variable) {
  return std::make_shared<StaticType>(StaticType{TypeKind::kVariable, {}, variable});
}

bool SameType(const StaticType& a, const StaticType& b) {
  if (&a == &b) return true;
  if (a.kind != b.kind || a.variable != b.variable || a.parameters.size() != b.parameters.size()) {
    return false;
  }
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    if (!SameType(*a.parameters[i], *b.parameters[i])) return false;
  }
  return true;
}

std::string TypeText(const StaticType& type) {
  constexpr std::array<const char*, 16> kNames = {
      "dyn",  "bool", "int",           "uint", "double",   "string", "bytes",  "null",
      "list", "map",  "optional_type", "type", "quantity", "semver", "device", "an unknown type"};
  std::string text = kNames[static_cast<std::size_t>(type.kind)];
  for (std::size_t i = 0; i < type.parameters.size() && text.size() < 200; ++i) {
    text += (i == 0 ? "(" : ", ") + TypeText(*type.parameters[i]);
  }
  return type.parameters.empty() ? text : text + ")";
}

const TypePtr* Unifier::bound(const StaticType& type) const {
  if (type.kind != TypeKind::kVariable) return nullptr;
  const TypePtr& stands_for = bound_[static_cast<std::size_t>(type.variable)];
  return stands_for ? &stands_for : nullptr;
}

void Unifier::Bind(const StaticType& variable, TypePtr type) {
  TypePtr& slot = bound_[static_cast<std::size_t>(variable.variable)];
  undo_.emplace_back(variable.variable, std::exchange(slot, std::move(type)));
}

bool Unifier::Assign(const std::vector<TypePtr>& from, const std::vector<TypePtr>& to) {
  if (from.size() != to.size()) return false;
  undo_.clear();
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (AssignOne(from[i], to[i])) continue;
    for (; !undo_.empty(); undo_.pop_back()) {
      bound_[static_cast<std::size_t>(undo_.back().first)] = std::move(undo_.back().second);
    }
    return false;
  }
  return true;
}

bool Unifier::AssignOne(const TypePtr& from, const TypePtr& to) {
  if (++steps_ > kMostSteps) return true;
  if (to->kind == TypeKind::kVariable) {
    const Substitution substitution = Substitute(from, to);
    if (substitution != Substitution::kNo) return substitution == Substitution::kYes;
  }
  if (from->kind == TypeKind::kVariable) return Substitute(to, from) == Substitution::kYes;
  if (from->kind == TypeKind::kDyn || to->kind == TypeKind::kDyn) return true;
  if (from->kind == TypeKind::kNull) return IsNullable(to->kind);
  if (to->kind == TypeKind::kNull) return IsNullable(from->kind);
  if (from->kind != to->kind) return false;
  if (from->kind == TypeKind::kType) return true;
  for (std::size_t i = 0; i < from->parameters.size(); ++i) {
    if (!AssignOne(from->parameters[i], to->parameters[i])) return false;
  }
  return true;
}

Unifier::Substitution Unifier::Substitute(const TypePtr& type, const TypePtr& variable) {
  if (SameType(*type, *variable)) return Substitution::kYes;
  if (const TypePtr* const now = bound(*variable)) {
    const TypePtr stands_for = *now;
    if (SameType(*type, *stands_for)) return Substitution::kYes;
    if (!AssignOne(type, stands_for)) return Substitution::kNoOther;
    TypePtr general = MostGeneral(type, stands_for);
    if (!Occurs(*variable, *general)) Bind(*variable, std::move(general));
    return Substitution::kYes;
  }
  if (Occurs(*variable, *type)) return Substitution::kNo;
  Bind(*variable, type);
  return Substitution::kYes;
}

bool Unifier::SaysLess(const StaticType& a, const StaticType& b) {
  if (++steps_ > kMostSteps) return true;
  if (a.kind == TypeKind::kDyn || a.kind == TypeKind::kVariable) return true;
  if (b.kind == TypeKind::kDyn || b.kind == TypeKind::kVariable || a.kind != b.kind) return false;
  if (a.kind == TypeKind::kType) return true;
  for (std::size_t i = 0; i < a.parameters.size(); ++i) {
    if (!SaysLess(*a.parameters[i], *b.parameters[i])) return false;
  }
  return true;
}

TypePtr Unifier::MostGeneral(const TypePtr& a, const TypePtr& b) {
  return SaysLess(*a, *b) ? a : b;
}

bool Unifier::Occurs(const StaticType& variable, const StaticType& in) {
  if (++steps_ > kMostSteps || SameType(variable, in)) return true;
  if (const TypePtr* const stands_for = bound(in)) return Occurs(variable, **stands_for);
  for (const TypePtr& parameter : in.parameters) {
    if (Occurs(variable, *parameter)) return true;
  }
  return false;
}

TypePtr Unifier::Resolve(const TypePtr& type, bool unbound_is_dyn) {
  if (++steps_ > kMostSteps) return Simple(TypeKind::kDyn);
  if (const TypePtr* const stands_for = bound(*type)) {
    return Resolve(TypePtr(*stands_for), unbound_is_dyn);
  }
  if (type->kind == TypeKind::kVariable && unbound_is_dyn) return Simple(TypeKind::kDyn);
  if (type->parameters.empty()) return type;
  std::vector<TypePtr> parameters;
  parameters.reserve(type->parameters.size());
  for (const TypePtr& parameter : type->parameters) {
    parameters.push_back(Resolve(parameter, unbound_is_dyn));
  }
  return With(type->kind, std::move(parameters));
}

}  // namespace berth::cel
