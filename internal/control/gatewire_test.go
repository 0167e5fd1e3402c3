package control

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/quic-go/qpack"
	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// wireRequest is a request whose fields are sent as they are written here, pseudo-headers
// first. A body is sent in chunks where there are trailers.
type wireRequest struct {
	fields  []string // name, value, name, value
	body    string
	trailer []string
	// began is called with the first bytes of the body of the response. It may be nil.
	began func()
}

// wireAnswer is a response. The status is "reset" if the request was refused by a reset of its
// stream, and cut is whether the response had no end.
type wireAnswer struct {
	status, location, text string
	cut                    bool
}

// wire is a connection that sends requests one after the other.
type wire interface {
	send(wireRequest) wireAnswer
}

// wires are the protocols of the fronts. Each opens a connection for a server name.
var wires = []struct {
	name string
	open func(g *gated, name string) wire
}{
	{"h1", func(g *gated, name string) wire { return &wire1{g, name} }},
	{"h2", func(g *gated, name string) wire { return &wire2{g.h2(name)} }},
	{"h3", func(g *gated, name string) wire { return g.h3(name) }},
}

// overAll runs a test over all protocols.
func overAll(t *testing.T, g *gated, test func(t *testing.T, open func(name string) wire)) {
	for _, w := range wires {
		t.Run(w.name, func(t *testing.T) {
			of := *g
			of.t = t
			test(t, func(name string) wire { return w.open(&of, name) })
		})
	}
}

// wire1 speaks HTTP/1.1, with a connection for each request.
type wire1 struct {
	g    *gated
	name string
}

func (w *wire1) send(rq wireRequest) (a wireAnswer) {
	t := w.g.t
	t.Helper()
	nc, err := tls.Dial("tcp", "127.0.0.1:"+w.g.port, &tls.Config{InsecureSkipVerify: true, ServerName: w.name + ".example.com"})
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	nc.SetDeadline(time.Now().Add(patience))
	pseudo, fields := map[string]string{}, ""
	for i := 0; i+1 < len(rq.fields); i += 2 {
		if name, value := rq.fields[i], rq.fields[i+1]; strings.Contains(":method :path :authority :scheme", name) && pseudo[name] == "" {
			pseudo[name] = value
		} else {
			fields += name + ": " + value + "\r\n"
		}
	}
	head := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s", pseudo[":method"], pseudo[":path"], pseudo[":authority"], fields)
	if rq.body == "" {
		io.WriteString(nc, head+"\r\n")
	} else {
		trailer := ""
		for i := 0; i+1 < len(rq.trailer); i += 2 {
			trailer += rq.trailer[i] + ": " + rq.trailer[i+1] + "\r\n"
		}
		fmt.Fprintf(nc, "%sTransfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n%s\r\n", head, len(rq.body), rq.body, trailer)
	}
	rs, err := http.ReadResponse(bufio.NewReader(nc), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer rs.Body.Close()
	a.status, a.location = fmt.Sprint(rs.StatusCode), rs.Header.Get("Location")
	first := make([]byte, 1)
	n, err := io.ReadFull(rs.Body, first)
	if err == nil && rq.began != nil {
		rq.began()
	}
	rest, err := io.ReadAll(rs.Body)
	a.text, a.cut = string(first[:n])+string(rest), err != nil
	return a
}

// wire2 speaks HTTP/2.
type wire2 struct{ *h2 }

func (w *wire2) block(fields []string) []byte {
	w.h2.block.Reset()
	for i := 0; i+1 < len(fields); i += 2 {
		w.write.WriteField(hpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return bytes.Clone(w.h2.block.Bytes())
}

func (w *wire2) send(rq wireRequest) (a wireAnswer) {
	w.t.Helper()
	id := w.stream
	w.stream += 2
	must := func(err error) {
		w.t.Helper()
		if err != nil {
			w.t.Fatal(err)
		}
	}
	must(w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: w.block(rq.fields), EndStream: rq.body == "", EndHeaders: true}))
	if rq.body != "" {
		must(w.framer.WriteData(id, len(rq.trailer) == 0, []byte(rq.body)))
		if len(rq.trailer) > 0 {
			must(w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: w.block(rq.trailer), EndStream: true, EndHeaders: true}))
		}
	}
	for {
		f, err := w.framer.ReadFrame()
		must(err)
		if f.Header().StreamID != id && f.Header().StreamID != 0 {
			continue
		}
		switch f := f.(type) {
		case *http2.SettingsFrame:
			if !f.IsAck() {
				w.framer.WriteSettingsAck()
			}
		case *http2.GoAwayFrame:
			w.t.Fatalf("the connection has ended: %v", f)
		case *http2.MetaHeadersFrame:
			if status := f.PseudoValue("status"); status != "" {
				a.status = status
			}
			for _, field := range f.RegularFields() {
				if field.Name == "location" {
					a.location = field.Value
				}
			}
			if f.StreamEnded() {
				return a
			}
		case *http2.DataFrame:
			if len(f.Data()) > 0 && a.text == "" && rq.began != nil {
				rq.began()
			}
			a.text += string(f.Data())
			if f.Length > 0 {
				must(w.framer.WriteWindowUpdate(0, f.Length))
			}
			if f.StreamEnded() {
				return a
			}
			if f.Length > 0 {
				must(w.framer.WriteWindowUpdate(id, f.Length))
			}
		case *http2.RSTStreamFrame:
			if a.cut = a.status != ""; !a.cut {
				a.status = "reset"
			}
			return a
		}
	}
}

