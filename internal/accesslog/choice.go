package accesslog

import (
	"fmt"
	"slices"
	"strings"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
)

// choice is what of which requests is logged. It is immutable.
type choice struct {
	request, response []named
	omit              field
	sample            uint64 // of 100
}

// named is a field of requests or responses that is logged, by the key that it has.
type named struct{ name, key string }

// field is a set of fields of a line that can be left out.
type field uint16

const (
	clientIP field = 1 << iota
	peer
	clientPort
	user
	query
	userAgent
	referer
	cause
	tlsOf
)

// omittable are the names of those fields.
var omittable = []string{"client_ip", "peer", "client_port", "user", "query", "user_agent", "referer", "cause", "tls"}

// Omittable returns the names of the fields that a line can be without.
func Omittable() []string { return slices.Clone(omittable) }

func newChoice(c *Config) (choice, error) {
	o := choice{sample: uint64(max(c.Sample, 0))}
	if c.Sample == 0 {
		o.sample = 100
	}
	for _, name := range c.Omit {
		i := slices.Index(omittable, name)
		if i < 0 {
			return o, fmt.Errorf("unknown field %q", name)
		}
		o.omit |= 1 << i
	}
	o.request, o.response = namesOf(c.Headers), namesOf(c.ResponseHeaders)
	return o, nil
}

func namesOf(fields []string) []named {
	var out []named
	for _, name := range fields {
		out = append(out, named{name, strings.ToLower(name)})
	}
	return out
}

// has reports whether a field is logged.
func (o *choice) has(f field) bool { return o.omit&f == 0 }

// selects reports whether a request is logged. A sample is spread evenly, also over the
// requests of one connection.
func (o *choice) selects(ex *exchange.Exchange) bool {
	if o.sample >= 100 || ex.Reason != exchange.None || ex.Status() >= 400 {
		return true
	}
	const golden = 0x9e3779b97f4a7c15
	return (ex.Number()*golden>>32)%100 < o.sample
}

// maxHeader is how much of a field is logged, in bytes.
const maxHeader = 1024

// appendHeaders appends the fields of a list that are logged, as an object named by key.
func appendHeaders(b []byte, key string, wanted []named, list *header.List) []byte {
	begun := false
	for i := range wanted {
		value, there := list.Lookup(wanted[i].name)
		if !there {
			continue
		}
		if begun {
			b = append(b, ',')
		} else {
			b = append(append(b, key...), '{')
			begun = true
		}
		b = append(appendText(b, wanted[i].key, maxName), ':')
		b = appendText(b, value, maxHeader)
	}
	if begun {
		b = append(b, '}')
	}
	return b
}
