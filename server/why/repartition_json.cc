// SPDX-License-Identifier: Apache-2.0
#include "server/why/repartition_json.h"

#include "server/wire/json/strict_json.h"

namespace berth::wire {

std::string EncodeRepartition(std::span<const NodeAdvice> advices) {
  Json list = Json::array();
  for (const NodeAdvice& at : advices) {
    Json json = {{"node", at.node},
                 {"product", at.product},
                 {"gpus", at.gpus},
                 {"config", at.advice.config},
                 {"fits", at.advice.fits},
                 {"fits_now", at.advice.fits_now},
                 {"fits_cut_at_will", nullptr}};
    if (at.advice.fits_cut_at_will) json["fits_cut_at_will"] = *at.advice.fits_cut_at_will;
    list.push_back(std::move(json));
  }
  return list.dump(1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace berth::wire
