package hello

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"headgate/internal/testhouse"
)

// clientHello is what a client of crypto/tls says first.
func clientHello(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	config.InsecureSkipVerify = true
	go tls.Client(theirs, config).Handshake()
	ours.SetDeadline(time.Now().Add(testhouse.Patience))
	head := make([]byte, 5)
	if _, err := io.ReadFull(ours, head); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, int(head[3])<<8+int(head[4]))
	if _, err := io.ReadFull(ours, b); err != nil {
		t.Fatal(err)
	}
	return append(head, b...)
}

// records splits a message anew into records of so many bytes.
func records(b []byte, size int) []byte {
	var out []byte
	for part := b[5:]; len(part) > 0; {
		n := min(size, len(part))
		out = append(append(out, 22, 3, 1, byte(n>>8), byte(n)), part[:n]...)
		part = part[n:]
	}
	return out
}

// widen makes a ClientHello larger by an extension that nobody knows.
func widen(b []byte, by int) []byte {
	b = bytes.Clone(b)
	// session id, cipher suites, compression methods, then the extensions
	at := 5 + 4 + 2 + 32
	at += 1 + int(b[at])
	at += 2 + int(b[at])<<8 + int(b[at+1])
	at += 1 + int(b[at])
	length := int(b[at])<<8 + int(b[at+1]) + 4 + by
	b[at], b[at+1] = byte(length>>8), byte(length)
	b = append(append(b, 0xfe, 0xfe, byte(by>>8), byte(by)), make([]byte, by)...)
	length = len(b) - 9
	b[6], b[7], b[8] = byte(length>>16), byte(length>>8), byte(length)
	return records(b, 16<<10)
}

func TestTheNameIsFoundHoweverItIsSplit(t *testing.T) {
	plain := clientHello(t, &tls.Config{ServerName: "DB.Example.com", NextProtos: []string{"mqtt", "h2"}})
	old := clientHello(t, &tls.Config{ServerName: "db.example.com", MaxVersion: tls.VersionTLS12, NextProtos: []string{"mqtt", "h2"}})
	for name, data := range map[string][]byte{
		"TLS 1.3": plain, "TLS 1.2": old,
		"records of 1 byte": records(plain, 1), "records of 100 bytes": records(plain, 100),
		"20 KiB": widen(plain, 20<<10), "60 KiB": widen(plain, 60<<10),
	} {
		t.Run(name, func(t *testing.T) {
			if got, _, err := Parse(append(bytes.Clone(data), "and more"...)); got.Name != "db.example.com" || !slices.Equal(got.Protocols, []string{"mqtt", "h2"}) || err != nil {
				t.Errorf("got %+v and %v", got, err)
			}
			for n := 0; n < len(data); n += 1 + len(data)/500 {
				if got, _, err := Parse(data[:n]); !errors.Is(err, ErrMore) {
					t.Fatalf("%d of %d bytes: got %+v and %v, want %v", n, len(data), got, err, ErrMore)
				}
			}
		})
	}
}

func TestAClientWithoutAName(t *testing.T) {
	if got, _, err := Parse(clientHello(t, &tls.Config{})); got.Name != "" || got.Protocols != nil || err != nil {
		t.Errorf("got %+v and %v, want no name", got, err)
	}
}

