// SPDX-License-Identifier: Apache-2.0
//
// Device: what an expression sees of one device of a ResourceSlice, the variable `device`.
//
//   device.driver                        string
//   device.attributes[DOMAIN].ID         an attribute: integer, bool, string, version, or a list
//   device.capacity[DOMAIN].ID           a quantity
//   device.allowMultipleAllocations      bool
//
// A name in a slice is "ID" or "DOMAIN/ID"; without a domain it has that of the driver. Source:
// k8s.io/dynamic-resource-allocation/cel of Kubernetes 1.37.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "base/quantity.h"
#include "base/random.h"
#include "base/result.h"

namespace berth::cel {

// Amount: a Quantity as CEL sees it, and Version.

// Version: a semantic version, as the attributes of devices have them. Grammar and order are those
// of semver.org 2.0.0 as github.com/blang/semver/v4 reads it: three numbers of 64 bits without
// leading zeros, `-` and pre-release parts, `+` and build parts; build parts do not count in order
// or equality.

class Version {
 public:
  Version() = default;  // 0.0.0

  // Error: kInvalidArgument `want a version such as "1.2.3", got "..."`.
  static Result<Version> Parse(std::string_view text);
  // Reads "v1", "1.2" and "01.2.3" too, as Kubernetes' semver(TEXT, true) does: without "v" before
  // it, without leading zeros, with ".0" for what is missing.
  static Result<Version> ParseLoosely(std::string_view text);

  [[nodiscard]] std::uint64_t major() const { return numbers_[0]; }
  [[nodiscard]] std::uint64_t minor() const { return numbers_[1]; }
  [[nodiscard]] std::uint64_t patch() const { return numbers_[2]; }

  friend bool operator==(const Version& a, const Version& b) { return (a <=> b) == 0; }
  friend std::strong_ordering operator<=>(const Version& a, const Version& b);

  void AddTo(Digester& digester) const;

 private:
  struct Part {  // of a pre-release
    bool is_number = false;
    std::uint64_t number = 0;
    std::string text;
  };

  std::uint64_t numbers_[3] = {};
  std::vector<Part> pre_release_;
};

class Amount {
 public:
  Amount() = default;  // 0

  // Error: kInvalidArgument as Quantity::Parse.
  static Result<Amount> Parse(std::string_view text);

  // nullopt where it is no integer of 64 bits.
  [[nodiscard]] std::optional<std::int64_t> AsInteger() const { return value_.Exactly(0); }
  // Whether Quantity holds it as it is: beyond 2^63 - 1 it does not.
  [[nodiscard]] bool exact() const;

  friend bool operator==(const Amount&, const Amount&) = default;
  friend auto operator<=>(const Amount& a, const Amount& b) { return a.value_ <=> b.value_; }

  // To a part in 10^15 where it is beyond 9 * 10^9 and finer than a thousandth.
  void AddTo(Digester& digester) const;

 private:
  Quantity value_;
};

using AttributeValue =
    std::variant<std::int64_t, bool, std::string, Version, std::vector<std::int64_t>,
                 std::vector<bool>, std::vector<std::string>, std::vector<Version>>;

// Whether an attribute of that id, of whatever domain, tells the device from those of other nodes,
// or says where in its machine it is: two devices may be alike but for these.
bool IsIdentity(std::string_view id);

// A value. Threads may read one together.
class Device {
 public:
  explicit Device(std::string driver) : driver_(std::move(driver)) {}

  // The last one counts where two have one name.
  void SetAttribute(std::string_view name, AttributeValue value);
  void SetCapacity(std::string_view name, Amount amount);
  void SetAllowMultipleAllocations(bool allow) { allow_multiple_allocations_ = allow; }

  [[nodiscard]] const std::string& driver() const { return driver_; }
  [[nodiscard]] bool allow_multiple_allocations() const { return allow_multiple_allocations_; }

  template <class T>
  struct Named {
    std::string id;
    T value;
  };
  template <class T>
  struct Domain {
    std::string name;
    // By id. Devices may share them (device.h).
    std::vector<std::shared_ptr<const Named<T>>> entries;
  };
  using Attributes = std::vector<Domain<AttributeValue>>;  // by name; no domain is empty
  using Capacities = std::vector<Domain<Amount>>;          // by name; no domain is empty

  [[nodiscard]] const Attributes& attributes() const { return attributes_; }
  [[nodiscard]] const Capacities& capacity() const { return capacity_; }
  // nullptr = it has none of that name.
  [[nodiscard]] const AttributeValue* attribute(std::string_view domain, std::string_view id) const;

 private:
  friend class SharedValues;

  std::string driver_;
  bool allow_multiple_allocations_ = false;
  Attributes attributes_;
  Capacities capacity_;
};

// SharedValues: most devices of a cluster are alike but for UUIDs and addresses, so what they say
// is kept once. A value goes when no device has it any more.

// One thread at a time; the devices may be read by others meanwhile.
class SharedValues {
 public:
  // Has the device share each attribute and capacity with those that were shared before.
  void Share(Device& device);
  // So many values are known, some of which may be gone.
  [[nodiscard]] std::size_t size() const {
    return attributes_.known.size() + amounts_.known.size();
  }

 private:
  template <class T>
  struct Known {
    std::unordered_multimap<std::size_t, std::weak_ptr<const Device::Named<T>>> known;  // by hash
    std::size_t sweep_at = 1024;
  };
  template <class T>
  static void ShareAll(std::vector<Device::Domain<T>>& domains, Known<T>& known);

  Known<AttributeValue> attributes_;
  Known<Amount> amounts_;
};

}  // namespace berth::cel
