package proxyproto

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"headgate/internal/testhouse"
)

func addr(s string) netip.AddrPort { return netip.MustParseAddrPort(s) }

// block is a header of version 2.
func block(command, family byte, rest string) string {
	return signature + string([]byte{command, family, byte(len(rest) >> 8), byte(len(rest))}) + rest
}

const ends4 = "\xc0\x00\x02\x01\xc6\x33\x64\x02\x30\x39\x01\xbb" // 192.0.2.1:12345 to 198.51.100.2:443

// ends6 is 2001:db8::1 to 2001:db8::2 with the same ports.
var ends6 = "\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x01" + "\x20\x01\x0d\xb8" + strings.Repeat("\x00", 11) + "\x02" + "\x30\x39\x01\xbb"

func extra(kind byte, value string) string {
	return string([]byte{kind, byte(len(value) >> 8), byte(len(value))}) + value
}

// summed is a block with a checksum, xored with wrong.
func summed(wrong uint32) string {
	b := []byte(block(0x21, 0x11, ends4+extra(0x04, "abc")+extra(typeCRC32C, "\x00\x00\x00\x00")+extra(0x05, "id")))
	at := bytes.Index(b, []byte("\x03\x00\x04\x00\x00\x00\x00")) + 3
	binary.BigEndian.PutUint32(b[at:], crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli))^wrong)
	return string(b)
}

