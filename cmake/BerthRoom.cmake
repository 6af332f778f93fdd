# berth_room(NAME name SOURCES ... HEADERS ... [PUBLIC ...] [PRIVATE ...])
#
# One room of the house: a static library berth_<name> with the alias berth::<name>. Headers without a source file
# form the header set `alone`: the target all_verify_interface_header_sets compiles each by itself. Every other header
# is the first include of its source file (test/arch checks it), which proves the same.

add_library(berth_warnings INTERFACE)
target_compile_options(berth_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${BERTH_WERROR}>:-Werror>)

function(berth_room)
  cmake_parse_arguments(ROOM "" "NAME" "SOURCES;HEADERS;PUBLIC;PRIVATE" ${ARGN})
  set(target berth_${ROOM_NAME})
  add_library(${target} STATIC ${ROOM_SOURCES})
  add_library(berth::${ROOM_NAME} ALIAS ${target})
  set(with_source ${ROOM_HEADERS})
  set(alone ${ROOM_HEADERS})
  list(TRANSFORM ROOM_SOURCES REPLACE "\\.cc$" ".h" OUTPUT_VARIABLE own)
  list(REMOVE_ITEM alone ${own} "")
  list(REMOVE_ITEM with_source ${alone} "")
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX VERIFY_INTERFACE_HEADER_SETS ON
                        INTERFACE_HEADER_SETS_TO_VERIFY alone)
  target_sources(${target} PUBLIC
                 FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${with_source}
                 FILE_SET alone TYPE HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${alone})
  target_link_libraries(${target} PUBLIC ${ROOM_PUBLIC} PRIVATE ${ROOM_PRIVATE} berth_warnings)
endfunction()
