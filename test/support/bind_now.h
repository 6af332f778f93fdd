// SPDX-License-Identifier: Apache-2.0
//
// BindNow: asks an Extender for a bind and waits for what becomes of it.
#pragma once

#include <future>
#include <memory>
#include <utility>

#include "server/extender/extender.h"

namespace berth::test {

// Error: kUnavailable where too many binds wait. Throws where the bind was dropped.
inline Status BindNow(Extender& extender, BindRequest request) {
  const auto bound = std::make_shared<std::promise<Status>>();
  std::future<Status> answer = bound->get_future();
  const bool taken = extender.Bind(std::move(request),
                                   [bound](Status status) { bound->set_value(std::move(status)); });
  return taken ? answer.get() : Fail(Errc::kUnavailable, std::string(kTooManyBinds));
}

}  // namespace berth::test
