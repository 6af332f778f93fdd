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

TEST(PageFiles, APageWithDataNeedsNoServerAndEscapesTheData) {
  const std::string page = PageWith(R"({"title":"</script><script>alert(1)</script>"})");
  EXPECT_EQ(page.find("page.css"), std::string::npos);
  EXPECT_EQ(page.find("src=\"page.js\""), std::string::npos);
  EXPECT_EQ(page.find("</script><script>alert"), std::string::npos);
  EXPECT_NE(page.find(R"({"title":"\u003c/script>\u003cscript>alert(1)\u003c/script>"})"),
            std::string::npos);
  EXPECT_NE(page.find("default-src 'none'"), std::string::npos);
}

}  // namespace
}  // namespace berth::page_files_test
