# `make test` is the main command: it installs the tools of the tests and runs all checks.

CARGO ?= cargo

# Warnings are errors here and not in the code, so that a warning of a new compiler does not break a user's build.
DENY = -D warnings

# Tests that cannot run on this machine are added to this list, see crates/checks/shared/can_run.rs. With CI set they
# fail.
NOT_RUN = $(abspath $(or $(CARGO_TARGET_DIR),target))/not-run.txt

.DEFAULT_GOAL := help
.PHONY: help test ahead build-tests tests other-tests setup fmt fmt-check manual attack bpf figures figures-diff golden kernel-cpu kernel-figures kernel-grid kernel-worth lint explore code-tests purity licences doc bench instructions advisories clean
.PHONY: book campaign captures costs costs-program dist msrv notebooks papers publish-check readme schemas small flaky fuzz mutants wheel wheel-pyodide python-test python-lock web web-module web-pages web-served web-pictures web-plots web-test web-times

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# The failed tests, one line each.
FAILED = $(abspath $(or $(CARGO_TARGET_DIR),target))/failed.txt
STEPS = setup fmt-check lint small build-tests tests other-tests

# Runs all steps one after the other, even with -j, since they share the build directory. After a failed step the others still run.
# After `setup`, `ahead` runs in the background until `tests`, so it uses the cores that the steps leave idle.
test: ## Run all checks of CI; installs missing tools
	@mkdir -p '$(dir $(FAILED))'; : >'$(FAILED)'; table=; failed=; ahead=; \
	trap 'kill $$ahead 2>/dev/null; exit 130' INT TERM; for step in $(STEPS); do \
		printf '\n== make %s\n' $$step; start=$$(date +%s); \
		if [ $$step = tests ]; then wait $$ahead; fi; \
		if $(MAKE) --no-print-directory $$step; then how=passed; else how=FAILED; failed="$$failed $$step"; fi; \
		if [ $$step = setup ]; then nice -n 5 $(MAKE) --no-print-directory -j1 -k ahead >/dev/null 2>&1 & ahead=$$!; fi; \
		line=$$(printf '%7s s  %-6s  make %s' $$(($$(date +%s) - start)) $$how $$step); \
		printf '== %s\n' "$$line"; table="$$table$$line\n"; \
	done; \
	printf "\n$$table"; \
	if [ -s '$(NOT_RUN)' ]; then \
		printf '\nThese tests could not run on this machine:\n'; sort -u '$(NOT_RUN)'; \
	fi; \
	if [ -n "$$failed" ]; then \
		printf '\nThese steps failed:%s\n' "$$failed"; \
		if [ -s '$(FAILED)' ]; then printf '\nThese tests failed:\n'; cat '$(FAILED)'; fi; \
		exit 1; \
	fi; \
	if [ -s '$(NOT_RUN)' ]; then printf '\nAll other checks passed.\n'; else printf '\nAll checks passed.\n'; fi

# Before `tests`, whose parts share what it builds.
build-tests:
	$(CARGO) test --locked --workspace --no-run --lib --bins --tests

# In parallel, since tests in the browser and with real packets mostly wait.
tests:
	@MAKE='$(MAKE)' .ci/parallel code-tests web-test python-test

# Separate, since `doc` locks the build directory for long.
other-tests: costs doc

setup: ## Install missing tools of the tests
	@.ci/setup

# Lists all files: `cargo fmt` does not find modules that the macro of a registry declares.
SOURCES = find crates fuzz -name '*.rs' -not -path '*/target/*' -print0 | xargs -0 rustfmt --edition 2024

fmt: ## Format the code
	$(SOURCES)

fmt-check: ## Check the format of the code
	$(SOURCES) --check

figures: ## Regenerate the figures of the manual from runs of the program
	LASTHOP_WRITE_FIGURES=1 $(CARGO) test --locked --package lasthop-study --test figures the_figures_of_the_manual
	LASTHOP_WRITE_FIGURES=1 $(CARGO) test --locked --package lasthop-study --test all grid::each_cell
	LASTHOP_WRITE_FIGURES=1 $(CARGO) test --locked --package lasthop-sim --test all hand_off::
	LASTHOP_WRITE_FIGURES=1 $(CARGO) test --locked --package lasthop --test cli the_six_links
	LASTHOP_WRITE_FIGURES=1 $(MAKE) golden

