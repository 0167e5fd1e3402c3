package qpack

import (
	"bytes"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/quic-go/qpack"
)

// fields keeps what it gets, up to a bound.
type fields struct {
	list []string
	most int
}

func (f *fields) Add(name, value string) bool {
	f.list = append(f.list, strings.Clone(name), strings.Clone(value))
	return f.most == 0 || len(f.list) < 2*f.most
}

func TestWhatAnotherEncoderWritesIsRead(t *testing.T) {
	want := []string{
		":method", "GET", ":path", "/", ":path", "/a%20b", ":authority", "example.com", "cookie", "a=b; c=d", "accept", "*/*", "x", "", "x-long",
		strings.Repeat("abcdefghij", 500), "x-bytes", "\x80\xff\x01", "user-agent", "Mozilla/5.0",
	}
	var b bytes.Buffer
	e := qpack.NewEncoder(&b)
	for i := 0; i < len(want); i += 2 {
		e.WriteField(qpack.HeaderField{Name: want[i], Value: want[i+1]})
	}
	var got fields
	var text Text
	if err := Decode(b.Bytes(), &text, &got); err != nil || !slices.Equal(got.list, want) {
		t.Errorf("got %q, %v, want %q", got.list, err, want)
	}
}

func TestWhatIsWrittenIsReadByAnother(t *testing.T) {
	b := AppendPrefix(nil)
	i, _ := IndexField(":status", "404")
	b = AppendIndexed(b, i)
	name, _ := Index("set-cookie")
	b = AppendNamed(b, name, "a=b", true)
	b = AppendLiteral(b, "X-Long-Name-Indeed", strings.Repeat("v", 300))
	want := []string{":status", "404", "set-cookie", "a=b", "x-long-name-indeed", strings.Repeat("v", 300)}
	if got, err := theirs(b); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

// theirs decodes as quic-go does.
func theirs(b []byte) (list []string, err error) {
	next := qpack.NewDecoder().Decode(b)
	for {
		f, err := next()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return list, err
		}
		list = append(list, f.Name, f.Value)
	}
}

func TestNoMoreIsReadThanIsWanted(t *testing.T) {
	bomb := append([]byte{0, 0}, bytes.Repeat([]byte{0xc1}, 1000)...)
	got := fields{most: 10}
	if err := Decode(bomb, &Text{}, &got); err != nil || len(got.list) != 20 {
		t.Errorf("got %d fields, %v", len(got.list)/2, err)
	}
}

type nothing struct{}

func (nothing) Add(string, string) bool { return true }

func FuzzDecode(f *testing.F) {
	f.Add([]byte{0, 0, 0xd1, 0x51, 0x01, 'a', 0x23, 'x', 'y', 'z', 0x81, 0x1f})
	f.Add([]byte{0, 0, 0x27, 0x00})
	f.Fuzz(func(t *testing.T, b []byte) {
		var got fields
		err := Decode(b, &Text{}, &got)
		want, theirErr := theirs(b)
		if err == nil && theirErr == nil && !slices.Equal(got.list, want) {
			t.Errorf("%x: got %q, want %q", b, got.list, want)
		}
		// The other takes no other base than zero; RFC 9204, section 4.5.1.2 does.
		if err == nil && theirErr != nil && len(b) > 1 && b[1] == 0 {
			t.Errorf("%x: read as %q; another decoder says %v", b, got.list, theirErr)
		}
	})
}
