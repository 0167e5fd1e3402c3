package cache

import (
	"slices"
	"time"

	"headgate/internal/setting/unit"
)

var varyRules = []rule{
	{section: "RFC 9111 4.1", name: "the same value", turns: []turn{
		{send: "GET /|Foo: 1", reply: "200|Cache-Control: max-age=5000|Vary: Foo||one", asked: true},
		{send: "GET /|Foo: 1", want: "||one"},
	}},
	{section: "RFC 9111 4.1", name: "another value, and back", turns: []turn{
		{send: "GET /|Foo: 1", reply: "200|Cache-Control: max-age=5000|Vary: Foo||one", asked: true},
		{send: "GET /|Foo: 2", reply: "200|Cache-Control: max-age=5000|Vary: Foo||two", asked: true, want: "|Cache-Status: headgate; fwd=vary-miss; stored||two"},
		{send: "GET /|Foo: 1", want: "||one"},
		{send: "GET /|Foo: 2", want: "||two"},
	}},
	{section: "RFC 9111 4.1", name: "without the field", turns: []turn{
		{send: "GET /|Foo: 1", reply: "200|Cache-Control: max-age=5000|Vary: Foo||one", asked: true},
		{reply: "200|Cache-Control: max-age=5000|Vary: Foo||two", asked: true},
		{send: "GET /|Foo: ", reply: "200|Cache-Control: max-age=5000|Vary: Foo||three", asked: true},
		{want: "||two"},
	}},
	{section: "RFC 9111 4.1", name: "other fields do not count", turns: []turn{
		{send: "GET /|Foo: 1|Other: 2", reply: "200|Cache-Control: max-age=5000|Vary: Foo||one", asked: true},
		{send: "GET /|Foo: 1|Other: 3", want: "||one"},
	}},
	{section: "RFC 9111 4.1", name: "three fields", turns: []turn{
		{send: "GET /|Foo: 1|Bar: abc|Baz: 7", reply: "200|Cache-Control: max-age=5000|Vary: Foo, Bar|Vary: Baz||one", asked: true},
		{send: "GET /|Baz: 7|Bar: abc|Foo: 1", want: "||one"},
		{send: "GET /|Foo: 1|Bar: abcde|Baz: 7", reply: "200|Cache-Control: max-age=5000|Vary: Foo, Bar, Baz||two", asked: true},
		{send: "GET /|Foo: 1|Baz: 7", reply: "200|Cache-Control: max-age=5000|Vary: Foo, Bar, Baz||three", asked: true},
		{send: "GET /|Foo: 1|Baz: 7", want: "||three"},
	}},
	notReused("RFC 9111 4.1", "*", "200|Cache-Control: max-age=5000|Vary: *||x"),
	notReused("RFC 9111 4.1", "*, *", "200|Cache-Control: max-age=5000|Vary: *, *||x"),
	notReused("RFC 9111 4.1", ", *", "200|Cache-Control: max-age=5000|Vary: , *||x"),
	notReused("RFC 9111 4.1", "* on a second line", "200|Cache-Control: max-age=5000|Vary: |Vary: *||x"),
	notReused("RFC 9111 4.1", "*, Foo", "200|Cache-Control: max-age=5000|Vary: *, Foo||x"),
	notReused("RFC 9111 4.1", "Foo, *", "200|Cache-Control: max-age=5000|Vary: Foo, *||x"),
	{section: "RFC 9111 4.1", name: "white space", turns: []turn{
		{send: "GET /|Foo: 1,2", reply: "200|Cache-Control: max-age=5000|Vary: Foo||one", asked: true},
		{send: "GET /|Foo: 1, 2", want: "||one"},
	}},
	{section: "RFC 9111 4.1", name: "lines are one list", turns: []turn{
		{send: "GET /|Foo: 1, 2", reply: "200|Cache-Control: max-age=5000|Vary: Foo||one", asked: true},
		{send: "GET /|Foo: 1|Foo: 2", want: "||one"},
	}},
	{section: "RFC 9111 4.1", name: "languages in another case", turns: []turn{
		{send: "GET /|Accept-Language: EN, de", reply: "200|Cache-Control: max-age=5000|Vary: Accept-Language||one", asked: true},
		{send: "GET /|Accept-Language: en,de", want: "||one"},
	}},
	{section: "RFC 9110 12.5.3", name: "codings in any order and weight", turns: []turn{
		{send: "GET /|Accept-Encoding: gzip, deflate, br", reply: "200|Cache-Control: max-age=5000|Vary: Accept-Encoding|Content-Encoding: br||one", asked: true},
		{send: "GET /|Accept-Encoding: br;q=1.0, gzip;q=0.8,deflate", want: "||one"},
	}},
	{section: "RFC 9110 12.5.3", name: "fewer codings, with the one that was chosen", turns: []turn{
		{send: "GET /|Accept-Encoding: gzip, br, zstd", reply: "200|Cache-Control: max-age=5000|Vary: Accept-Encoding|Content-Encoding: br||one", asked: true},
		{send: "GET /|Accept-Encoding: gzip, br", want: "||one"},
		{send: "GET /|Accept-Encoding: gzip", reply: "200|Cache-Control: max-age=5000|Vary: Accept-Encoding|Content-Encoding: gzip||two", asked: true},
		{reply: "200|Cache-Control: max-age=5000|Vary: Accept-Encoding||three", asked: true},
		{send: "GET /|Accept-Encoding: gzip", want: "||two"},
		{send: "GET /|Accept-Encoding: br, gzip;q=0", want: "||one"},
		{want: "||three"},
	}},
	{section: "RFC 9110 12.5.3", name: "a plain answer is good for who accepts less", turns: []turn{
		{send: "GET /|Accept-Encoding: gzip, br", reply: "200|Cache-Control: max-age=5000|Vary: Accept-Encoding||one", asked: true},
		{want: "||one"},
		{send: "GET /|Accept-Encoding: gzip, identity;q=0", reply: "200|Cache-Control: max-age=5000|Vary: Accept-Encoding|Content-Encoding: gzip||two", asked: true},
	}},
}

