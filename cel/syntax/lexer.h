// SPDX-License-Identifier: Apache-2.0
//
// The tokens of CEL. Source: the grammar of github.com/google/cel-go, parser/gen/CEL.g4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cel/failure.h"

namespace berth::cel {

enum class TokenKind : std::uint8_t {
  kEnd,
  kName,    // text
  kInt,     // text, without a sign
  kUint,    // text, without its "u"
  kDouble,  // text
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

}  // namespace berth::cel
