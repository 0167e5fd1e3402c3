package exchange

import (
	"sync/atomic"

	"headgate/internal/proto/header"
)

// Alternative tells clients of another port on which the same is served: the
// Alt-Svc field (RFC 7838). It says nothing until Set, and may be set while
// responses are sent. A nil *Alternative says nothing ever.
type Alternative struct{ value atomic.Pointer[string] }

// Set sets the value of the field; "" is none.
func (a *Alternative) Set(value string) {
	if value == "" {
		a.value.Store(nil)
		return
	}
	a.value.Store(&value)
}

// addTo adds the field to a response that has none of its own.
func (a *Alternative) addTo(rs *Response) {
	if v := a.value.Load(); v != nil && !rs.Header.Has(header.AltSvc) {
		rs.Header.Add(header.AltSvc, *v)
	}
}
