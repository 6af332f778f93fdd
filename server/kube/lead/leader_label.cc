// SPDX-License-Identifier: Apache-2.0
#include "server/kube/lead/leader_label.h"

#include <utility>

#include "server/kube/client/api_client.h"

namespace berth::kube {
namespace {

constexpr Duration kLabelTimeout = std::chrono::seconds(3);

}  // namespace

LeaderLabel::LeaderLabel(ApiClient& client, const Clock& clock, Options options)
    : client_(client), clock_(clock), options_(std::move(options)) {}

std::optional<bool> LeaderLabel::written() const {
  const State state = state_.load();
  if (state == State::kUnknown) return std::nullopt;
  return state == State::kThere;
}

Status LeaderLabel::Step(bool wanted) {
  if (wanted_ == wanted && clock_.Now() < next_) return newest_;
  if (wanted_ != wanted) state_ = State::kUnknown;
  wanted_ = wanted;
  newest_ = Write(wanted);
  state_ = !newest_ ? State::kUnknown : wanted ? State::kThere : State::kAbsent;
  next_ = clock_.Now() + (newest_ ? options_.again_every : options_.retry_every);
  return newest_;
}

Status LeaderLabel::Write(bool wanted) {
  BERTH_TRY(std::string path, PodPath(options_.namespace_name, options_.pod));
  ApiRequest request;
  request.method = "PATCH";
  request.path = std::move(path);
  request.content_type = "application/merge-patch+json";
  request.timeout = kLabelTimeout;
  request.body = std::string(R"({"metadata":{"labels":{")") + kLeaderLabel +
                 (wanted ? R"(":"true"}}})" : R"(":null}}})");
  BERTH_TRY(const ApiResponse response, client_.Send(request));
  if (response.ok()) return {};
  return Fail(Errc::kUnavailable, "label " + std::string(kLeaderLabel) + " of pod " +
                                      options_.namespace_name + "/" + options_.pod + ": " +
                                      RefusalText(response));
}

}  // namespace berth::kube