func TestWhatIsNoHello(t *testing.T) {
	plain := clientHello(t, &tls.Config{ServerName: "db.example.com"})
	change := func(at int, c byte) []byte {
		b := bytes.Clone(plain)
		b[at] = c
		return b
	}
	twice := bytes.Clone(plain)
	name := []byte("\x00\x00\x00\x13\x00\x11\x00\x00\x0edb.example.com")
	if !bytes.Contains(plain, name) {
		t.Fatal("the name is not where the test wants it")
	}
	replaced := func(by string) []byte {
		if len(by) != len("db.example.com") {
			t.Fatal(by)
		}
		return bytes.Replace(plain, []byte("db.example.com"), []byte(by), 1)
	}
	offered, alpn := clientHello(t, &tls.Config{ServerName: "db.example.com", NextProtos: []string{"mqtt"}}), []byte("\x00\x10\x00\x07\x00\x05\x04mqtt")
	if !bytes.Contains(offered, alpn) {
		t.Fatal("the protocols are not where the test expects them")
	}
	for what, data := range map[string][]byte{
		"HTTP":                    []byte("GET / HTTP/1.1\r\n"),
		"an alert":                change(0, 21),
		"another protocol":        change(1, 2),
		"an empty record":         append([]byte{22, 3, 1, 0, 0}, plain...),
		"a record too large":      {22, 3, 1, 0x40, 1},
		"a ServerHello":           change(5, 2),
		"a message too large":     change(6, 2),
		"a long session id":       change(43, 33),
		"a message cut":           change(8, plain[8]-1),
		"a dot at the end":        replaced("db.example.co."),
		"a blank in the name":     replaced("db example.com"),
		"a NUL in the name":       replaced("db.example\x00com"),
		"another kind of name":    bytes.Replace(plain, []byte("\x00\x11\x00\x00\x0e"), []byte("\x00\x11\x01\x00\x0e"), 1),
		"records without end":     bytes.Repeat([]byte{22, 3, 1, 0, 1, 1}, MaxSize),
		"an empty protocol":       bytes.Replace(offered, alpn, []byte("\x00\x10\x00\x07\x00\x05\x00mqtt"), 1),
		"a list of protocols cut": bytes.Replace(offered, alpn, []byte("\x00\x10\x00\x07\x00\x05\x05mqtt"), 1),
		"two extensions of protocols": func() []byte {
			b := widen(offered, len(alpn)-4)
			return append(b[:len(b)-len(alpn)], alpn...)
		}(),
		"two extensions of names": func() []byte {
			b := widen(twice, len(name)-4)
			return append(b[:len(b)-len(name)], name...)
		}(),
	} {
		if got, _, err := Parse(data); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: got %+v and %v, want %v", what, got, err, ErrInvalid)
		}
	}
}

// FuzzParse holds that what crypto/tls takes for a name is the name that is found,
// and that more bytes never change an answer.
func FuzzParse(f *testing.F) {
	plain := clientHello(f, &tls.Config{ServerName: "db.example.com"})
	f.Add(plain)
	f.Add(records(plain, 7))
	f.Add(clientHello(f, &tls.Config{ServerName: "db.example.com", NextProtos: []string{"mqtt", "h2"}}))
	f.Add(clientHello(f, &tls.Config{ServerName: "a.b", MaxVersion: tls.VersionTLS12}))
	f.Add(clientHello(f, &tls.Config{}))
	f.Fuzz(func(t *testing.T, data []byte) {
		h, more, err := Parse(data)
		if again, _, err2 := Parse(append(bytes.Clone(data), 0)); !errors.Is(err, ErrMore) && (!reflect.DeepEqual(again, h) || err2 != err) {
			t.Fatalf("got %+v and %v, with one more byte %+v and %v", h, err, again, err2)
		}
		name := h.Name
		if (more > 0) != errors.Is(err, ErrMore) || len(data)+more > MaxSize+maxMessage {
			t.Fatalf("%d more bytes with %v", more, err)
		}
		if err != nil && name != "" || name != strings.ToLower(name) {
			t.Fatalf("got %q with %v", name, err)
		}
		theirs, ok := crypto(data)
		if ok && err != nil && theirs != "" {
			t.Fatalf("crypto/tls finds %q, we got %v", theirs, err)
		}
		if ok && err == nil && !strings.EqualFold(theirs, name) {
			t.Fatalf("crypto/tls finds %q, we got %q", theirs, name)
		}
	})
}

// crypto returns the name that crypto/tls finds.
func crypto(data []byte) (name string, ok bool) {
	server := tls.Server(script{bytes.NewReader(data)}, &tls.Config{
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			name, ok = hello.ServerName, true
			return nil, io.EOF
		},
	})
	server.Handshake()
	return name, ok
}

// script is a connection on which everything has come already.
type script struct{ *bytes.Reader }

func (script) Write(p []byte) (int, error)      { return len(p), nil }
func (script) Close() error                     { return nil }
func (script) LocalAddr() net.Addr              { return nil }
func (script) RemoteAddr() net.Addr             { return nil }
func (script) SetDeadline(time.Time) error      { return nil }
func (script) SetReadDeadline(time.Time) error  { return nil }
func (script) SetWriteDeadline(time.Time) error { return nil }
