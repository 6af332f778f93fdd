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

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "cel/amount.h"

namespace berth::cel {

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
