//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// feature is what one adds to a request, by the benchmark of its own package.
type feature struct {
	title   string
	folder  string // below internal
	pattern string // of one benchmark, as go test has it
	goal    float64
}

// allFeatures are the rows of the table, in the order in which filters act.
func allFeatures() []feature {
	return []feature{
		{"client_ip, untrusted peer", "feature/clientip", "ClientIP$/^not_trusted$", 200},
		{"client_ip, two hops of X-Forwarded-For", "feature/clientip", "ClientIP$/^two_hops$", 150},
		{"client_ip behind Cloudflare", "feature/clientip", "ClientIP$/^cloudflare$", 150},
		{"ip_filter, 10 entries", "feature/ipfilter", `IPFilter$/^10$/^203\.0\.113\.1$`, 300},
		{"ip_filter, 100 000 entries", "feature/ipfilter", `IPFilter$/^100000$/^203\.0\.113\.1$`, 300},
		{"ip_filter, 100 000 entries, denied", "feature/ipfilter", `IPFilter$/^100000$/^1\.0\.4\.1$`, 300},
		{"list of 100 000 entries", "lists", "List$", 30},
		{"country, not cached", "geo", "Country$", 150},
		{"bans, response that counts nothing", "bans", "ResponseThatCountsNothing$/^0$", 50},
		{"bans, the same with 10 000 bans", "bans", "ResponseThatCountsNothing$/^10000$", 50},
		{"bans, response that is counted", "bans", "RequestThatCounts$", 0},
		{"rate_limit by address", "feature/ratelimit", "RateLimit$/^passes$", 500},
		{"rate_limit by address, rejected", "feature/ratelimit", "RateLimit$/^refused$", 500},
		{"rate_limit by a header", "feature/ratelimit", "RateLimit$/^header$", 500},
		{"rate_limit by a cookie", "feature/ratelimit", "RateLimit$/^cookie$", 500},
		{"redirects, no match", "feature/redirects", "NoMatch$", 0},
		{"gate, request with a session", "feature/gate", "Request$/^gated$", 500},
		{"basic_auth, verified credentials", "feature/basicauth", "Verified$", 500},
		{"forward_auth, cached session", "feature/forwardauth", "Session$/^kept$", 0},
		{"headers, three rules", "feature/headers", "Rules$/^three$", 0},
		{"compression, not compressible", "feature/compression", "NotCompressed$", 0},
		{"sticky_cookie", "upstream", "Sticky$", 0},
		{"starting a request, for comparison", "tracing", "Request$/^off$", 0},
		{"tracing, 1 in 100 sampled", "tracing", "Request$/^one_percent$", 270},
		{"tracing, all sampled", "tracing", "Request$/^sampled$", 0},
	}
}

// measureFeatures runs the benchmarks one after the other and returns the table.
func measureFeatures(ctx context.Context, o options) (string, error) {
	var out strings.Builder
	fmt.Fprintf(&out, "- Date: %s\n- Machine: %s\n- Versions: %s\n", time.Now().UTC().Format("2006-01-02"), machine(), runtime.Version())
	fmt.Fprintf(&out, "- Medians of %d rounds; the minimum and maximum are in parentheses\n\n", o.rounds)
	out.WriteString("| feature | ns CPU per request | allocations | goal |\n|---|---|---|---|\n")
	for _, r := range allFeatures() {
		text, err := r.run(ctx, o)
		if err != nil {
			return "", fmt.Errorf("%s: %w", r.title, err)
		}
		times, allocations, err := parseBenchmark(text)
		if err != nil {
			return "", fmt.Errorf("%s: %w", r.title, err)
		}
		fmt.Fprintf(&out, "| %s | %s | %d | %s |\n", r.title, cell(times), allocations, r.reached(median(values(times))))
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// run runs the benchmark, on one core as everything is measured here.
func (r *feature) run(ctx context.Context, o options) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "^Benchmark"+r.pattern, "-benchmem",
		"-cpu", "1", "-count", strconv.Itoa(o.rounds), "./internal/"+r.folder)
	text, err := cmd.CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, bytes.TrimSpace(text))
	}
	return text, nil
}

// reached says whether a goal is met.
func (r *feature) reached(got float64) string {
	switch {
	case r.goal == 0:
		return ""
	case got <= r.goal:
		return fmt.Sprintf("≤ %s: met", short(r.goal))
	}
	return fmt.Sprintf("≤ %s: missed", short(r.goal))
}

var benchmarkLine = regexp.MustCompile(`(?m)^(Benchmark\S+)\s+\d+\s+([0-9.]+) ns/op.*?\s(\d+) allocs/op`)

// parseBenchmark reads the times of each round of one benchmark, in nanoseconds,
// and the most allocations.
func parseBenchmark(text []byte) (times []sample, allocations int, err error) {
	var names []string
	for _, m := range benchmarkLine.FindAllSubmatch(text, -1) {
		took, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return nil, 0, err
		}
		n, err := strconv.Atoi(string(m[3]))
		if err != nil {
			return nil, 0, err
		}
		times, allocations = append(times, sample{value: took}), max(allocations, n)
		if name := string(m[1]); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	if len(names) != 1 {
		return nil, 0, fmt.Errorf("want one benchmark, got %d %v in:\n%s", len(names), names, bytes.TrimSpace(text))
	}
	return times, allocations, nil
}

// The table of the features stands in its page between these.
const (
	beginFeatures = "<!-- features: begin. Made by make features; do not edit. -->"
	endFeatures   = "<!-- features: end -->"
)
