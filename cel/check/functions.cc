// SPDX-License-Identifier: Apache-2.0
#include "cel/check/functions.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>

#include "base/check.h"

namespace berth::cel {
namespace {

// In Kubernetes' order: an unknown type becomes what the first overload takes that it may be.
//
// "PARAMETER, ... > RESULT" of each overload; a single letter is a variable, "." before the first
// parameter makes it a member: `.string, int > string`.
struct Row {
  std::string_view name;
  Function function;
  std::vector<std::string_view> overloads;
};

// Every kind that `<` orders.
#define BERTH_CEL_ORDERED                                                                        \
  {                                                                                              \
    "bool, bool > bool", "int, int > bool", "int, double > bool", "int, uint > bool",            \
        "uint, uint > bool", "uint, double > bool", "uint, int > bool", "double, double > bool", \
        "double, int > bool", "double, uint > bool", "string, string > bool",                    \
        "bytes, bytes > bool"                                                                    \
  }

const std::vector<Row>& Rows() {
  static const std::vector<Row> kRows = {
      {"_&&_", Function::kAnd, {"bool, bool > bool"}},
      {"_||_", Function::kOr, {"bool, bool > bool"}},
      {"_?_:_", Function::kConditional, {"bool, A, A > A"}},
      {"!_", Function::kNot, {"bool > bool"}},
      {"@not_strictly_false", Function::kNotStrictlyFalse, {"bool > bool"}},
      {"_==_", Function::kEquals, {"A, A > bool"}},
      {"_!=_", Function::kNotEquals, {"A, A > bool"}},
      {"_<_", Function::kLess, BERTH_CEL_ORDERED},
      {"_<=_", Function::kLessEquals, BERTH_CEL_ORDERED},
      {"_>_", Function::kGreater, BERTH_CEL_ORDERED},
      {"_>=_", Function::kGreaterEquals, BERTH_CEL_ORDERED},
      {"_+_",
       Function::kAdd,
       {"bytes, bytes > bytes", "double, double > double", "int, int > int",
        "list(A), list(A) > list(A)", "string, string > string", "uint, uint > uint"}},
      {"_-_",
       Function::kSubtract,
       {"double, double > double", "int, int > int", "uint, uint > uint"}},
      {"_*_",
       Function::kMultiply,
       {"double, double > double", "int, int > int", "uint, uint > uint"}},
      {"_/_",
       Function::kDivide,
       {"double, double > double", "int, int > int", "uint, uint > uint"}},
      {"_%_", Function::kModulo, {"int, int > int", "uint, uint > uint"}},
      {"-_", Function::kNegate, {"double > double", "int > int"}},
      {"@in", Function::kIn, {"A, list(A) > bool", "A, map(A, B) > bool"}},
      {"_[_]",
       Function::kIndex,
       {"list(A), int > A", "map(A, B), A > B", "optional(list(A)), int > optional(A)",
        "optional(map(A, B)), A > optional(B)"}},
      {"_[?_]",
       Function::kOptionalIndex,
       {"list(A), int > optional(A)", "optional(list(A)), int > optional(A)",
        "map(A, B), A > optional(B)", "optional(map(A, B)), A > optional(B)"}},
      {"_?._", Function::kOptionalSelect, {"dyn, string > optional(A)"}},

      {"bool", Function::kToBool, {"bool > bool", "string > bool"}},
      {"double",
       Function::kToDouble,
       {"double > double", "int > double", "string > double", "uint > double"}},
      {"dyn", Function::kToDyn, {"A > dyn"}},
      {"int", Function::kToInt, {"int > int", "double > int", "string > int", "uint > int"}},
      {"string",
       Function::kToString,
       {"string > string", "bool > string", "bytes > string", "double > string", "int > string",
        "uint > string"}},
      {"uint", Function::kToUint, {"uint > uint", "double > uint", "int > uint", "string > uint"}},
      {"type", Function::kType, {"A > type(A)"}},

      {"size",
       Function::kSize,
       {"bytes > int", ".bytes > int", "list(A) > int", ".list(A) > int", "map(A, B) > int",
        ".map(A, B) > int", "string > int", ".string > int"}},
      {"contains", Function::kContains, {".string, string > bool"}},
      {"endsWith", Function::kEndsWith, {".string, string > bool"}},
      {"startsWith", Function::kStartsWith, {".string, string > bool"}},
      {"matches", Function::kMatches, {"string, string > bool", ".string, string > bool"}},
      {"lowerAscii", Function::kLowerAscii, {".string > string"}},
      {"upperAscii", Function::kUpperAscii, {".string > string"}},
      {"split",
       Function::kSplit,
       {".string, string > list(string)", ".string, string, int > list(string)"}},
      {"substring", Function::kSubstring, {".string, int > string", ".string, int, int > string"}},

      {"includes", Function::kIncludes, {".dyn, dyn > bool"}},

      {"optional.of", Function::kOptionalOf, {"A > optional(A)"}},
      {"optional.ofNonZeroValue", Function::kOptionalOfNonZero, {"A > optional(A)"}},
      {"optional.none", Function::kOptionalNone, {"> optional(A)"}},
      {"optional.unwrap", Function::kOptionalUnwrap, {"list(optional(A)) > list(A)"}},
      {"unwrapOpt", Function::kOptionalUnwrap, {".list(optional(A)) > list(A)"}},
      {"value", Function::kValue, {".optional(A) > A"}},
      {"hasValue", Function::kHasValue, {".optional(A) > bool"}},
      {"or", Function::kOrOptional, {".optional(A), optional(A) > optional(A)"}},
      {"orValue", Function::kOrValue, {".optional(A), A > A"}},

      {"quantity", Function::kQuantity, {"string > quantity"}},
      {"isQuantity", Function::kIsQuantity, {"string > bool"}},
      {"sign", Function::kSign, {"quantity > int"}},  // no member there either
      {"isGreaterThan",
       Function::kIsGreaterThan,
       {".quantity, quantity > bool", ".semver, semver > bool"}},
      {"isLessThan",
       Function::kIsLessThan,
       {".quantity, quantity > bool", ".semver, semver > bool"}},
      {"compareTo", Function::kCompareTo, {".quantity, quantity > int", ".semver, semver > int"}},
      {"asApproximateFloat", Function::kAsDouble, {".quantity > double"}},
      {"asInteger", Function::kAsInteger, {".quantity > int"}},
      {"isInteger", Function::kIsInteger, {".quantity > bool"}},
      {"add",
       Function::kAddQuantity,
       {".quantity, quantity > quantity", ".quantity, int > quantity"}},
      {"sub",
       Function::kSubQuantity,
       {".quantity, quantity > quantity", ".quantity, int > quantity"}},
      {"semver", Function::kSemver, {"string > semver", "string, bool > semver"}},
      {"isSemver", Function::kIsSemver, {"string > bool", "string, bool > bool"}},
      {"major", Function::kMajor, {".semver > int"}},
      {"minor", Function::kMinor, {".semver > int"}},
      {"patch", Function::kPatch, {".semver > int"}},
  };
  return kRows;
}
#undef BERTH_CEL_ORDERED

// Reads "list(A), int > A".
class SignatureReader {
 public:
  explicit SignatureReader(std::string_view text) : text_(text) {}

