# Every target of the project; `make` alone lists them.
SHELL := /bin/bash
.DEFAULT_GOAL := help
TRAINYARD := bin/trainyard
NAME ?= trainyard
GPU ?= auto
IMAGES ?= auto
# Helm, kubectl and compilers collect garbage less often.
export GOGC ?= 400
PYTEST := $$(bin/bootstrap) -m pytest -q $(if $(filter 1,$(FULL)),,-m 'not long')
CACHE := $(or $(TRAINYARD_CACHE),$(HOME)/.cache/trainyard)

.PHONY: hooks
hooks:
	@.githooks/install
system lint verify format: hooks

.PHONY: help
help: ## list the targets
	@awk 'BEGIN {FS = ":.*## "} \
	  /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	  /^[a-z0-9-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@printf '\nSettings: NAME=%s  GPU=auto|mock|real  IMAGES=auto|pull|build  FULL=1 (all checks, all tests, all benchmarks)\n' '$(NAME)'
	@printf 'of e2e:   ONLY=gang,train.cpu  LIST=1 (list the checks)  KEEP=1 (leave the cluster)  REUSE=1 (check on it again)  CHANGED=1 (and what changed)  KUBERNETES=1.37\n'

##@ Main job
.PHONY: e2e
e2e: system ## cluster, install, MNIST on GPUs, report in out/e2e/; FULL=1: every check
	@TRAINYARD_CLUSTER_KUBERNETES='$(KUBERNETES)' $(TRAINYARD) e2e --name '$(NAME)' --gpu '$(GPU)' --images '$(IMAGES)' $(if $(filter 1,$(KEEP)),--keep) \
	  $(if $(filter 1,$(FULL)),--full) $(if $(ONLY),--only '$(ONLY)') $(if $(filter 1,$(REUSE)),--reuse) $(if $(filter 1,$(LIST)),--list) $(if $(filter 1,$(CHANGED)),--changed)

##@ Tests
.PHONY: test lint unit ceph storage-test chart-test policy-test scheduling-test pipeline-test monitoring-test serving-env serving-test notebook-test verify audit
test: system ## tests that need no cluster, three groups at a time; FULL=1: the long ones, too
	@$(TRAINYARD) tools build --for host --for test
	@$(MAKE) --no-print-directory --jobs=3 --keep-going --output-sync=target unit policy-test pipeline-test storage-test notebook-test chart-test scheduling-test serving-test monitoring-test lint verify
lint: ## style and format (ruff), prose (vale), direction of imports (import-linter), types (mypy)
	@$$(bin/bootstrap) -m ruff check --no-cache .
	@$$(bin/bootstrap) -m ruff format --no-cache --check .
	@vale=$$($(TRAINYARD) tools path vale) && git ls-files -z '*.md' '*.py' '*.tpl' '*.yaml' ':!*tests/*' ':!CHANGELOG.md' ':!docs/benchmarks.md' | xargs -0 "$$vale" --no-global --output=line
	@PYTHONPATH=scripts "$$(dirname "$$(bin/bootstrap)")/lint-imports" --no-logo --cache-dir "$(CACHE)/lint-imports"
	@$$(bin/bootstrap) -m mypy --cache-dir "$(CACHE)/mypy"
unit: ## unit tests, in Python and Go
	@$(TRAINYARD) tools build --for host --for test
	@$(if $(filter 1,$(FULL)),bin/bootstrap --browser >/dev/null || echo 'no page is opened')
	@$(PYTEST) tests/unit
	@for set in tools/kind-agent tools/step $(if $(filter 1,$(FULL)),charts/nfs/tools/nfs-provisioner); do \
	  (cd $$set && PATH="$$PATH:/usr/local/go/bin" CGO_ENABLED=0 GOFLAGS=-mod=readonly go test -trimpath ./...) || exit 1; done
ceph: ## unpack Debian's packages of Ceph into the cache, 260 MB, for storage-test; nothing is installed
	@PYTHONPATH=scripts $$(bin/bootstrap) tests/storage/ceph.py
storage-test: ## buckets, users, backup and restore on a real MinIO, users on a real Ceph
	@$(TRAINYARD) tools path minio >/dev/null
	@$(PYTEST) tests/storage
chart-test: ## render every profile, check schemas, subchart keys and permissions
	@$(TRAINYARD) tools build --for host --for test
	@$(if $(filter 1,$(FULL)),$(TRAINYARD) tools path helm --version 4 >/dev/null)
	@$(PYTEST) charts
policy-test: ## every admission rule, right and hook on a real API server; KUBERNETES=1.35: on that version's
	@$(TRAINYARD) tools build --for host --for test
	@$(TRAINYARD) tools path etcd >/dev/null
	@$(if $(filter 1,$(FULL)),$(TRAINYARD) tools path helm --version 4 >/dev/null)
	@$(TRAINYARD) tools path kube-apiserver --version '$(KUBERNETES)' >/dev/null
	@TRAINYARD_KUBERNETES='$(KUBERNETES)' $(PYTEST) tests/policies
scheduling-test: ## switches, queues and reserve on a real scheduler and API server, with nodes that are only objects
	@$(TRAINYARD) tools build --for host --for test
	@$(TRAINYARD) tools path vc-scheduler >/dev/null
	@$(PYTEST) tests/scheduling
