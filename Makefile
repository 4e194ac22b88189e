# tilelayout: one non-recursive Makefile.  Sources are found by wildcard; `make help` lists the targets.
# Variables: CC, CFLAGS, BUILD (build folder), PREFIX, DESTDIR, WERROR=1, V=1 (show commands).

VERSION_NUMBER := 0.1.0
GIT_HASH       := $(if $(wildcard .git),$(shell git rev-parse --short=10 HEAD 2>/dev/null))
VERSION        := $(VERSION_NUMBER)$(if $(GIT_HASH),+g$(GIT_HASH))

BUILD  ?= build
PREFIX ?= /usr/local
CFLAGS ?= -O2 -g
JOBS   ?= 2
WARN   := -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
          -Wold-style-definition -Wwrite-strings -Wundef -Wvla -Wformat=2 -Wswitch-enum \
          -Wimplicit-fallthrough -Wdouble-promotion -fno-common
PKG    := $(shell command -v pkg-config 2>/dev/null)

# SQLite and Graphviz are used when they are there; the code asks HAVE_... and says so at run time.
HAVE_SQLITE   := $(shell $(CC) -E -include sqlite3.h -x c /dev/null >/dev/null 2>&1 && echo 1 || echo 0)
HAVE_GRAPHVIZ := $(if $(PKG),$(shell $(PKG) --exists libgvc libcgraph && echo 1 || echo 0),0)
SQLITE_LIBS   := $(if $(filter 1,$(HAVE_SQLITE)),-lsqlite3)
ifeq ($(HAVE_GRAPHVIZ),1)
GRAPHVIZ_CFLAGS := $(patsubst -I%,-isystem %,$(shell $(PKG) --cflags libgvc libcgraph))
GRAPHVIZ_LIBS   := $(shell $(PKG) --libs libgvc libcgraph)
endif

FLAGS := -std=c11 -D_GNU_SOURCE -I. $(WARN) -fPIC -fvisibility=hidden -DHAVE_SQLITE=$(HAVE_SQLITE) \
         -DHAVE_GRAPHVIZ=$(HAVE_GRAPHVIZ) $(GRAPHVIZ_CFLAGS) $(CFLAGS)
LIBS  := $(SQLITE_LIBS) $(GRAPHVIZ_LIBS) -ldl -lm -lpthread
STRICT := $(if $(WERROR),-Werror)