var conditionalRules = []rule{
	{section: "RFC 9111 4.3.2", name: "If-None-Match", turns: []turn{
		{reply: `200|Cache-Control: max-age=5000|ETag: "abcdef"|Vary: Foo|X: 1||one`, asked: true},
		{send: `GET /|If-None-Match: "abcdef"`, want: `304|ETag: "abcdef"|Cache-Control: max-age=5000|Vary: Foo|Date:|Age:|!X||`},
		{send: `GET /|If-None-Match: "abcdef", "1234"`, want: "304"},
		{send: `GET /|If-None-Match: "1", "abcdef", "2"`, want: "304"},
		{send: `GET /|If-None-Match: "1", "a,b", "abcdef"`, want: "304"},
		{send: `GET /|If-None-Match: W/"abcdef"`, want: "304"},
		{send: `GET /|If-None-Match: *`, want: "304"},
		{send: `GET /|If-None-Match: "other"`, want: "200||one"},
	}},
	{section: "RFC 9110 13.1.2", name: "a weak tag", turns: []turn{
		{reply: `200|Cache-Control: max-age=5000|ETag: W/"abcdef"||one`, asked: true},
		{send: `GET /|If-None-Match: W/"abcdef"`, want: "304"},
		{send: `GET /|If-None-Match: "abcdef"`, want: "304"},
	}},
	{section: "RFC 9110 13.1.3", name: "If-None-Match comes before If-Modified-Since", turns: []turn{
		{reply: `200|Cache-Control: max-age=5000|ETag: "abcdef"|Last-Modified: {-5000}||one`, asked: true},
		{send: `GET /|If-None-Match: "abcdef"|If-Modified-Since: {-9000}`, want: "304"},
		{send: `GET /|If-None-Match: "other"|If-Modified-Since: {-1}`, want: "200"},
	}},
	{section: "RFC 9111 4.3.2", name: "If-Modified-Since", turns: []turn{
		{reply: "200|Cache-Control: max-age=5000|Last-Modified: {-3000}|Date: {0}||one", asked: true},
		{send: "GET /|If-Modified-Since: {-3000}", want: "304|Last-Modified: Fri, 02 Jan 2026 02:14:05 GMT"},
		{send: "GET /|If-Modified-Since: {-2000}", want: "304"},
		{send: "GET /|If-Modified-Since: {-4000}", want: "200||one"},
		{send: "GET /|If-Modified-Since: Friday, 02-Jan-26 02:14:05 GMT", want: "304"},
		{send: "GET /|If-Modified-Since: yesterday", want: "200||one"},
	}},
	{section: "RFC 9111 4.3.2", name: "If-Modified-Since without Last-Modified", turns: []turn{
		{reply: "200|Cache-Control: max-age=5000|Date: {0}||one", asked: true},
		{send: "GET /|If-Modified-Since: {10}", want: "304"},
		{send: "GET /|If-Modified-Since: {-10}", want: "200"},
	}},
	{section: "RFC 9110 13.2.1", name: "conditions do not hold for other statuses", turns: []turn{
		{reply: `404|Cache-Control: max-age=5000|ETag: "a"||one`, asked: true},
		{send: `GET /|If-None-Match: "a"`, want: "404||one"},
	}},
	{section: "RFC 9111 4.3.1", name: "a stale response is validated by tag", turns: []turn{
		{reply: `200|Cache-Control: max-age=2|ETag: "abcdef"||one`, asked: true},
		{wait: 3, reply: `304|Cache-Control: max-age=2|ETag: "abcdef"`, asked: true, sent: `If-None-Match: "abcdef"`,
			want: "200|Cache-Status: headgate; fwd=stale; fwd-status=304; ttl=2||one"},
		{wait: 1, want: "200||one"},
	}},
	{section: "RFC 9111 4.3.1", name: "a weak tag is sent as it is", turns: []turn{
		{reply: `200|Cache-Control: max-age=2|ETag: W/"abcdef"||one`, asked: true},
		{wait: 3, reply: "304", asked: true, sent: `If-None-Match: W/"abcdef"`, want: "200||one"},
	}},
	{section: "RFC 9111 4.3.1", name: "a stale response is validated by date", turns: []turn{
		{reply: "200|Cache-Control: max-age=2|Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT||one", asked: true},
		{wait: 3, send: "GET /|If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT", reply: "304", asked: true,
			sent: "If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT", want: "304"},
	}},
	{section: "RFC 9111 4.3.1", name: "the fields of Vary are sent along", turns: []turn{
		{send: "GET /|Abc: 123", reply: `200|Cache-Control: max-age=1|ETag: "a"|Vary: Abc||one`, asked: true},
		{wait: 3, send: "GET /|Abc: 123", reply: "304", asked: true, sent: `Abc: 123|If-None-Match: "a"`, want: "200||one"},
		{send: "GET /|Abc: 456", reply: `200|Cache-Control: max-age=1|Vary: Abc||two`, asked: true, sent: `!If-None-Match`},
	}},
	{section: "RFC 9111 4.3.3", name: "a full answer replaces what was stored", turns: []turn{
		{reply: `200|Cache-Control: max-age=2|ETag: "a"||one`, asked: true},
		{wait: 3, reply: `200|Cache-Control: max-age=60|ETag: "b"||two`, asked: true, want: "||two"},
		{send: `GET /|If-None-Match: "b"`, want: "304"},
		{want: "||two"},
	}},
	{section: "RFC 9111 4.3.4", name: "a 304 about something else is not believed", turns: []turn{
		{reply: `200|Cache-Control: max-age=2|ETag: "a"||one`, asked: true},
		{wait: 3, reply: `304|ETag: "b"`, asked: true, sent: "!If-None-Match", want: "502"},
	}},
	{section: "RFC 9110 15.4.5", name: "a 304 to a request without a condition", turns: []turn{
		{reply: "304", asked: true, want: "502"},
		{send: `GET /|If-None-Match: "a"`, reply: `304|ETag: "a"`, asked: true, sent: "!If-None-Match", want: "502"},
		{send: "GET /|Range: bytes=0-1", reply: "304", asked: true, want: "502"},
		{reply: "200|Cache-Control: max-age=60||x", asked: true, want: "200||x"},
	}},
	{section: "RFC 9111 4.3.2", name: "the first client's condition does not keep a response from being stored", turns: []turn{
		{send: `GET /|If-None-Match: "a"`, reply: `200|Cache-Control: max-age=60|ETag: "a"||one`, asked: true, sent: "!If-None-Match", want: "304||"},
		{want: "200||one"},
	}},
	{section: "RFC 9111 4.3.2", name: "If-Match is for the origin to judge", turns: []turn{
		{reply: `200|Cache-Control: max-age=60|ETag: "a"||one`, asked: true},
		{send: `GET /|If-Match: "b"`, reply: "412", asked: true, sent: `If-Match: "b"`, want: "412"},
	}},
}

