//go:build linux

package main

import (
	"strings"
	"testing"
	"time"
)

const h2loadOutput = `starting benchmark...
spawning thread #0: 1 total client(s). 3 total requests
TLS Protocol: TLSv1.3
Cipher: TLS_AES_128_GCM_SHA256
Server Temp Key: X25519 253 bits
Application protocol: h2
progress: 33% done
progress: 100% done

finished in 588.46ms, 5.10 req/s, 511.00MB/s
requests: 5 total, 5 started, 4 done, 3 succeeded, 1 failed, 1 errored, 0 timeout
status codes: 3 2xx, 0 3xx, 0 4xx, 1 5xx
traffic: 300.70MB (315308669) total, 403B (403) headers (space savings 28.55%), 300.00MB (314572800) data
                     min         max         mean         sd        +/- sd
time for request:   188.64ms    208.33ms    195.45ms     11.16ms    66.67%
`

func TestParseH2load(t *testing.T) {
	want := h2loadResult{
		done: 4, failed: 2, data: 314572800, took: 588460 * time.Microsecond,
		agreed: "h2", cipher: "TLS_AES_128_GCM_SHA256", version: "TLSv1.3",
	}
	if got, err := parseH2load(h2loadOutput); err != nil || got != want {
		t.Errorf("got %+v, %v; want %+v", got, err, want)
	}
	plain := strings.ReplaceAll(h2loadOutput, "Application protocol: h2\n", "")
	if got, err := parseH2load(plain); err != nil || got.agreed != "" {
		t.Errorf("no protocol said: got %+v, %v", got, err)
	}
}

func TestParseH2loadRefuses(t *testing.T) {
	const counts = "requests: 5 total, 5 started, 4 done, 3 succeeded, 1 failed, 1 errored, 0 timeout"
	for name, out := range map[string]string{
		"nothing":       "",
		"no counts":     strings.Replace(h2loadOutput, counts, "requests: many", 1),
		"no traffic":    strings.Replace(h2loadOutput, "traffic: ", "", 1),
		"no time":       strings.Replace(h2loadOutput, "finished in", "", 1),
		"a wrong time":  strings.Replace(h2loadOutput, "588.46ms", "soon", 1),
		"no requests":   strings.Replace(h2loadOutput, " 4 done", " 0 done", 1),
		"no number":     strings.Replace(h2loadOutput, "5 total", "99999999999999999999 total", 1),
		"not even data": strings.Replace(h2loadOutput, "(314572800) data", "(x) data", 1),
	} {
		if got, err := parseH2load(out); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
	}
}
