// SPDX-License-Identifier: Apache-2.0
#include "cel/syntax/parser.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/text.h"

namespace berth::cel {
namespace {

constexpr std::array<std::string_view, 17> kReserved = {
    "as",  "break", "const",   "continue",  "else",   "for", "function", "if",   "import",
    "let", "loop",  "package", "namespace", "return", "var", "void",     "while"};

tl::unexpected<Failure> Refused(std::string why) {
  return Fail(FailureKind::kRefused, std::move(why));
}

// Of one expression. Every function reads from the current token on, and leaves that behind.
class Parser {
 public:
  Parser(std::vector<Token> tokens, Arena& constants)
      : tokens_(std::move(tokens)), constants_(constants) {}

  Expected<NodePtr> Whole() {
    Expected<NodePtr> node = Expression();
    if (node && now().kind != TokenKind::kEnd) return Unexpected();
    return node;
  }

 private:
  using Part = Expected<NodePtr> (Parser::*)();

  [[nodiscard]] const Token& now() const { return tokens_[at_]; }
  bool Take(std::string_view symbol) {
    if (!now().is(symbol)) return false;
    ++at_;
    return true;
  }
  tl::unexpected<Failure> Unexpected() const {
    if (now().kind == TokenKind::kEnd) return Refused("the expression ends too early");
    return Refused("\"" + std::string(now().text) + "\" is at the wrong place");
  }
  // The bounds of the tree.
  Expected<NodePtr> Checked(NodePtr node) const {
    if (node->depth > kDeepest) return Fail(FailureKind::kUnsupported, "nested too deeply");
    if (make_.too_many()) return Fail(FailureKind::kUnsupported, "too long");
    return node;
  }

  // c ? a : b
  Expected<NodePtr> Expression() {
    if (++open_ > kDeepest) return Fail(FailureKind::kUnsupported, "nested too deeply");
    Expected<NodePtr> node = Chain("||", "_||_", &Parser::And);
    if (node && Take("?")) {
      BERTH_TRY(NodePtr yes, Chain("||", "_||_", &Parser::And));
      if (!Take(":")) return Unexpected();
      BERTH_TRY(NodePtr no, Expression());
      node = make_.Call("_?_:_", *std::move(node), std::move(yes), std::move(no));
    }
    --open_;
    return node ? Checked(*std::move(node)) : std::move(node);
  }

  // a || b || c is one call.
  Expected<NodePtr> Chain(std::string_view symbol, const char* function, Part term) {
    Expected<NodePtr> first = (this->*term)();
    if (!first || !now().is(symbol)) return first;
    NodePtr call = make_.Call(function, *std::move(first));
    while (Take(symbol)) {
      BERTH_TRY(NodePtr next, (this->*term)());
      NodeFactory::Add(*call, std::move(next));
    }
    return Checked(std::move(call));
  }

  Expected<NodePtr> And() { return Chain("&&", "_&&_", &Parser::Relation); }

  struct Operator {
    std::string_view symbol;
    const char* function;
  };

  template <std::size_t N>
  Expected<NodePtr> Binary(const std::array<Operator, N>& operators, Part operand) {
    Expected<NodePtr> left = (this->*operand)();
    while (left) {
      const auto op =
          std::ranges::find_if(operators, [this](const Operator& o) { return now().is(o.symbol); });
      if (op == operators.end()) break;
      ++at_;
      BERTH_TRY(NodePtr right, (this->*operand)());
      left = Checked(make_.Call(op->function, *std::move(left), std::move(right)));
    }
    return left;
  }

  Expected<NodePtr> Relation() {
    static constexpr std::array<Operator, 7> kRelations = {{{"<", "_<_"},
                                                            {"<=", "_<=_"},
                                                            {">=", "_>=_"},
                                                            {">", "_>_"},
                                                            {"==", "_==_"},
                                                            {"!=", "_!=_"},
                                                            {"in", "@in"}}};
    return Binary(kRelations, &Parser::Sum);
  }

  Expected<NodePtr> Sum() {
    static constexpr std::array<Operator, 2> kSums = {{{"+", "_+_"}, {"-", "_-_"}}};
    return Binary(kSums, &Parser::Product);
  }

  Expected<NodePtr> Product() {
    static constexpr std::array<Operator, 3> kProducts = {
        {{"*", "_*_"}, {"/", "_/_"}, {"%", "_%_"}}};
    return Binary(kProducts, &Parser::Unary);
  }

  [[nodiscard]] bool number_follows() const { return tokens_[at_ + 1].kind == TokenKind::kInt; }

  // Two of a sign are none, whatever they stand before.
  Expected<NodePtr> Unary() {
    const bool negative = now().is("-");
    if (!now().is("!") && (!negative || number_follows())) return Member();
    const std::string_view sign = negative ? "-" : "!";
    std::size_t count = 0;
    while (Take(sign)) ++count;
    Expected<NodePtr> member = Member();
    if (!member || count % 2 == 0) return member;
    return Checked(make_.Call(negative ? "-_" : "!_", *std::move(member)));
  }

