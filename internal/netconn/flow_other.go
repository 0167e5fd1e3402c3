//go:build !linux

package netconn

// flow is nothing on this system.
type flow struct{ carrier carrier }

type carrier struct{}

func (carrier) release(*flow) {}
func (carrier) forget(*flow)  {}

// Carry is not for this system.
func Carry(dst, src *Conn, until int64, moved func(n int), resume func()) bool { return false }

// Flow is not for this system.
func Flow(dst, src *Conn, b *Buffer, wait bool, moved func(n int)) error {
	panic("no connection can flow here")
}

// CanFlow reports false on this system.
func CanFlow(dst, src *Conn) bool { return false }
