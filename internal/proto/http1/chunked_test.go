package http1

import (
	"bytes"
	"strings"
	"testing"
)

// decode decodes a body given in pieces of a size.
func decode(body string, size int) (data string, used int, d *Decoder, err error) {
	d = &Decoder{}
	d.Reset(&Limits{HeadSize: 1000, Fields: 5})
	var out []byte
	for used < len(body) && !d.Done() {
		piece := []byte(body[used:min(used+size, len(body))])
		for len(piece) > 0 && !d.Done() {
			run, n, err := d.Next(piece)
			out = append(out, run...)
			used += n
			if err != nil {
				return string(out), used, d, err
			}
			piece = piece[n:]
		}
	}
	return string(out), used, d, nil
}

func TestChunkedBodiesAreDecoded(t *testing.T) {
	for _, c := range []struct{ body, want string }{
		{"0\r\n\r\n", ""},
		{"5\r\nhello\r\n0\r\n\r\n", "hello"},
		{"5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n", "hello world"},
		{"00000005\r\nhello\r\n000\r\n\r\n", "hello"},
		{"A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n", "01234567890123456789"},
		{"2\r\n\r\n\r\n0\r\n\r\n", "\r\n"},
		{"5;a\r\nhello\r\n0;b\r\n\r\n", "hello"},
		{"5;a=b\r\nhello\r\n0\r\n\r\n", "hello"},
		{"5 ; a = b ;c\r\nhello\r\n0\r\n\r\n", "hello"},
		{"5;a=\"x;\\\"y\\\\ \t\xff\"\r\nhello\r\n0\r\n\r\n", "hello"},
		{"5;a=\"\";b=\"c\" ; d\r\nhello\r\n0\r\n\r\n", "hello"},
		{"5;" + strings.Repeat("x", 250) + "\r\nhello\r\n0\r\n\r\n", "hello"},
		{"5\r\nhello\r\n0\r\nX: y\r\n\r\n", "hello"},
		{"5\r\nhello\r\n0\r\nX: y\r\nZ:\r\n\r\n", "hello"},
	} {
		for _, size := range []int{1, 2, 3, 7, 1000} {
			got, used, d, err := decode(c.body+"GET / HTTP/1.1\r\n", size)
			if got != c.want || used != len(c.body) || !d.Done() || err != nil {
				t.Errorf("%q by %d: got %q, %d, %v", c.body, size, got, used, err)
			}
		}
		for i := range len(c.body) {
			if _, used, d, err := decode(c.body[:i], i+1); used != i || d.Done() || err != nil {
				t.Errorf("%d bytes of %q: used %d, %v", i, c.body, used, err)
			}
		}
	}
}

