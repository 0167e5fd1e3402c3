package compression

import "strings"

// usualTypes are compressed when the settings name none. What is compressed in
// itself (images, video, woff2, archives) is not among them.
var usualTypes = []string{
	"text/*", "*+json", "*+xml", "*+text",
	"application/json", "application/x-ndjson", "application/javascript", "application/x-javascript", "application/ecmascript",
	"application/xml", "application/wasm", "application/graphql", "application/yaml", "application/toml", "application/sql",
	"application/rtf", "application/x-www-form-urlencoded", "application/x-sh",
	"application/vnd.ms-fontobject", "application/x-font-ttf", "application/x-font-opentype",
	"font/ttf", "font/otf", "font/collection", "font/eot",
	"image/bmp", "image/x-icon", "image/vnd.microsoft.icon",
}

// types are the media types that are compressed. They are immutable.
type types struct {
	exact    map[string]bool
	kinds    map[string]bool // "text" for text/*
	suffixes map[string]bool // "json" for *+json
}

func newTypes(list []string) *types {
	if len(list) == 0 {
		list = usualTypes
	}
	t := &types{exact: map[string]bool{}, kinds: map[string]bool{}, suffixes: map[string]bool{}}
	for _, entry := range list {
		entry = strings.ToLower(entry)
		if suffix, ok := strings.CutPrefix(entry, "*+"); ok {
			t.suffixes[suffix] = true
		} else if kind, ok := strings.CutSuffix(entry, "/*"); ok {
			t.kinds[kind] = true
		} else {
			t.exact[entry] = true
		}
	}
	return t
}

// grpc begins all types of gRPC.
const grpc = "application/grpc"

// longestType is the longest media type that is looked at, in bytes.
const longestType = 128

// has reports whether a Content-Type is one to compress. What is a stream of
// messages is none: a message has to arrive when it is sent.
func (t *types) has(contentType string) bool {
	name, _, _ := strings.Cut(contentType, ";")
	name = strings.TrimSpace(name)
	if name == "" || len(name) > longestType {
		return false
	}
	var lower [longestType]byte
	for i := range len(name) {
		c := name[i]
		if c-'A' < 26 {
			c |= 0x20
		}
		lower[i] = c
	}
	b := lower[:len(name)]
	if len(b) >= len(grpc) && string(b[:len(grpc)]) == grpc || string(b) == "text/event-stream" {
		return false
	}
	if t.exact[string(b)] {
		return true
	}
	slash, plus := -1, -1
	for i, c := range b {
		switch c {
		case '/':
			slash = i
		case '+':
			plus = i
		}
	}
	return slash > 0 && t.kinds[string(b[:slash])] || plus > slash && t.suffixes[string(b[plus+1:])]
}
