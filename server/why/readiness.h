// SPDX-License-Identifier: Apache-2.0
//
// Readiness: whether the service can decide at present, and who does instead.
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <string_view>

#include "server/http/http_message.h"

namespace berth {

// Why the service cannot decide at present; nullptr when it can. The texts are constants.
class Readiness {
 public:
  explicit Readiness(const char* reason) : reason_(reason) {}
  void Set(const char* reason) { reason_.store(reason); }
  [[nodiscard]] const char* reason() const { return reason_.load(); }

  // Nothing is wrong with a standby (kube::kStandby): verbs are answered 503, and /readyz 200.
  [[nodiscard]] bool is_standby() const;

  // Why nobody is led here all the same: /readyz answers 503; nullptr: nothing prevents it.
  void SetUnreachable(const char* why) { unreachable_.store(why); }
  [[nodiscard]] const char* unreachable() const { return unreachable_.load(); }

  // From now on /readyz answers 503, for good; verbs are still answered.
  void BeginDrain() { draining_.store(true); }
  [[nodiscard]] bool draining() const { return draining_.load(); }

 private:
  std::atomic<const char*> reason_;
  std::atomic<const char*> unreachable_{nullptr};
  std::atomic<bool> draining_{false};
};

// Who leads instead, by its identity; "" = nobody is known. Empty function: nobody is asked.
using LeaderName = std::function<std::string()>;

// 503 "not ready: another process leads (leader: IDENTITY)".
http::HttpResponse NotReadyAnswer(std::string_view why, const LeaderName& leader);

}  // namespace berth