# Runs all tests with golden figures (crates/checks/shared/golden.rs), or those of the campaign with FIGURES in their name.
golden:
	$(CARGO) test --locked --package lasthop-campaign --test short $(or $(FIGURES),net::)
ifeq ($(FIGURES),)
	$(CARGO) test --locked --package lasthop-live --test live frames::
	$(CARGO) test --locked --package lasthop-proto --lib tunnel::net
	$(CARGO) test --locked --package lasthop-proto --test agents handoff_net
endif

BASE ?= HEAD
figures-diff: ## Show which golden figures differ from those of BASE=HEAD (FIGURES=senders: of some tests)
	CARGO='$(CARGO)' .ci/figures-diff $(BASE) '$(FIGURES)'

PARITY = today --world testbed --seeds 5 --set stack=kernel --set transfer.bytes=1GB --set horizon=12s
SENDERS = --vary tcp=rack,cubic,bbr --json
LOSSES = --vary loss.cross.loss=0.1%,1%,3%
kernel-figures: ## Record runs of the kernel's senders on the paths of docs/explanation/parity.md: half an hour on an idle machine
	mkdir -p target/figures
	for delay in 5ms 50ms; do target/release/lasthop run $(PARITY) --set core.link.rate=100mbit \
		--set core.link.queue=200p --set core.link.delay=$$delay $(LOSSES) $(SENDERS) > target/figures/$$delay.json || exit 1; done
	target/release/lasthop run $(PARITY) --set core.link.rate=20mbit --set core.link.queue=200p \
		--set core.link.delay=20ms --vary loss.cross.loss=1% $(SENDERS) > target/figures/20ms.json
	LASTHOP_KERNEL_RUNS=$$PWD/target/figures/5ms.json:$$PWD/target/figures/50ms.json:$$PWD/target/figures/20ms.json \
		$(CARGO) test --locked --package lasthop-study --test figures the_record_of_the_kernel

kernel-worth: ## Record runs of the kernel's senders for docs/explanation/worth-it.md: three quarters of an hour on an idle machine
	mkdir -p target/figures
	for tcp in cubic bbr rack; do for delay in 10ms 50ms; do target/release/lasthop run worth-it --world testbed --seeds 1 \
		--set host.server.stack=kernel --set host.server.tcp=$$tcp --set wired.link.delay=$$delay \
		--vary agent=none,snoop,snoop-smart,snoop+ackp,split,split-sack,m-tcp --vary errors.p=0%,0.1%,1%,3% --json \
		> target/figures/worth-$$tcp-$$delay.json || exit 1; done; done
	LASTHOP_KERNEL_RUNS=$$(ls $$PWD/target/figures/worth-*.json | paste -sd:) \
		$(CARGO) test --locked --package lasthop-study --test figures the_record_of_the_kernel

GRID = crates/study/tests/grid
kernel-grid: ## Record runs of the kernel's senders on the paths of docs/explanation/parity-grid.md: an hour on an idle machine
	mkdir -p target/figures
	for file in cells pairs apps; do target/release/lasthop run $(GRID)/$$file.toml --world testbed --json \
		> target/figures/grid-$$file.json || exit 1; done
	LASTHOP_KERNEL_GRID=$$PWD/target/figures/grid-cells.json:$$PWD/target/figures/grid-pairs.json:$$PWD/target/figures/grid-apps.json \
		$(CARGO) test --locked --package lasthop-study --test all grid::the_record_of_the_grid

manual: ## Regenerate the tables of the manual from the definitions of systems, keys and commands
	LASTHOP_WRITE_MANUAL=1 $(CARGO) test --locked --package lasthop-scenario --test all manual::the_tables_of_the_manual
	LASTHOP_WRITE_MANUAL=1 $(CARGO) test --locked --package lasthop --bin lasthop the_page_of_commands
	LASTHOP_WRITE_MANUAL=1 $(CARGO) test --locked --package lasthop-explore --test explore no_forged_segment

readme: ## Regenerate the samples and pictures of README.md from runs of the program
	mkdir -p docs/pictures
	LASTHOP_WRITE_MANUAL=1 $(CARGO) test --locked --package lasthop --test cli readme::

