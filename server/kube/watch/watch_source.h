// SPDX-License-Identifier: Apache-2.0
//
// What an ecosystem adds to a cluster: the kinds of objects that are watched for it (WatchSource),
// and what its agents need around a bind (ClusterExtension). KubeCluster knows the objects of
// Kubernetes that every cluster has; server/dialects/registry.h lists the extensions.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/padded_text.h"
#include "base/result.h"
#include "cluster/state/cluster_state.h"
#include "server/extender/ports/ports.h"
#include "server/kube/lead/write_journal.h"
#include "server/kube/watch/reflector.h"
#include "server/wire/json/object_meta.h"

namespace berth::kube {

// TableSink: keeps a table of decoded objects equal to a collection of the API server. For kinds of
// which each object stands for itself: the newest text replaces what was there.
//
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
  // Adds it where there is a cause.
  void Note(const std::string& object, const std::string& cause) {
    cause.empty() ? Remove(object) : Add(object, cause);
  }
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
    unreadable_.Note(wire::ObjectMeta{object->namespace_name, object->name, ""}.FullName(),
                     problem);
    use(*std::move(object));
  }

  Table& table_;
  const Decode decode_;
  UnreadableObjects unreadable_;
  std::vector<Object> listed_;
};

// Until when a kind keeps verbs from being answered: not at all, until the first list was answered
// somehow, until a list was complete. One that does not is listed once the others do so no more.
enum class Await { kNot, kAnswer, kList };

// A collection of the API server.
struct WatchedKind {
  std::string name;                // in logs and metrics
  std::vector<std::string> paths;  // one per version of the API that Berth reads, the best first
  std::string query = {};
  // Not every cluster serves it, and Berth may be forbidden to read it.
  bool optional = false;
  Await await = Await::kAnswer;
  const char* why_not_ready = "";  // what /readyz says while it is awaited: a constant
};

// "/apis/GROUP/VERSION/RESOURCE" for each of the versions.
std::vector<std::string> ApiPaths(std::string_view group, const std::vector<std::string>& versions,
                                  std::string_view resource);

// A kind, and where its objects go.
struct WatchSource {
  WatchedKind kind;
  ObjectSink& sink;
  std::function<std::size_t()> unreadable;  // how many objects cannot be read, or not used
  // Await::kList: whether a list that fails is waited for now; nothing = always.
  std::function<bool()> is_needed = {};
};

// A decoder, for a TableSink, of objects that are read whole or not at all.
template <class Object>
auto Whole(Result<Object> (*decode)(const PaddedText&)) {
  return [decode](const PaddedText& text, std::string&) { return decode(text); };
}

// How node events reach the state.
using PublishNodes = std::function<void(std::vector<ClusterEvent>)>;

// What /metrics shows of the extensions, summed over all of them.
struct ExtensionStats {
  std::size_t overlapping_claims = 0;   // that have a device of another claim
  std::uint64_t claims_taken_back = 0;  // of these, from which the device was taken
  // Pods with ResourceClaims: allocated by Berth, left to kube-scheduler, lost to somebody who was
  // first or to a write that failed.
  std::uint64_t claims_allocated = 0, claims_left = 0, claims_lost = 0;
};

// One ecosystem. Any thread may call any function, several at a time, unless it says otherwise.
class ClusterExtension {
 public:
  virtual ~ClusterExtension() = default;
  // What is watched while this process leads. The sinks live as long as the extension.
  virtual std::vector<WatchSource> Sources() { return {}; }
  // What nodes pass through on their way to the state; called once, before anything is watched.
  virtual PublishNodes DecorateNodes(PublishNodes next) { return next; }
  // Binds the pod: calls bind at most once, with whatever has to be done before it and after it.
  // May block until order.deadline.
  virtual Status AroundBind(const BindOrder& /*order*/, const std::function<Status()>& bind) {
    return bind();
  }
  // Called about once a second from one thread, and when the process stops. May block.
  virtual void Upkeep() {}
  // nullptr: it allocates no claims.
  virtual ClaimAllocator* claim_allocator() { return nullptr; }
  virtual void AddTo(ExtensionStats& /*stats*/) const {}
};

using ClusterExtensions = std::vector<std::unique_ptr<ClusterExtension>>;

// What an extension gets of the cluster. References: they outlive it.
struct ExtensionContext {
  WriteContext write;
  ClusterState& state;
  OnUnreadable on_unreadable;
  std::function<void(bool is_problem, std::string_view event, std::string_view text)> on_log;
  PodEvictor* evictor = nullptr;  // nullptr: nobody is evicted
  // Tells people of a pod, by an Event.
  std::function<void(const PodId& pod, std::string reason, std::string message)> warn =
      [](const PodId&, std::string, std::string) {};
};

using MakeExtensions = std::function<ClusterExtensions(const ExtensionContext&)>;

}  // namespace berth::kube
