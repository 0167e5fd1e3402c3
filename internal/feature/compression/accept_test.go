package compression

import (
	"testing"

	"headgate/internal/proto/header"
)

func TestClientsWish(t *testing.T) {
	order := []algorithm{zstandard, brotlied, gzipped}
	for _, c := range []struct {
		accept string
		want   wish
	}{
		{"gzip, deflate, br, zstd", wish{zstandard, true}},
		{"gzip, deflate, br", wish{brotlied, true}},
		{"gzip", wish{gzipped, true}},
		{"GZIP", wish{gzipped, true}},
		{"x-gzip", wish{gzipped, true}},
		{"gzip;q=1.0, br;q=0.9", wish{gzipped, true}},
		{"gzip;q=0.9, br;q=0.90", wish{brotlied, true}},
		{"gzip; q=0.5 , br ;q=0.4", wish{gzipped, true}},
		{"*", wish{zstandard, true}},
		{"*;q=0.1, gzip", wish{gzipped, true}},
		{"zstd;q=0, *", wish{brotlied, true}},
		{"deflate", wish{identity, true}},
		{"", wish{identity, true}},
		{"identity", wish{identity, true}},
		{"gzip;q=0", wish{identity, true}},
		{"gzip;q=0.5, identity", wish{identity, true}},
		{"gzip, identity", wish{gzipped, true}},
		{"identity;q=0", wish{identity, false}},
		{"identity;q=0, gzip", wish{gzipped, false}},
		{"*;q=0", wish{identity, false}},
		{"*;q=0, identity;q=0.1", wish{identity, true}},
		{"gzip, *;q=0", wish{gzipped, false}},
		{"gzip;q=2", wish{identity, true}},
		{"gzip;q=0.5555", wish{identity, true}},
		{"gzip;q=x, br", wish{brotlied, true}},
		{"gzip;level=9", wish{identity, true}},
	} {
		var list header.List
		list.Add(header.AcceptEncoding, c.accept)
		if got := wishOf(&list, order); got != c.want {
			t.Errorf("%q: %v, want %v", c.accept, got, c.want)
		}
	}
	var list header.List
	if got := wishOf(&list, order); got != (wish{identity, true}) {
		t.Errorf("without the field: %v", got)
	}
	list.Add(header.AcceptEncoding, "gzip")
	list.Add(header.AcceptEncoding, "br")
	if got := wishOf(&list, order); got.best != brotlied {
		t.Errorf("two fields: %v", got)
	}
}

func FuzzAcceptEncoding(f *testing.F) {
	f.Add("gzip;q=0.5, *;q=0, identity")
	f.Add("br;q=1.000,,;;q==")
	f.Fuzz(func(t *testing.T, accept string) {
		var list header.List
		list.Add(header.AcceptEncoding, accept)
		weights, others := weightsOf(&list)
		for _, w := range append(weights[:], others) {
			if w < unsaid || w > 1000 {
				t.Fatalf("%q: weight %d", accept, w)
			}
		}
	})
}

func TestTypes(t *testing.T) {
	usual := newTypes(nil)
	own := newTypes([]string{"Text/HTML", "*+json", "font/*"})
	for _, c := range []struct {
		name       string
		usual, own bool
	}{
		{"text/html", true, true}, {"TEXT/HTML; charset=utf-8", true, true}, {"text/plain", true, false},
		{"application/json", true, false}, {"application/problem+json", true, true}, {"image/svg+xml", true, false},
		{"font/woff2", false, true}, {"image/png", false, false}, {"application/octet-stream", false, false},
		{"text/event-stream", false, false}, {"text/event-stream;charset=utf-8", false, false}, {"application/grpc", false, false},
		{"application/grpc-web+json", false, false}, {"", false, false}, {"text", false, false}, {"application/wasm", true, false},
	} {
		if usual.has(c.name) != c.usual || own.has(c.name) != c.own {
			t.Errorf("%q: usual %v, own %v, want %v, %v", c.name, usual.has(c.name), own.has(c.name), c.usual, c.own)
		}
	}
}
