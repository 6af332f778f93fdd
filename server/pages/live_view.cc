// SPDX-License-Identifier: Apache-2.0
#include "server/pages/live_view.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "cluster/state/waiting_pods.h"
#include "scoring/mig/repartition_report.h"
#include "server/why/waiting_whys.h"

namespace berth {
namespace {

// Pods without a time of creation (only their name is known) come last.
bool HasWaitedLonger(const WaitingPod& a, const WaitingPod& b) {
  return a.created.value_or(WallTime::max()) < b.created.value_or(WallTime::max());
}

class LiveView {
 public:
  LiveView(const Live& live, std::string version, std::string cluster)
      : live_(live),
        version_(std::move(version)),
        cluster_(std::move(cluster)),
        whys_([&live](const Extender::Moment& now, const WaitingPod& pod) {
          return WhyWaiting(live, now, pod);
        }) {}

  PageDraft Draft(bool whole) {
    const char* const not_ready = live_.readiness.reason();
    const Listed listed = not_ready == nullptr ? List() : Listed{.now = {nothing_, nullptr}};
    const std::shared_ptr<const Snapshot> snapshot = listed.now.snapshot;
    wire::LiveNews news;
    news.berth = version_;
    news.cluster = cluster_;
    if (not_ready != nullptr) {
      news.not_ready = not_ready;
    } else {
      Fill(news, listed);
    }
    std::string text = wire::EncodeNews(news);
    std::string version =
        std::to_string(reinterpret_cast<std::uintptr_t>(snapshot.get())) + " " + text;
    return {std::move(version), snapshot, [this, snapshot, whole, text = std::move(text)] {
              const wire::NodeSet set = SetOf(snapshot);
              return wire::EncodeLive(text, *snapshot, set, whole);
            }};
  }

  [[nodiscard]] bool HasSet(std::string_view query) const {
    constexpr std::string_view kKey = "set=";
    if (!query.starts_with(kKey)) return false;
    const MutexLock lock(mutex_);
    return query.substr(kKey.size()) == tag_;
  }

 private:
  // All that a text is of.
  struct Listed {
    Extender::Moment now;
    std::vector<WaitingPod> waiting = {};
    WaitingPods::Pods for_mig = {};  // of these, those that MIG devices could be cut for
  };
  [[nodiscard]] Listed List() const {
    Listed listed;
    listed.waiting = live_.waiting.Everybody();
    listed.for_mig = live_.waiting.Current();
    listed.now = live_.extender.Now();  // after the lists (waiting_pods.h)
    listed.waiting = StillWaiting(std::move(listed.waiting), *listed.now.snapshot);
    listed.for_mig = StillWaiting(std::move(listed.for_mig), *listed.now.snapshot);
    return listed;
  }

  void Fill(wire::LiveNews& news, const Listed& listed) {
    const Instant now = std::chrono::steady_clock::now();
    news.now = std::chrono::system_clock::now();
    news.gangs = live_.gangs.Views(now);
    if (live_.binds != nullptr) news.bound = live_.binds->All();
    if (live_.maker != nullptr) news.room = live_.maker->progress();
    news.recuts = AdviseNodes(*listed.now.snapshot, listed.for_mig);
    std::vector<WaitingPod> pods = listed.waiting;
    news.waiting_in_all = pods.size();
    std::ranges::stable_sort(pods, HasWaitedLonger);
    if (pods.size() > wire::kMostWaitingRows) pods.resize(wire::kMostWaitingRows);
    WaitingWhys::Told told = whys_.Of(pods, listed.now);
    news.explains_more = told.more;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      news.waiting.push_back({std::move(pods[i]), std::move(told.whys[i])});
    }
  }

  wire::NodeSet SetOf(const std::shared_ptr<const Snapshot>& snapshot) {
    const auto tree = live_.domains.Of(snapshot);
    wire::NodeSet set = wire::EncodeNodeSet(*snapshot, live_.domains.levels(), tree.get());
    const MutexLock lock(mutex_);
    tag_ = set.tag;
    return set;
  }

  const Live& live_;
  const std::string version_, cluster_;
  const std::shared_ptr<const Snapshot> nothing_ = std::make_shared<const Snapshot>();
  WaitingWhys whys_;
  mutable Mutex mutex_;
  std::string tag_ BERTH_GUARDED_BY(mutex_);  // of the last set of nodes
};

}  // namespace

LivePages MakeLivePages(const Live& live, std::string version, std::string cluster) {
  auto view = std::make_shared<LiveView>(live, std::move(version), std::move(cluster));
  const auto page = [&view](bool whole) {
    return Page{.content_type = "application/json",
                .draft = [view, whole] { return view->Draft(whole); }};
  };
  return {page(true), page(false), [view](std::string_view query) { return view->HasSet(query); }};
}

}  // namespace berth
