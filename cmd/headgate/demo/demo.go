// Package demo is what "headgate demo" shows: an example configuration and an upstream that
// echoes each request.
//
// Upstream is an http.Handler for any server; Config returns a configuration
// that proxies to it, as a person would write one.
package demo

import (
	_ "embed"
	"strings"
)

// Places are the addresses of a demonstration.
type Places struct {
	// Listen is the address of the port, Upstream that of the upstream.
	Listen, Upstream string
	// Admin is the address of the admin listener, "" for none.
	Admin string
}

//go:embed headgate.yaml
var template string

// Config returns the configuration for a demonstration at these places.
func Config(p Places) []byte {
	return []byte(strings.NewReplacer(
		"LISTEN", p.Listen,
		"UPSTREAM", p.Upstream,
		"ADMIN", p.Admin,
	).Replace(template))
}

// Hints returns command lines to try, with what each of them shows.
func Hints(p Places) string {
	return strings.ReplaceAll(`Try:

  # what an upstream sees, as text and as JSON
  curl -i http://LISTEN/hello
  curl -i http://LISTEN/hello -H 'Accept: application/json'
  # the route's path is stripped: /v2/users
  curl -i 'http://LISTEN/api/users?page=2'
  # strip_prefix: false keeps it
  curl -i http://LISTEN/kept/users
  # rewrite: regex and replacement
  curl -i http://LISTEN/old/7
  # a fixed response
  curl -i http://LISTEN/gone
  # a redirect rule
  curl -i http://LISTEN/moved/house
  # the cache: the second answer has an Age, and Cache-Status says hit
  curl -i http://LISTEN/cached http://LISTEN/cached
  # a rate limit: the fourth gets 429; a header rule: X-Real-IP
  curl -i 'http://LISTEN/limited?n=[1-4]'
  # a host whose proxy has no such route
  curl -i http://LISTEN/ -H 'Host: named.localhost'
  # a body
  curl -i http://LISTEN/hello --data-binary 'some text'
`, "LISTEN", p.Listen)
}
