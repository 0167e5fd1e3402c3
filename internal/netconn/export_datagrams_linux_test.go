//go:build !race && (amd64 || arm64)

package netconn

import "syscall"

// Through makes the system calls of d go to another socket while there is one.
func (d *Datagrams) Through(other func() syscall.RawConn) {
	d.calls.raw = &elsewhere{d.calls.raw, other}
}

type elsewhere struct {
	syscall.RawConn
	other func() syscall.RawConn
}

func (e *elsewhere) Control(f func(fd uintptr)) error {
	if raw := e.other(); raw != nil {
		return raw.Control(f)
	}
	return e.RawConn.Control(f)
}

func (e *elsewhere) Read(f func(fd uintptr) bool) error {
	if raw := e.other(); raw != nil {
		return raw.Read(f)
	}
	return e.RawConn.Read(f)
}
