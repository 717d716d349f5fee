# external::llhttp: HTTP/1.1 parser, built from the C sources that Debian's node-llhttp ships.
# Debian has no compiled library of it. Not our code, so not built with our warnings.
find_path(LLHTTP_INCLUDE llhttp.h PATHS /usr/share/include/llhttp /usr/include/llhttp
    NO_DEFAULT_PATH REQUIRED)
find_path(LLHTTP_SOURCES llhttp.c PATHS /usr/share/llhttp NO_DEFAULT_PATH REQUIRED)
add_library(holdfast_llhttp STATIC
    ${LLHTTP_SOURCES}/llhttp.c ${LLHTTP_SOURCES}/http.c ${LLHTTP_SOURCES}/api.c)
target_include_directories(holdfast_llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE})
target_compile_options(holdfast_llhttp PRIVATE -O2 -w)
add_library(external::llhttp ALIAS holdfast_llhttp)
