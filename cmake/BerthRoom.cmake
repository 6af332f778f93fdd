# berth_room(NAME name [GENERATED source ...] [PUBLIC ...] [PRIVATE ...])
#
# One room of the house: a static library berth_<name> with the alias berth::<name>, of all sources of this folder and
# of its sub-folders, and of those that the build writes (GENERATED). Headers without a source file
# form the header set `alone`: the target all_verify_interface_header_sets compiles each by itself. Every other header
# is the first include of its source file (test/arch checks it), which proves the same.

add_library(berth_warnings INTERFACE)
target_compile_options(berth_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor
  -Wold-style-cast -Wimplicit-fallthrough
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>
  $<$<BOOL:${BERTH_WERROR}>:-Werror>)

# berth_combine(TARGET)
#
# Where BERTH_COMBINE is a number, up to so many sources of the target are compiled as one: most of the time of a small
# source goes into the same headers. No two files of a target give one name to two things, in anonymous namespaces or by
# `using`: a test file has a namespace of its own. What is generated, and what has definitions of its own, is compiled
# alone. CMake's own unity builds include by absolute paths, which a compiler cache does not find again in another work
# tree; these do not.
function(berth_combine target)
  if(NOT BERTH_COMBINE)
    return()
  endif()
  get_target_property(sources ${target} SOURCES)
  set(alone "")
  set(together "")
  foreach(source IN LISTS sources)
    get_source_file_property(defined ${source} COMPILE_DEFINITIONS)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path NORMALIZE)
    cmake_path(IS_PREFIX PROJECT_BINARY_DIR "${path}" generated)
    if(defined OR generated)
      list(APPEND alone ${source})
    else()
      cmake_path(RELATIVE_PATH path BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      list(APPEND together ${path})
    endif()
  endforeach()
  if(NOT together)
    return()
  endif()
  list(LENGTH together count)
  math(EXPR units "(${count} + ${BERTH_COMBINE} - 1) / ${BERTH_COMBINE}")
  set(from 0)
  foreach(unit RANGE 1 ${units})
    math(EXPR size "(${count} - ${from} + ${units} - ${unit}) / (${units} - ${unit} + 1)")
    list(SUBLIST together ${from} ${size} part)
    math(EXPR from "${from} + ${size}")
    list(TRANSFORM part REPLACE "(.+)" "#include \"\\1\"\n")
    list(JOIN part "" text)
    file(CONFIGURE OUTPUT ${target}_${unit}.cc CONTENT "${text}" @ONLY)
    list(APPEND alone ${CMAKE_CURRENT_BINARY_DIR}/${target}_${unit}.cc)
  endforeach()
  set_property(TARGET ${target} PROPERTY SOURCES ${alone})
  # g++ takes an included source for a header, where types in anonymous namespaces would be a mistake.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# berth_sources(VARIABLE folder ...)
#
# Every C++ source of the folders and of their sub-folders, in a fixed order, but for main.cc: a file that is added, moved
# or removed needs no line anywhere.
function(berth_sources variable)
  list(TRANSFORM ARGN APPEND "/*.cc" OUTPUT_VARIABLE patterns)
  file(GLOB_RECURSE sources RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS ${patterns})
  list(FILTER sources EXCLUDE REGEX "(^|/)main\\.cc$")
  set(${variable} ${sources} PARENT_SCOPE)
endfunction()

function(berth_room)
  cmake_parse_arguments(ROOM "" "NAME" "GENERATED;PUBLIC;PRIVATE" ${ARGN})
  berth_sources(ROOM_SOURCES .)
  file(GLOB_RECURSE ROOM_HEADERS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} CONFIGURE_DEPENDS *.h)
  set(target berth_${ROOM_NAME})
  add_library(${target} STATIC ${ROOM_SOURCES} ${ROOM_GENERATED})
  add_library(berth::${ROOM_NAME} ALIAS ${target})
  berth_combine(${target})
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