papers: ## Reproduce all claims of the papers, and regenerate the record of their verdicts and the pages of the papers
	$(CARGO) build --locked --release --package lasthop
	mkdir -p target/papers
	$(TARGET)/release/lasthop reproduce --fresh --json -o target/papers > target/papers/answer.json
	$(TARGET)/release/lasthop reproduce $$(sed -n 's/^"\(.*\)" = .*seeds.*/\1/p' crates/papers/src/record.toml) --seed 21 --seeds 120 --json \
		-o target/papers/many > target/papers/many.json
	LASTHOP_PAPERS=$$PWD/target/papers/answer.json:$$PWD/target/papers/many.json $(CARGO) test --locked --package lasthop-papers --test pages the_pages
	LASTHOP_WRITE_MANUAL=1 $(CARGO) test --locked --package lasthop-papers --test pages the_pages

kernel-cpu: ## Record the CPU time of this machine's TCP for A-LIVE (ten minutes as root; needs iperf3, perf, ethtool)
	crates/papers/src/agarwal00/kernel_cpu.py

schemas: ## Regenerate the schemas of JSON answers from answers of the program
	LASTHOP_WRITE_SCHEMAS=1 $(CARGO) test --locked --package lasthop --test cli schemas::

captures: ## Compare the analysis of the captures in DIR with tshark and tcptrace
	$(CARGO) run --locked --release --quiet --package lasthop-analyze --example captures -- '$(DIR)'

bpf: ## Compile the program for the kernel (needs clang 14 and libbpf's headers)
	crates/live/bpf/build

lint: ## Run Clippy with warnings as errors, also on the fuzz targets
	$(CARGO) clippy --locked --workspace --all-targets --features lasthop-fuzz/targets -- $(DENY)

# Generates no code. `live` alone is the only other likely combination of features.
small: ## Check that the command compiles without optional parts, and with `live` alone
	$(CARGO) clippy --locked --package lasthop --no-default-features -- $(DENY)
	$(CARGO) clippy --locked --package lasthop --no-default-features --features live -- $(DENY)

