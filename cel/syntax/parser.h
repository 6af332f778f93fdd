// SPDX-License-Identifier: Apache-2.0
//
// From the text of an expression to its tree, macros expanded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cel/failure.h"
#include "cel/syntax/node.h"
#include "cel/value.h"

namespace berth::cel {

// `constants` comes to own the texts of the tree. Error: kRefused; kUnsupported for bytes, maps,
// messages (`Type{...}`), numbers that are no integers, and for more than kDeepest levels or
// kMostNodes nodes.
Expected<NodePtr> Parse(std::string_view expression, Arena& constants);

// The tokens of CEL. Source: the grammar of github.com/google/cel-go, parser/gen/CEL.g4.

enum class TokenKind : std::uint8_t {
  kEnd,
  kName,  // text
  kInt,   // text, without a sign
  kOtherNumber,
  kString,  // content
  kSymbol,  // text: an operator, a bracket, or one of the words in, true, false, null
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;
  std::string content;

  [[nodiscard]] bool is(std::string_view symbol) const {
    return kind == TokenKind::kSymbol && text == symbol;
  }
};

// All of them and kEnd. Error: kRefused, or kUnsupported for bytes.
Expected<std::vector<Token>> Tokens(std::string_view expression);

// The macros of CEL in Kubernetes: has, all, exists, exists_one, existsOne (of two variables), map,
// filter, transformList, optMap, optFlatMap and cel.bind.
// Source: google/cel-go, parser/macro.go, cel/library.go, ext/{bindings,comprehensions}.go.

// Makes the nodes of one expression, and counts them.
class NodeFactory {
 public:
  NodePtr Const(Value value);
  NodePtr Name(std::string name);
  NodePtr Select(NodePtr operand, std::string field, bool test_only = false);
  template <class... Args>
  NodePtr Call(std::string function, Args... args) {
    NodePtr node = Make(NodeKind::kCall, std::move(function));
    (Add(*node, std::move(args)), ...);
    return node;
  }
  template <class... Args>
  NodePtr MemberCall(std::string function, Args... args) {
    NodePtr node = Call(std::move(function), std::move(args)...);
    node->member = true;
    return node;
  }
  template <class... Args>
  NodePtr List(Args... items) {
    NodePtr node = Make(NodeKind::kList, {});
    (Add(*node, std::move(items)), ...);
    node->optional.resize(node->children.size());
    return node;
  }
  NodePtr Fold(std::string item, std::string second, std::string accumulator, NodePtr range,
               NodePtr init, NodePtr condition, NodePtr step, NodePtr result);

  NodePtr Copy(const Node& node);
  static void Add(Node& parent, NodePtr child);
  // More of them than there may be: what is made then is not whole.
  [[nodiscard]] bool too_many() const { return nodes_ > kMostNodes; }

 private:
  NodePtr Make(NodeKind kind, std::string name);

  int nodes_ = 0;
};

// What the call stands for; the call itself where it is no macro. `call` is a kCall. Error:
// kRefused.
Expected<NodePtr> Expand(NodePtr call, NodeFactory& make);

}  // namespace berth::cel
