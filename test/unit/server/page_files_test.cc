// SPDX-License-Identifier: Apache-2.0
#include "server/ui/page_files.h"

#include <gtest/gtest.h>

#include <string>

namespace berth::page_files_test {
namespace {

TEST(PageFiles, TheDocumentNamesTheOthersAndHasNoScriptOrStyleInside) {
  const auto files = PageFiles();
  ASSERT_EQ(files.size(), 3u);
  EXPECT_EQ(files[0].path, "/");
  EXPECT_NE(files[0].text.find("href=\"page.css\""), std::string::npos);
  EXPECT_NE(files[0].text.find("src=\"page.js\""), std::string::npos);
  EXPECT_EQ(files[0].text.find("<style"), std::string::npos);
  EXPECT_EQ(files[0].text.find("style=\""), std::string::npos);
  EXPECT_EQ(files[1].path, "/page.css");
  EXPECT_EQ(files[2].path, "/page.js");
}

// Whatever is shown, text stays text.
TEST(PageFiles, TheScriptMakesNoMarkupOfTexts) {
  for (const char* const way : {"innerHTML", "outerHTML =", "insertAdjacentHTML", "document.write",
                                "eval(", "new Function"}) {
    EXPECT_EQ(PageFiles()[2].text.find(way), std::string::npos) << way;
  }
}

}  // namespace
}  // namespace berth::page_files_test
