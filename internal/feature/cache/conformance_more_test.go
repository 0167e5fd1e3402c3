package cache

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
	"headgate/internal/proto/header"
	"headgate/internal/setting/unit"
)

// of returns a reply with a part of ten bytes.
func of(first, last int, tag string) string {
	return fmt.Sprintf("206|Cache-Control: max-age=3600|ETag: %s|X-From: %d|Content-Range: bytes %d-%d/10||%s", tag, first, first, last, "0123456789"[first:last+1])
}

var combineRules = []rule{
	{section: "RFC 9111 3.4", name: "parts that touch are one", turns: []turn{
		{send: "GET /|Range: bytes=0-3", reply: of(0, 3, `"t"`), asked: true, want: "206||0123"},
		{send: "GET /|Range: bytes=4-6", reply: of(4, 6, `"t"`), asked: true, want: "206||456"},
		{send: "GET /|Range: bytes=2-5", want: "206|Content-Range: bytes 2-5/10|X-From: 4||2345"},
		{send: "GET /|Range: bytes=0-6", want: "206|Content-Range: bytes 0-6/10||0123456"},
		{send: "GET /|Range: bytes=6-8", reply: of(6, 8, `"t"`), asked: true, want: "206||678"},
		{send: "GET /|Range: bytes=1-8", want: "206||12345678"},
	}},
	{section: "RFC 9111 3.4", name: "all parts are the whole", turns: []turn{
		{send: "GET /|Range: bytes=7-", reply: of(7, 9, `"t"`), asked: true, want: "206||789"},
		{send: "GET /|Range: bytes=0-3", reply: of(0, 3, `"t"`), asked: true, want: "206||0123"},
		{send: "GET /|Range: bytes=3-8", reply: of(3, 8, `"t"`), asked: true, want: "206||345678"},
		{want: "200|!Content-Range|X-From: 3|ETag: \"t\"||0123456789"},
		{send: "GET /|If-None-Match: \"t\"", want: "304"},
		{send: "GET /|Range: bytes=-1", want: "206||9"},
		{wait: 3601, reply: "304|Cache-Control: max-age=60", asked: true, sent: "If-None-Match: \"t\"", want: "200||0123456789"},
	}},
	{section: "RFC 9111 3.4", name: "a part that is all is the whole", turns: []turn{
		{send: "GET /|Range: bytes=0-", reply: "206|Cache-Control: max-age=3600|Content-Range: bytes 0-9/10||0123456789", asked: true, want: "206||0123456789"},
		{want: "200|!Content-Range||0123456789"},
	}},
	{section: "RFC 9111 3.4", name: "parts that do not touch are two", turns: []turn{
		{send: "GET /|Range: bytes=0-3", reply: of(0, 3, `"t"`), asked: true},
		{send: "GET /|Range: bytes=5-9", reply: of(5, 9, `"t"`), asked: true},
		{send: "GET /|Range: bytes=1-2", want: "206||12"},
		{send: "GET /|Range: bytes=3-5", reply: "503", asked: true},
	}},
	{section: "RFC 9111 3.4", name: "parts of two bodies are two", turns: []turn{
		{send: "GET /|Range: bytes=0-3", reply: of(0, 3, `"t"`), asked: true},
		{send: "GET /|Range: bytes=4-9", reply: of(4, 9, `"u"`), asked: true},
		{send: "GET /|Range: bytes=3-4", reply: "503", asked: true},
	}},
	{section: "RFC 9110 8.8.1", name: "a weak tag does not tell which body it is", turns: []turn{
		{send: "GET /|Range: bytes=0-3", reply: of(0, 3, `W/"t"`), asked: true},
		{send: "GET /|Range: bytes=4-9", reply: of(4, 9, `W/"t"`), asked: true},
		{send: "GET /|Range: bytes=3-4", reply: "503", asked: true},
	}},
	{section: "RFC 9111 3.4", name: "parts for other requests are others", turns: []turn{
		{send: "GET /|X-A: 1|Range: bytes=0-3", reply: "206|Vary: X-A|" + of(0, 3, `"t"`)[4:], asked: true},
		{send: "GET /|X-A: 2|Range: bytes=4-9", reply: "206|Vary: X-A|" + of(4, 9, `"t"`)[4:], asked: true},
		{send: "GET /|X-A: 2|Range: bytes=3-4", reply: "503", asked: true},
	}},
	{section: "ours", name: "no more is put together than may be stored", change: func(c *Config) { c.MaxEntry = 6 }, turns: []turn{
		{send: "GET /|Range: bytes=0-3", reply: of(0, 3, `"t"`), asked: true},
		{send: "GET /|Range: bytes=4-7", reply: of(4, 7, `"t"`), asked: true},
		{send: "GET /|Range: bytes=3-4", reply: "503", asked: true},
		{send: "GET /|Range: bytes=4-7", want: "206||4567"},
	}},
}