// updated shows that a 304 changes a field, in the answer and in what is stored.
func updated(name, before, after string) rule {
	return rule{section: "RFC 9111 3.2", name: name, turns: []turn{
		{reply: `200|Cache-Control: max-age=1|ETag: "e"|` + name + ": " + before + "||body", asked: true},
		{wait: 3, reply: `304|Cache-Control: max-age=3600|ETag: "e"|` + name + ": " + after, asked: true, want: "200|" + name + ": " + after + "||body"},
		{wait: 3, want: "200|" + name + ": " + after + "||body"},
	}}
}

// notUpdated shows that a 304 does not change a field.
func notUpdated(name, before, after string) rule {
	r := updated(name, before, after)
	r.turns[1].want = "200|" + name + ": " + before + "||body"
	r.turns[2].want = r.turns[1].want
	return r
}

var updateRules = []rule{
	updated("Test-Header", "a", "b"), updated("Content-Foo", "a", "b"), updated("Content-Type", "text/plain", "text/plain;charset=utf-8"),
	updated("Content-Location", "/foo", "/bar"), updated("Content-Security-Policy", "a", "b"), updated("X-Frame-Options", "deny", "sameorigin"),
	updated("Content-MD5", "a", "b"), updated("Expires", "Fri, 01 Jan 2038 01:01:01 GMT", "Mon, 11 Jan 2038 11:11:11 GMT"),
	updated("Clear-Site-Data", "cache", "cookies"), updated("Public-Key-Pins", "a", "b"),
	notUpdated("Content-Encoding", "gzip", "br"), notUpdated("Content-Range", "a", "b"),
	{section: "RFC 9111 3.2", name: "stored fields that a 304 leaves out", turns: []turn{
		{reply: "200|Cache-Control: max-age=1|Last-Modified: {-100}|X: 1||one", asked: true},
		{wait: 3, reply: "304|Cache-Control: max-age=3600|Last-Modified: {-103}", asked: true, want: "200|X: 1|Cache-Control: max-age=3600||one"},
		{wait: 100, want: "200|X: 1|Age: 100||one"},
	}},
	{section: "RFC 9111 3.2", name: "lines of a field are replaced together", turns: []turn{
		{reply: `200|Cache-Control: max-age=1|ETag: "e"|X: 1|X: 2||one`, asked: true},
		{wait: 3, reply: `304|Cache-Control: max-age=60|X: 3|X: 4`, asked: true, want: "|X: 3|X: 4"},
		{want: "200|X: 3|X: 4||one"},
	}},
	{section: "RFC 9111 3.2", name: "a strong tag does not replace the weak one of a compressed body", turns: []turn{
		{reply: `200|Cache-Control: max-age=1|ETag: W/"e"|Content-Encoding: gzip||one`, asked: true},
		{wait: 3, reply: `304|Cache-Control: max-age=60|ETag: "e"`, asked: true, want: `|ETag: W/"e"`},
	}},
	{section: "RFC 9111 4.3.4", name: "a 304 that says no-store", turns: []turn{
		{reply: `200|Cache-Control: max-age=1|ETag: "e"||one`, asked: true},
		{wait: 3, reply: `304|Cache-Control: no-store`, asked: true, want: "200||one"},
		{reply: `200|Cache-Control: no-store||two`, asked: true, want: "200||two"},
	}},
}

