package exchange

import (
	"sync/atomic"

	"headgate/internal/proto/header"
)

// Alternative announces another port with the same content in the Alt-Svc header (RFC
// 7838). It announces nothing until Set, and is safe for concurrent use. A nil *Alternative
// never announces anything.
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