var refusedChunks = []refused{
	{BadChunkSize, "\r\n"},
	{BadChunkSize, "\n0\r\n\r\n"},
	{BadChunkSize, " 5\r\nhello\r\n"},
	{BadChunkSize, "\t5\r\nhello\r\n"},
	{BadChunkSize, "x5\r\nhello\r\n"},
	{BadChunkSize, "0x5\r\nhello\r\n"},
	{BadChunkSize, "0X5\r\nhello\r\n"},
	{BadChunkSize, "+5\r\nhello\r\n"},
	{BadChunkSize, "-5\r\nhello\r\n"},
	{BadChunkSize, "-0\r\n\r\n"},
	{BadChunkSize, "5h\r\nhello\r\n"},
	{BadChunkSize, "5_0\r\nhello\r\n"},
	{BadChunkSize, "5,\r\nhello\r\n"},
	{BadChunkSize, "5.0\r\nhello\r\n"},
	{BadChunkSize, "\"5\"\r\nhello\r\n"},
	{BadChunkSize, "5\x00\r\nhello\r\n"},
	{BadChunkSize, "5\x0b\r\nhello\r\n"},
	{BadChunkSize, "\xef\xbc\x95\r\nhello\r\n"},
	{BadChunkSize, "5\xa0\r\nhello\r\n"},
	{BadChunkSize, ";a\r\n"},
	{BadChunkSize, "5\r\nhello\r\n\r\n"},
	{BadChunkSize, "5\r\nhello\r\n 0\r\n\r\n"},
	{ChunkSizeOverflow, "8000000000000000\r\n"},
	{ChunkSizeOverflow, "ffffffffffffffff\r\n"},
	{ChunkSizeOverflow, "FFFFFFFFFFFFFFFE\r\n"},
	{ChunkSizeOverflow, "10000000000000000\r\n"},
	{ChunkSizeOverflow, "100000000000000005\r\nhello\r\n"},
	{ChunkSizeOverflow, "00000000000000005\r\nhello\r\n"},
	{ChunkSizeOverflow, strings.Repeat("0", 17)},
	{BadChunkLineEnd, "5\nhello\r\n0\r\n\r\n"},
	{BadChunkLineEnd, "5\n\nhello\r\n0\r\n\r\n"},
	{BadChunkLineEnd, "5\r\rhello\r\n0\r\n\r\n"},
	{BadChunkLineEnd, "5\rhello\r\n0\r\n\r\n"},
	{BadChunkLineEnd, "5\r\x00hello"},
	{BadChunkLineEnd, "5 \r\nhello\r\n0\r\n\r\n"},
	{BadChunkLineEnd, "5\t\r\nhello\r\n0\r\n\r\n"},
	{BadChunkLineEnd, "5 \nhello\r\n0\r\n\r\n"},
	{BadChunkLineEnd, "5;\nhello\r\n0\r\n\r\n"},         // TERM.EXT
	{BadChunkLineEnd, "5;a\nhello\r\n0\r\n\r\n"},        // EXT.TERM
	{BadChunkLineEnd, "5;\r\nhello\r\n0\r\n\r\n"},       // no name
	{BadChunkLineEnd, "5;a=\r\nhello\r\n0\r\n\r\n"},     // no value
	{BadChunkLineEnd, "5;a=b\nhello\r\n0\r\n\r\n"},      // bare LF behind a value
	{BadChunkLineEnd, "5;a=\"\n\"\r\nhello"},            // LF in a quoted string
	{BadChunkLineEnd, "5;a=\"\r\n\"\r\nhello"},          // CRLF in a quoted string
	{BadChunkLineEnd, "5;a=\"\\\r\n\"\r\nhello"},        // quoted CRLF
	{BadChunkLineEnd, "5;a=\"b\"\nhello"},               // bare LF behind it
	{BadChunkLineEnd, "5;a \r\nhello\r\n"},              // white space at the end
	{BadChunkLineEnd, "5;a=b \r\nhello\r\n"},            // white space at the end
	{BadChunkLineEnd, "5;a=\"b\" \r\nhello\r\n"},        // white space at the end
	{BadChunkLineEnd, "5;a\rb\r\nhello\r\n0\r\n\r\n"},   // bare CR in a name
	{BadChunkLineEnd, "5;a=b\rc\r\nhello\r\n0\r\n\r\n"}, // bare CR in a value
	{BadChunkLineEnd, "0\n\r\n"},
	{BadChunkLineEnd, "0;\n\r\n"},
	{BadChunkExtension, "5 6\r\nhello"},
	{BadChunkExtension, "5 a\r\nhello"},
	{BadChunkExtension, "5;;a\r\nhello"},
	{BadChunkExtension, "5;a;;b\r\nhello"},
	{BadChunkExtension, "5;=b\r\nhello"},
	{BadChunkExtension, "5;a b\r\nhello"},
	{BadChunkExtension, "5;a=b c\r\nhello"},
	{BadChunkExtension, "5;a=b=c\r\nhello"},
	{BadChunkExtension, "5;a==b\r\nhello"},
	{BadChunkExtension, "5;a=\"b\"c\r\nhello"},
	{BadChunkExtension, "5;a=\"b\"=c\r\nhello"},
	{BadChunkExtension, "5;a=b\"c\"\r\nhello"},
	{BadChunkExtension, "5;\"a\"\r\nhello"},
	{BadChunkExtension, "5;a=\"\x00\"\r\nhello"},
	{BadChunkExtension, "5;a=\"\\\x01\"\r\nhello"},
	{BadChunkExtension, "5;a\x00\r\nhello"},
	{BadChunkExtension, "5;a=\xff\r\nhello"},
	{BadChunkExtension, "5;a,b\r\nhello"},
	{BadChunkExtension, "5;a/b\r\nhello"},
	{ChunkLineTooLong, "5;" + strings.Repeat("x", 300)},
	{ChunkLineTooLong, "5" + strings.Repeat(" ", 300)},
	{ChunkLineTooLong, "5;a=\"" + strings.Repeat("x", 300)},
	{ChunkExtensionsTooLong, strings.Repeat("1;"+strings.Repeat("x", 200)+"\r\na\r\n", 100)},
	{BadChunkEnd, "5\r\nhellox\r\n0\r\n\r\n"},
	{BadChunkEnd, "5\r\nhello\n0\r\n\r\n"},
	{BadChunkEnd, "5\r\nhello0\r\n\r\n"},
	{BadChunkEnd, "5\r\nhello\r0\r\n\r\n"},
	{BadChunkEnd, "5\r\nhello\r\r\n0\r\n\r\n"},
	{BadChunkEnd, "5\r\nhello \r\n0\r\n\r\n"},
	{BadChunkEnd, "5\r\nhelloXX0\r\n\r\n"}, // two bytes skipped unread
	{BadChunkEnd, "4\r\nhello\r\n0\r\n\r\n"},
	{BareLF, "0\r\n\n"},
	{BareLF, "0\r\nX: y\n\r\n"},
	{BareLF, "0\r\nX: y\r\n\n"},
	{BareLF, "0\r\nX: y\n\n"},
	{BareCR, "0\r\n\r\r\n"},
	{BareCR, "0\r\n\rX: y\r\n\r\n"},
	{BareCR, "0\r\nX: y\rZ: z\r\n\r\n"},
	{NoColon, "0\r\nX\r\n\r\n"},
	{ObsFold, "0\r\nX: y\r\n z\r\n\r\n"},
	{ObsFold, "0\r\n X: y\r\n\r\n"},
	{SpaceBeforeColon, "0\r\nX : y\r\n\r\n"},
	{EmptyName, "0\r\n: y\r\n\r\n"},
	{BadName, "0\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"},
	{ControlInValue, "0\r\nX: \x00\r\n\r\n"},
	{LookalikeName, "0\r\nContent_Length: 1\r\n\r\n"},
	{TooManyFields, "0\r\n" + strings.Repeat("X: y\r\n", 6) + "\r\n"},
	{TrailerTooLarge, "0\r\nX: " + strings.Repeat("y", 1000) + "\r\n\r\n"},
	{TrailerTooLarge, "0\r\n" + strings.Repeat("y", 1001)},
}

