package balance

import (
	"fmt"
	"strings"

	"headgate/internal/proto/header"
	"headgate/internal/proto/http1"
	"headgate/internal/schema"
)

// Words are the settings of load_balancing without a parameter; hash:header:NAME and
// hash:cookie:NAME are additional.
var words = [...]struct {
	word   string
	choice Choice
}{
	{"round_robin", Choice{Method: RoundRobin}},
	{"least_connections", Choice{Method: LeastConnections}},
	{"p2c_ewma", Choice{Method: P2CEWMA}},
	{"random", Choice{Method: Random}},
	{"first", Choice{Method: First}},
	{"client_ip_hash", Choice{Method: Hash, By: ByClient}},
	{"hash:path", Choice{Method: Hash, By: ByPath}},
}

const (
	hashHeader = "hash:header:"
	hashCookie = "hash:cookie:"
)

// Choice is a parsed load_balancing setting.
type Choice struct {
	// Method is how a server is chosen.
	Method Method
	// By is what a hash is made of.
	By By
	// Name is the name of the field or cookie, in the form it was written in.
	Name string
}

// By is what requests are hashed by.
type By uint8

// What requests are hashed by. ByHeader and ByCookie fall back to the client's
// address where a request has none.
const (
	ByNothing By = iota
	ByClient
	ByPath
	ByHeader
	ByCookie
)

// Parse reads a load_balancing setting; "" is round_robin. For an invalid one,
// what is the error and remedy the fix.
func Parse(text string) (c Choice, what, remedy string) {
	if text == "" {
		return c, "", ""
	}
	for _, w := range words {
		if w.word == text {
			return w.choice, "", ""
		}
	}
	if name, ok := strings.CutPrefix(text, hashCookie); ok {
		if !http1.ValidName(name) {
			return c, fmt.Sprintf("%q is not the name of a cookie", name), "write a name like hash:cookie:session"
		}
		return Choice{Method: Hash, By: ByCookie, Name: name}, "", ""
	}
	if name, ok := strings.CutPrefix(text, hashHeader); ok {
		switch id := header.Lookup(name); {
		case !http1.ValidName(name):
			return c, fmt.Sprintf("%q is not a header name", name), "write a name like hash:header:X-Tenant"
		case id.ClaimsClient():
			return c, "what clients say in " + name + " is not trusted", "write client_ip_hash, and whom to trust under client_ip.trusted"
		case id.HopByHop() || id == header.Host:
			return c, name + " cannot be used as a hash key", "write hash:header:NAME, hash:cookie:NAME or hash:path"
		}
		return Choice{Method: Hash, By: ByHeader, Name: name}, "", ""
	}
	known := []string{hashHeader + "NAME", hashCookie + "NAME"}
	for _, w := range words {
		known = append(known, w.word)
	}
	if near := schema.Nearest(text, known); near != "" {
		return c, fmt.Sprintf("unknown value %q", text), fmt.Sprintf("did you mean %q?", near)
	}
	if word, _, _ := strings.Cut(text, ":"); word == "hash" {
		return c, fmt.Sprintf("unknown value %q", text), "write hash:header:NAME, hash:cookie:NAME or hash:path"
	}
	remedy = "write round_robin, least_connections, p2c_ewma, random, first, client_ip_hash, hash:header:NAME, hash:cookie:NAME or hash:path"
	return c, fmt.Sprintf("unknown value %q", text), remedy
}