pipeline-test: ## pipelines on a real controller, API server and store, with a kubelet whose pods are processes
	@$(TRAINYARD) tools build --for host --for test
	@for name in etcd minio workflow-controller argo trainyard-step; do $(TRAINYARD) tools path $$name >/dev/null || exit 1; done
	@$(PYTEST) tests/pipelines
monitoring-test: ## alerts fire and clear in promtool, dashboards and runbooks name what exists
	@$(TRAINYARD) tools path promtool >/dev/null
	@$(PYTEST) tests/monitoring
serving-env: ## a Python environment with what the image server-sklearn pins, in the cache: real model servers run in it
	@PYTHONPATH=scripts $$(bin/bootstrap) -m trainyard_dev.serving.environment >/dev/null
serving-test: serving-env ## real model servers of real models: protocol, keys, batches, readiness, the end
	@$(PYTEST) tests/serving
notebook-test: ## the hub of notebooks at work and attacked: a real hub, proxy and API server
	@$(TRAINYARD) tools build --for host --for test
	@$(TRAINYARD) tools path etcd >/dev/null
	@$(PYTEST) tests/notebooks
verify: ## pins and generated files agree with versions.yaml; the tree is within the ceilings of files.yaml
	@$(TRAINYARD) verify
audit: ## known vulnerabilities of what is pinned, compiled and installed: 0 none, 1 some, 3 not all could be asked
	@$(TRAINYARD) tools path osv-scanner >/dev/null
	@$$(bin/bootstrap) -m pytest tests/unit/trainyard_dev/audit -q
	@$(TRAINYARD) audit

.PHONY: attacks
attacks: ## every attack on record, put to a real API server; 1: something is let through
	@$(TRAINYARD) tools build --for host --for test
	@$(TRAINYARD) tools path etcd >/dev/null
	@$(TRAINYARD) attacks run

.PHONY: corpus
corpus: ## lint against a real API server on upstream's examples; 1: they differ
	@$(TRAINYARD) tools build --for host --for test
	@$(TRAINYARD) tools path etcd >/dev/null
	@$(TRAINYARD) corpus run

.PHONY: kfp-conformance
kfp-conformance: ## KFP's own samples on nodes that are cut off; KFP_SAMPLES: their folder; 1: one ends otherwise
	@[ -d '$(KFP_SAMPLES)/valid' ] || { echo 'error: KFP_SAMPLES must name test_data/sdk_compiled_pipelines of kubeflow/pipelines' >&2; exit 2; }
	@$(MAKE) --no-print-directory e2e ONLY=pipelines.kfp-samples KFP_SAMPLES='$(abspath $(KFP_SAMPLES))'

.PHONY: kfp-cost
kfp-cost: ## what a first step, a cached run and 500 steps of kfp take; 1: more than is due
	@$(MAKE) --no-print-directory e2e ONLY=pipelines.kfp-cost KFP_COST=1

.PHONY: kit-test
kit-test: ## the kit for one node, twice in a bare container within the limits of a borrowed machine; results in out/kit/
	@$(TRAINYARD) kit build && $(TRAINYARD) kit rehearse

.PHONY: matrix
matrix: ## policies, charts, scheduling and pipelines on the API servers of all minors; KUBERNETES=1.36: on that one
	@$(TRAINYARD) tools build --for host --for test
	@for name in etcd minio workflow-controller argo trainyard-step vc-scheduler; do $(TRAINYARD) tools path $$name >/dev/null || exit 1; done
	@$(TRAINYARD) matrix run $(if $(KUBERNETES),--kubernetes '$(KUBERNETES)')

.PHONY: release release-test
release: system ## chart, images, wheels, lists of contents, signatures, notes in out/release/; KEY=…: sign with it; URL=…: the project's home; CUDA=1: those images, too
	@$(TRAINYARD) release build $(if $(KEY),--key '$(KEY)') $(if $(URL),--home '$(URL)') $(if $(filter 1,$(CUDA)),--cuda)
release-test: ## a site takes the release that was built last, by six commands, and refuses a changed one
	@$(TRAINYARD) release test

.PHONY: publish
publish: ## dashboards, and pages and plots of the last campaigns, to out/publish/; runs none
	@$(TRAINYARD) publish

##@ Measuring
.PHONY: bench
bench: ## measure scheduling in under 15 minutes, results in out/bench/; FULL=1: everything, a day
	@$(TRAINYARD) bench run $(if $(filter 1,$(FULL)),--full)

##@ Pieces of the main job
.PHONY: system tools images chart cluster-up cluster-down doctor
system: ## install what this machine lacks (Debian packages as root, Python environment)
	@IMAGES='$(IMAGES)' bin/bootstrap --system >/dev/null
tools: system ## build every binary that is not in the cache yet
	@$(TRAINYARD) tools build
images: system ## build every image that is not in the cache yet
	@$(TRAINYARD) images build
chart: ## package the chart into out/charts/
	@$(TRAINYARD) chart package
cluster-up: system ## make the kind cluster and leave it
	@$(TRAINYARD) cluster up --name '$(NAME)' --gpu '$(GPU)' --images '$(IMAGES)'
cluster-down: ## remove the kind cluster
	@$(TRAINYARD) cluster down --name '$(NAME)'
doctor: ## what this machine has and lacks
	@$(TRAINYARD) doctor

##@ Housekeeping
.PHONY: format clean
format: ## let ruff rewrite the code
	@$$(bin/bootstrap) -m ruff check --fix-only . && $$(bin/bootstrap) -m ruff format .
clean: ## remove results from the tree (the cache stays)
	@rm -rf out