func TestHeaders(t *testing.T) {
	from4, to4 := addr("192.0.2.1:12345"), addr("198.51.100.2:443")
	from6, to6 := addr("[2001:db8::1]:12345"), addr("[2001:db8::2]:443")
	none := netip.AddrPort{}
	for _, c := range []struct {
		name, header string
		from, to     netip.AddrPort
		err          error
	}{
		{"TCP4", "PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\n", from4, to4, nil},
		{"shortest TCP4", "PROXY TCP4 1.1.1.1 1.1.1.2 1 2\r\n", addr("1.1.1.1:1"), addr("1.1.1.2:2"), nil},
		{"TCP6", "PROXY TCP6 2001:db8::1 2001:db8::2 12345 443\r\n", from6, to6, nil},
		{"shortest TCP6", "PROXY TCP6 :: :: 0 0\r\n", addr("[::]:0"), addr("[::]:0"), nil},
		{"TCP6 in full", "PROXY TCP6 2001:0db8:0000:0000:0000:0000:0000:0001 2001:0db8:0000:0000:0000:0000:0000:0002 12345 443\r\n", from6, to6, nil},
		{"UNKNOWN", "PROXY UNKNOWN\r\n", none, none, nil},
		{"UNKNOWN with more", "PROXY UNKNOWN ffff:f...f:ffff ffff:f...f:ffff 65535 65535\r\n", none, none, nil},
		{"no header", "GET / HTTP/1.1\r\nHost: a\r\n\r\n", none, none, ErrMissing},
		{"TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", none, none, ErrMissing},
		{"lower case", "proxy TCP4 192.0.2.1 198.51.100.2 12345 443\r\n", none, none, ErrMissing},
		{"other family", "PROXY UDP4 192.0.2.1 198.51.100.2 12345 443\r\n", none, none, ErrInvalid},
		{"IPv6 as TCP4", "PROXY TCP4 2001:db8::1 2001:db8::2 12345 443\r\n", none, none, ErrInvalid},
		{"IPv4 as TCP6", "PROXY TCP6 192.0.2.1 198.51.100.2 12345 443\r\n", none, none, ErrInvalid},
		{"zone", "PROXY TCP6 fe80::1%eth0 fe80::2 12345 443\r\n", none, none, ErrInvalid},
		{"leading zero", "PROXY TCP4 192.0.2.1 198.51.100.2 012345 443\r\n", none, none, ErrInvalid},
		{"leading zero in the address", "PROXY TCP4 192.0.02.1 198.51.100.2 12345 443\r\n", none, none, ErrInvalid},
		{"port too large", "PROXY TCP4 192.0.2.1 198.51.100.2 65536 443\r\n", none, none, ErrInvalid},
		{"signed port", "PROXY TCP4 192.0.2.1 198.51.100.2 +1234 443\r\n", none, none, ErrInvalid},
		{"two blanks", "PROXY TCP4  192.0.2.1 198.51.100.2 12345 443\r\n", none, none, ErrInvalid},
		{"a field too many", "PROXY TCP4 192.0.2.1 198.51.100.2 12345 443 1\r\n", none, none, ErrInvalid},
		{"a field too few", "PROXY TCP4 192.0.2.1 198.51.100.2 12345\r\n", none, none, ErrInvalid},
		{"line feed alone", "PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\n" + strings.Repeat(" ", 100), none, none, ErrInvalid},
		{"no end", "PROXY UNKNOWN " + strings.Repeat("x", 200), none, none, ErrInvalid},
		{"cut", "PROXY TCP4 192.0.2.1 198.5", none, none, ErrTruncated},

		{"v2 IPv4", block(0x21, 0x11, ends4), from4, to4, nil},
		{"v2 IPv6", block(0x21, 0x21, ends6), from6, to6, nil},
		{"v2 LOCAL", block(0x20, 0x00, ""), none, none, nil},
		{"v2 LOCAL with anything", block(0x20, 0x11, "\x01\x02\x03"), none, none, nil},
		{"v2 UNSPEC", block(0x21, 0x00, "whatever"), none, none, nil},
		{"v2 Unix", block(0x21, 0x31, strings.Repeat("\x00", lengthUnix)), none, none, nil},
		{"v2 with extras", block(0x21, 0x11, ends4+extra(0x01, "h2")+extra(0xe0, "")), from4, to4, nil},
		{"v2 as long as can be", block(0x21, 0x11, ends4+extra(0x04, strings.Repeat("\x00", 0xffff-len(ends4)-3))), from4, to4, nil},
		{"v2 checksum", summed(0), from4, to4, nil},
		{"v2 wrong checksum", summed(1), none, none, ErrChecksum},
		{"v2 short checksum", block(0x21, 0x11, ends4+extra(typeCRC32C, "\x00\x00")), none, none, ErrChecksum},
		{"v2 extra cut", block(0x21, 0x11, ends4+"\x01\x00"), none, none, ErrInvalid},
		{"v2 extra longer than the rest", block(0x21, 0x11, ends4+"\x01\x00\x09h2"), none, none, ErrInvalid},
		{"v2 addresses cut", block(0x21, 0x21, ends4), none, none, ErrInvalid},
		{"v2 datagrams", block(0x21, 0x12, ends4), none, none, ErrInvalid},
		{"v2 family of nobody", block(0x21, 0x41, ends4), none, none, ErrInvalid},
		{"v2 command of nobody", block(0x22, 0x11, ends4), none, none, ErrInvalid},
		{"version 3", block(0x31, 0x11, ends4), none, none, ErrInvalid},
		{"v2 signature cut", signature[:7], none, none, ErrTruncated},
		{"v2 signature forged", signature[:8] + "QUIX\n\x21\x11\x00", none, none, ErrMissing},
		{"v2 body cut", block(0x21, 0x11, ends4)[:20], none, none, ErrTruncated},
		{"nothing", "", none, none, ErrMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			const after = "GET / HTTP/1.1\r\n"
			for _, wrap := range []func(io.Reader) io.Reader{iotest.OneByteReader, func(r io.Reader) io.Reader { return r }} {
				whole := strings.NewReader(c.header)
				if c.err == nil {
					whole = strings.NewReader(c.header + after)
				}
				b, err := read(wrap(whole))
				var h Header
				if err == nil {
					h, err = Parse(b)
				}
				if !errors.Is(err, c.err) || h.Source != c.from || h.Destination != c.to {
					t.Fatalf("got %+v and %v, want %v to %v and %v", h, err, c.from, c.to, c.err)
				}
				if left := whole.Len(); c.err == nil && left != len(after) {
					t.Errorf("%d bytes behind the header are left, want %d", left, len(after))
				}
			}
		})
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, v := range []Version{V1, V2} {
		for _, c := range [][4]string{
			{"192.0.2.1:12345", "198.51.100.2:443", "192.0.2.1:12345", "198.51.100.2:443"},
			{"[2001:db8::1%eth0]:1", "[2001:db8::2]:65535", "[2001:db8::1]:1", "[2001:db8::2]:65535"},
			{"[::ffff:192.0.2.1]:1", "192.0.2.2:2", "192.0.2.1:1", "192.0.2.2:2"},
		} {
			b := Append(nil, v, addr(c[0]), addr(c[1]))
			h, err := Parse(b)
			if err != nil || h.Source != addr(c[2]) || h.Destination != addr(c[3]) {
				t.Errorf("version %d of %v: %q gives %+v and %v", v, c[:2], b, h, err)
			}
		}
		b := Append(nil, v, addr("192.0.2.1:1"), addr("[2001:db8::2]:2"))
		if h, err := Parse(b); err != nil || h.Source.Port() != 1 || h.Destination != addr("[2001:db8::2]:2") {
			t.Errorf("version %d of two families: %q gives %+v and %v", v, b, h, err)
		}
		b = Append(nil, v, netip.AddrPort{}, addr("192.0.2.1:1"))
		if h, err := Parse(b); err != nil || h.Source.IsValid() {
			t.Errorf("version %d of nobody: %q gives %+v and %v", v, b, h, err)
		}
	}
}