// posted is an answer to a POST that is for GET too.
const posted = "200|Cache-Control: max-age=60|Content-Location: /a|X-A: b||made"

var postRules = []rule{
	{section: "RFC 9110 9.3.3", name: "the answer to a POST is for GET", turns: []turn{
		{send: "POST /a", reply: posted, asked: true, want: "200||made"},
		{send: "GET /a", want: "200|X-A: b|Age:||made"},
		{send: "HEAD /a", want: "200|X-A: b||"},
		{send: "POST /a", reply: "200||again", asked: true, want: "200||again"},
		{send: "GET /a", reply: "200||new", asked: true, want: "200||new"},
	}},
	{section: "RFC 9110 9.3.3", name: "it takes the place of what was stored", turns: []turn{
		{send: "GET /a", reply: "200|Cache-Control: max-age=60||old", asked: true},
		{send: "POST /a", reply: posted, asked: true},
		{send: "GET /a", want: "200||made"},
	}},
	posts("without Content-Location", "POST /a", "200|Cache-Control: max-age=60||made"),
	posts("of another address", "POST /b", posted),
	posts("of another query", "POST /a?x", posted),
	posts("without a life", "POST /a", "200|Content-Location: /a||made"),
	posts("with a life that is guessed", "POST /a", "200|Content-Location: /a|Last-Modified: {-1000}||made"),
	posts("private", "POST /a", "200|Cache-Control: max-age=60, private|Content-Location: /a||made"),
	posts("of one who signed in", "POST /a|Authorization: Basic eDp5", posted),
	posts("of a client that wants none stored", "POST /a|Cache-Control: no-store", posted),
	posts("with another method in a field", "POST /a|X-HTTP-Method-Override: DELETE", posted),
	posts("that was created", "POST /a", "201|Cache-Control: max-age=60|Content-Location: /a||made"),
	posts("by PUT", "PUT /a", posted),
	posts("that is too large", "POST /a", "200|Cache-Control: max-age=60|Content-Location: /a|chunked||"+strings.Repeat("x", maxPost+1)),
}

// posts is an answer to a POST that is not stored.
func posts(name, request, reply string) rule {
	return rule{section: "RFC 9110 9.3.3", name: name, change: func(c *Config) { c.Heuristic = 10 }, turns: []turn{
		{send: request, reply: reply, asked: true},
		{send: "GET /a", reply: "200||new", asked: true, want: "200||new"},
	}}
}

var languageRules = []rule{
	{section: "ours", name: "languages of the settings", change: func(c *Config) { c.Languages = []string{"en", "de", "pt-BR"} }, turns: []turn{
		{send: "GET /|Accept-Language: en-GB,en;q=0.9,fr;q=0.1", reply: "200|Cache-Control: max-age=60|Vary: Accept-Language||english", asked: true, sent: "Accept-Language: en\n"},
		{send: "GET /|Accept-Language: EN-us, de;q=0.5", want: "||english"},
		{send: "GET /|Accept-Language: fr, nl", want: "||english"},
		{send: "GET /|Accept-Language: *;q=0.1", want: "||english"},
		{send: "GET /|Accept-Language: de;q=x, en;q=0.1", want: "||english"},
		{send: "GET /|Accept-Language: en;q=0.4, de-AT;q=0.5", reply: "200|Cache-Control: max-age=60|Vary: Accept-Language||deutsch", asked: true, sent: "Accept-Language: de\n"},
		{send: "GET /|Accept-Language: de", want: "||deutsch"},
		{send: "GET /|Accept-Language: fr;q=0.9,en;q=0.8|Accept-Language: de-CH-1996", want: "||deutsch"},
		{send: "GET /|Accept-Language: pt", reply: "200|Cache-Control: max-age=60|Vary: Accept-Language||brasil", asked: true, sent: "Accept-Language: pt-BR\n"},
		{send: "GET /", reply: "200||none", asked: true, sent: "!Accept-Language"},
		{send: "POST /|Accept-Language: de-AT", reply: "200||x", asked: true, sent: "Accept-Language: de\n"},
	}},
	{section: "ours", name: "without languages the field is the client's", turns: []turn{
		{send: "GET /|Accept-Language: de-AT, en", reply: "200||x", asked: true, sent: "Accept-Language: de-AT, en"},
	}},
}

