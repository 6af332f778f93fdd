// SPDX-License-Identifier: Apache-2.0
#include "cel/check/checker.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "cel/check/functions.h"
#include "cel/check/type.h"

namespace berth::cel {
namespace {

TypePtr DeviceField(std::string_view field) {
  const auto by_domain = [](TypePtr value) {
    const TypePtr text = Simple(TypeKind::kString);
    return MapOf(text, MapOf(text, std::move(value)));
  };
  if (field == "driver") return Simple(TypeKind::kString);
  if (field == "allowMultipleAllocations") return Simple(TypeKind::kBool);
  if (field == "attributes") return by_domain(Simple(TypeKind::kDyn));
  if (field == "capacity") return by_domain(Simple(TypeKind::kQuantity));
  return nullptr;
}

// The names of types are constants.
constexpr std::array<std::string_view, 11> kTypeNames = {
    "bool",   "bytes",     "double", "int",  "list",         "map",
    "string", "null_type", "type",   "uint", "optional_type"};

// "a.b" of a.b; "" where it is none.
std::string QualifiedName(const Node& node) {
  if (node.kind == NodeKind::kName) return node.name;
  if (node.kind != NodeKind::kSelect || node.test_only) return "";
  const std::string before = QualifiedName(*node.children[0]);
  return before.empty() ? "" : before + "." + node.name;
}

TypePtr ConstType(const Value& value) {
  switch (value.kind) {
    case Kind::kBool:
      return Simple(TypeKind::kBool);
    case Kind::kInt:
      return Simple(TypeKind::kInt);
    case Kind::kUint:
      return Simple(TypeKind::kUint);
    case Kind::kDouble:
      return Simple(TypeKind::kDouble);
    case Kind::kString:
      return Simple(TypeKind::kString);
    default:
      return Simple(TypeKind::kNull);
  }
}

class Checker {
 public:
  // nullptr: failure() says why.
  TypePtr CheckNode(Node& node) {
    switch (node.kind) {
      case NodeKind::kConst:
        return ConstType(node.value);
      case NodeKind::kName:
        return CheckName(node);
      case NodeKind::kSelect:
        return CheckSelect(node);
      case NodeKind::kCall:
        return CheckCall(node);
      case NodeKind::kList:
        return CheckList(node);
      case NodeKind::kMap:
        return CheckMap(node);
      case NodeKind::kFold:
        break;
    }
    return CheckFold(node);
  }

  // The result, and that the items of each list and map have one type: dyn beside another is
  // refused too.
  bool CheckWhole(Node& root) {
    const TypePtr type = CheckNode(root);
    if (!type) return false;
    const TypePtr result = types_.Resolve(type, true);
    if (result->kind != TypeKind::kBool && result->kind != TypeKind::kDyn) {
      return Refuse("the result is " + TypeText(*result) + ", want bool") != nullptr;
    }
    for (std::vector<TypePtr>& items : same_) {
      for (TypePtr& item : items) item = types_.Resolve(item, true);
      for (const TypePtr& item : items) {
        if (!SameType(*items[0], *item)) return Disagree(items[0], item) != nullptr;
      }
    }
    if (types_.exhausted()) return Unsupported("types that are too involved") != nullptr;
    return true;
  }

  [[nodiscard]] const Failure& failure() const { return failure_; }
  [[nodiscard]] int slots() const { return slots_; }

 private:
  struct Variable {
    std::string_view name;
    TypePtr type;
    int slot;
  };

  TypePtr Refuse(std::string why) {
    failure_ = {FailureKind::kRefused, std::move(why)};
    return nullptr;
  }
  TypePtr Unsupported(std::string why) {
    failure_ = {FailureKind::kUnsupported, std::move(why)};
    return nullptr;
  }
  TypePtr Disagree(const TypePtr& a, const TypePtr& b) {
    return Refuse(TypeText(*types_.Resolve(a)) + " beside " + TypeText(*types_.Resolve(b)));
  }

  // Where its types agree, the type that says less.
  TypePtr Join(const TypePtr& before, const TypePtr& type) {
    if (!before) return type;
    if (!types_.Assign(before, type)) return Disagree(before, type);
    return types_.MostGeneral(before, type);
  }

  TypePtr CheckName(Node& node) {
    std::string_view name = node.name;
    const auto variable = std::find_if(variables_.rbegin(), variables_.rend(),
                                       [name](const Variable& v) { return v.name == name; });
    if (variable != variables_.rend()) {
      node.slot = variable->slot;
      return variable->type;
    }
    if (name.starts_with('.')) name.remove_prefix(1);
    if (name == "device") return Simple(TypeKind::kDevice);
    const auto* const type = std::ranges::find(kTypeNames, name);
    if (type == kTypeNames.end()) return Unsupported("the name " + std::string(name));
    node.kind = NodeKind::kConst;
    node.value = Value::Type(*type);
    return TypeOf(Simple(TypeKind::kDyn));
  }

