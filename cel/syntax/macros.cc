// SPDX-License-Identifier: Apache-2.0
#include "cel/syntax/parser.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>
#include <utility>

namespace berth::cel {

NodePtr NodeFactory::Make(NodeKind kind, std::string name) {
  ++nodes_;
  auto node = std::make_unique<Node>();
  node->kind = kind;
  node->name = std::move(name);
  return node;
}

void NodeFactory::Add(Node& parent, NodePtr child) {
  parent.depth = std::max(parent.depth, child->depth + 1);
  parent.children.push_back(std::move(child));
}

NodePtr NodeFactory::Const(Value value) {
  NodePtr node = Make(NodeKind::kConst, {});
  node->value = value;
  return node;
}

NodePtr NodeFactory::Name(std::string name) { return Make(NodeKind::kName, std::move(name)); }

NodePtr NodeFactory::Select(NodePtr operand, std::string field, bool test_only) {
  NodePtr node = Make(NodeKind::kSelect, std::move(field));
  node->test_only = test_only;
  Add(*node, std::move(operand));
  return node;
}

NodePtr NodeFactory::Fold(std::string item, std::string second, std::string accumulator,
                          NodePtr range, NodePtr init, NodePtr condition, NodePtr step,
                          NodePtr result) {
  NodePtr node = Make(NodeKind::kFold, {});
  node->variables[fold::kItem] = std::move(item);
  node->variables[fold::kSecondItem] = std::move(second);
  node->variables[fold::kAccumulator] = std::move(accumulator);
  for (NodePtr* part : {&range, &init, &condition, &step, &result}) Add(*node, std::move(*part));
  return node;
}

NodePtr NodeFactory::Copy(const Node& node) {
  NodePtr copy = Make(node.kind, node.name);
  copy->member = node.member;
  copy->test_only = node.test_only;
  copy->value = node.value;
  copy->optional = node.optional;
  std::ranges::copy(node.variables, copy->variables);
  for (const NodePtr& child : node.children) {
    if (too_many()) break;
    Add(*copy, Copy(*child));
  }
  return copy;
}

namespace {

constexpr const char* kResult = "@result";
constexpr std::string_view kOldResult = "__result__";
constexpr const char* kUnused = "#unused";

tl::unexpected<Failure> Refuse(const Node& call, const std::string& why) {
  return Fail(FailureKind::kRefused, call.name + "(): " + why);
}

// A call with its arguments taken out, to be put into its expansion.
struct Parts {
  NodePtr target;  // null without
  std::vector<NodePtr> args;

  [[nodiscard]] bool names(std::size_t index) const { return args[index]->kind == NodeKind::kName; }
};

Parts TakeApart(Node& call) {
  Parts parts;
  auto first = call.children.begin();
  if (call.member) parts.target = std::move(*first++);
  std::move(first, call.children.end(), std::back_inserter(parts.args));
  return parts;
}

// The variables of a fold over its target; `count` of the arguments name them.
struct Loop {
  std::string item;
  std::string second;
};

Expected<Loop> LoopOf(const Node& call, const Parts& parts, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    if (!parts.names(i)) return Refuse(call, "want a name as its variable");
    if (parts.args[i]->name == kOldResult) return Refuse(call, "__result__ is reserved");
  }
  Loop loop{parts.args[0]->name, count == 2 ? parts.args[1]->name : ""};
  if (loop.item == loop.second) return Refuse(call, "two variables have one name");
  return loop;
}

class Expansion {
 public:
  Expansion(const Node& call, Parts parts, NodeFactory& make)
      : call_(call), parts_(std::move(parts)), make_(make) {}

  // `variables` of the arguments are names.
  Expected<NodePtr> All(std::size_t variables) {
    return Loops(variables, make_.Const(Value::Bool(true)),
                 make_.Call("@not_strictly_false", Result()),
                 make_.Call("_&&_", Result(), Arg(variables)), Result());
  }

  Expected<NodePtr> Exists(std::size_t variables) {
    return Loops(variables, make_.Const(Value::Bool(false)),
                 make_.Call("@not_strictly_false", make_.Call("!_", Result())),
                 make_.Call("_||_", Result(), Arg(variables)), Result());
  }

  Expected<NodePtr> ExistsOne(std::size_t variables) {
    NodePtr more = make_.Call("_+_", Result(), make_.Const(Value::Int(1)));
    return Loops(variables, make_.Const(Value::Int(0)), Always(),
                 make_.Call("_?_:_", Arg(variables), std::move(more), Result()),
                 make_.Call("_==_", Result(), make_.Const(Value::Int(1))));
  }

  // map and transformList: with a condition where there is one argument more.
  Expected<NodePtr> List(std::size_t variables) {
    NodePtr item = Arg(parts_.args.size() - 1);
    return Loops(variables, make_.List(), Always(),
                 If(variables, make_.Call("_+_", Result(), make_.List(std::move(item)))), Result());
  }

