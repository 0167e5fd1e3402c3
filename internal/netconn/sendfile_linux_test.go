package netconn_test

import (
	"bytes"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"headgate/internal/netconn"
)

func TestSendFile(t *testing.T) {
	data := bytes.Repeat([]byte("0123456789abcdef"), 1<<17) // 2 MiB
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	for what, s := range map[string]struct {
		off, n, want int64
		err          error
	}{
		"a piece":        {5, 1 << 20, 1 << 20, nil},
		"to the end":     {1, int64(len(data)) - 1, int64(len(data)) - 1, nil},
		"beyond the end": {0, int64(len(data)) + 1, int64(len(data)), io.ErrUnexpectedEOF},
	} {
		t.Run(what, func(t *testing.T) {
			f, err := os.Open(name)
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			dst, out := pair(t)
			var got []byte
			read := make(chan struct{})
			go func() {
				defer close(read)
				got, _ = io.ReadAll(out)
			}()
			dst.Write([]byte("head"))
			n, ok, err := netconn.SendFile(dst, f, s.off, s.n)
			if !ok || n != s.want || err != s.err {
				t.Errorf("moved %d, %v, %v, want %d, %v", n, ok, err, s.want, s.err)
			}
			dst.CloseWrite()
			<-read
			if want := append([]byte("head"), data[s.off:s.off+s.want]...); !bytes.Equal(got, want) {
				t.Errorf("got %d bytes, want %d", len(got), len(want))
			}
			if at, _ := f.Seek(0, io.SeekCurrent); at != 0 {
				t.Errorf("the file is at %d", at)
			}
		})
	}
}

func TestSendFileReportsAClientThatLeft(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(name, 64<<20); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	dst, out := pair(t)
	out.SetLinger(0)
	out.Close()
	_, ok, err := netconn.SendFile(dst, f, 0, 64<<20)
	if e := (*netconn.WriteError)(nil); !ok || !errors.As(err, &e) {
		t.Errorf("%v, %v", ok, err)
	}
}

// Where the bytes have to be encrypted, nothing is moved, and the caller copies.
func TestSendFileLeavesOtherConnections(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, ok, err := netconn.SendFile(netconn.New(near), f, 0, 100); n != 0 || ok || err != nil {
		t.Errorf("%d, %v, %v", n, ok, err)
	}
}