var requestRules = []rule{
	{section: "RFC 9111 5.2.1.1", name: "max-age=0", turns: []turn{
		{reply: freshReply, asked: true},
		{wait: 1, send: "GET /|Cache-Control: max-age=0", reply: again, asked: true, want: "||two"},
		{want: "||two"},
	}},
	{section: "RFC 9111 5.2.1.1", name: "max-age above the age", turns: []turn{
		{reply: freshReply, asked: true},
		{wait: 5, send: "GET /|Cache-Control: max-age=10", want: "||one"},
		{wait: 6, send: "GET /|Cache-Control: max-age=10", reply: again, asked: true, want: "||two"},
	}},
	{section: "RFC 9111 5.2.1.1", name: "max-age against Age", turns: []turn{
		{reply: "200|Cache-Control: max-age=3600|Age: 1800||one", asked: true},
		{send: "GET /|Cache-Control: max-age=600", reply: again, asked: true},
	}},
	{section: "RFC 9111 5.2.1.2", name: "max-stale", turns: []turn{
		{reply: "200|Cache-Control: max-age=1||one", asked: true},
		{wait: 10, send: "GET /|Cache-Control: max-stale=1000", want: "200|Cache-Status: headgate; hit; ttl=-9||one"},
		{send: "GET /|Cache-Control: max-stale", want: "||one"},
		{send: "GET /|Cache-Control: max-stale=5", reply: again, asked: true},
	}},
	{section: "RFC 9111 5.2.1.2", name: "max-stale against Age", turns: []turn{
		{reply: "200|Cache-Control: max-age=1500|Age: 2000||one", asked: true},
		{send: "GET /|Cache-Control: max-stale=1000", want: "||one"},
	}},
	{section: "RFC 9111 5.2.2.2", name: "must-revalidate before max-stale", turns: []turn{
		{reply: "200|Cache-Control: max-age=1, must-revalidate||one", asked: true},
		{wait: 10, send: "GET /|Cache-Control: max-stale=1000", reply: again, asked: true},
	}},
	{section: "RFC 9111 5.2.1.3", name: "min-fresh", turns: []turn{
		{reply: "200|Cache-Control: max-age=1500||one", asked: true},
		{send: "GET /|Cache-Control: min-fresh=1000", want: "||one"},
		{send: "GET /|Cache-Control: min-fresh=2000", reply: again, asked: true},
	}},
	{section: "RFC 9111 5.2.1.4", name: "no-cache", turns: []turn{
		{reply: `200|Cache-Control: max-age=3600|ETag: "a"|Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT||one`, asked: true},
		{send: "GET /|Cache-Control: no-cache", reply: "304", asked: true,
			sent: `If-None-Match: "a"|If-Modified-Since: Thu, 01 Jan 2026 00:00:00 GMT`, want: "200||one"},
	}},
	{section: "RFC 9111 5.4", name: "Pragma of a request is not heeded", turns: []turn{
		{reply: freshReply, asked: true},
		{send: "GET /|Pragma: no-cache", want: "||one"},
	}},
	{section: "RFC 9111 5.2.1.5", name: "no-store", turns: []turn{
		{send: "GET /|Cache-Control: no-store", reply: freshReply, asked: true},
		{reply: again, asked: true},
	}},
	{section: "RFC 9111 5.2.1.7", name: "only-if-cached", turns: []turn{
		{send: "GET /|Cache-Control: only-if-cached", want: "504"},
		{reply: freshReply, asked: true},
		{send: "GET /|Cache-Control: only-if-cached", want: "200||one"},
	}},
	{section: "ours", name: "a method override passes by", turns: []turn{
		{send: "GET /|X-HTTP-Method-Override: DELETE", reply: freshReply, asked: true, want: "|Cache-Status: headgate; fwd=bypass"},
		{reply: again, asked: true},
	}},
}

func staleFor(while, onError time.Duration) func(*Config) {
	return func(c *Config) {
		c.StaleWhileRevalidate, c.StaleIfError = unit.Duration(while), unit.Duration(onError)
	}
}

