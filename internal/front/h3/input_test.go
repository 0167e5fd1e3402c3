package h3

import (
	"bytes"
	"io"
	"testing"
	"testing/iotest"
)

// A frame that is announced costs no memory before it comes: each of many streams
// may announce the longest head.
func TestAnAnnouncedFrameCostsNoMemory(t *testing.T) {
	const long = 64 << 10
	in := &input{}
	in.reset(bytes.NewReader(make([]byte, 10)))
	if err := in.await(long); err != errTruncated {
		t.Errorf("got %v of 10 bytes", err)
	}
	if len(in.buf) > 2*inputSize {
		t.Errorf("10 bytes have taken memory for %d", len(in.buf))
	}
	whole := make([]byte, long)
	for i := range whole {
		whole[i] = byte(i * 7)
	}
	for name, from := range map[string]io.Reader{"at once": bytes.NewReader(whole), "in halves": iotest.HalfReader(bytes.NewReader(whole)), "in bytes": iotest.OneByteReader(bytes.NewReader(whole))} {
		in = &input{}
		in.reset(from)
		if err := in.await(100); err != nil {
			t.Fatal(err)
		}
		in.r += 100
		in.hold()
		if err := in.await(long - 100); err != nil || !bytes.Equal(in.bytes()[:long-100], whole[100:]) {
			t.Errorf("%s: %v, or other bytes", name, err)
		}
	}
}
