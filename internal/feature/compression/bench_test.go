package compression

import (
	"io"
	"strings"
	"testing"

	"headgate/internal/exchange/exchangetest"
)

// page is about as compressible as pages are: what is said again is not always the
// same.
func page(size int) string {
	var b strings.Builder
	words := strings.Fields("route proxy port server header value the of and to a in is that for with as was on are by this be class div span href src link script")
	for seed := uint32(1); b.Len() < size; {
		seed = seed*1664525 + 1013904223
		b.WriteString(words[seed>>16%uint32(len(words))])
		b.WriteString(" =\n\"<>/"[seed>>28%7 : seed>>28%7+1])
	}
	return b.String()[:size]
}

// BenchmarkMegabyte is the CPU that a megabyte takes with each algorithm.
func BenchmarkMegabyte(b *testing.B) {
	s := html(page(1 << 20))
	for _, length := range []int64{-2, -1} {
		for _, coding := range usual {
			name := coding
			if s.length = length; length == -1 {
				name += "/stream"
			}
			b.Run(name, func(b *testing.B) {
				wrapped := wrap(settings(), s, exchangetest.Env(b))
				ex := exchangetest.New(b, exchangetest.Head("GET", "/", "Accept-Encoding: "+coding))
				b.SetBytes(int64(len(s.text)))
				b.ReportAllocs()
				var made int64
				for b.Loop() {
					wrapped.Respond(ex)
					made, _ = io.Copy(io.Discard, struct{ io.Reader }{ex.Response.Body})
					ex.Response.Body.Close()
				}
				b.ReportMetric(float64(len(s.text))/float64(made), "ratio")
			})
		}
	}
}

// BenchmarkNotCompressed is what a response costs that is no text.
func BenchmarkNotCompressed(b *testing.B) {
	s := html("image")
	s.fields[0] = "Content-Type: image/png"
	wrapped := wrap(settings(), s, exchangetest.Env(b))
	ex := exchangetest.New(b, exchangetest.Head("GET", "/", "Accept-Encoding: gzip, deflate, br, zstd"))
	b.ReportAllocs()
	for b.Loop() {
		wrapped.Respond(ex)
	}
}