var staleRules = []rule{
	{section: "RFC 9111 4.2.4", name: "not without leave", turns: []turn{
		{reply: "200|Cache-Control: max-age=2||one", asked: true},
		{wait: 3, reply: "down", asked: true, want: "502"},
	}},
	{section: "RFC 5861 4", name: "stale-if-error, no connection", turns: []turn{
		{reply: "200|Cache-Control: max-age=2, stale-if-error=60||one", asked: true},
		{wait: 3, reply: "down", asked: true, want: "200|Cache-Status: headgate; fwd=stale; ttl=-1||one"},
		{wait: 70, reply: "down", asked: true, want: "502"},
	}},
	{section: "RFC 5861 4", name: "stale-if-error, 503", turns: []turn{
		{reply: "200|Cache-Control: max-age=2, stale-if-error=60||one", asked: true},
		{wait: 3, reply: "503||two", asked: true, want: "200|Cache-Status: headgate; fwd=stale; fwd-status=503; ttl=-1||one"},
		{reply: "404||three", asked: true, want: "404||three"},
	}},
	{section: "RFC 5861 4", name: "the setting", change: staleFor(0, time.Minute), turns: []turn{
		{reply: "200|Cache-Control: max-age=2||one", asked: true},
		{wait: 3, reply: "down", asked: true, want: "200||one"},
	}},
	{section: "RFC 9111 5.2.2.2", name: "must-revalidate", change: staleFor(0, time.Minute), turns: []turn{
		{reply: "200|Cache-Control: max-age=2, must-revalidate, stale-if-error=60||one", asked: true},
		{wait: 3, reply: "down", asked: true, want: "502"},
	}},
	{section: "RFC 9111 5.2.2.8", name: "proxy-revalidate", change: staleFor(0, time.Minute), turns: []turn{
		{reply: "200|Cache-Control: max-age=2, proxy-revalidate||one", asked: true},
		{wait: 3, reply: "down", asked: true, want: "502"},
	}},
	{section: "RFC 9111 5.2.2.10", name: "s-maxage", change: staleFor(0, time.Minute), turns: []turn{
		{reply: "200|Cache-Control: s-maxage=2||one", asked: true},
		{wait: 3, reply: "down", asked: true, want: "502"},
	}},
	{section: "RFC 9111 5.2.2.4", name: "no-cache", change: staleFor(0, time.Minute), turns: []turn{
		{reply: `200|Cache-Control: max-age=2, no-cache|ETag: "a"||one`, asked: true},
		{wait: 3, reply: "down", asked: true, want: "502"},
	}},
}

// expiredAtBirth shows that what a server declares expired is not served again without
// validation, whatever the settings allow, and not to a client that accepts stale
// responses; without a validator it is not stored.
func expiredAtBirth(name, fields string) []rule {
	change := staleFor(time.Hour, time.Hour)
	return []rule{
		{section: "RFC 9111 4.2.4", name: name + ", not stored", change: change, turns: []turn{
			{reply: "200|" + fields + "||one", asked: true, want: "|Cache-Status: headgate; fwd=uri-miss; detail=no-validator"},
			{reply: "200|" + fields + "||two", asked: true, want: "||two"},
			{reply: "down", asked: true, want: "502"},
		}},
		{section: "RFC 9111 4.2.4", name: name + ", validated", change: change, turns: []turn{
			{reply: "200|" + fields + `|ETag: "a"||one`, asked: true},
			{reply: `304|` + fields + `|ETag: "a"`, asked: true, sent: `If-None-Match: "a"`, want: "200||one"},
			{send: "GET /|Cache-Control: max-stale", reply: "304", asked: true, want: "200||one"},
			{reply: "503||three", asked: true, want: "503||three"},
			{reply: "down", asked: true, want: "502"},
		}},
	}
}

// The ways in which servers declare a response expired.
var expiredAtBirthRules = slices.Concat(
	expiredAtBirth("Expires: 0", "Expires: 0|Date: {0}"),
	expiredAtBirth("past Expires", "Expires: {-3600}|Date: {0}"),
	expiredAtBirth("past Expires, slow Date", "Expires: {-3600}|Date: {-7200}"),
	expiredAtBirth("past Expires, no Date", "Expires: {-3600}"),
	expiredAtBirth("present Expires", "Expires: {0}|Date: {0}"),
	expiredAtBirth("max-age=0", "Cache-Control: max-age=0"),
	expiredAtBirth("invalid max-age", "Cache-Control: max-age=soon"),
	expiredAtBirth("max-age=0 and public", "Cache-Control: public, max-age=0|Expires: {3600}|Date: {0}"),
	expiredAtBirth("CDN-Cache-Control", "CDN-Cache-Control: max-age=0|Cache-Control: max-age=3600"),
	[]rule{
		{section: "RFC 5861 3", name: "a lifetime of zero with its own stale-while-revalidate", change: staleFor(0, 0), turns: []turn{
			{reply: "200|Cache-Control: max-age=0, stale-while-revalidate=60||one", asked: true},
			{wait: 70, reply: "200|Cache-Control: max-age=0||two", asked: true, want: "||two"},
		}},
		{section: "RFC 5861 4", name: "a lifetime of zero with its own stale-if-error", change: staleFor(time.Hour, time.Hour), turns: []turn{
			{reply: "200|Cache-Control: max-age=0, stale-if-error=60||one", asked: true},
			{reply: "down", asked: true, want: "200||one"},
			{wait: 70, reply: "down", asked: true, want: "502"},
		}},
		{section: "RFC 9111 4.2.4", name: "a 304 that declares the response expired", change: staleFor(time.Hour, time.Hour), turns: []turn{
			{reply: `200|Cache-Control: max-age=2|ETag: "a"||one`, asked: true},
			{wait: 3602 + 3, reply: `304|Cache-Control: max-age=0|ETag: "a"`, asked: true, want: "200||one"},
			{reply: "down", asked: true, want: "502"},
		}},
	},
)

