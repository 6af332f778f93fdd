// SPDX-License-Identifier: Apache-2.0
//
// UnreadableObjects: the objects of one kind that cannot be read at present, each reported once.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/padded_text.h"

namespace berth::kube {

// Called with the resource, the object and what is wrong with it. Any thread; must not block.
using OnUnreadable =
    std::function<void(std::string_view resource, std::string_view object, const std::string& why)>;

// One thread at a time changes it, any may ask for the count.
class UnreadableObjects {
 public:
  UnreadableObjects(std::string resource, OnUnreadable report)
      : resource_(std::move(resource)), report_(std::move(report)) {}

  void Add(const std::string& object, const std::string& cause);
  void Remove(const std::string& object);
  // What a list that has begun since, and ended, did not add is gone.
  void ListBegins() { added_.clear(); }
  void ListEnds();
  [[nodiscard]] std::size_t count() const { return count_.load(); }

 private:
  const std::string resource_;
  const OnUnreadable report_;
  std::map<std::string, std::string> why_;
  std::set<std::string> added_;  // since the list began
  std::atomic<std::size_t> count_{0};
};

// What to call an object that cannot be read.
std::string NameIn(const PaddedText& object);

}  // namespace berth::kube