FOLDERS  := base analyzer codegen sim profiler db viz cli include tests bench
LIB_SRC  := $(wildcard base/*.c analyzer/*.c analyzer/*/*.c codegen/*.c codegen/*/*.c sim/*.c profiler/*.c db/*.c viz/*.c)
CLI_SRC  := $(wildcard cli/*.c)
TEST_SRC := $(wildcard tests/unit/*_test.c)
FUZZ_SRC := $(wildcard tests/fuzz/*_fuzz.c)
SCHEMA   := $(if $(wildcard db/schema.sql),$(BUILD)/gen/schema_sql.o)
LIB_OBJ  := $(LIB_SRC:%.c=$(BUILD)/%.o) $(SCHEMA)
CLI_OBJ  := $(CLI_SRC:%.c=$(BUILD)/%.o)
TESTS    := $(TEST_SRC:tests/unit/%.c=$(BUILD)/tests/%) $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/tests/%)
LIB_A    := $(BUILD)/libtilelayout.a
LIB_SO   := $(BUILD)/libtilelayout.so
PROGRAM  := $(if $(CLI_SRC),$(BUILD)/tilelayout)

# The version is given to the files that name it only, so that a commit rebuilds no others.
VERSIONED := $(patsubst %.c,$(BUILD)/%.o,$(shell grep -lsw TL_VERSION $(LIB_SRC) $(CLI_SRC)))

ifeq ($(V),1)
quiet = $(2)
else
quiet = @printf '  %-4s %s\n' '$(1)' '$(patsubst $(BUILD)/%,%,$@)'; $(2)
endif

.PHONY: all check check-asan check-gpu lint format bless docs install uninstall clean help fuzz fuzz-programs FORCE
.DELETE_ON_ERROR:
.SECONDARY:

all: $(LIB_A) $(LIB_SO) $(PROGRAM) ## the program and the library in build/

$(BUILD)/%.o: %.c $(BUILD)/flags
	@mkdir -p $(@D)
	$(call quiet,cc,$(CC) $(FLAGS) $(STRICT) -MMD -MP -c $< -o $@)

$(VERSIONED): FLAGS += -DTL_VERSION='"$(VERSION)"'
$(VERSIONED): $(BUILD)/version

$(BUILD)/gen/schema_sql.o: $(BUILD)/gen/schema_sql.c $(BUILD)/flags
	$(call quiet,cc,$(CC) $(FLAGS) $(STRICT) -MMD -MP -c $< -o $@)

$(BUILD)/gen/schema_sql.c: db/schema.sql
	@mkdir -p $(@D)
	$(call quiet,gen,{ echo '#include "db/schema.h"'; echo 'const char schema_sql[] = {'; \
		od -An -v -tu1 $< | sed 's/ *\([0-9][0-9]*\)/\1$(,)/g'; echo '0};'; } > $@)

$(LIB_A): $(LIB_OBJ)
	$(call quiet,ar,rm -f $@ && ar rcs $@ $(LIB_OBJ))

$(LIB_SO): $(LIB_OBJ)
	$(call quiet,ld,$(CC) $(CFLAGS) -shared -Wl$(,)-soname$(,)libtilelayout.so.0 $(LDFLAGS) $(LIB_OBJ) $(LIBS) -o $@)

$(BUILD)/tilelayout: $(CLI_OBJ) $(LIB_A)
	$(call quiet,ld,$(CC) $(CFLAGS) $(LDFLAGS) $(CLI_OBJ) $(LIB_A) $(LIBS) -o $@)

$(BUILD)/tests/%_test: $(BUILD)/tests/unit/%_test.o $(LIB_A)
	$(call quiet,ld,$(CC) $(CFLAGS) $(LDFLAGS) $< $(LIB_A) $(LIBS) -o $@)

$(BUILD)/bench/%: $(BUILD)/bench/%.o $(LIB_A)
	$(call quiet,ld,$(CC) $(CFLAGS) $(LDFLAGS) $< $(LIB_A) $(LIBS) -o $@)

# A fuzz target over its seeds, without libFuzzer.
$(BUILD)/tests/%_fuzz: $(BUILD)/tests/fuzz/%_fuzz.o $(BUILD)/tests/fuzz/standalone.o $(LIB_A)
	$(call quiet,ld,$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(LIB_A) $(LIBS) -o $@)

# Rewritten only when their text changes.
$(BUILD)/flags: FORCE
	@mkdir -p $(@D); echo '$(CC) $(FLAGS)' | cmp -s - $@ || echo '$(CC) $(FLAGS)' > $@
$(BUILD)/version: FORCE
	@mkdir -p $(@D); echo '$(VERSION)' | cmp -s - $@ || echo '$(VERSION)' > $@

check: all $(TESTS) ## builds and runs all tests that need no GPU
	@BUILD=$(BUILD) JOBS=$(JOBS) sh tests/run.sh $(CASES)

check-gpu: all $(TESTS) ## the tests that need an NVIDIA GPU too
	@BUILD=$(BUILD) JOBS=1 sh tests/run.sh --gpu $(CASES)

check-asan: ## the same tests with AddressSanitizer and UBSan, in build/asan
	@$(MAKE) --no-print-directory BUILD=build/asan check CFLAGS='-O1 -g -fno-omit-frame-pointer \
		-fsanitize=address$(,)undefined -fno-sanitize-recover=all'

bless: all ## rewrites the expected outputs of the golden tests; read the diff
	@BUILD=$(BUILD) JOBS=$(JOBS) sh tests/run.sh --bless $(CASES)

lint: all ## sizes, shapes, comments and formatting against CONTRIBUTING.md
	@BUILD=$(BUILD) CC='$(CC)' FLAGS='$(FLAGS)' python3 scripts/lint.py

format: ## clang-format over all sources
	@clang-format -i $$(find $(FOLDERS) -name '*.[ch]')

docs: ## pages of the codes, operations, verbs and options in build/docs
	@mkdir -p $(BUILD)/docs
	$(call quiet,gen,python3 scripts/docs.py $(BUILD)/docs)

fuzz: $(filter %_fuzz,$(TESTS)) ## libFuzzer targets (clang) in build/fuzz/targets, FUZZ_SECONDS=30 each
	@$(MAKE) --no-print-directory BUILD=build/fuzz CC=clang fuzz-programs \
		CFLAGS='-O1 -g -fsanitize=fuzzer-no-link$(,)address$(,)undefined -fno-sanitize-recover=all'
	@sh scripts/fuzz.sh build/fuzz/targets $(BUILD)/tests $(or $(FUZZ_SECONDS),30)

fuzz-programs: $(FUZZ_SRC:tests/fuzz/%.c=$(BUILD)/targets/%)
$(BUILD)/targets/%_fuzz: $(BUILD)/tests/fuzz/%_fuzz.o $(LIB_A)
	@mkdir -p $(@D)
	$(call quiet,ld,$(CC) $(CFLAGS) -fsanitize=fuzzer $< $(LIB_A) $(LIBS) -o $@)

install: all ## into $(DESTDIR)$(PREFIX)
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/lib/pkgconfig $(DESTDIR)$(PREFIX)/include
	install -m 755 $(BUILD)/tilelayout $(DESTDIR)$(PREFIX)/bin/
	install -m 644 $(LIB_A) $(DESTDIR)$(PREFIX)/lib/
	install -m 755 $(LIB_SO) $(DESTDIR)$(PREFIX)/lib/libtilelayout.so.0
	ln -sf libtilelayout.so.0 $(DESTDIR)$(PREFIX)/lib/libtilelayout.so
	install -m 644 include/tilelayout.h $(DESTDIR)$(PREFIX)/include/
	sed -e 's|@PREFIX@|$(PREFIX)|; s|@VERSION@|$(VERSION_NUMBER)|; s|@PRIVATE@|$(LIBS)|' tilelayout.pc.in \
		> $(DESTDIR)$(PREFIX)/lib/pkgconfig/tilelayout.pc

clean: ## removes build/
	rm -rf build

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile | expand -t 14

, := ,
-include $(LIB_OBJ:.o=.d) $(CLI_OBJ:.o=.d) $(patsubst %.c,$(BUILD)/%.d,$(TEST_SRC) $(FUZZ_SRC))
