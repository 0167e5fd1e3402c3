package health

import (
	"testing"
	"unsafe"
)

// Very many requests go to other servers in turn, and each waits for the memory of its
// own. A multiple of 64 bytes is placed by the runtime so that no cache line is divided.
func TestAServerFitsInCacheLines(t *testing.T) {
	var s Server
	if n := unsafe.Sizeof(s); n != 192 {
		t.Errorf("a server takes %d bytes, want 192", n)
	}
	if at := unsafe.Offsetof(s.Gauge) + unsafe.Sizeof(s.Gauge); at != 64+8 {
		t.Errorf("what is written with every request ends at byte %d, want 72: behind the first cache line", at)
	}
}
