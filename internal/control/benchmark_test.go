package control

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"headgate/internal/config"
	edits "headgate/internal/config/document"
	"headgate/internal/testhouse"
)

// crowdOf returns a configuration of n proxies with three routes each. Note stands in
// every proxy.
func crowdOf(n, note int) string {
	var large strings.Builder
	large.WriteString("version: 1\nadmin: {address: \"\"}\naccess_log: {enabled: false}\nproxies:\n")
	for i := range n {
		fmt.Fprintf(&large, "  p%d:\n    virtual_hosts: [h%d.example.com]\n    routes:\n", i, i)
		for _, path := range []string{"/", "/api", "/static"} {
			fmt.Fprintf(&large, "      - path: %s\n        request_body_limit: %d\n        servers: [{url: \"http://127.0.0.1:%d\"}]\n", path, 1_000_000+note, 10_000+i)
		}
	}
	return large.String()
}

// editable returns a control that serves a file of ten thousand proxies and one more.
func editable(b *testing.B, note string) *Control {
	name := filepath.Join(b.TempDir(), "headgate.yaml")
	text := "ports: {web: {address: \"" + testhouse.Address(b) + "\", protocol: http}}\n" + crowdOf(9_999, 0) + "  last: {routes: [{fixed_response: {status: 200}}]}" + note + "\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
	c, err := New(Options{Log: slog.New(slog.DiscardHandler), ConfigFile: name, StateDir: filepath.Join(b.TempDir(), "state")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(c.close)
	if err := c.Reload(); err != nil {
		b.Fatal(err)
	}
	return c
}

// BenchmarkEdit is an edit of one proxy of ten thousand, until it acts and is saved.
func BenchmarkEdit(b *testing.B) {
	for name, note := range map[string]string{"plain": "", "accents": " # Änderung"} {
		b.Run(name, func(b *testing.B) {
			c := editable(b, note)
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				n++
				value := json.RawMessage(fmt.Sprint(201 + n%100))
				_, err := c.Change(Edit{Cause: Cause{Via: ViaAPI}, Do: func(docs config.Documents, _ *config.Config) (config.Documents, error) {
					docs, p := docs.Edit(edits.Edit{Op: edits.Set, Path: "proxies.last.routes[0].fixed_response.status", Value: value})
					if p != nil {
						return docs, p
					}
					return docs, nil
				}})
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkFileEdit is one edited proxy of ten thousand, from the file on.
func BenchmarkFileEdit(b *testing.B) {
	c := editable(b, "")
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		text := crowdTail(b, c, fmt.Sprintf("  last: {routes: [{fixed_response: {status: %d}}]}\n", 201+n%100))
		b.StopTimer()
		if err := os.WriteFile(c.options.ConfigFile, text, 0o600); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		c.changed()
	}
	b.StopTimer()
	if s := c.mu.refused; s != nil {
		b.Fatal(s)
	}
}

// crowdTail returns the file of c with another last line.
func crowdTail(b *testing.B, c *Control, last string) []byte {
	b.StopTimer()
	defer b.StartTimer()
	data, err := os.ReadFile(c.options.ConfigFile)
	if err != nil {
		b.Fatal(err)
	}
	text := string(data)
	return []byte(text[:strings.LastIndex(text, "  last:")] + last)
}

// BenchmarkApplyAll is a change of all of ten thousand proxies.
func BenchmarkApplyAll(b *testing.B) {
	c, err := New(Options{Log: slog.New(slog.DiscardHandler), StateDir: filepath.Join(b.TempDir(), "state")})
	if err != nil {
		b.Fatal(err)
	}
	defer c.close()
	port := "ports: {web: {address: \"" + testhouse.Address(b) + "\", protocol: http}}\n"
	texts := []string{port + crowdOf(10_000, 1), port + crowdOf(10_000, 2)}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		n++
		if err := c.Apply(Cause{}, doc(texts[n%2])); err != nil {
			b.Fatal(err)
		}
	}
}
