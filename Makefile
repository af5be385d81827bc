# weir. `make help` lists what there is.

.NOTPARALLEL:
.PHONY: help demo test check docs screenshots fuzz bench packages tools advisories release images apt

# What cargo has by `cargo install` is looked for in the same places as cargo.
export PATH := $(PATH):$(HOME)/.cargo/bin
CARGO := $(shell PATH="$$PATH:$$HOME/.cargo/bin" command -v cargo)
ifeq ($(CARGO),)
CARGO = echo 'cargo is missing: install Rust 1.89 or newer, see https://rustup.rs' >&2; false
endif
TARGET = $(if $(CARGO_TARGET_DIR),$(CARGO_TARGET_DIR),target)

# What builds the guide, in the version that docs/ is written for. It neither serves nor watches here.
MDBOOK_VERSION = 0.5.4
# What packs weir, and what holds its dependencies to deny.toml.
CARGO_DEB_VERSION = 3.8.0
CARGO_DENY_VERSION = 0.20.2
# What tests are built by, if not by rustc alone: `.ci/run` has them linted and documented as they are built.
LINTED = $(if $(BUILT_BY),RUSTC_WORKSPACE_WRAPPER='$(BUILT_BY)')
# How long each fuzz target runs, and from which seed: always the same, so that a test run that passed passes again. 0 is
# another one each time.
FUZZ_SECONDS ?= 5
FUZZ_SEED ?= 1
TEST_THREADS ?= 8
# What the tests need beside Rust: real servers and decoders, and a C++ compiler for libFuzzer.
TEST_PACKAGES = chromium nginx libnginx-mod-rtmp ffmpeg procps g++ iproute2 mosquitto mosquitto-clients postgresql prometheus \
	prometheus-node-exporter nats-server systemd python3-aiortc python3-paho-mqtt python3-venv coturn maven openjdk-17-jdk-headless \
	clickhouse-server srt-tools gir1.2-gst-rtsp-server-1.0 gstreamer1.0-rtsp python3-gi gstreamer1.0-plugins-base gstreamer1.0-plugins-good \
	gstreamer1.0-plugins-bad gstreamer1.0-plugins-ugly $(NODE_PACKAGES)
# Where npm is there without Debian's package of that name, node is another's, and stays.
NODE_PACKAGES = $(if $(shell command -v npm),,nodejs npm)

help:
	@echo 'make demo    build weir, load its own origin on this machine, write report.html (installs crates only)'
	@echo 'make test    each fuzz target for $(FUZZ_SECONDS) s (FUZZ_SECONDS=), then all tests against real servers'
	@echo 'make check   formatting, lints, documentation, licences of what weir depends on, whether its crates can be published'
	@echo 'make docs    the guide as a book: target/book/index.html (installs mdBook)'
	@echo 'make screenshots   the pictures of the guide, in eight minutes'
	@echo 'make release   static binary, Debian package, checksums and bill of materials in target/shipped'
	@echo 'make images   a container image of the archives in target/shipped, for all of their architectures'
	@echo 'make apt     a repository for apt of the packages in target/shipped, signed by KEY='
	@echo 'make advisories   what RustSec knows of what weir depends on (from GitHub)'
	@echo 'make fuzz    each fuzz target for $(FUZZ_SECONDS) s'
	@echo 'make bench   speed: CPU per client-second and its floor'

# Cargo shows how far it is.
demo:
	@echo 'demo: building weir with optimisation; the first time takes minutes, then seconds'; \
	began=$$(date +%s); $(CARGO) build --release --locked -p weir || exit 1; \
	echo "demo: built in $$(($$(date +%s) - began)) s; now a run of half a minute against its own server, on this machine"
	@directory="weir-runs/demo-$$(date -u +%Y%m%dT%H%M%SZ)-$$$$"; \
	mkdir -p weir-runs; \
	"$(TARGET)/release/weir" demo -o "$$directory"; code=$$?; \
	if [ -f "$$directory/report.html" ]; then echo "report: $$PWD/$$directory/report.html"; fi; \
	exit $$code

# Tests run in the development profile: dependencies are optimised, weir's crates are not, and the build stays short.
# Fuzzing comes first, so that the last lines are those of the tests. Most tests wait for real servers and for seconds of a
# run, not for a core: TEST_THREADS of them at a time.
test: packages tools fuzz
	@$(LINTED) RUST_TEST_THREADS=$(TEST_THREADS) .ci/tests

packages:
	@.ci/packages $(TEST_PACKAGES)

# Unoptimised and without debug information: they are built faster than they would then run. What is built for one serves the other.
tools:
	@export CARGO_TARGET_DIR="$(abspath $(TARGET))/tools" CARGO_PROFILE_DEV_DEBUG=false; \
	command -v cargo-deb >/dev/null || \
		$(CARGO) install cargo-deb --version $(CARGO_DEB_VERSION) --locked --debug || exit 1; \
	command -v cargo-deny >/dev/null || \
		$(CARGO) install cargo-deny --version $(CARGO_DENY_VERSION) --locked --debug --no-default-features

check: tools
	@$(CARGO) fmt --all --check
	@$(CARGO) deny --locked check licenses bans sources
	@$(CARGO) publish --workspace --dry-run --no-verify --locked --allow-dirty --quiet
ifdef BUILT_BY
	@$(LINTED) $(CARGO) test --no-run --workspace --all-targets --locked
else
	@$(CARGO) clippy --workspace --all-targets --locked -- -D warnings
	@RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --no-deps --workspace --locked
endif

advisories: tools
	@$(CARGO) deny --locked check advisories

release: tools
	@.ci/release

images:
	@.ci/images target/shipped

apt:
	@.ci/apt-repository target/shipped $(if $(KEY),'$(KEY)')

# Links are checked by the tests (cargo test -p weir documentation).
docs:
	@command -v mdbook >/dev/null || \
		$(CARGO) install mdbook --version $(MDBOOK_VERSION) --locked --no-default-features --features search
	@mdbook build docs
	@echo "guide: $$PWD/target/book/index.html"

# Whether each picture is made, there and shown is checked by the tests (cargo test -p weir documentation).
screenshots:
	@.ci/packages chromium ffmpeg
	@$(CARGO) build --release --locked -p weir
	@WEIR="$(TARGET)/release/weir" .ci/screenshots "$(TARGET)/screenshots"

# What is fuzzed has no unsafe code, so that an address sanitizer would find nothing and cost a third of the build and half of the runs.
fuzz:
	@.ci/fuzz $(FUZZ_SECONDS) $(FUZZ_SEED)

bench:
	@$(CARGO) bench --workspace --locked