const ten = "200|Cache-Control: max-age=3600|ETag: \"t\"||0123456789"

var rangeRules = []rule{
	{section: "RFC 9110 14.2", name: "parts of what is stored", turns: []turn{
		{reply: ten, asked: true},
		{send: "GET /|Range: bytes=0-1", want: "206|Content-Range: bytes 0-1/10||01"},
		{send: "GET /|Range: bytes=1-", want: "206|Content-Range: bytes 1-9/10||123456789"},
		{send: "GET /|Range: bytes=-3", want: "206|Content-Range: bytes 7-9/10||789"},
		{send: "GET /|Range: bytes=-300", want: "206|Content-Range: bytes 0-9/10||0123456789"},
		{send: "GET /|Range: bytes=5-500", want: "206|Content-Range: bytes 5-9/10||56789"},
		{send: "GET /|Range: bytes=10-", want: "416|Content-Range: bytes */10||"},
		{send: "GET /|Range: bytes=-0", want: "416|Content-Range: bytes */10||"},
		{send: "GET /|Range: bytes=5-2", want: "200||0123456789"},
		{send: "GET /|Range: bytes=a-b", want: "200||0123456789"},
		{send: "GET /|Range: lines=1-2", want: "200||0123456789"},
		{send: "GET /|Range: bytes=0-1,4-5", want: "200||0123456789"},
		{send: "GET /|Range: bytes=99999999999999999999-", want: "416"},
		{send: "HEAD /|Range: bytes=0-1", want: "200||"},
	}},
	{section: "RFC 9110 13.1.5", name: "If-Range", turns: []turn{
		{reply: "200|Cache-Control: max-age=3600|ETag: \"t\"|Last-Modified: {-1000}||0123456789", asked: true},
		{send: "GET /|Range: bytes=0-1|If-Range: \"t\"", want: "206||01"},
		{send: "GET /|Range: bytes=0-1|If-Range: \"u\"", want: "200||0123456789"},
		{send: "GET /|Range: bytes=0-1|If-Range: W/\"t\"", want: "200||0123456789"},
		{send: "GET /|Range: bytes=0-1|If-Range: {-1000}", want: "206||01"},
		{send: "GET /|Range: bytes=0-1|If-Range: {-900}", want: "200||0123456789"},
	}},
	{section: "RFC 9110 13.1.5", name: "If-Range never matches a weak tag", turns: []turn{
		{reply: "200|Cache-Control: max-age=3600|ETag: W/\"t\"||0123456789", asked: true},
		{send: "GET /|Range: bytes=0-1|If-Range: W/\"t\"", want: "200||0123456789"},
	}},
	{section: "RFC 9110 13.2.2", name: "If-None-Match before Range", turns: []turn{
		{reply: ten, asked: true},
		{send: "GET /|Range: bytes=0-1|If-None-Match: \"t\"", want: "304"},
	}},
	{section: "RFC 9111 3.3", name: "a part of what is not stored is asked for as such", turns: []turn{
		{send: "GET /|Range: bytes=-5", reply: "206|Cache-Control: max-age=3600|Content-Range: bytes 5-9/10||56789", asked: true, sent: "Range: bytes=-5", want: "206||56789"},
		{send: "GET /|Range: bytes=-5", want: "206|Content-Range: bytes 5-9/10||56789"},
		{send: "GET /|Range: bytes=6-8", want: "206|Content-Range: bytes 6-8/10||678"},
		{send: "GET /|Range: bytes=6-", want: "206||6789"},
		{send: "GET /|Range: bytes=-1", want: "206||9"},
		{send: "GET /|Range: bytes=4-5", reply: "206|Cache-Control: max-age=3600|Content-Range: bytes 4-5/10||45", asked: true, want: "206||45"},
		{send: "GET /|Range: bytes=4-5", want: "206||45"},
		{send: "GET /|Range: bytes=-5|If-Range: \"t\"", reply: ten, asked: true, want: "200"},
		{send: "HEAD /", reply: ten, asked: true},
		{reply: ten, asked: true, want: "200|Cache-Status: headgate; fwd=uri-miss; stored||0123456789"},
		{send: "GET /|Range: bytes=0-5", want: "206||012345"},
	}},
	{section: "RFC 9111 3.3", name: "a part that is stale is fetched again", turns: []turn{
		{send: "GET /|Range: bytes=0-1", reply: "206|Cache-Control: max-age=2|ETag: \"t\"|Content-Range: bytes 0-1/10||01", asked: true},
		{wait: 3, send: "GET /|Range: bytes=0-1", reply: "206|Cache-Control: max-age=2|Content-Range: bytes 0-1/10||ab", asked: true, sent: "Range: bytes=0-1|!If-None-Match", want: "206||ab"},
		{send: "GET /|Range: bytes=0-1", want: "206||ab"},
	}},
	{section: "RFC 9110 15.3.7", name: "parts that are not what was asked for are not stored", turns: []turn{
		{send: "GET /|Range: bytes=0-1", reply: "206|Cache-Control: max-age=3600|Content-Range: bytes 4-5/10||45", asked: true, want: "206"},
		{wait: 100, send: "GET /|Range: bytes=4-5", reply: "206|Cache-Control: max-age=3600|Content-Range: bytes 4-5/10||456", asked: true, want: "206"},
		{wait: 100, send: "GET /|Range: bytes=4-5", reply: "206|Cache-Control: max-age=3600|Content-Range: bytes 4-5/*||45", asked: true, want: "206"},
		{wait: 100, send: "GET /|Range: bytes=4-5", reply: "206|Cache-Control: max-age=3600||45", asked: true, want: "206"},
		{wait: 100, send: "GET /|Range: bytes=4-5", reply: "206|Content-Range: bytes 4-5/10||45", asked: true, want: "206"},
		{wait: 100, send: "GET /|Range: bytes=4-5", reply: ten, asked: true, want: "206|Content-Range: bytes 4-5/10||45"},
		{want: "200||0123456789"},
	}},
	{section: "RFC 9111 3.3", name: "a 206 that nobody asked for is not stored", turns: []turn{
		{reply: "206|Cache-Control: max-age=3600|Content-Range: bytes 5-9/10||56789", asked: true, want: "206"},
		{reply: ten, asked: true, want: "200"},
	}},
	{section: "RFC 9111 4.3.1", name: "a stale response is validated whole", turns: []turn{
		{reply: "200|Cache-Control: max-age=1|ETag: \"t\"||0123456789", asked: true},
		{wait: 3, send: "GET /|Range: bytes=0-1", reply: "304", asked: true, sent: "!Range|If-None-Match: \"t\"", want: "206||01"},
	}},
}