func TestChunkedBodiesAreRefused(t *testing.T) {
	for _, c := range refusedChunks {
		for _, size := range []int{1, 2, 5, len(c.text)} {
			_, _, d, err := decode(c.text, size)
			if err != error(c.want) || d.Done() {
				t.Errorf("%q by %d\n got %v\nwant %v", c.text, size, err, c.want)
			}
			if _, n, again := d.Next([]byte("0\r\n\r\n")); n != 0 || again != err {
				t.Errorf("%q: the error does not stay: %d, %v", c.text, n, again)
			}
		}
	}
}

func TestForbiddenTrailersAreDropped(t *testing.T) {
	_, _, d, err := decode("0\r\nX-Sum: 1\r\nContent-Length: 5\r\nX_Real_IP: 2\r\nETag: \"a\"\r\nauthorization: b\r\n\r\n", 9)
	if err != nil || d.Trailers.Len() != 2 {
		t.Fatalf("got %v, %v", d.Trailers.All(), err)
	}
	if v, _ := d.Trailers.Lookup("x-sum"); v != "1" {
		t.Errorf("got %v", d.Trailers.All())
	}
}

func TestDecodeCopiesInPlaceAndStopsWhenFull(t *testing.T) {
	body := "5;x\r\nhello\r\n6\r\n world\r\n0\r\nX: y\r\n\r\nnext"
	for room := 1; room < 20; room++ {
		var d Decoder
		d.Reset(&Limits{})
		src, out := []byte(body), []byte(nil)
		for !d.Done() {
			dst := make([]byte, room)
			n, used, err := d.Decode(dst, src)
			if err != nil || n+used == 0 {
				t.Fatal(n, used, err)
			}
			out, src = append(out, dst[:n]...), src[used:]
		}
		if string(out) != "hello world" || string(src) != "next" {
			t.Errorf("room %d: got %q, left %q", room, out, src)
		}
	}
	var d Decoder
	d.Reset(&Limits{})
	buf := []byte(body)
	if n, _, err := d.Decode(buf, buf); string(buf[:n]) != "hello world" || err != nil {
		t.Errorf("in place: %q, %v", buf[:n], err)
	}
}

func TestDataMayGoAroundTheDecoder(t *testing.T) {
	var d Decoder
	d.Reset(&Limits{})
	if _, n, err := d.Next([]byte("ffff\r\n")); n != 6 || err != nil || d.Left() != 0xffff {
		t.Fatal(n, err, d.Left())
	}
	d.Skip(0xfff0)
	d.Skip(0xf)
	if _, _, err := d.Next([]byte("\r\n0\r\n\r\n")); err != nil || !d.Done() {
		t.Errorf("got %v", err)
	}
}

func TestChunksAreWritten(t *testing.T) {
	body := AppendChunk(nil, []byte("hello"))
	body = AppendChunk(body, nil)
	body = AppendChunk(body, bytes.Repeat([]byte("x"), 300))
	body = append(body, LastChunk...)
	got, used, d, err := decode(string(body), len(body))
	if len(got) != 305 || used != len(body) || !d.Done() || err != nil {
		t.Errorf("got %d bytes, used %d, %v", len(got), used, err)
	}
}
