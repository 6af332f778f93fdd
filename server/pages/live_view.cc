// SPDX-License-Identifier: Apache-2.0
#include "server/pages/live_view.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "base/mutex.h"
#include "scoring/mig/repartition_report.h"
#include "server/pages/explain_pages.h"
#include "server/pages/waiting_whys.h"

namespace berth {
namespace {

// Those without a time, of which only their name is known, come last.
bool HasWaitedLonger(const WaitingPod& a, const WaitingPod& b) {
  return a.created.value_or(WallTime::max()) < b.created.value_or(WallTime::max());
}

class LiveView {
 public:
  explicit LiveView(LiveParts parts)
      : parts_(std::move(parts)),
        whys_([this](const WaitingPod& pod) { return WhyWaiting(explain(), pod); }) {}

  PageDraft Draft(bool whole) {
    const char* const not_ready = parts_.not_ready ? parts_.not_ready() : nullptr;
    auto snapshot = not_ready == nullptr ? parts_.state.Current() : nothing_;
    wire::LiveNews news;
    news.berth = parts_.berth;
    if (not_ready != nullptr) {
      news.not_ready = not_ready;
    } else {
      Fill(news, snapshot);
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
  [[nodiscard]] ExplainParts explain() const {
    return {.extender = *parts_.extender,
            .state = parts_.state,
            .waiting = parts_.waiting,
            .gangs = parts_.gangs,
            .not_ready = parts_.not_ready};
  }

  void Fill(wire::LiveNews& news, const std::shared_ptr<const Snapshot>& snapshot) {
    const Instant now = std::chrono::steady_clock::now();
    news.now = std::chrono::system_clock::now();
    if (parts_.gangs != nullptr) news.gangs = parts_.gangs->Views(now);
    if (parts_.bound) news.bound = parts_.bound();
    if (parts_.waiting == nullptr) return;
    news.recuts = AdviseNodes(*snapshot, parts_.waiting->Current());
    std::vector<WaitingPod> pods = parts_.waiting->Everybody();
    news.waiting_in_all = pods.size();
    std::ranges::stable_sort(pods, HasWaitedLonger);
    if (pods.size() > wire::kMostWaitingRows) pods.resize(wire::kMostWaitingRows);
    WaitingWhys::Told told;
    if (parts_.extender != nullptr) told = whys_.Of(pods, snapshot);
    told.whys.resize(pods.size());
    news.explains_more = told.more;
    for (std::size_t i = 0; i < pods.size(); ++i) {
      news.waiting.push_back({std::move(pods[i]), std::move(told.whys[i])});
    }
  }

  wire::NodeSet SetOf(const std::shared_ptr<const Snapshot>& snapshot) {
    wire::NodeSet set;
    if (parts_.domains == nullptr) {
      set = wire::EncodeNodeSet(*snapshot, {}, nullptr);
    } else {
      const auto tree = parts_.domains->Of(snapshot);
      set = wire::EncodeNodeSet(*snapshot, parts_.domains->levels(), tree.get());
    }
    const MutexLock lock(mutex_);
    tag_ = set.tag;
    return set;
  }

  const LiveParts parts_;
  const std::shared_ptr<const Snapshot> nothing_ = std::make_shared<const Snapshot>();
  WaitingWhys whys_;
  mutable Mutex mutex_;
  std::string tag_ BERTH_GUARDED_BY(mutex_);  // of the last set of nodes
};

}  // namespace

LivePages MakeLivePages(LiveParts parts) {
  auto view = std::make_shared<LiveView>(std::move(parts));
  const auto page = [&view](bool whole) {
    return Page{.content_type = "application/json",
                .draft = [view, whole] { return view->Draft(whole); }};
  };
  return {page(true), page(false), [view](std::string_view query) { return view->HasSet(query); }};
}

}  // namespace berth
