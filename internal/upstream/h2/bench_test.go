//go:build !race

package h2

import (
	"io"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
	"headgate/internal/proto/http2"
)

// BenchmarkRequest measures one request after the other on one connection, and
// BenchmarkBody bodies of a MiB, with a server that is as cheap as can be.
func BenchmarkRequest(b *testing.B) { benchmark(b, 5) }

// BenchmarkBody is a body of a MiB.
func BenchmarkBody(b *testing.B) { benchmark(b, 1<<20) }

func benchmark(b *testing.B, size int) {
	conn, server := meet(b, Settings{})
	var answer []byte // without the head, whose stream is another each time
	for left := size; left > 0; {
		n := min(left, http2.MaxFrameSize)
		left -= n
		flags := uint8(0)
		if left == 0 {
			flags = http2.FlagEndStream
		}
		answer = append(http2.AppendFrame(answer, n, http2.FrameData, flags, 0), make([]byte, n)...)
	}
	go serveAll(server, answer)
	ex, owner, p := exchangetest.New(b), &nobody{}, make([]byte, 32<<10)
	b.SetBytes(int64(size))
	for b.Loop() {
		conn.Reserve()
		s := NewStream(ex, exchange.Now(), owner)
		if err := s.Do(conn, []byte{0x82}); err != nil {
			b.Fatal(err)
		}
		for {
			if _, err := s.Read(p); err == io.EOF {
				break
			} else if err != nil {
				b.Fatal(err)
			}
		}
		s.Close()
	}
}

// serveAll answers every request with the same frames, as far as the window lets it.
func serveAll(server *rawServer, answer []byte) {
	head := make([]byte, http2.FrameHeaderSize+http2.MaxFrameSize)
	window, stream, sent := http2.InitialWindow, uint32(0), 0
	for {
		if _, err := io.ReadFull(server.conn, head[:http2.FrameHeaderSize]); err != nil {
			return
		}
		f := http2.ParseFrame(head)
		p := head[http2.FrameHeaderSize : http2.FrameHeaderSize+f.Length]
		if _, err := io.ReadFull(server.conn, p); err != nil {
			return
		}
		switch {
		case f.Type == http2.FrameWindowUpdate && f.Stream != 0 && f.Stream == stream:
			window += int(p[0])<<24 | int(p[1])<<16 | int(p[2])<<8 | int(p[3])
		case f.Type == http2.FrameHeaders:
			window, stream, sent = http2.InitialWindow, f.Stream, 0
			server.send(append(http2.AppendFrame(nil, 1, http2.FrameHeaders, http2.FlagEndHeaders, stream), 0x88))
		}
		end := sent
		for stream != 0 && end < len(answer) {
			n := http2.ParseFrame(answer[end:]).Length
			if n > window {
				break
			}
			copy(answer[end+5:], []byte{byte(stream >> 24), byte(stream >> 16), byte(stream >> 8), byte(stream)})
			window -= n
			end += http2.FrameHeaderSize + n
		}
		if end > sent {
			server.send(answer[sent:end])
			sent = end
		}
	}
}
