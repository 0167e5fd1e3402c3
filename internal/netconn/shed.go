package netconn

import (
	"bytes"
	"crypto/tls"
	"reflect"
	"unsafe"
)

// kept is where a *tls.Conn keeps what it reads into. crypto/tls lets go of none of it
// for as long as the connection lasts, which is 3.5 KiB after the hello of a browser and
// up to 32 KiB after an upload.
var kept = lookUpKept()

// keptFields are fields of a *tls.Conn, as offsets: what came from the peer, the messages
// of the handshake, and what of the bytes received is not read yet.
type keptFields struct {
	raw, hand, unread uintptr
	known             bool // they are as we know them
}

func lookUpKept() keptFields {
	raw, ok1 := fieldOf[bytes.Buffer]("rawInput")
	hand, ok2 := fieldOf[bytes.Buffer]("hand")
	unread, ok3 := fieldOf[bytes.Reader]("input")
	return keptFields{raw, hand, unread, ok1 && ok2 && ok3}
}

// fieldOf returns where a *tls.Conn has a field, if it has one of this type.
func fieldOf[T any](name string) (offset uintptr, ok bool) {
	f, ok := reflect.TypeFor[tls.Conn]().FieldByName(name)
	return f.Offset, ok && f.Type == reflect.TypeFor[T]()
}

// Shed lets a TLS connection forget the memory that it has read into, where nothing in
// it is unread: it takes new memory with the next record. Nobody may read from the
// connection meanwhile, or shake hands. Where a version of Go keeps the memory in
// another way, nothing happens.
func Shed(c *tls.Conn) {
	if !kept.known {
		return
	}
	at := unsafe.Pointer(c)
	raw, hand := (*bytes.Buffer)(unsafe.Add(at, kept.raw)), (*bytes.Buffer)(unsafe.Add(at, kept.hand))
	unread := (*bytes.Reader)(unsafe.Add(at, kept.unread))
	if unread.Len() == 0 && raw.Len() == 0 { // what is unread lies in raw
		unread.Reset(nil)
		*raw = bytes.Buffer{}
	}
	if hand.Len() == 0 {
		*hand = bytes.Buffer{}
	}
}

// isDrained reports whether a TLS connection surely holds nothing that came and was not
// read, not even a part of a record. Only its reader may ask.
func isDrained(c *tls.Conn) bool {
	if !kept.known {
		return false
	}
	at := unsafe.Pointer(c)
	return (*bytes.Reader)(unsafe.Add(at, kept.unread)).Len() == 0 && (*bytes.Buffer)(unsafe.Add(at, kept.raw)).Len() == 0
}
