// SPDX-License-Identifier: Apache-2.0
//
// TableSink: keeps a table of decoded objects equal to a collection of the API server. For kinds of
// which each object stands for itself: the newest text replaces what was there.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "server/kube/watch/reflector.h"
#include "server/kube/watch/unreadable_objects.h"
#include "server/wire/json/object_meta.h"

namespace berth::kube {

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
