package decode

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"headgate/internal/config/document"
	"headgate/internal/schema"
)

// guideOfPeers is the page that compares the terms of other proxies.
const guideOfPeers = "docs/guides/coming-from.md"

// nginx is the source that "headgate import" translates.
const nginx = "an nginx configuration"

// maxForeign limits how much of a file is searched to detect the proxy that it is for, in
// bytes.
const maxForeign = 64 << 10

// peers are other proxies with patterns that identify their configuration: all patterns
// must match. The first match is used.
var peers = []struct {
	name     string
	patterns []*regexp.Regexp
}{
	{"an HAProxy configuration", []*regexp.Regexp{
		regexp.MustCompile(`(?m)^(global|defaults|(frontend|backend|listen)\s+[\w.-]+)[ \t]*(#.*)?\r?$`),
		regexp.MustCompile(`(?m)^\s+(bind|server|mode|timeout|default_backend|use_backend|option|balance|log|maxconn|daemon|acl)[ \t]+[^:]`),
	}},
	{nginx, []*regexp.Regexp{
		regexp.MustCompile(`(?m)^\s*(http|events|stream|server|upstream\s+\S+|location\s+[^{]+)\s*\{`),
		regexp.MustCompile(`(?m)[^\s;{}]\s*;[ \t]*(\}|#.*|\r?$)`),
	}},
	{nginx, []*regexp.Regexp{
		regexp.MustCompile(`(?m)^\s*(listen|server_name|proxy_pass|proxy_set_header|ssl_certificate|include|return|root|add_header)[ \t][^\n{]*;[ \t]*(#.*)?\r?$`),
	}},
	{"a Traefik configuration", []*regexp.Regexp{
		regexp.MustCompile(`(?m)^\s*\[+(entryPoints|providers|certificatesResolvers|(http|tcp|udp)\.(routers|services|middlewares))\b`),
	}},
	{"a Caddyfile", []*regexp.Regexp{
		regexp.MustCompile(`(?m)^\s*(reverse_proxy|handle|handle_path|handle_errors|file_server|php_fastcgi|respond|encode|redir|import|tls|route|acme_ca|email)([ \t]+[^;\n]+)?\r?$`),
		regexp.MustCompile(`(?m)^[^\s#-][^;\n]*(\{|[^:,;{}\s])[ \t]*\r?$`),
	}},
}

// traefikKeys are keys that only Traefik's files have, which are also YAML.
var traefikKeys = [][]string{
	{"entryPoints"}, {"providers", "docker"}, {"providers", "file"}, {"certificatesResolvers"},
	{"http", "routers"}, {"http", "services"}, {"http", "middlewares"},
	{"tcp", "routers"}, {"tcp", "services"}, {"udp", "routers"}, {"udp", "services"},
}

// Foreign reports a file that is the configuration of another proxy; nil if it is not. Doc
// is the parsed file, nil if it is not YAML.
func (d *Decoder) Foreign(file string, data []byte, doc *document.Document) *schema.Problem {
	name := ""
	switch {
	case doc == nil || doc.Root().Kind != yaml.MappingNode:
		name = foreignText(data[:min(len(data), maxForeign)])
	case !d.ours(doc.Root()):
		name = foreignTree(doc.Root())
	}
	if name == "" {
		return nil
	}
	remedy := "see " + guideOfPeers
	if name == nginx {
		remedy = "run headgate import nginx FILE, or " + remedy
	}
	return &schema.Problem{File: file, Line: 1, Column: 1, What: fmt.Sprintf("this is %s, which headgate cannot read", name), Remedy: remedy}
}

// ours reports whether a mapping has a key of headgate's.
func (d *Decoder) ours(root *yaml.Node) bool {
	for i := 0; i+1 < len(root.Content); i += 2 {
		if key := root.Content[i].Value; d.Root.Field(key) != nil || strings.HasPrefix(key, "x-") {
			return true
		}
	}
	return false
}

// foreignText returns the proxy of a configuration text that is not a mapping.
func foreignText(text []byte) string {
	for _, p := range peers {
		if !slices.ContainsFunc(p.patterns, func(r *regexp.Regexp) bool { return !r.Match(text) }) {
			return p.name
		}
	}
	return ""
}

// foreignTree returns the proxy of a configuration that is a mapping.
func foreignTree(root *yaml.Node) string {
	has := func(path ...string) bool {
		n := root
		for _, name := range path {
			_, value := (document.Step{Name: name, Index: -1}).Find(n)
			if value == nil {
				return false
			}
			n = document.Resolved(value)
		}
		return true
	}
	for _, path := range traefikKeys {
		if has(path...) {
			return "a Traefik configuration"
		}
	}
	if has("apps", "http") || has("apps", "tls") || has("apps", "layer4") {
		return "a Caddy configuration"
	}
	return ""
}