  TypePtr FieldType(Node& operand, std::string_view field, bool optional) {
    const TypePtr operand_type = CheckNode(operand);
    if (!operand_type) return nullptr;
    TypePtr target = types_.Resolve(operand_type);
    const bool is_optional = target->kind == TypeKind::kOptional;
    if (is_optional) target = target->parameters[0];
    TypePtr result = Simple(TypeKind::kDyn);
    if (target->kind == TypeKind::kMap) {
      result = target->parameters[1];
    } else if (target->kind == TypeKind::kDevice) {
      result = DeviceField(field);
      if (!result) return Refuse("device has no field " + std::string(field));
    } else if (target->kind == TypeKind::kVariable) {
      types_.Assign(Simple(TypeKind::kDyn), target);
    } else if (target->kind != TypeKind::kDyn) {
      return Refuse(TypeText(*target) + " has no field " + std::string(field));
    }
    return optional || is_optional ? OptionalOf(result) : result;
  }

  TypePtr CheckSelect(Node& node) {
    TypePtr type = FieldType(*node.children[0], node.name, false);
    if (!type) return nullptr;
    return node.test_only ? Simple(TypeKind::kBool) : types_.Resolve(type);
  }

  TypePtr CheckCall(Node& node) {
    if (node.name == "_?._") {
      node.function = Function::kOptionalSelect;
      TypePtr type = FieldType(*node.children[0], node.children[1]->value.text(), true);
      return type ? types_.Resolve(type) : nullptr;
    }
    const FunctionEntry* entry = nullptr;
    if (node.member) {
      // a.b.f(...) may be a function of the name "a.b.f".
      const std::string before = QualifiedName(*node.children[0]);
      if (!before.empty()) entry = FindFunction(before + "." + node.name);
      if (entry != nullptr) {
        node.member = false;
        node.children.erase(node.children.begin());
      }
    }
    std::vector<TypePtr> args(node.children.size());
    for (std::size_t i = node.member ? 1 : 0; i < args.size(); ++i) {
      args[i] = CheckNode(*node.children[i]);
      if (!args[i]) return nullptr;
    }
    if (node.member) {
      args[0] = CheckNode(*node.children[0]);
      if (!args[0]) return nullptr;
    }
    if (entry == nullptr) {
      std::string_view name = node.name;
      if (name.starts_with('.')) name.remove_prefix(1);
      entry = FindFunction(name);
    }
    if (entry == nullptr) return Unsupported("the function " + node.name);
    return ResolveOverload(node, *entry, args);
  }

  TypePtr CheckLogic(const std::vector<TypePtr>& args) {
    const TypePtr boolean = Simple(TypeKind::kBool);
    for (const TypePtr& arg : args) {
      if (!types_.Assign(arg, boolean)) return Disagree(boolean, arg);
    }
    return boolean;
  }

  // Fresh variables in place of those of the overload.
  TypePtr Instance(const TypePtr& type, const std::vector<TypePtr>& variables) {
    if (type->kind == TypeKind::kVariable) {
      return variables[static_cast<std::size_t>(type->variable)];
    }
    if (type->parameters.empty()) return type;
    auto instance = std::make_shared<StaticType>(*type);
    for (TypePtr& parameter : instance->parameters) parameter = Instance(parameter, variables);
    return instance;
  }

  TypePtr ResolveOverload(Node& node, const FunctionEntry& entry,
                          const std::vector<TypePtr>& args) {
    node.function = entry.function;
    if (entry.function == Function::kAnd || entry.function == Function::kOr) {
      return CheckLogic(args);
    }
    TypePtr result;
    bool only = true;
    for (const Overload& overload : entry.overloads) {
      if (overload.member != node.member) continue;
      std::vector<TypePtr> variables;
      for (int i = 0; i < overload.variables; ++i) variables.push_back(types_.NewVariable());
      std::vector<TypePtr> parameters;
      for (const TypePtr& type : overload.parameters) {
        parameters.push_back(Instance(type, variables));
      }
      if (!types_.Assign(args, parameters)) continue;
      only = !result;
      node.overload = only ? &overload : nullptr;
      const TypePtr its_result = types_.Resolve(Instance(overload.result, variables));
      if (!result) {
        result = its_result;
      } else if (result->kind != TypeKind::kDyn && !SameType(*its_result, *result)) {
        result = Simple(TypeKind::kDyn);
      }
    }
    return result ? result : NoOverload(node, args);
  }

