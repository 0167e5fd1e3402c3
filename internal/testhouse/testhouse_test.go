package testhouse

import (
	"io"
	"testing"
)

func TestPairIsConnected(t *testing.T) {
	near, far := Pair(t)
	if _, err := io.WriteString(far, "x"); err != nil {
		t.Fatal(err)
	}
	far.CloseWrite()
	if b, err := io.ReadAll(near); string(b) != "x" || err != nil {
		t.Errorf("got %q, %v", b, err)
	}
}

func TestLogIsReadWhileItIsWritten(t *testing.T) {
	var l Log
	go io.WriteString(&l, "a line")
	Eventually(t, "the line is there", func() bool { return l.String() == "a line" })
}

func TestPortsAreGivenOnce(t *testing.T) {
	seen := map[string]bool{}
	for _, port := range append(Ports(t, 100), Ports(t, 100)...) {
		if seen[port] {
			t.Errorf("port %s was given twice", port)
		}
		seen[port] = true
	}
}
