# Everything here is one command, and works on a fresh machine with Go and make.
# `make` alone lists what there is.

GO ?= go

# Without cgo a binary needs no library of the system and runs on any Linux, and all
# builds find what another has compiled.
export CGO_ENABLED ?= 0

.PHONY: help
help: ## list the commands
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: build
build: console ## build bin/headgate
	$(GO) build -trimpath -o bin/headgate ./cmd/headgate

.PHONY: web
web: ## build the console from web/; needs Node 20.19 or newer
	.ci/console build

# A build without Node is whole but for the console, and its first page says so.
.PHONY: console
console:
	@.ci/console build-if-possible

.PHONY: e2e
e2e: build ## use the console of bin/headgate in Chromium, as people do
	.ci/console e2e

.PHONY: screenshots
screenshots: build ## make the pictures of the console that docs have
	.ci/console screenshots

.PHONY: site
site: ## build the documentation site in site/.vitepress/dist, and check its links; needs Node 20.19 or newer
	cd site && { [ node_modules/.package-lock.json -nt package-lock.json ] || npm ci --no-audit --no-fund --loglevel=error; }
	cd site && npm run --silent test && npm run --silent build && npm run --silent check

.PHONY: run
run: build ## build, and start the demonstration
	./bin/headgate demo

.PHONY: check
check: ## before a commit: format, vet, house rules, staticcheck, tests
	@.ci/steps quick

.PHONY: test
test: ## everything that CI runs
	@.ci/steps all

.PHONY: fuzz
fuzz: ## fuzz every target in turn, for FUZZTIME each (30s)
	@.ci/fuzz

# SOAK=1h runs it longer. A log of headgate is kept at SOAK_LOG if something is wrong.
SOAK ?= 10m
.PHONY: soak
soak: ## run a raced headgate for SOAK (10m) under good and hostile clients, servers and changes
	cd interop && $(GO) test -count=1 -timeout 0 -v -run 'TestSoak$$' . -soak $(SOAK)

.PHONY: bench
bench: build ## measure side by side with nginx, HAProxy and net/http (BENCH="-rows keepalive" for a part)
	@.ci/install nginx:nginx-light haproxy:haproxy wrk:wrk h2load:nghttp2-client
	@[ -e /usr/lib/nginx/modules/ngx_stream_module.so ] || .ci/install no-such-program:libnginx-mod-stream
	$(GO) build -trimpath -o bin/bench ./bench
	./bin/bench -headgate bin/headgate $$(bench/peers find | sed 's|.*|-nginx &/bin/nginx -haproxy &/bin/haproxy|') -out docs/performance.md $(BENCH)

.PHONY: peers
peers: ## bring the newest nginx and HAProxy of Debian, which make bench then takes
	@bench/peers

CADDY ?= $(HOME)/.cache/headgate/caddy

.PHONY: speaks
speaks: ## try the protocols of headgate, nginx, HAProxy, Caddy (CADDY=path) and Traefik, and write the page
	[ -x $(CADDY) ] || GOBIN=$(dir $(CADDY)) CGO_ENABLED=0 $(GO) install github.com/caddyserver/caddy/v2/cmd/caddy@latest
	cd interop && peers=$$(../bench/peers find || ../bench/peers) && HEADGATE_SPEAKS=write HEADGATE_NGINX=$$peers/bin/nginx HEADGATE_HAPROXY=$$peers/bin/haproxy \
		HEADGATE_CADDY=$(CADDY) HEADGATE_TRAEFIK=$$(./traefik) $(GO) test -count=1 -run 'TestWhatHeadgateSpeaks$$' .

# Takes some minutes on a machine with nothing else to do.
.PHONY: upgrades-100
upgrades-100: ## replace the process 100 times under load of all protocols, and look for leaks
	cd interop && HEADGATE_UPGRADES=100 $(GO) test -count=1 -timeout 0 -v -run 'TestUpgradesUnderMixedLoad$$' .

.PHONY: upgrades-slow
upgrades-slow: ## replace the process 5 times under clients that are 200 ms away and lose datagrams
	cd interop && HEADGATE_UPGRADES=5 $(GO) test -count=1 -timeout 0 -v -run 'TestUpgradesOverASlowLine$$' .

.PHONY: abuse
abuse: build ## attack headgate and nginx alike, and tell what it costs them (ABUSE="-attacks window" for a part)
	@.ci/install nginx:nginx-light
	$(GO) build -trimpath -o bin/abuse ./bench/abuse
	./bin/abuse -headgate bin/headgate -out docs/performance.md $(ABUSE)

.PHONY: management
management: build ## measure what the management API costs those who are served (MANAGEMENT="-only edits" for a part)
	$(GO) build -trimpath -o bin/management ./bench/management
	./bin/management -headgate bin/headgate $(MANAGEMENT)

.PHONY: features
features: ## measure what each feature adds to a request
	$(GO) build -trimpath -o bin/bench ./bench
	./bin/bench -features -out docs/performance.md $(BENCH)

.PHONY: generate
generate: ## write again what is made from the Go types
	$(GO) generate ./...

# A release is built twice in two folders from the last commit, and fails where the results
# differ. RELEASE="-targets linux/amd64" and other flags: bin/release -help.
.PHONY: release
release: bin/release ## build everything of a release into dist/ (VERSION=1.2.3; KEY=ecdsa.pem signs it)
	bin/release -version "$(VERSION)" -key "$(KEY)" -url "$(URL)" -twice $(RELEASE)

.PHONY: dist
dist: bin/release ## the same once, from the files in this folder, for trying packages (VERSION=1.2.3)
	bin/release -version "$(VERSION)" -key "$(KEY)" -url "$(URL)" $(RELEASE) all

.PHONY: bin/release
bin/release:
	cd tools && $(GO) build -trimpath -o ../bin/release ./release

.PHONY: repo
repo: ## write a signed apt and yum repository of the packages in dist/ into dist/repo (KEY=GPG-key-id)
	packaging/repo.sh dist dist/repo "$(KEY)"

.PHONY: image-push
image-push: ## push the image of a release to a registry (VERSION=1.2.3 IMAGE=registry/name)
	packaging/push.sh "dist/headgate_$(VERSION)_image.tar" "$(IMAGE)" "$(VERSION)"

.PHONY: release-test
release-test: ## install, upgrade, run and remove what is in dist/, as users do (VERSION=1.2.3)
	packaging/test/run "$(VERSION)"

.PHONY: clean
clean: ## remove what was built
	rm -rf bin dist dist.work
