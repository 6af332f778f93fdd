// SPDX-License-Identifier: Apache-2.0
//
// SharedValues: most devices of a cluster are alike but for UUIDs and addresses, so what they say
// is kept once. A value goes when no device has it any more.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "cel/device.h"

namespace berth::cel {

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
