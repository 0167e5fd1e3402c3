package plan

import (
	"reflect"
	"strings"
	"testing"

	"headgate/internal/config"
)

// TestEveryFeatureIsARowOfTheTable holds that each field of config.Features is a row
// of one of the tables of rooms, so that no feature parses and does nothing, and that
// what TCP and UDP proxies have of them is compiled by the same rows.
func TestEveryFeatureIsARowOfTheTable(t *testing.T) {
	c := newCompiler(config.New(), nil, House{}, nil)
	rows := map[string]room{}
	for _, r := range append(sources(), c.filters()...) {
		rows[r.name] = r
	}
	name := func(f reflect.StructField) string {
		word, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		return word
	}
	features := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.Features]()) {
		features[name(f)] = true
		if _, there := rows[name(f)]; !there {
			t.Errorf("%s is no row of a table of rooms", name(f))
		}
	}
	streams := map[string]bool{}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[config.StreamFeatures]()) {
		streams[name(f)] = true
		if rows[name(f)].stream == nil {
			t.Errorf("%s of TCP and UDP proxies: its row does not act on streams", name(f))
		}
	}
	for word, r := range rows {
		if r.stream != nil && !streams[word] {
			t.Errorf("the row %s acts on streams, and config.StreamFeatures has no such setting", word)
		}
	}
	for _, stream := range []reflect.Type{reflect.TypeFor[config.TCPProxy](), reflect.TypeFor[config.UDPProxy]()} {
		for _, f := range reflect.VisibleFields(stream) {
			if features[name(f)] && !streams[name(f)] {
				t.Errorf("%s of %s is no field of config.StreamFeatures", name(f), stream.Name())
			}
		}
	}
}

// A feature that knows of its route's servers is compiled for a route without any.
func TestFeaturesOfRoutesWithoutServers(t *testing.T) {
	p := compiled(t, `
version: 1
ports: {web: {address: "127.0.0.1:8080", protocol: http}}
proxies:
  shop:
    rewrite: {add_prefix: /x}
    routes:
      - {path: /gone, fixed_response: {status: 410}}
      - {path: /own, fixed_response: {status: 410}, rewrite: {regex: "^/a", replacement: /b}}
      - {path: /files, files: {root: /srv}}
`, nil)
	p.Retire(nil)
}
