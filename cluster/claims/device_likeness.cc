// SPDX-License-Identifier: Apache-2.0
#include "cluster/claims/device_likeness.h"

#include <map>
#include <string>
#include <string_view>
#include <variant>

namespace berth {
namespace {

class PoolDigester {
 public:
  void Add(const DevicePool& pool) {
    digester_.Add(pool.driver);
    Count(pool.usable);
    Count(pool.slices.size());
    for (const auto& slice : pool.slices) {
      Count(slice->in_part);
      Add(slice->counters);
      Count(slice->devices.size());
      for (const PublishedDevice& device : slice->devices) Add(device);
    }
  }
  [[nodiscard]] Digest digest() const { return digester_.digest(); }

 private:
  template <class Number>
  void Count(Number number) {
    digester_.Add(static_cast<std::uint64_t>(number));
  }

  void Add(const ConsumedCounters& counters) {
    Count(counters.size());
    for (const ConsumedCounter& counter : counters) {
      digester_.Add(counter.set);
      digester_.Add(counter.counter);
      Count(counter.milli);
    }
  }

  void Add(const PublishedDevice& device) {
    digester_.Add(device.name);
    Count(device.divisible);
    Count(device.binds);
    Count(device.seen.allow_multiple_allocations());
    Add(device.consumed());
    Count(device.taints.size());
    for (const Taint& taint : device.taints) {
      digester_.Add(taint.key);
      digester_.Add(taint.value);
      Count(taint.effect);
    }
    Count(device.seen.attributes().size());
    for (const auto& domain : device.seen.attributes()) {
      digester_.Add(domain.name);
      Count(domain.entries.size());
      for (const auto& entry : domain.entries) {
        digester_.Add(entry->id);
        if (cel::IsIdentity(entry->id)) {
          Count(NumberOf(entry->value));
        } else {
          Add(entry->value);
        }
      }
    }
    Count(device.seen.capacity().size());
    for (const auto& domain : device.seen.capacity()) {
      digester_.Add(domain.name);
      Count(domain.entries.size());
      for (const auto& entry : domain.entries) {
        digester_.Add(entry->id);
        entry->value.AddTo(digester_);
      }
    }
  }

  void Add(const cel::AttributeValue& value) {
    Count(value.index());
    std::visit([this](const auto& it) { AddOne(it); }, value);
  }
  void AddOne(std::int64_t number) { Count(number); }
  void AddOne(bool flag) { Count(flag); }
  void AddOne(const std::string& text) { digester_.Add(text); }
  void AddOne(const cel::Version& version) { version.AddTo(digester_); }
  template <class T>
  void AddOne(const std::vector<T>& list) {
    Count(list.size());
    for (const auto& item : list) AddOne(static_cast<const T&>(item));
  }

  // The first value of the pool is 0, the next that differs 1, ...
  std::size_t NumberOf(const cel::AttributeValue& value) {
    Count(value.index());
    const auto* const text = std::get_if<std::string>(&value);
    if (text != nullptr) return texts_.try_emplace(*text, texts_.size()).first->second;
    Add(value);  // no driver publishes one that is no text
    return 0;
  }

  Digester digester_;
  std::map<std::string_view, std::size_t> texts_;
};

}  // namespace

Digest LikenessOf(const DevicePool& pool) {
  PoolDigester digester;
  digester.Add(pool);
  return digester.digest();
}

}  // namespace berth
