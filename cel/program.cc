// SPDX-License-Identifier: Apache-2.0
#include "cel/program.h"

#include <algorithm>
#include <string>
#include <utility>

#include <re2/re2.h>

#include "cel/eval/evaluator.h"
#include "cel/eval/library.h"
#include "cel/syntax/parser.h"

namespace berth::cel {
namespace {

std::string Text(const Value& error) {
  std::string text(error.error->what);
  if (!error.error->detail.empty()) text.append(": ").append(error.error->detail);
  return text;
}

// What Kubernetes evaluates when it compiles an expression: lists and conversions of constants.
// What fails then is no expression to it.
class Folding {
 public:
  explicit Folding(Arena& constants) : constants_(constants) {}

  bool Fold(Node& node) {
    for (const NodePtr& child : node.children) {
      if (!Fold(*child)) return false;
    }
    if (node.kind == NodeKind::kList) FoldList(node);
    return node.kind != NodeKind::kCall || FoldCall(node);
  }

  [[nodiscard]] const Failure& failure() const { return failure_; }

 private:
  bool Stop(FailureKind kind, std::string message) {
    failure_ = {kind, std::move(message)};
    return false;
  }

  static void Become(Node& node, const Value& value) {
    node.kind = NodeKind::kConst;
    node.value = value;
  }

  void FoldList(Node& node) {
    const bool constant =
        std::ranges::all_of(node.children,
                            [](const NodePtr& c) { return c->kind == NodeKind::kConst; }) &&
        std::ranges::find(node.optional, true) == node.optional.end();
    if (!constant) return;
    std::vector<Value> items;
    for (const NodePtr& child : node.children) items.push_back(child->value);
    Become(node, Value::Of(constants_.NewList(std::move(items))));
  }

  bool FoldCall(Node& node) {
    if (node.function == Function::kIn) return FoldIn(node);
    if (node.function == Function::kIndex || node.function == Function::kOptionalIndex) {
      return CheckKey(*node.children[1]);
    }
    if (node.function == Function::kMatches) return CompilePattern(node);
    if (!IsConversion(node.function) || node.children[0]->kind != NodeKind::kConst) return true;
    const Value value = Convert(node.function, node.children[0]->value, constants_);
    if (value.is(Kind::kError)) return Stop(FailureKind::kRefused, Text(value));
    Become(node, value);
    return true;
  }

  bool CheckKey(const Node& key) {
    const bool good = key.kind != NodeKind::kConst || key.value.is(Kind::kInt) ||
                      key.value.is(Kind::kBool) || key.value.is(Kind::kString);
    return good || Stop(FailureKind::kRefused, "no index can be such a value");
  }

  static bool FoldIn(Node& node) {
    const Node& list = *node.children[1];
    const bool is_list = list.kind == NodeKind::kConst && list.value.is(Kind::kList);
    if (!is_list || list.function == Function::kToDyn) return true;  // of dyn() it may be anything
    if (list.value.list->items.empty()) {
      Become(node, Value::Bool(false));
      return true;
    }
    node.in_set = std::ranges::all_of(list.value.list->items, [](const Value& item) {
      return item.is(Kind::kInt) || item.is(Kind::kBool) || item.is(Kind::kString);
    });
    return true;
  }

  bool CompilePattern(Node& node) {
    const Node& pattern = *node.children[1];
    if (pattern.kind != NodeKind::kConst || !pattern.value.is(Kind::kString)) {
      return Stop(FailureKind::kUnsupported, "a regular expression that is no constant");
    }
    const std::string text(pattern.value.text());
    // Go has no \C.
    if (text.find("\\C") != std::string::npos) {
      return Stop(FailureKind::kUnsupported, "the regular expression " + text);
    }
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kMostPatternBytes);
    auto compiled = std::make_shared<re2::RE2>(text, options);
    if (!compiled->ok()) {
      return Stop(FailureKind::kUnsupported, "the regular expression " + text);
    }
    node.pattern = std::move(compiled);
    return true;
  }

  // Of a compiled pattern, with what it remembers between texts.
  static constexpr std::int64_t kMostPatternBytes = 256 * 1024;

  Arena& constants_;
  Failure failure_;
};

}  // namespace

Expected<Program> Program::Compile(std::string_view expression) {
  if (expression.size() > kLongestExpression) {
    return Fail(FailureKind::kUnsupported, "an expression of more than 10 KiB");
  }
  auto plan = std::make_shared<Plan>();
  BERTH_TRY(plan->root, Parse(expression, plan->constants));
  BERTH_TRY(plan->slots, ResolveNames(*plan->root));
  Folding folding(plan->constants);
  if (!folding.Fold(*plan->root)) return tl::unexpected(folding.failure());
  return Program(std::move(plan));
}

Expected<bool> Program::Matches(const Device& device, Effort* effort) const {
  Evaluator evaluator(*plan_, device);
  const Value value = evaluator.Run();
  if (effort != nullptr) *effort = {evaluator.cost(), evaluator.arena().sees_identity()};
  if (const std::string_view what = evaluator.arena().unsupported(); !what.empty()) {
    return Fail(FailureKind::kUnsupported, std::string(what));
  }
  if (const std::string_view why = evaluator.failure(); !why.empty()) {
    return Fail(FailureKind::kFailed, std::string(why));
  }
  if (value.is(Kind::kError)) return Fail(FailureKind::kFailed, Text(value));
  if (!value.is(Kind::kBool)) return Fail(FailureKind::kFailed, "the result is no bool");
  return value.boolean;
}

}  // namespace berth::cel
