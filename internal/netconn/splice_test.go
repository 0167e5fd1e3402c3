//go:build linux

package netconn_test

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"headgate/internal/netconn"
)

func TestSplice(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // 4 MiB
	for name, s := range map[string]struct {
		n, want int64
		err     error
	}{
		"with a length": {int64(len(data)) - 5, int64(len(data)) - 5, nil},
		"to the end":    {-1, int64(len(data)), nil},
		"cut short":     {int64(len(data)) + 1, int64(len(data)), io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			src, in := pair(t)
			dst, out := pair(t)
			go func() {
				in.Write(data)
				in.CloseWrite()
			}()
			var got []byte
			read := make(chan struct{})
			go func() {
				defer close(read)
				got, _ = io.ReadAll(out)
			}()
			dst.Write([]byte("head"))
			n, ok, err := netconn.Splice(dst, src, s.n)
			if !ok || n != s.want || err != s.err {
				t.Errorf("moved %d, %v, %v, want %d, %v", n, ok, err, s.want, s.err)
			}
			dst.CloseWrite()
			<-read
			if want := append([]byte("head"), data[:s.want]...); !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, want %d", len(got), len(want))
			}
		})
	}
}

func TestSpliceTellsWhoseErrorItIs(t *testing.T) {
	src, in := pair(t)
	dst, out := pair(t)
	out.SetLinger(0)
	out.Close()
	stop := make(chan struct{})
	go func() {
		defer close(stop)
		for piece := make([]byte, 1<<16); ; {
			if _, err := in.Write(piece); err != nil {
				return
			}
		}
	}()
	_, ok, err := netconn.Splice(dst, src, -1)
	var theirs *netconn.WriteError
	if !ok || !errors.As(err, &theirs) {
		t.Errorf("the writer's error: %v, %v", ok, err)
	}
	src.Close()
	<-stop

	src, in = pair(t)
	dst, _ = pair(t)
	in.SetLinger(0)
	in.Close()
	if _, ok, err = netconn.Splice(dst, src, -1); !ok || err == nil || errors.As(err, &theirs) {
		t.Errorf("the reader's error: %v, %v", ok, err)
	}
}
