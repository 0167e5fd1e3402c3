package spec

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"
)

// loosely compares what a server got with what it should get, where the client
// spoke HTTP/2: names are in lower case there, and a client may order its fields
// otherwise. All else holds: the request line, each field with its value, the
// order of fields of one name, the length of the body and its bytes, and the
// trailers. It returns what differs, or "".
func loosely(got, want []byte) string {
	gotHead, gotBody, _ := bytes.Cut(got, []byte("\r\n\r\n"))
	wantHead, wantBody, whole := bytes.Cut(want, []byte("\r\n\r\n"))
	if !whole || !bytes.Contains(wantHead, []byte(" HTTP/1.1\r\n")) {
		if !bytes.Equal(got, want) {
			return "bytes"
		}
		return ""
	}
	gotLines, wantLines := strings.Split(string(gotHead), "\r\n"), strings.Split(string(wantHead), "\r\n")
	if gotLines[0] != wantLines[0] {
		return "request line"
	}
	if g, w := sorted(gotLines[1:]), sorted(wantLines[1:]); !slices.Equal(g, w) {
		return fmt.Sprintf("fields\n%s\nand not\n%s", strings.Join(g, "\n"), strings.Join(w, "\n"))
	}
	if !strings.Contains(strings.ToLower(string(wantHead)), "\r\ntransfer-encoding:") {
		if !bytes.Equal(gotBody, wantBody) {
			return "body"
		}
		return ""
	}
	g, gerr := chunksOf(gotBody, false)
	w, werr := chunksOf(wantBody, false)
	if gerr != nil || werr != nil || g.body != w.body || !slices.Equal(sorted(g.fields), sorted(w.fields)) {
		return fmt.Sprintf("chunked body: %+v, %v and not %+v, %v", g, gerr, w, werr)
	}
	return ""
}

// sorted returns field lines by name in lower case. Those of one name keep their
// order.
func sorted(lines []string) []string {
	out := make([]string, 0, len(lines))
	for _, line := range lines {
		name, value, _ := strings.Cut(line, ":")
		out = append(out, strings.ToLower(name)+":"+value)
	}
	slices.SortStableFunc(out, func(a, b string) int {
		a, _, _ = strings.Cut(a, ":")
		b, _, _ = strings.Cut(b, ":")
		return strings.Compare(a, b)
	})
	return out
}

// chunksOf reads a chunked body from b.
func chunksOf(b []byte, extensions bool) (*response, error) {
	r := &response{}
	return r, r.readChunks(bufio.NewReader(bytes.NewReader(b)), extensions)
}

// mustGetLoosely is mustGet for a request that came by HTTP/2. However its fields
// are written and ordered, they are as many bytes as the script has.
func (p *peer) mustGetLoosely(want []byte) {
	p.t.Helper()
	var got []byte
	for {
		if len(got) >= len(want) {
			if diff := loosely(got, want); diff != "" {
				p.t.Fatalf("step %d: %s got:\n%s\nwant, but for case and order of fields:\n%s\n(%s)", p.step, p.who, visible(got), visible(want), diff)
			}
			return
		}
		b, err := p.r.ReadByte()
		if err != nil {
			p.t.Fatalf("step %d: %s got:\n%s\nwant, but for case and order of fields:\n%s\n(%v)", p.step, p.who, visible(got), visible(want), err)
		}
		got = append(got, b)
	}
}
