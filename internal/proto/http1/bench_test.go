package http1

import (
	"strings"
	"testing"
)

// browserHead is a request head of about 500 bytes, as a browser sends it.
const browserHead = "GET /assets/app/main.js?v=20240117 HTTP/1.1\r\n" +
	"Host: shop.example.com\r\n" +
	"Connection: keep-alive\r\n" +
	"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/126.0.0.0 Safari/537.36\r\n" +
	"Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n" +
	"Sec-Fetch-Site: same-origin\r\n" +
	"Referer: https://shop.example.com/cart\r\n" +
	"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
	"Accept-Language: en-GB,en;q=0.9\r\n" +
	"Cookie: sid=4f1c9a7be2d8437db4e0\r\n" +
	"\r\n"

const shortHead = "GET / HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n"

const serverHead = "HTTP/1.1 200 OK\r\nServer: nginx/1.22.1\r\nDate: Fri, 17 Jan 2025 09:30:00 GMT\r\n" +
	"Content-Type: text/plain\r\nContent-Length: 100\r\nLast-Modified: Fri, 17 Jan 2025 09:00:00 GMT\r\n" +
	"Connection: keep-alive\r\nETag: \"678a1c00-64\"\r\nAccept-Ranges: bytes\r\n\r\n"

func BenchmarkParseRequestBrowser(b *testing.B) { benchmarkRequest(b, browserHead) }
func BenchmarkParseRequestShort(b *testing.B)   { benchmarkRequest(b, shortHead) }

func benchmarkRequest(b *testing.B, head string) {
	buf, lim := []byte(head), &Limits{}
	var req RequestHead
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := ParseRequest(buf, lim, &req); n != len(buf) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkParseResponse(b *testing.B) {
	buf, lim := []byte(serverHead), &Limits{}
	var resp ResponseHead
	b.SetBytes(int64(len(buf)))
	b.ReportAllocs()
	for b.Loop() {
		if n, err := ParseResponse(buf, lim, Asked{}, &resp); n != len(buf) || err != nil {
			b.Fatal(n, err)
		}
	}
}

func BenchmarkStripHopByHop(b *testing.B) {
	buf, lim := []byte(browserHead), &Limits{}
	var req, scratch RequestHead
	if _, err := ParseRequest(buf, lim, &req); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		req.Fields.CopyTo(&scratch.Fields)
		StripHopByHop(&scratch.Fields)
	}
}

func BenchmarkAppendHead(b *testing.B) {
	buf, lim := []byte(browserHead), &Limits{}
	var req RequestHead
	if _, err := ParseRequest(buf, lim, &req); err != nil {
		b.Fatal(err)
	}
	var out []byte
	b.ReportAllocs()
	for b.Loop() {
		out = AppendRequestLine(out[:0], req.Method, req.Target)
		out = AppendFields(out, &req.Fields)
		out = append(out, CRLF...)
	}
}

func BenchmarkDecode16KiBChunks(b *testing.B) { benchmarkDecode(b, 16<<10) }
func BenchmarkDecode64BChunks(b *testing.B)   { benchmarkDecode(b, 64) }

func benchmarkDecode(b *testing.B, size int) {
	var body []byte
	for len(body) < 256<<10 {
		body = AppendChunk(body, []byte(strings.Repeat("x", size)))
	}
	body = append(body, LastChunk...)
	dst, lim := make([]byte, len(body)), &Limits{}
	var d Decoder
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		d.Reset(lim)
		if _, n, err := d.Decode(dst, body); n != len(body) || err != nil || !d.Done() {
			b.Fatal(n, err)
		}
	}
}