  Overload Read() {
    Overload overload;
    overload.member = Take('.');
    while (!Take('>')) {
      overload.parameters.push_back(Type());
      Take(',');
    }
    overload.result = Type();
    overload.variables = variables_;
    return overload;
  }

 private:
  bool Take(char c) {
    while (!text_.empty() && text_[0] == ' ') text_.remove_prefix(1);
    if (text_.empty() || text_[0] != c) return false;
    text_.remove_prefix(1);
    return true;
  }

  TypePtr Type() {
    Take(' ');
    const std::size_t size = std::min(text_.find_first_of("(), >"), text_.size());
    const std::string_view name = text_.substr(0, size);
    text_.remove_prefix(size);
    if (name.size() == 1) {
      const int variable = name[0] - 'A';
      variables_ = std::max(variables_, variable + 1);
      return VariableType(variable);
    }
    if (!Take('(')) return Named(name);
    TypePtr first = Type();
    TypePtr second = Take(',') ? Type() : nullptr;
    Take(')');
    if (name == "list") return ListOf(std::move(first));
    if (name == "optional") return OptionalOf(std::move(first));
    if (name == "type") return TypeOf(std::move(first));
    return MapOf(std::move(first), std::move(second));
  }

  static TypePtr Named(std::string_view name) {
    constexpr std::array<std::pair<std::string_view, TypeKind>, 9> kNames = {
        {{"bool", TypeKind::kBool},
         {"int", TypeKind::kInt},
         {"uint", TypeKind::kUint},
         {"double", TypeKind::kDouble},
         {"string", TypeKind::kString},
         {"bytes", TypeKind::kBytes},
         {"dyn", TypeKind::kDyn},
         {"quantity", TypeKind::kQuantity},
         {"semver", TypeKind::kVersion}}};
    const auto* const at = std::ranges::find(kNames, name, [](const auto& n) { return n.first; });
    BERTH_CHECK(at != kNames.end());
    return Simple(at->second);
  }

  std::string_view text_;
  int variables_ = 0;
};

}  // namespace

const FunctionEntry* FindFunction(std::string_view name) {
  static const auto kTable = [] {
    std::map<std::string_view, FunctionEntry> table;
    for (const Row& row : Rows()) {
      FunctionEntry& entry = table[row.name];
      entry.function = row.function;
      for (const std::string_view text : row.overloads) {
        entry.overloads.push_back(SignatureReader(text).Read());
      }
    }
    return table;
  }();
  const auto at = kTable.find(name);
  return at == kTable.end() ? nullptr : &at->second;
}

bool IsConversion(Function function) {
  return function >= Function::kToBool && function <= Function::kType;
}

}  // namespace berth::cel
