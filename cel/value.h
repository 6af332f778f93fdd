// SPDX-License-Identifier: Apache-2.0
//
// Value: what a step of an evaluation gives. It is copied freely: what it points to belongs to the
// device, to the program or to the Arena of the evaluation, and outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cel/device.h"

namespace berth::cel {

// Bounds of one evaluation that Kubernetes leaves to its machine; beyond, it is kUnsupported: the
// bytes of texts, lists and maps, and steps that its costs do not count.
inline constexpr std::size_t kMostBytes = 4 * 1024 * 1024;
inline constexpr std::size_t kMostSteps = 10'000'000;

// Those that devices have, and what selectors make of them. The last five are maps: `device`, its
// attributes and capacity, and one domain of each.
enum class Kind : std::uint8_t {
  kError,
  kNull,
  kBool,
  kInt,
  kString,
  kQuantity,
  kVersion,
  kOptional,
  kList,
  kDevice,
  kAttributes,
  kAttributeDomain,
  kCapacities,
  kCapacityDomain,
};

struct ListValue;
struct ErrorText {
  std::string_view what;
  std::string_view detail;
};

using AttributeDomain = Device::Domain<AttributeValue>;
using CapacityDomain = Device::Domain<Amount>;

struct Value {
  Kind kind = Kind::kNull;
  union {
    bool boolean;
    std::int64_t integer = 0;
    std::size_t size;  // of a text
  };
  union {
    const char* data = nullptr;
    const ErrorText* error;
    const Amount* amount;
    const Version* version;
    const Value* content;  // of an optional; nullptr = none
    ListValue* list;
    const Device* device;
    const AttributeDomain* attributes;
    const CapacityDomain* capacities;
  };

  [[nodiscard]] std::string_view text() const { return {data, size}; }
  [[nodiscard]] bool is(Kind k) const { return kind == k; }
  [[nodiscard]] bool is_true() const { return kind == Kind::kBool && boolean; }
  [[nodiscard]] bool is_false() const { return kind == Kind::kBool && !boolean; }
  [[nodiscard]] bool is_map() const { return kind >= Kind::kDevice; }

  static Value Null() { return {}; }
  static Value Bool(bool b);
  static Value Int(std::int64_t i);
  static Value Text(std::string_view text);  // that outlives it
  static Value Of(const Amount& amount);
  static Value Of(const Version& version);
  static Value Of(ListValue& list);
  static Value Of(const Device& device);
  static Value Of(const AttributeDomain& domain);
  static Value Of(const CapacityDomain& domain);
  static Value Optional(const Value* content);
};

struct ListValue {
  std::vector<Value> items;
  // What a fold gathers in: `+` appends to it in place, as in Kubernetes.
  bool grows = false;
};

// Owns what one evaluation, or the constants of one program, consist of, and counts its bytes.
class Arena {
 public:
  std::string_view Keep(std::string text);
  const Amount& Keep(const Amount& amount);
  const Version& Keep(Version version);
  const Value& Keep(const Value& value);
  ListValue& NewList(std::vector<Value> items);
  Value Error(std::string_view what, std::string_view detail = {});  // `what`: a constant

  // What came up that Berth does not evaluate: there is no result. A constant.
  void GiveUp(std::string_view why) { unsupported_ = why; }
  [[nodiscard]] std::string_view unsupported() const { return unsupported_; }

  // The evaluation has looked at an attribute that is the device's own (IsIdentity).
  void SeeIdentity() { sees_identity_ = true; }
  [[nodiscard]] bool sees_identity() const { return sees_identity_; }

  // Steps of some ns that Kubernetes' costs do not count, and bytes that a list grew by.
  void Spend(std::size_t steps) { steps_ += steps; }
  void Grow(std::size_t bytes) { bytes_ += bytes; }
  [[nodiscard]] std::size_t steps() const { return steps_; }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }

 private:
  std::string_view unsupported_;
  bool sees_identity_ = false;
  std::size_t steps_ = 0;
  std::size_t bytes_ = 0;
  std::vector<std::unique_ptr<std::string>> texts_;
  std::vector<std::unique_ptr<Amount>> amounts_;
  std::vector<std::unique_ptr<Version>> versions_;
  std::vector<std::unique_ptr<Value>> values_;
  std::vector<std::unique_ptr<ListValue>> lists_;
  std::vector<std::unique_ptr<ErrorText>> errors_;
};

// The number of characters, elements or entries; of other values 1.
std::size_t SizeOf(const Value& value);
std::size_t CharactersIn(std::string_view text);

// Equality of CEL. kFails: a quantity or version beside something else; in a list or map Kubernetes
// has no consistent answer to that.
enum class Equality { kNo, kYes, kFails };
Equality Equal(const Value& a, const Value& b, Arena& arena);

// -1, 0 or 1 of two numbers, texts or bools; otherwise 2.
int Compare(const Value& a, const Value& b);

// Texts as their characters: CEL counts and cuts by code points.

// What is no UTF-8 becomes U+FFFD, byte for byte.
std::u32string Runes(std::string_view text);
std::string Utf8(std::u32string_view runes);

}  // namespace berth::cel