MSRV = $(shell sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
msrv: ## Check that the command and the protocols compile with the oldest supported Rust (installs it by rustup; not part of `make test`)
	rustup toolchain install $(MSRV) --profile minimal --no-self-update
	rustup run $(MSRV) cargo check --locked --package lasthop --package lasthop-proto

PUBLISHED = $(shell grep -l '^publish = true' crates/*/Cargo.toml | sed 's:crates/\(.*\)/Cargo.toml:--package lasthop-\1:')
publish-check: ## Check that crates.io would accept the published crates (not part of `make test`)
	$(CARGO) publish --dry-run --allow-dirty --locked $(PUBLISHED)

code-tests: ## Run all tests of the code, including purity and licences
	@rm -f '$(NOT_RUN)'
	LASTHOP_NOT_RUN='$(NOT_RUN)' LASTHOP_FAILED='$(FAILED)' CARGO='$(CARGO)' .ci/code-tests

# Sends a million packets from each side: for every agent in virtual time, and for both planes on real packets. `make test` sends
# a few thousand.
ATTACK ?= 1000000
attack: ## Attack connections through every agent with ATTACK=1000000 packets from each side, in separate namespaces
	ATTACK_PACKETS=$(ATTACK) $(CARGO) test --locked --release --package lasthop-proto --test agents attacks:: -- --nocapture
	ATTACK_PACKETS=$(ATTACK) $(CARGO) test --locked --release --package lasthop-live --test live attack:: -- --nocapture --test-threads=1

EXPLORE = $(TARGET)/release/lasthop explore
EXPLORED = $(TARGET)/explored
MATRIX = $(basename $(notdir $(wildcard crates/explore/matrix/*.toml)))
FAULTS ?= 2

explore: ## Explore every attack, and every pattern of two faults among 40 packets (FAULTS=3: of three among 20, for an hour); continues after Ctrl-C
	$(CARGO) build --locked --release --package lasthop
	mkdir -p '$(EXPLORED)'
	$(EXPLORE) explore --attacks -o '$(EXPLORED)/attacks.json'
	for file in explore $(MATRIX:%=crates/explore/matrix/%.toml); do \
		$(EXPLORE) $$file --faults $(FAULTS) --first $(if $(filter 3,$(FAULTS)),20,40) \
			-o "$(EXPLORED)/$$(basename $$file .toml)-$(FAULTS).json" || exit 1; done

SENDERS ?= 200
RECEIVERS ?= 100
FIRST ?= 0
random-scripts: ## Compare both TCPs by SENDERS=200 and RECEIVERS=100 random scripts from number FIRST=0 on (as root, idle machine)
	$(CARGO) build --locked --package lasthop
	python3 crates/packetdrill/tests/random.py $(TARGET)/debug/lasthop $(TARGET)/random $(SENDERS) $(RECEIVERS) $(FIRST)

ROUNDS ?= 30
flaky: ## Run the tests of live and cli ROUNDS=30 times idle and as often on busy cores (LOADS=busy: only on busy cores; TESTS="cli/shell live/keep::a_killed")
	CARGO='$(CARGO)' LOADS='$(LOADS)' .ci/flaky $(ROUNDS) $(TESTS)

TARGET = $(abspath $(or $(CARGO_TARGET_DIR),target))
VENV = $(TARGET)/python
# Rebuilt when the lock file changes.
PYTHON = $(VENV)/installed-$(firstword $(shell cksum <python/requirements.txt))

$(PYTHON):
	rm -rf '$(VENV)'
	python3 -m venv '$(VENV)'
	'$(VENV)/bin/pip' install --quiet --disable-pip-version-check --require-hashes --requirement python/requirements.txt
	touch '$@'

wheel: $(PYTHON) ## Build the Python package for release; prints its size and the time of its import
	rm -rf '$(TARGET)/wheels'
	cd python && '$(VENV)/bin/maturin' build --quiet --locked --out '$(TARGET)/wheels'
	'$(VENV)/bin/pip' install --quiet --force-reinstall --no-deps '$(TARGET)'/wheels/*.whl
	@ls -l '$(TARGET)'/wheels/*.whl
	@cd / && '$(VENV)/bin/python' -c 'import time; a = time.perf_counter(); import lasthop; \
		print(f"import: {1000 * (time.perf_counter() - a):.1f} ms")'

# A release of Pyodide loads only modules of the Emscripten that it was built with. `link-native-libraries` is an unstable option.
PYODIDE = 315.0.0-alpha.2
EMSCRIPTEN = 6.0.5
PYODIDE_ABI = 2026_5
wheel-pyodide: $(PYTHON) ## Build the Python package for Pyodide, and test it in Node; needs emcc and Rust's target wasm32-unknown-emscripten
	@emcc --version | grep -q ' $(EMSCRIPTEN) ' || { echo 'wheel-pyodide needs emcc $(EMSCRIPTEN), with which Pyodide $(PYODIDE) was built' >&2; exit 1; }
	rm -rf '$(TARGET)/wheels-pyodide'
	cd python && RUSTC_BOOTSTRAP=1 RUSTFLAGS='-C link-arg=-sSIDE_MODULE=2 -Z link-native-libraries=no' CC_wasm32_unknown_emscripten=emcc \
		AR_wasm32_unknown_emscripten=emar CFLAGS_wasm32_unknown_emscripten=-fPIC PYO3_CROSS_PYTHON_VERSION=3.15 \
		MATURIN_PYEMSCRIPTEN_PLATFORM_VERSION=$(PYODIDE_ABI) '$(VENV)/bin/maturin' build --quiet --locked \
		--target wasm32-unknown-emscripten $(if $(PROFILE),--profile $(PROFILE)) --out '$(TARGET)/wheels-pyodide'
	$(NODE) npm install --silent --no-save --prefix '$(TARGET)/pyodide' pyodide@$(PYODIDE)
	$(NODE) node .ci/pyodide.mjs '$(TARGET)/pyodide/node_modules/pyodide' '$(TARGET)'/wheels-pyodide/*.whl

# The reference is the command that code-tests built. Building it alone would change features of dependencies and rebuild them. The
# wheel is also built in the workspace (.ci/cargo-of-tests); `make wheel` builds the package alone. The development profile gives the same
# results.
python-test: ## Test the Python package, as a wheel (WITHOUT_PYTHON=1 skips this)
ifdef WITHOUT_PYTHON
	@echo 'the Python package: WITHOUT_PYTHON is set' | tee -a '$(NOT_RUN)'
	@test -z "$$CI"
else
	@$(MAKE) --no-print-directory '$(PYTHON)'
	$(CARGO) test --locked --workspace --no-run --quiet --test cli
	rm -rf '$(TARGET)/wheels-dev'
	cd python && CARGO='$(CURDIR)/.ci/cargo-of-tests' \
		'$(VENV)/bin/maturin' build --quiet --locked --profile dev --out '$(TARGET)/wheels-dev'
	'$(VENV)/bin/pip' install --quiet --force-reinstall --no-deps '$(TARGET)'/wheels-dev/*.whl
	cd python && LASTHOP_FAILED='$(FAILED)' PYTHONSAFEPATH=1 '$(VENV)/bin/pytest'
endif

notebooks: wheel ## Execute the notebook of each reader from the wheel in a fresh environment, and print its time; needs PyPI
	'$(VENV)/bin/python' .ci/notebooks '$(TARGET)'/wheels/*.whl

python-lock: ## Update the versions of the packages for the Python tests
	python3 -m venv '$(TARGET)/uv' && '$(TARGET)/uv/bin/pip' install --quiet uv
	'$(TARGET)/uv/bin/uv' pip compile --quiet --generate-hashes --python-version 3.11 \
		--custom-compile-command 'make python-lock' python/requirements.in --output-file python/requirements.txt
	'$(TARGET)/uv/bin/uv' pip compile --quiet --generate-hashes --python-version 3.11 \
		--custom-compile-command 'make python-lock' deploy/dist-requirements.in --output-file deploy/dist-requirements.txt

PARTS ?=
dist: ## Build a release into target/dist and try it (PARTS="programs debs sums smoke" builds only these; not part of `make test`)
	@deploy/dist $(PARTS)

NODE = NODE_VENV='$(TARGET)/node' '$(CURDIR)/.ci/node'
NODE_MODULES = web/node_modules/.package-lock.json
WASM = wasm32-unknown-unknown

$(NODE_MODULES): web/package.json web/package-lock.json
	cd web && $(NODE) npm ci --no-fund --no-audit --ignore-scripts
	touch '$@'

web-module:
	$(CARGO) build --locked --quiet --profile module --package lasthop-web --target $(WASM)

# Parts of later steps that use the network or other build directories. Those steps repeat failed parts, so they report the errors.
ahead: $(if $(WITHOUT_BROWSER),,$(NODE_MODULES) web-module) $(if $(WITHOUT_VALGRIND),,costs-program) $(if $(WITHOUT_PYTHON),,$(PYTHON))

web: web-module $(NODE_MODULES) ## Build the laboratory: target/web/lab.html, and target/web/folder for a web server
	cd web && LASTHOP_MODULE='$(TARGET)/$(WASM)/module/lasthop_web.wasm' $(NODE) node pack.mjs '$(TARGET)/web'

web-served: web ## Regenerate the page that `lasthop lab` serves
	cp '$(TARGET)/web/served.html' crates/cli/src/cmd/lab/page.html

web-plots: $(NODE_MODULES) ## Rebuild the script of reports, which the program embeds
	cd web && LASTHOP_PLOTS_OUT='$(TARGET)/web/plots' $(NODE) npm exec -- vite build --config vite.plots.config.ts --logLevel warn
	cp '$(TARGET)/web/plots/plots.js' crates/report/src/plots.js
	@ls -l crates/report/src/plots.js

web-pages: web ## Draw every kind of page at four widths, light and dark, into target/web/pictures for a review (KINDS="lab run": only these)
	$(CARGO) build --locked --quiet --package lasthop
	cd web && LASTHOP='$(TARGET)/debug/lasthop' LASTHOP_WEB='$(TARGET)/web' $(NODE) node --import ./tests/typescript.mjs pages.ts $(KINDS)

web-pictures: web ## Regenerate the pictures of docs/how-to/lab.md
	cd web && LASTHOP_WEB='$(TARGET)/web' $(NODE) node --import ./tests/typescript.mjs pictures.ts

web-times: web ## Measure first paint, first picture, slider-to-picture and frames of the laboratory (VISITS=9)
	cd web && LASTHOP_WEB='$(TARGET)/web' $(NODE) node --import ./tests/typescript.mjs times.ts
	cd web && LASTHOP_FRAMES=120 LASTHOP_WEB='$(TARGET)/web' $(NODE) node --import ./tests/typescript.mjs --test tests/frames.test.ts

# Starts its own browser and ends it; no request leaves this machine. The program that code-tests built writes the reports.
web-test: ## Test the laboratory and reports in Chromium (WITHOUT_BROWSER=1 skips this)
ifdef WITHOUT_BROWSER
	@echo 'the laboratory and reports in a browser: WITHOUT_BROWSER is set' | tee -a '$(NOT_RUN)'
	@test -z "$$CI"
else
	@$(MAKE) --no-print-directory web
	$(CARGO) test --locked --workspace --no-run --quiet --test cli
	cd web && $(NODE) npm run --silent check
	cd web && LASTHOP='$(TARGET)/debug/lasthop' LASTHOP_WEB='$(TARGET)/web' $(NODE) npm run --silent test
endif

purity: ## Check that the pure crates run in WebAssembly without imports, with the same results
	$(CARGO) test --locked --package lasthop-web --test engine purity::

licences: ## Check licences and sources of all dependencies
	$(CARGO) test --locked --package lasthop-checks --test all dependencies::

# Reuses the results of `make lint`, which needs its wrapper, its arguments in the form of cargo-clippy, and dependencies with the features of
# tests, which `--examples` selects.
doc: ## Build the documentation of the code, with warnings as errors
	RUSTC_WORKSPACE_WRAPPER="$$(rustc --print sysroot)/bin/clippy-driver" CLIPPY_ARGS='$(subst $(SPACE),$(HACKERY),$(DENY))$(HACKERY)' \
		RUSTDOCFLAGS='$(DENY)' $(CARGO) doc --locked --workspace --no-deps --document-private-items --lib --bin lasthop --examples

HACKERY = __CLIPPY_HACKERY__
SPACE = $(subst ,, )

MDBOOK = $(TARGET)/mdbook-0.5.4

$(MDBOOK)/bin/mdbook:
	$(CARGO) install --quiet --locked --root '$(MDBOOK)' --no-default-features --features search mdbook@0.5.4

book: $(MDBOOK)/bin/mdbook ## Build the book of docs/; installs mdBook for it (not part of `make test`)
	@.ci/book '$(TARGET)/book' '$<'

NAME ?= packet
SECONDS ?= 60
fuzz: ## Fuzz one target (NAME=packet SECONDS=60; SECONDS=keep copies found inputs into the repository)
	CARGO='$(CARGO)' fuzz/run '$(NAME)' '$(SECONDS)'

bench: ## Measure speed (minutes; not part of `make test`)
	$(CARGO) bench --locked --workspace

CASES ?= 100000
campaign: ## Run 100,000 hostile scenarios (CASES=N; `make test` has only a short form, which takes seconds)
	$(CARGO) run --locked --profile campaign --package lasthop-campaign -- scenarios --count $(CASES)

MUTANTS ?= 20
MUTANTS_SEED ?= 1
MUTANTS_OF ?= proto scenario path observe live
MUTANTS_ALSO ?= campaign
mutants: ## Test MUTANTS=20 random changes of the source, and list those that no test detects (minutes each; needs cargo-mutants)
	@cargo mutants --version >/dev/null 2>&1 || { \
		echo 'cargo-mutants 27.1 or later is missing: run cargo install --locked cargo-mutants' >&2; exit 1; }
	.ci/mutants '$(MUTANTS)' '$(MUTANTS_SEED)' '$(MUTANTS_OF)' '$(MUTANTS_ALSO)'

instructions: ## Count the instructions of the stack, for the table of energy::costs (needs valgrind)
	@command -v valgrind >/dev/null || { \
		echo 'valgrind, which counts the instructions, is missing: run apt-get install valgrind' >&2; exit 1; }
	$(CARGO) bench --locked --package lasthop-proto --bench instructions

# A program with a feature of its own, since benchmarks would also build the dependencies of tests.
costs: ## Compare the instructions of fixed runs with the recorded numbers (RECORD=1 records them, CACHES=1 counts cache misses; WITHOUT_VALGRIND=1 skips this)
ifdef WITHOUT_VALGRIND
	@echo 'the instructions of runs: WITHOUT_VALGRIND is set' | tee -a '$(NOT_RUN)'
	@test -z "$$CI"
else
	@$(MAKE) --no-print-directory costs-program
	'$(TARGET)/release/lasthop-costs' $(if $(RECORD),record) $(if $(CACHES),caches)
endif

costs-program:
	$(CARGO) build --locked --quiet --release --package lasthop-sim --no-default-features --features costs --bin lasthop-costs

advisories: ## Check for known vulnerabilities of dependencies (needs cargo-deny and network; not part of `make test`)
	$(CARGO) deny --all-features check

clean: ## Remove all builds
	$(CARGO) clean