func TestConformanceToTheRest(t *testing.T) {
	for group, rules := range map[string][]rule{"combine": combineRules, "post": postRules, "language": languageRules} {
		for _, r := range rules {
			t.Run(group+"/"+r.section+"/"+r.name, func(t *testing.T) {
				c := settings()
				if r.change != nil {
					r.change(c)
				}
				newStage(t, c).play(t, r.turns)
			})
		}
	}
}

// Parts of a long body come together over the pieces that memory is cut into.
func TestLongPartsAreCombined(t *testing.T) {
	var whole strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&whole, "%07d,", i)
	}
	text := whole.String()
	s := newStage(t, settings())
	const step = 150_001
	for at := 0; at < len(text); at += step {
		last := min(at+step, len(text)) - 1
		s.origin.reply = answer(fmt.Sprintf("206|Cache-Control: max-age=60|ETag: \"t\"|Content-Range: bytes %d-%d/%d||%s", at, last, len(text), text[at:last+1]), s.clock)
		if front := s.request(fmt.Sprintf("GET /|Range: bytes=%d-%d", at, last)); front.Status != 206 || front.Body != text[at:last+1] {
			t.Fatalf("part at %d: %d, %d bytes", at, front.Status, len(front.Body))
		}
	}
	asked := s.origin.count()
	if front := s.request("GET /"); front.Status != 200 || front.Body != text || s.origin.count() != asked {
		t.Errorf("got %d and %d bytes, the server was asked %d times more", front.Status, len(front.Body), s.origin.count()-asked)
	}
	if n := s.cache.store.entries.Load(); n != 1 {
		t.Errorf("%d entries are held, want the whole alone", n)
	}
}

// A body that was not compressed for want of memory is kept for seconds, is not validated,
// and gives its place to one that is as it should be.
func TestAMakeshiftBodyIsKeptForMoments(t *testing.T) {
	s := newStage(t, settings(func(c *Config) {
		c.StaleIfError, c.StaleWhileRevalidate = unit.Duration(time.Minute), unit.Duration(time.Minute)
	}))
	serve := func(reply string, makeshift bool) {
		s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
			a := answer(reply, s.clock)(ex)
			ex.Response.Makeshift = makeshift
			return a
		}
	}
	const request = "GET /|Accept-Encoding: gzip"
	want := func(what, body string, asked int) {
		t.Helper()
		if front := s.request(request); front.Body != body || s.origin.count() != asked {
			t.Errorf("%s: got %q, the server was asked %d times, want %q and %d", what, front.Body, s.origin.count(), body, asked)
		}
	}
	serve("200|Cache-Control: max-age=3600|ETag: \"t\"|Vary: Accept-Encoding||plain", true)
	want("the first", "plain", 1)
	s.wait(5)
	want("within moments", "plain", 1)
	s.wait(6)
	serve("200|Cache-Control: max-age=3600|ETag: W/\"t\"|Vary: Accept-Encoding|Content-Encoding: gzip||small", false)
	want("later", "small", 2)
	if head := s.origin.asked[1]; strings.Contains(head, "If-None-Match") {
		t.Errorf("it is validated:\n%s", head)
	}
	s.wait(100)
	want("in its place", "small", 2)
	if n := s.cache.store.entries.Load(); n != 1 {
		t.Errorf("%d entries are held, want one", n)
	}
}

// Whatever a client writes, it gets a language of the settings.
func FuzzAcceptLanguage(f *testing.F) {
	for _, s := range []string{"de-AT, en;q=0.5", "*", ";q=1,,--;q=0.1", "pt-", "e"} {
		f.Add(s)
	}
	c := &Cache{languages: []string{"en", "de", "pt-BR"}}
	f.Fuzz(func(t *testing.T, field string) {
		var list header.List
		list.Add(header.AcceptLanguage, field)
		if got := c.language(&list); got != "en" && got != "de" && got != "pt-BR" {
			t.Errorf("%q gets %q", field, got)
		}
	})
}