// invalidates shows that a request takes out what is stored of a path.
func invalidates(name, path, send, reply string, does bool) rule {
	last := turn{send: "GET " + path, reply: again, asked: does}
	return rule{section: "RFC 9111 4.4", name: name, turns: []turn{
		{send: "GET " + path, reply: freshReply, asked: true},
		{send: send, reply: reply, asked: true},
		last,
	}}
}

var invalidationRules = []rule{
	invalidates("POST", "/a", "POST /a", "200", true),
	invalidates("PUT", "/a", "PUT /a", "204", true),
	invalidates("DELETE", "/a", "DELETE /a", "200", true),
	invalidates("an unknown method", "/a", "M-SEARCH /a", "200", true),
	invalidates("a redirect is no failure", "/a", "POST /a", "303|Location: /b", true),
	invalidates("POST that failed", "/a", "POST /a", "500", false),
	invalidates("PUT that was refused", "/a", "PUT /a", "403", false),
	invalidates("OPTIONS is safe", "/a", "OPTIONS /a", "200", false),
	invalidates("another query", "/a?x=1", "POST /a", "200", false),
	invalidates("Location", "/b", "POST /a", "201|Location: /b", true),
	invalidates("Location with a host", "/b", "POST /a", "201|Location: http://EXAMPLE.com:80/b#c", true),
	invalidates("relative Location", "/x/b?q", "POST /x/a", "201|Location: b?q", true),
	invalidates("Content-Location", "/b", "POST /a", "200|Content-Location: /b", true),
	invalidates("Location of another host", "/b", "POST /a", "201|Location: http://other.example/b", false),
	invalidates("Location of another port", "/b", "POST /a", "201|Location: http://example.com:81/b", false),
	invalidates("Content-Location of a failure", "/b", "POST /a", "500|Content-Location: /b", false),
}

func byAge(c *Config) { c.Heuristic = 10 }

var ageRules = func() []rule {
	changed := func(r rule) rule { r.change = byAge; return r }
	return []rule{
		{section: "RFC 9111 4.2.2", name: "a tenth of the age", change: byAge, turns: []turn{
			{reply: "200|Last-Modified: {-1000}|Date: {0}||one", asked: true},
			{wait: 99, want: "||one"},
			{wait: 2, send: "GET /", reply: "200||two", asked: true, want: "||two"},
		}},
		{section: "ours", name: "a day at most", change: byAge, turns: []turn{
			{reply: "200|Last-Modified: {-100000000}|Date: {0}||one", asked: true},
			{wait: 86399, want: "||one"},
			{wait: 2, reply: "200||two", asked: true, want: "||two"},
		}},
		changed(notReused("RFC 9111 4.2.2", "without a Last-Modified nothing is guessed", "200|Date: {0}||x")),
		changed(notReused("RFC 9111 4.2.2", "nor for a status that is not cacheable by default", "202|Last-Modified: {-1000}|Date: {0}||x")),
		changed(notReused("ours", "nor where cookies are set", "200|Last-Modified: {-1000}|Set-Cookie: a=b|Date: {0}||x")),
		{section: "ours", name: "nor with a query", change: byAge, turns: []turn{
			{send: "GET /?a=1", reply: "200|Last-Modified: {-1000}|Date: {0}||x", asked: true},
			{send: "GET /?a=1", reply: "200||y", asked: true, want: "||y"},
		}},
	}
}()

func byDefault(c *Config) { c.DefaultTTL = unit.Duration(time.Minute) }

