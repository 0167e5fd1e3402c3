//go:build !linux

package netconn

// flow is nothing on this system.
type flow struct{}

// hints is nothing on this system.
type hints struct{}

// Flow is not for this system.
func Flow(dst, src *Conn, b *Buffer, moved func(n int)) error { panic("no connection can flow here") }

// CanFlow reports false on this system.
func CanFlow(dst, src *Conn) bool { return false }