func TestTakeLeavesTheRestOnTheSocket(t *testing.T) {
	server, client := testhouse.Pair(t)
	io.WriteString(client, "PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\nhello")
	nc, err := ReadHeader(server, 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if nc.RemoteAddr().String() != "192.0.2.1:12345" || nc.LocalAddr().String() != "198.51.100.2:443" {
		t.Errorf("from %v to %v", nc.RemoteAddr(), nc.LocalAddr())
	}
	b := make([]byte, 5)
	if _, err := io.ReadFull(nc, b); err != nil || string(b) != "hello" {
		t.Errorf("got %q and %v", b, err)
	}
}

func TestAHeaderThatDoesNotComeIsNotWaitedFor(t *testing.T) {
	server, client := testhouse.Pair(t)
	io.WriteString(client, "PROXY TCP4 192.0")
	if _, err := ReadHeader(server, 20*time.Millisecond); !errors.Is(err, ErrLate) {
		t.Errorf("got %v, want %v", err, ErrLate)
	}
}

// FuzzParse holds that reading takes no byte too many, that it ends, and that a
// header which is understood says the same when it is written again.
func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"PROXY TCP4 192.0.2.1 198.51.100.2 12345 443\r\nGET", "PROXY TCP6 2001:db8::1 2001:db8::2 12345 443\r\n",
		"PROXY UNKNOWN x\r\n", block(0x21, 0x11, ends4), block(0x21, 0x21, ends6), summed(0), block(0x20, 0, ""), "GET / HTTP/1.1\r\n\r\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := bytes.NewReader(data)
		b, err := read(r)
		if err != nil {
			return
		}
		if len(b) > MaxLength || !bytes.HasPrefix(data, b) || r.Len() != len(data)-len(b) {
			t.Fatalf("read %q of %q, %d are left", b, data, r.Len())
		}
		h, err := Parse(b)
		if err != nil || !h.Source.IsValid() {
			return
		}
		for _, v := range []Version{V1, V2} {
			again, err := Parse(Append(nil, v, h.Source, h.Destination))
			if err != nil || again.Source.Port() != h.Source.Port() || again.Destination.Port() != h.Destination.Port() {
				t.Errorf("version %d of %+v gives %+v and %v", v, h, again, err)
			}
		}
	})
}
