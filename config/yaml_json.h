// SPDX-License-Identifier: Apache-2.0
//
// The documents of a YAML text as JSON, as kubectl reads manifests. An unquoted null, true, false
// or number keeps its type; all other values and all keys are texts.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace berth {

// One JSON text per document; documents without content are left out. A text that begins with '{'
// and a quoted key is JSON and returned unchanged. Each document is within the limits
// of ParseYaml. Error: kInvalidArgument "ORIGIN:LINE: ..." or, of a later document, "ORIGIN
// document 2:LINE: ..." where lines are counted from the beginning of the document.
Result<std::vector<std::string>> JsonDocuments(const std::string& text, std::string_view origin);

}  // namespace berth