  // a.b, a.?b, a.b(...), a[b], a[?b]
  Expected<NodePtr> Member() {
    Expected<NodePtr> node = Primary();
    while (node && (now().is(".") || now().is("["))) {
      node = now().is(".") ? Selection(*std::move(node)) : Index(*std::move(node));
      if (node) node = Checked(*std::move(node));
    }
    return node;
  }

  Expected<NodePtr> Selection(NodePtr operand) {
    ++at_;
    const bool optional = Take("?");
    if (now().kind != TokenKind::kName) return Unexpected();
    std::string name(now().text);
    ++at_;
    if (optional) {
      NodePtr field = make_.Const(Value::Text(constants_.Keep(std::move(name))));
      return make_.Call("_?._", std::move(operand), std::move(field));
    }
    if (!now().is("(")) return make_.Select(std::move(operand), std::move(name));
    NodePtr call = make_.MemberCall(std::move(name), std::move(operand));
    return Arguments(std::move(call));
  }

  Expected<NodePtr> Index(NodePtr operand) {
    ++at_;
    const bool optional = Take("?");
    BERTH_TRY(NodePtr index, Expression());
    if (!Take("]")) return Unexpected();
    return make_.Call(optional ? "_[?_]" : "_[_]", std::move(operand), std::move(index));
  }

  // Of a call, from its "(" on.
  Expected<NodePtr> Arguments(NodePtr call) {
    ++at_;
    while (!now().is(")") || call->children.size() > (call->member ? 1U : 0U)) {
      BERTH_TRY(NodePtr arg, Expression());
      NodeFactory::Add(*call, std::move(arg));
      if (now().is(")")) break;
      if (!Take(",")) return Unexpected();
    }
    ++at_;
    return Expand(std::move(call), make_);
  }

  Expected<NodePtr> Primary() {
    switch (now().kind) {
      case TokenKind::kName:
        return NameOrCall("");
      case TokenKind::kString:
        return make_.Const(Value::Text(constants_.Keep(std::move(tokens_[at_++].content))));
      case TokenKind::kInt:
        return Number("");
      case TokenKind::kOtherNumber:
        return Fail(FailureKind::kUnsupported, "a number that is no int");
      case TokenKind::kEnd:
        return Unexpected();
      case TokenKind::kSymbol:
        break;
    }
    if (Take(".")) return now().kind == TokenKind::kName ? NameOrCall(".") : Unexpected();
    if (now().is("-") && number_follows()) {
      ++at_;
      return Number("-");
    }
    if (Take("true")) return make_.Const(Value::Bool(true));
    if (Take("false")) return make_.Const(Value::Bool(false));
    if (Take("null")) return make_.Const(Value::Null());
    if (Take("[")) return List();
    if (now().is("{")) return Fail(FailureKind::kUnsupported, "maps");
    if (!Take("(")) return Unexpected();
    BERTH_TRY(NodePtr nested, Expression());
    if (!Take(")")) return Unexpected();
    ++nested->depth;
    return nested;
  }

  Expected<NodePtr> NameOrCall(std::string before) {
    const std::string_view name = now().text;
    ++at_;
    if (now().is("{")) return Fail(FailureKind::kUnsupported, "messages");
    if (std::ranges::find(kReserved, name) != kReserved.end()) {
      return Refused("\"" + std::string(name) + "\" is reserved");
    }
    before.append(name);
    if (!now().is("(")) return make_.Name(std::move(before));
    return Arguments(make_.Call(std::move(before)));
  }

  Expected<NodePtr> Number(const std::string& sign) {
    const Token& token = tokens_[at_++];
    const bool hex = token.text.starts_with("0x");
    const std::string text = sign + std::string(token.text.substr(hex ? 2 : 0));
    const auto number = ReadNumber<std::int64_t>(text, hex ? 16 : 10);
    if (!number) return Refused(text + " is too large");
    return make_.Const(Value::Int(*number));
  }

  Expected<NodePtr> List() {
    NodePtr list = make_.List();
    if (Take("]")) return list;
    if (now().is(",") && tokens_[at_ + 1].is("]")) {
      at_ += 2;
      return list;
    }
    while (true) {
      list->optional.push_back(Take("?"));
      BERTH_TRY(NodePtr item, Expression());
      NodeFactory::Add(*list, std::move(item));
      const bool comma = Take(",");
      if (Take("]")) return list;
      if (!comma) return Unexpected();
    }
  }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  int open_ = 0;  // expressions that the current one is within
  Arena& constants_;
  NodeFactory make_;
};

}  // namespace

Expected<NodePtr> Parse(std::string_view expression, Arena& constants) {
  BERTH_TRY(std::vector<Token> tokens, Tokens(expression));
  return Parser(std::move(tokens), constants).Whole();
}

}  // namespace berth::cel
