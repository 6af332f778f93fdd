// SPDX-License-Identifier: Apache-2.0
//
// TableSink: keeps a table of decoded objects equal to a collection of the API server. For kinds of
// which each object stands for itself: the newest text replaces what was there.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/padded_text.h"
#include "base/result.h"
#include "server/kube/watch/reflector.h"
#include "server/wire/json/object_meta.h"

namespace berth::kube {

// UnreadableObjects: the objects of one kind that cannot be read at present, each reported once.

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

// A table has an Object with namespace_name and name, Put(Object), Remove(namespace, name) and
// Reset(vector of Objects), and NotServed() where that differs from no objects. An object that can
// be read in part comes with its problem.
template <class Table>
class TableSink final : public ObjectSink {
 public:
  using Object = typename Table::Object;
  // problem: what the object does without; stays empty mostly.
  using Decode = std::function<Result<Object>(const PaddedText& text, std::string& problem)>;

  // References: they outlive the sink.
  TableSink(Table& table, Decode decode, std::string resource, OnUnreadable report)
      : table_(table),
        decode_(std::move(decode)),
        unreadable_(std::move(resource), std::move(report)) {}

  void ListBegins() override {
    listed_.clear();
    unreadable_.ListBegins();
  }
  void Listed(const PaddedText& object) override {
    Take(object, [this](Object read) { listed_.push_back(std::move(read)); });
  }
  void ListEnds() override {
    unreadable_.ListEnds();
    table_.Reset(std::exchange(listed_, {}));
  }
  void NotServed() override {
    unreadable_.ListEnds();
    if constexpr (requires(Table & table) { table.NotServed(); }) {
      table_.NotServed();
    } else {
      table_.Reset({});
    }
  }
  // One that cannot be read any more stays as it was.
  void Changed(const PaddedText& object) override {
    Take(object, [this](Object read) { table_.Put(std::move(read)); });
  }
  void Deleted(const PaddedText& object) override {
    const auto meta = wire::DecodeObjectMeta(object);
    if (!meta) return;
    unreadable_.Remove(meta->FullName());
    table_.Remove(meta->namespace_name, meta->name);
  }

  [[nodiscard]] std::size_t unreadable() const { return unreadable_.count(); }

 private:
  template <class Use>
  void Take(const PaddedText& text, Use use) {
    std::string problem;
    Result<Object> object = decode_(text, problem);
    if (!object) return unreadable_.Add(NameIn(text), object.error().message);
    const std::string name = wire::ObjectMeta{object->namespace_name, object->name, ""}.FullName();
    if (problem.empty()) {
      unreadable_.Remove(name);
    } else {
      unreadable_.Add(name, problem);
    }
    use(*std::move(object));
  }

  Table& table_;
  const Decode decode_;
  UnreadableObjects unreadable_;
  std::vector<Object> listed_;
};

}  // namespace berth::kube