var heuristicRules = func() (all []rule) {
	for status, stored := range map[string]bool{"200": true, "203": true, "204": true, "300": true, "301": true, "308": true, "404": true, "405": true,
		"410": true, "414": true, "501": true, "201": false, "202": false, "302": false, "403": false, "502": false, "503": false, "504": false, "599": false} {
		r := notReused("RFC 9110 15.1", status, status+"|Last-Modified: {-86400}|Date: {0}||")
		if stored {
			r = reused("RFC 9110 15.1", status, status+"|Last-Modified: {-86400}|Date: {0}||")
		}
		r.change = byDefault
		all = append(all, r)
	}
	public := reused("RFC 9111 4.2.2", "599 and public", "599|Cache-Control: public|Date: {0}||")
	public.change = byDefault
	private := notReused("RFC 9111 4.2.2", "private", "200|Cache-Control: private|Date: {0}||")
	private.change = byDefault
	expired := notReused("RFC 9111 4.2.2", "an explicit time comes first", "200|Expires: {-1}|Date: {0}||")
	expired.change = byDefault
	return append(all, public, private, expired,
		rule{section: "RFC 9111 4.2.2", name: "a file that has just changed is fresh for a second", change: func(c *Config) { c.Heuristic = 10 }, turns: []turn{
			{reply: "200|Last-Modified: {-5}|Date: {0}||one", asked: true},
			{want: "||one"},
			{wait: 1, reply: "200||two", asked: true, want: "||two"},
		}},
		rule{section: "ours", name: "a page for one person is not shared", change: byDefault, turns: []turn{
			{send: "GET /|Cookie: a=b", reply: "200||one", asked: true},
			{reply: "200||two", asked: true, want: "||two"},
			{send: "GET /|Cookie: a=b", reply: "200||three", asked: true, want: "||three"},
			{want: "||two"},
		}},
		rule{section: "ours", name: "a file is", change: byDefault, turns: []turn{
			{send: "GET /|Cookie: a=b", reply: "200|Last-Modified: {-1000}||one", asked: true},
			{send: "GET /|Cookie: c=d", want: "||one"},
			{wait: 61, reply: "200||two", asked: true},
		}})
}()

var headRules = []rule{
	{section: "RFC 9110 9.3.2", name: "HEAD from GET", turns: []turn{
		{reply: ten, asked: true},
		{send: "HEAD /", want: "200|ETag: \"t\"||"},
		{send: "HEAD /|If-None-Match: \"t\"", want: "304||"},
	}},
	{section: "RFC 9110 9.3.2", name: "HEAD alone stores nothing", turns: []turn{
		{send: "HEAD /", reply: ten, asked: true},
		{reply: ten, asked: true},
	}},
	{section: "RFC 9111 4.3.5", name: "HEAD makes what is stored fresh", turns: []turn{
		{reply: "200|Cache-Control: max-age=1|A: 1||one", asked: true},
		{wait: 3, send: "HEAD /", reply: "200|Cache-Control: max-age=1000|A: 2||one", asked: true},
		{wait: 3, want: "200|A: 2||one"},
	}},
	{section: "RFC 9111 4.3.5", name: "HEAD about something newer takes it out", turns: []turn{
		{reply: "200|Cache-Control: max-age=10, stale-if-error=1000|ETag: \"a\"||one", asked: true},
		{wait: 30, send: "HEAD /", reply: "200|Cache-Control: max-age=1000|ETag: \"b\"||three", asked: true},
		{reply: "down", asked: true, want: "502"},
	}},
}

var fieldRules = []rule{
	{section: "RFC 9111 3.1", name: "what is stored of a head", turns: []turn{
		{reply: "200|Cache-Control: max-age=3600|X-Test: 1|Strict-Transport-Security: a|Content-Type: text/plain|Link: a|Link: b||x", asked: true},
		{want: "200|X-Test: 1|Strict-Transport-Security: a|Content-Type: text/plain|Link: a|Link: b"},
	}},
	{section: "RFC 9111 3.1", name: "what is not", turns: []turn{
		{reply: "200|Cache-Control: max-age=3600|Proxy-Authentication-Info: a|Proxy-Authenticate: b||x", asked: true},
		{want: "200|!Proxy-Authentication-Info|!Proxy-Authenticate"},
	}},
	{section: "ours", name: "a body above max_entry passes", change: ofSize(unit.Size(4)), turns: []turn{
		{reply: "200|Cache-Control: max-age=3600||12345", asked: true, want: "|Cache-Status: headgate; fwd=uri-miss; detail=too-large||12345"},
		{reply: "200|Cache-Control: max-age=3600||1234", asked: true, want: "||1234"},
	}},
	{section: "ours", name: "parameters that make no difference", change: func(c *Config) { c.IgnoreQuery = []string{"utm_*", "ref"} }, turns: []turn{
		{send: "GET /?a=1&utm_source=x&b=2&ref=y", reply: freshReply, asked: true, sent: "GET /?a=1&b=2\n"},
		{send: "GET /?utm_medium=z&a=1&b=2", want: "||one"},
		{send: "GET /?a=1&b=2", want: "||one"},
		{send: "GET /?b=2&a=1", reply: again, asked: true},
	}},
}
