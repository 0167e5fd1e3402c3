//go:build !race

package qpack

import (
	"bytes"
	"testing"

	"github.com/quic-go/qpack"
)

func TestDecodingAllocatesNothing(t *testing.T) {
	var b bytes.Buffer
	e := qpack.NewEncoder(&b)
	for range 10 {
		e.WriteField(qpack.HeaderField{Name: "x-name", Value: "a value"})
	}
	var text Text
	n := testing.AllocsPerRun(100, func() {
		text.Reset()
		if err := Decode(b.Bytes(), &text, nothing{}); err != nil {
			t.Fatal(err)
		}
	})
	if n > 0 {
		t.Errorf("got %v allocations", n)
	}
}