// wire3 speaks HTTP/3.
type wire3 struct {
	t    *testing.T
	conn *quic.Conn
}

// h3 connects with a server name.
func (g *gated) h3(name string) *wire3 {
	g.t.Helper()
	ctx, stop := context.WithTimeout(g.t.Context(), patience)
	defer stop()
	conn, err := quic.DialAddr(ctx, "127.0.0.1:"+g.port, &tls.Config{InsecureSkipVerify: true, ServerName: name + ".example.com", NextProtos: []string{"h3"}}, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(func() { conn.CloseWithError(0x100, "") })
	control, err := conn.OpenUniStream()
	if err == nil {
		_, err = control.Write([]byte{0x00, 0x04, 0x00}) // a control stream, SETTINGS without any
	}
	if err != nil {
		g.t.Fatal(err)
	}
	return &wire3{g.t, conn}
}

// Types of frames (RFC 9114, section 7.2).
const (
	frameData3    = 0x0
	frameHeaders3 = 0x1
)

// frame3 returns a frame with a payload, and section3 the payload with fields.
func frame3(kind uint64, payload []byte) []byte {
	return append(quicvarint.Append(quicvarint.Append(nil, kind), uint64(len(payload))), payload...)
}

func section3(fields []string) []byte {
	var b bytes.Buffer
	e := qpack.NewEncoder(&b)
	for i := 0; i+1 < len(fields); i += 2 {
		e.WriteField(qpack.HeaderField{Name: fields[i], Value: fields[i+1]})
	}
	return b.Bytes()
}

func (w *wire3) send(rq wireRequest) (a wireAnswer) {
	w.t.Helper()
	s, err := w.conn.OpenStream()
	if err != nil {
		w.t.Fatal(err)
	}
	s.SetDeadline(time.Now().Add(patience))
	b := frame3(frameHeaders3, section3(rq.fields))
	if rq.body != "" {
		b = append(b, frame3(frameData3, []byte(rq.body))...)
	}
	if len(rq.trailer) > 0 {
		b = append(b, frame3(frameHeaders3, section3(rq.trailer))...)
	}
	s.Write(b) // fails when the server wants no more: its answer says why
	s.Close()
	for r := quicvarint.NewReader(s); ; {
		kind, payload, err := w.frame(r)
		switch {
		case err == io.EOF:
			return a
		case err != nil:
			if w.conn.Context().Err() != nil {
				w.t.Fatalf("the connection has ended: %v", err)
			}
			if a.cut = a.status != ""; !a.cut {
				a.status = "reset"
			}
			return a
		case kind == frameHeaders3:
			a.read(w.t, payload)
		case kind == frameData3:
			if len(payload) > 0 && a.text == "" && rq.began != nil {
				rq.began()
			}
			a.text += string(payload)
		}
	}
}

func (w *wire3) frame(r quicvarint.Reader) (kind uint64, payload []byte, err error) {
	if kind, err = quicvarint.Read(r); err != nil {
		return 0, nil, err
	}
	length, err := quicvarint.Read(r)
	if err != nil {
		return 0, nil, io.ErrUnexpectedEOF
	}
	payload = make([]byte, length)
	if _, err = io.ReadFull(r, payload); err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return kind, payload, err
}

// read reads the fields of a section.
func (a *wireAnswer) read(t *testing.T, section []byte) {
	t.Helper()
	for next := qpack.NewDecoder().Decode(section); ; {
		f, err := next()
		switch {
		case err == io.EOF:
			return
		case err != nil:
			t.Fatal(err)
		case f.Name == ":status":
			a.status = f.Value
		case f.Name == "location":
			a.location = f.Value
		}
	}
}