  TypePtr NoOverload(const Node& node, const std::vector<TypePtr>& args) {
    const auto text_of = [&](const TypePtr& arg) { return TypeText(*types_.Resolve(arg, true)); };
    return Refuse(node.name + " does not take (" + berth::Join(args, ", ", text_of) + ")");
  }

  // The type of an item; of what it contains, where it may be left out.
  TypePtr ItemType(Node& item, bool optional) {
    TypePtr type = CheckNode(item);
    if (!type || !optional) return type;
    if (type->kind == TypeKind::kOptional) return type->parameters[0];
    if (type->kind == TypeKind::kDyn) {
      return Unsupported("an item that may be left out, of unknown type");
    }
    return Refuse("want an optional value behind ?, got " + TypeText(*types_.Resolve(type)));
  }

  TypePtr CheckList(Node& node) {
    TypePtr joined;
    std::vector<TypePtr> types;
    for (std::size_t i = 0; i < node.children.size(); ++i) {
      const TypePtr type = ItemType(*node.children[i], node.optional[i]);
      if (!type) return nullptr;
      types.push_back(type);
      joined = Join(joined, type);
      if (!joined) return nullptr;
    }
    if (types.size() > 1) same_.push_back(std::move(types));
    return ListOf(joined ? joined : types_.NewVariable());
  }

  TypePtr CheckMap(Node& node) {
    TypePtr keys, values;
    std::vector<TypePtr> key_types, value_types;
    for (std::size_t i = 0; i < node.children.size(); i += 2) {
      const TypePtr key = CheckNode(*node.children[i]);
      if (!key || !(keys = Join(keys, key))) return nullptr;
      const TypePtr value = ItemType(*node.children[i + 1], node.optional[i / 2]);
      if (!value || !(values = Join(values, value))) return nullptr;
      key_types.push_back(key);
      value_types.push_back(value);
    }
    if (!keys) return MapOf(types_.NewVariable(), types_.NewVariable());
    same_.push_back(std::move(key_types));
    same_.push_back(std::move(value_types));
    return MapOf(keys, values);
  }

  void Declare(Node& node, fold::Variable which, TypePtr type) {
    node.slots[which] = slots_++;
    variables_.push_back({node.variables[which], std::move(type), node.slots[which]});
  }

  // What the variables of a fold over that are; false: it is nothing to fold over.
  bool ItemTypes(const TypePtr& range, bool two, TypePtr& item, TypePtr& second) {
    item = second = Simple(TypeKind::kDyn);
    switch (range->kind) {
      case TypeKind::kList:
        item = two ? Simple(TypeKind::kInt) : range->parameters[0];
        second = range->parameters[0];
        return true;
      case TypeKind::kMap:
        item = range->parameters[0];
        second = range->parameters[1];
        return true;
      case TypeKind::kVariable:
        types_.Assign(Simple(TypeKind::kDyn), range);
        return true;
      default:
        return range->kind == TypeKind::kDyn;
    }
  }

  bool MustBe(const TypePtr& want, const TypePtr& type) {
    if (!type) return false;
    if (types_.Assign(want, type)) return true;
    Disagree(want, type);
    return false;
  }

  TypePtr CheckFold(Node& node) {
    const TypePtr range = CheckNode(*node.children[fold::kRange]);
    if (!range) return nullptr;
    const TypePtr init = CheckNode(*node.children[fold::kInit]);
    if (!init) return nullptr;
    const TypePtr over = types_.Resolve(range);
    const std::size_t outer = variables_.size();
    Declare(node, fold::kAccumulator, init);
    const bool two = !node.variables[fold::kSecondItem].empty();
    TypePtr item, second;
    if (!ItemTypes(over, two, item, second)) return Refuse(TypeText(*over) + " has no items");
    Declare(node, fold::kItem, item);
    if (two) Declare(node, fold::kSecondItem, second);
    const TypePtr condition = CheckNode(*node.children[fold::kCondition]);
    if (!MustBe(Simple(TypeKind::kBool), condition)) return nullptr;
    if (!MustBe(init, CheckNode(*node.children[fold::kStep]))) return nullptr;
    variables_.resize(outer + 1, {});
    const TypePtr result = CheckNode(*node.children[fold::kResult]);
    variables_.resize(outer, {});
    return result ? types_.Resolve(result) : nullptr;
  }

  Unifier types_;
  std::vector<Variable> variables_;
  std::vector<std::vector<TypePtr>> same_;  // items of one list or map
  Failure failure_;
  int slots_ = 0;
};

}  // namespace

Expected<int> Check(Node& root) {
  Checker checker;
  if (!checker.CheckWhole(root)) return tl::unexpected(checker.failure());
  return checker.slots();
}

}  // namespace berth::cel