  Expected<NodePtr> Filter() {
    NodePtr item = make_.Copy(*parts_.args[0]);
    NodePtr longer = make_.Call("_+_", Result(), make_.List(std::move(item)));
    return Loops(1, make_.List(), Always(),
                 make_.Call("_?_:_", Arg(1), std::move(longer), Result()), Result());
  }

  Expected<NodePtr> Bind() {
    if (!parts_.names(0)) return Refuse(call_, "want a name as its variable");
    return Let(parts_.args[0]->name, Arg(1), Arg(2));
  }

  Expected<NodePtr> OptionalMap(bool flat) {
    if (!parts_.names(0)) return Refuse(call_, "want a name as its variable");
    NodePtr value = make_.MemberCall("value", make_.Copy(*parts_.target));
    NodePtr mapped = Let(parts_.args[0]->name, std::move(value), Arg(1));
    if (!flat) mapped = make_.Call("optional.of", std::move(mapped));
    return make_.Call("_?_:_", make_.MemberCall("hasValue", std::move(parts_.target)),
                      std::move(mapped), make_.Call("optional.none"));
  }

 private:
  NodePtr Result() { return make_.Name(kResult); }
  NodePtr Always() { return make_.Const(Value::Bool(true)); }
  NodePtr Arg(std::size_t index) { return std::move(parts_.args[index]); }

  // The step, where the arguments have a condition between the variables and the last one.
  NodePtr If(std::size_t variables, NodePtr step) {
    if (parts_.args.size() < variables + 2) return step;
    return make_.Call("_?_:_", Arg(variables), std::move(step), Result());
  }

  NodePtr Let(const std::string& variable, NodePtr value, NodePtr result) {
    return make_.Fold(kUnused, "", variable, make_.List(), std::move(value),
                      make_.Const(Value::Bool(false)), make_.Name(variable), std::move(result));
  }

  Expected<NodePtr> Loops(std::size_t variables, NodePtr init, NodePtr condition, NodePtr step,
                          NodePtr result) {
    BERTH_TRY(const Loop loop, LoopOf(call_, parts_, variables));
    return make_.Fold(loop.item, loop.second, kResult, std::move(parts_.target), std::move(init),
                      std::move(condition), std::move(step), std::move(result));
  }

  const Node& call_;
  Parts parts_;
  NodeFactory& make_;
};

struct Macro {
  std::string_view name;
  std::size_t args;
  Expected<NodePtr> (*expand)(Expansion&);
};

constexpr std::array<Macro, 14> kMacros = {{
    {"all", 2, [](Expansion& e) { return e.All(1); }},
    {"all", 3, [](Expansion& e) { return e.All(2); }},
    {"exists", 2, [](Expansion& e) { return e.Exists(1); }},
    {"exists", 3, [](Expansion& e) { return e.Exists(2); }},
    {"exists_one", 2, [](Expansion& e) { return e.ExistsOne(1); }},
    {"exists_one", 3, [](Expansion& e) { return e.ExistsOne(2); }},
    {"existsOne", 3, [](Expansion& e) { return e.ExistsOne(2); }},
    {"map", 2, [](Expansion& e) { return e.List(1); }},
    {"map", 3, [](Expansion& e) { return e.List(1); }},
    {"filter", 2, [](Expansion& e) { return e.Filter(); }},
    {"transformList", 3, [](Expansion& e) { return e.List(2); }},
    {"transformList", 4, [](Expansion& e) { return e.List(2); }},
    {"optMap", 2, [](Expansion& e) { return e.OptionalMap(false); }},
    {"optFlatMap", 2, [](Expansion& e) { return e.OptionalMap(true); }},
}};

}  // namespace

Expected<NodePtr> Expand(NodePtr call, NodeFactory& make) {
  const std::size_t args = call->children.size() - (call->member ? 1 : 0);
  if (!call->member) {
    if (call->name != "has" || args != 1) return call;
    Node& field = *call->children[0];
    if (field.kind != NodeKind::kSelect) return Refuse(*call, "want a field");
    return make.Select(std::move(field.children[0]), field.name, true);
  }
  const auto expand = [&call, &make](auto expansion) -> Expected<NodePtr> {
    Expansion parts(*call, TakeApart(*call), make);
    return expansion(parts);
  };
  const Node& target = *call->children[0];
  if (call->name == "bind" && args == 3 && target.kind == NodeKind::kName && target.name == "cel") {
    return expand([](Expansion& e) { return e.Bind(); });
  }
  const auto macro = std::ranges::find_if(
      kMacros, [&call, args](const Macro& m) { return m.name == call->name && m.args == args; });
  if (macro == kMacros.end()) return call;
  return expand(macro->expand);
}

}  // namespace berth::cel
