//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/url"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// h2loadResult is what h2load counted.
type h2loadResult struct {
	done    int
	failed  int // without an answer, or with one that is not 2xx or 3xx
	data    int // bytes of all bodies
	took    time.Duration
	agreed  string // the protocol
	cipher  string
	version string // of TLS
}

// h2load runs h2load with one thread against a path of a peer and fails when any
// request did, or when anything else than HTTP/2 over TLS 1.3 was spoken.
func (b *bench) h2load(r *running, path string, args ...string) (h2loadResult, error) {
	to := url.URL{Scheme: "https", Host: r.setup.host(0), Path: path}
	args = append([]string{"-t1", "--connect-to=" + r.setup.address, "--tls13-ciphers=TLS_AES_128_GCM_SHA256"}, args...)
	out, err := exec.CommandContext(b.ctx, "h2load", append(args, to.String())...).CombinedOutput()
	if err != nil {
		return h2loadResult{}, fmt.Errorf("h2load: %w: %s", err, out)
	}
	result, err := parseH2load(string(out))
	switch {
	case err != nil:
		return h2loadResult{}, err
	case result.failed > 0:
		return h2loadResult{}, fmt.Errorf("%d requests failed:\n%s%s", result.failed, out, r.process.lastLines())
	case result.agreed != "h2" || result.version != "TLSv1.3" || result.cipher != "TLS_AES_128_GCM_SHA256":
		return h2loadResult{}, fmt.Errorf("h2load spoke %q, %q, %q", result.agreed, result.version, result.cipher)
	}
	return result, nil
}

// h2loadCounts and h2loadTraffic are the lines that count.
var (
	h2loadCounts  = regexp.MustCompile(`(?m)^requests: (\d+) total, \d+ started, (\d+) done, (\d+) succeeded,`)
	h2loadTraffic = regexp.MustCompile(`(?m)^traffic: .*\((\d+)\) data$`)
	h2loadTook    = regexp.MustCompile(`(?m)^finished in (\S+),`)
)

// parseH2load reads what h2load printed.
func parseH2load(out string) (h2loadResult, error) {
	counts, traffic, took := h2loadCounts.FindStringSubmatch(out), h2loadTraffic.FindStringSubmatch(out), h2loadTook.FindStringSubmatch(out)
	if counts == nil || traffic == nil || took == nil {
		return h2loadResult{}, fmt.Errorf("h2load counted nothing:\n%s", out)
	}
	total, err1 := strconv.Atoi(counts[1])
	done, err2 := strconv.Atoi(counts[2])
	succeeded, err3 := strconv.Atoi(counts[3])
	data, err4 := strconv.Atoi(traffic[1])
	duration, err5 := time.ParseDuration(took[1])
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return h2loadResult{}, fmt.Errorf("h2load: %w", err)
	}
	if done == 0 {
		return h2loadResult{}, fmt.Errorf("h2load counted no requests:\n%s", out)
	}
	return h2loadResult{
		done: done, failed: total - succeeded, data: data, took: duration,
		agreed:  valueOf(out, "Application protocol"),
		version: valueOf(out, "TLS Protocol"),
		cipher:  valueOf(out, "Cipher"),
	}, nil
}

// valueOf returns what stands behind a word and a colon; of several the first.
func valueOf(out, word string) string {
	for line := range strings.Lines(out) {
		if value, ok := strings.CutPrefix(line, word+": "); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
