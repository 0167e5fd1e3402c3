package cache

import (
	"testing"

	"headgate/internal/setting/unit"
)

// rule is a rule of a document and requests that show it.
type rule struct {
	section string
	name    string
	turns   []turn
	change  func(*Config)
}

// Replies and expectations that many rules share.
const (
	freshReply = "200|Cache-Control: max-age=3600|Date: {0}||one"
	again      = "200|Cache-Control: max-age=3600|Date: {0}||two"
)

// reused shows that a reply is stored and used again.
func reused(section, name, reply string) rule {
	return rule{section: section, name: name, turns: []turn{
		{reply: reply, asked: true},
		{wait: 3, reply: again, want: "|Age:"},
	}}
}

// notReused shows that a reply is not used again without asking.
func notReused(section, name, reply string) rule {
	return rule{section: section, name: name, turns: []turn{
		{reply: reply, asked: true},
		{wait: 3, reply: again, asked: true},
	}}
}

func TestConformance(t *testing.T) {
	groups := map[string][]rule{
		"freshness": freshnessRules, "parsing": parsingRules, "storing": storingRules, "status": statusRules,
		"targeted": targetedRules, "vary": varyRules, "conditional": conditionalRules, "update": updateRules,
		"requests": requestRules, "stale": staleRules, "range": rangeRules, "invalidation": invalidationRules,
		"expired": expiredAtBirthRules, "heuristic": heuristicRules, "age": ageRules, "head": headRules, "fields": fieldRules,
	}
	for group, rules := range groups {
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

var freshnessRules = []rule{
	notReused("RFC 9111 4.2", "nothing said", "200|Date: {0}||x"),
	reused("RFC 9111 5.2.2.1", "max-age", "200|Cache-Control: max-age=3600||x"),
	notReused("RFC 9111 5.2.2.1", "max-age passed", "200|Cache-Control: max-age=2||x"),
	notReused("RFC 9111 5.2.2.1", "max-age 0", "200|Cache-Control: max-age=0||x"),
	reused("RFC 9111 5.2.2.10", "s-maxage", "200|Cache-Control: s-maxage=3600||x"),
	notReused("RFC 9111 4.2.1", "s-maxage before longer max-age", "200|Cache-Control: max-age=3600, s-maxage=1||x"),
	notReused("RFC 9111 4.2.1", "s-maxage before longer max-age, other order", "200|Cache-Control: s-maxage=1, max-age=3600||x"),
	notReused("RFC 9111 4.2.1", "s-maxage before longer max-age, two lines", "200|Cache-Control: max-age=3600|Cache-Control: s-maxage=1||x"),
	reused("RFC 9111 4.2.1", "s-maxage before shorter max-age", "200|Cache-Control: max-age=1, s-maxage=3600||x"),
	reused("RFC 9111 4.2.1", "max-age before past Expires", "200|Cache-Control: max-age=3600|Expires: {-10000}|Date: {0}||x"),
	reused("RFC 9111 4.2.1", "max-age before invalid Expires", "200|Cache-Control: max-age=3600|Expires: 0|Date: {0}||x"),
	notReused("RFC 9111 4.2.1", "max-age 0 before future Expires", "200|Cache-Control: max-age=0|Expires: {10000}|Date: {0}||x"),
	reused("RFC 9111 5.3", "future Expires", "200|Expires: {3600}|Date: {0}||x"),
	notReused("RFC 9111 5.3", "past Expires", "200|Expires: {-3600}|Date: {0}||x"),
	notReused("RFC 9111 5.3", "present Expires", "200|Expires: {0}|Date: {0}||x"),
	notReused("RFC 9111 5.3", "Expires before Date", "200|Expires: {300}|Date: {400}||x"),
	reused("RFC 9111 5.3", "Expires with an invalid Date", "200|Expires: {100}|Date: foo||x"),
	notReused("RFC 9111 5.3", "Expires 0", "200|Expires: 0|Date: {0}||x"),
	notReused("RFC 9111 4.2.3", "Age above max-age", "200|Cache-Control: max-age=3600|Age: 7200|Date: {0}||x"),
	notReused("RFC 9111 4.2.3", "Age above Expires, slow Date", "200|Expires: {10}|Age: 25|Date: {-10}||x"),
	notReused("RFC 9111 4.2.3", "Age above Expires, fast Date", "200|Expires: {20}|Age: 15|Date: {10}||x"),
	notReused("RFC 9111 4.2.3", "an old Date is an age", "200|Cache-Control: max-age=100|Date: {-200}||x"),
	reused("RFC 9111 4.2.3", "a Date in the future is no age", "200|Cache-Control: max-age=100|Date: {200}||x"),
	{section: "RFC 9111 5.1", name: "Age is generated", turns: []turn{
		{reply: "200|Cache-Control: max-age=600|Date: {0}|Age: 30||x", asked: true},
		{wait: 5, want: "200|Age: 35||x"},
	}},
	{section: "RFC 9111 5.1", name: "Age grows while fresh by Expires", turns: []turn{
		{reply: "200|Expires: {2592000}|Date: {0}||x", asked: true},
		{wait: 7, want: "200|Age: 7||x"},
	}},
	{section: "RFC 9110 6.6.1", name: "Date is kept", turns: []turn{
		{reply: "200|Cache-Control: max-age=600|Date: Fri, 02 Jan 2026 03:04:01 GMT||x", asked: true},
		{wait: 5, want: "200|Date: Fri, 02 Jan 2026 03:04:01 GMT|Age: 9"},
	}},
	{section: "RFC 9110 6.6.1", name: "Date is made when there is none", turns: []turn{
		{reply: "200|Cache-Control: max-age=600||x", asked: true},
		{wait: 5, want: "200|Date: Fri, 02 Jan 2026 03:04:05 GMT"},
	}},
	{section: "RFC 9111 4.2.3", name: "a clock that goes back does no harm", turns: []turn{
		{reply: "200|Cache-Control: max-age=600||x", asked: true},
		{wait: -1000, want: "200|Age: 0||x"},
		{wait: 1700, reply: again, asked: true},
	}},
}

var parsingRules = []rule{
	reused("RFC 9111 1.2.2", "2^31", "200|Cache-Control: max-age=2147483648||x"),
	reused("RFC 9111 1.2.2", "overflow", "200|Cache-Control: max-age=99999999999999999999||x"),
	reused("RFC 9111 5.2", "letter case", "200|Cache-Control: MaX-aGe=3600||x"),
	reused("RFC 9111 5.2", "quoted", `200|Cache-Control: max-age="3600"||x`),
	reused("RFC 9111 1.2.2", "leading zeros", "200|Cache-Control: max-age=003600||x"),
	reused("RFC 9111 5.2.3", "unknown directive", "200|Cache-Control: foobar, max-age=3600||x"),
	notReused("RFC 9111 5.2", "single quotes", "200|Cache-Control: max-age='3600'||x"),
	notReused("RFC 9111 5.2", "in a quoted string", `200|Cache-Control: extension="max-age=3600", max-age=1||x`),
	notReused("RFC 9111 5.2", "in a quoted string behind", `200|Cache-Control: max-age=1, extension="max-age=3600"||x`),
	notReused("RFC 9111 5.2", "in an escaped quoted string", `200|Cache-Control: extension="\", max-age=3600, a", max-age=1||x`),
	notReused("RFC 9111 5.2", "space before =", "200|Cache-Control: max-age =3600||x"),
	notReused("RFC 9111 5.2", "space after =", "200|Cache-Control: max-age= 3600||x"),
	notReused("RFC 9111 4.2.1", "negative", "200|Cache-Control: max-age=-3600||x"),
	notReused("RFC 9111 4.2.1", "letters", "200|Cache-Control: max-age=a3600||x"),
	notReused("RFC 9111 4.2.1", "letters behind", "200|Cache-Control: max-age=3600a||x"),
	notReused("RFC 9111 4.2.1", "fraction", "200|Cache-Control: max-age=3600.5||x"),
	notReused("RFC 9111 4.2.1", "empty", "200|Cache-Control: max-age=||x"),
	notReused("RFC 9111 4.2.1", "no value", "200|Cache-Control: max-age||x"),
	reused("RFC 9111 4.2.1", "first of two", "200|Cache-Control: max-age=3600, max-age=1||x"),
	notReused("RFC 9111 4.2.1", "first of two is stale", "200|Cache-Control: max-age=1, max-age=3600||x"),
	notReused("RFC 9111 5.2.2.5", "a semicolon does not hide no-store", "200|Cache-Control: no-store; max-age=3600|Expires: {3600}||x"),
	reused("RFC 9111 5.1", "Age that is no number", "200|Cache-Control: max-age=3600|Age: abc||x"),
	reused("RFC 9111 5.1", "negative Age", "200|Cache-Control: max-age=3600|Age: -7200||x"),
	notReused("RFC 9111 5.1", "Age list counts by its first", "200|Cache-Control: max-age=3600|Age: 7200, 0||x"),
	notReused("RFC 9111 5.1", "first Age line counts", "200|Cache-Control: max-age=3600|Age: 7200|Age: 0||x"),
	reused("RFC 9111 5.1", "Age list with a young first", "200|Cache-Control: max-age=3600|Age: 0, 7200||x"),
	notReused("RFC 9111 1.2.2", "Age overflow", "200|Cache-Control: max-age=3600|Age: 99999999999999999999||x"),
	reused("RFC 9111 4.2", "date in another case", "200|Expires: THU, 18 AUG 2050 02:01:18 gMT|Date: {0}||x"),
	reused("RFC 9110 5.6.7", "asctime date", "200|Expires: Thu Aug 18 02:01:18 2050|Date: {0}||x"),
	reused("RFC 9110 5.6.7", "RFC 850 date", "200|Expires: Thursday, 18-Aug-50 02:01:18 GMT|Date: {0}||x"),
	notReused("RFC 9111 4.2", "UTC is no GMT", "200|Expires: Thu, 18 Aug 2050 02:01:18 UTC|Date: {0}||x"),
	notReused("RFC 9111 5.3", "two-digit year", "200|Expires: Thu, 18 Aug 50 02:01:18 GMT|Date: {0}||x"),
	notReused("RFC 9111 5.3", "no comma", "200|Expires: Thu 18 Aug 2050 02:01:18 GMT|Date: {0}||x"),
	notReused("RFC 9111 5.3", "several spaces", "200|Expires: Thu, 18  Aug  2050 02:01:18 GMT|Date: {0}||x"),
	notReused("RFC 9111 5.3", "dashes", "200|Expires: Thu, 18-Aug-2050 02:01:18 GMT|Date: {0}||x"),
	notReused("RFC 9111 5.3", "periods", "200|Expires: Thu, 18 Aug 2050 02.01.18 GMT|Date: {0}||x"),
	notReused("RFC 9111 5.3", "hour of one digit", "200|Expires: Thu, 18 Aug 2050 2:01:18 GMT|Date: {0}||x"),
}

var storingRules = []rule{
	notReused("RFC 9111 5.2.2.5", "no-store", "200|Cache-Control: no-store||x"),
	notReused("RFC 9111 5.2.2.5", "no-store in capitals", "200|Cache-Control: No-StOrE, max-age=3600||x"),
	notReused("RFC 9111 5.2.2.5", "no-store with lifetime", "200|Cache-Control: max-age=10000, no-store|Expires: {10000}|Date: {0}||x"),
	notReused("RFC 9111 5.2.2.7", "private", "200|Cache-Control: private, max-age=3600||x"),
	notReused("RFC 9111 5.2.2.4", "no-cache", "200|Cache-Control: max-age=3600, no-cache||x"),
	notReused("RFC 9111 5.2.2.4", "no-cache in capitals", "200|Cache-Control: max-age=3600, No-CaChE||x"),
	{section: "RFC 9111 5.2.2.4", name: "no-cache is validated", turns: []turn{
		{reply: `200|Cache-Control: no-cache|ETag: "a"||one`, asked: true},
		{reply: `304|ETag: "a"`, asked: true, sent: `If-None-Match: "a"`, want: "200||one"},
	}},
	{section: "RFC 9111 5.2.2.4", name: "no-cache with lifetime is validated", turns: []turn{
		{reply: `200|Cache-Control: max-age=10000, no-cache|ETag: "a"||one`, asked: true},
		{reply: `304|ETag: "a"`, asked: true, sent: `If-None-Match: "a"`, want: "200||one"},
	}},
	{section: "RFC 9111 5.2.2.4", name: "no-cache fields are not reused", turns: []turn{
		{reply: `200|Cache-Control: no-cache="a, b"|Cache-Control: max-age=3600|a: 1|b: 2|c: 3||x`, asked: true, want: "|a: 1|b: 2|c: 3"},
		{want: "|c: 3|!a|!b"},
	}},
	{section: "RFC 9111 5.2.2.7", name: "private fields are not stored", turns: []turn{
		{reply: `200|Cache-Control: private="a", max-age=3600|a: 1|c: 3||x`, asked: true, want: "|a: 1"},
		{want: "|c: 3|!a"},
	}},
	reused("RFC 9111 5.2.2.3", "must-understand with a status that is", "200|Cache-Control: max-age=3600, no-store, must-understand||x"),
	notReused("RFC 9111 5.2.2.3", "must-understand with a status that is not", "299|Cache-Control: max-age=3600, must-understand||x"),
	{section: "RFC 9111 3.5", name: "Authorization", turns: []turn{
		{send: "GET /|Authorization: FOO", reply: "200|Expires: {3600}|Date: {0}||x", asked: true, sent: "Authorization: FOO"},
		{reply: again, asked: true},
	}},
	{section: "RFC 9111 3.5", name: "Authorization and public", turns: []turn{
		{send: "GET /|Authorization: FOO", reply: "200|Cache-Control: max-age=3600, public||x", asked: true},
		{want: "||x"},
	}},
	{section: "RFC 9111 3.5", name: "Authorization and must-revalidate", turns: []turn{
		{send: "GET /|Authorization: FOO", reply: "200|Cache-Control: max-age=3600, must-revalidate||x", asked: true},
		{want: "||x"},
	}},
	{section: "RFC 9111 3.5", name: "Authorization and s-maxage", turns: []turn{
		{send: "GET /|Authorization: FOO", reply: "200|Cache-Control: s-maxage=3600||x", asked: true},
		{want: "||x"},
	}},
	{section: "RFC 6265 ours", name: "Set-Cookie is not stored", turns: []turn{
		{reply: "200|Cache-Control: max-age=3600|Set-Cookie: a=b||x", asked: true, want: "|Set-Cookie: a=b"},
		{reply: again, asked: true},
	}},
	notReused("ours", "Set-Cookie2 is not stored", "200|Cache-Control: max-age=3600|Set-Cookie2: a=b||x"),
	{section: "ours", name: "Set-Cookie2 with public: stored without it", turns: []turn{
		{reply: "200|Cache-Control: max-age=3600, public|Set-Cookie2: a=b||y", asked: true},
		{want: "|!Set-Cookie2||y"},
	}},
	{section: "RFC 6265 ours", name: "Set-Cookie with public: stored without it", turns: []turn{
		{reply: "200|Cache-Control: max-age=3600, public|Set-Cookie: a=b||x", asked: true, want: "|Set-Cookie: a=b"},
		{want: "|!Set-Cookie||x"},
	}},
	{section: "RFC 9111 4", name: "a Cookie makes no difference", turns: []turn{
		{reply: freshReply, asked: true},
		{send: "GET /|Cookie: a=b", want: "||one"},
	}},
	{section: "RFC 9111 4", name: "a query makes a difference", turns: []turn{
		{send: "GET /?a=1", reply: freshReply, asked: true},
		{send: "GET /?a=2", reply: again, asked: true, want: "||two"},
		{send: "GET /?a=1", want: "||one"},
	}},
	{section: "RFC 9111 3", name: "an older response stays when a newer one is not stored", turns: []turn{
		{reply: freshReply, asked: true},
		{send: "GET /|Cache-Control: no-cache", reply: "200|Cache-Control: no-store||two", asked: true, want: "||two"},
		{reply: again, asked: true},
	}},
	reused("RFC 9111 5.4", "Pragma of a response says nothing", "200|Cache-Control: max-age=3600|Pragma: no-cache||x"),
	reused("RFC 9111 3", "an attachment", "200|Cache-Control: max-age=3600|Content-Disposition: attachment; filename=a.txt||x"),
	reused("RFC 8246 2", "immutable", "200|Cache-Control: max-age=3600, immutable||x"),
	notReused("ours", "an event stream", "200|Cache-Control: max-age=3600|Content-Type: text/event-stream||x"),
	{section: "ours", name: "what could never be used", turns: []turn{
		{reply: "200|Cache-Control: no-cache||x", asked: true, want: "|Cache-Status: headgate; fwd=uri-miss; detail=no-validator"},
	}},
	reused("RFC 9111 3", "a body of unknown length", "200|Cache-Control: max-age=3600|chunked||x"),
	reused("RFC 9111 3", "an empty body", "200|Cache-Control: max-age=3600||"),
	{section: "RFC 9211 2", name: "Cache-Status", turns: []turn{
		{reply: freshReply, asked: true, want: "|Cache-Status: headgate; fwd=uri-miss; stored"},
		{wait: 10, want: "|Cache-Status: headgate; hit; ttl=3590"},
		{send: "POST /", reply: "400", asked: true, want: "|Cache-Status: headgate; fwd=method"},
		{send: "GET /p", reply: "200|Cache-Control: private||x", asked: true, want: "|Cache-Status: headgate; fwd=uri-miss; detail=private"},
	}},
}

var statusRules = func() (all []rule) {
	for _, status := range []string{"200", "203", "204", "299", "301", "302", "303", "307", "308", "400", "404", "410", "499", "500", "502", "503", "504", "599"} {
		all = append(all, reused("RFC 9111 3", status+" fresh", status+"|Cache-Control: max-age=3600||"),
			notReused("RFC 9111 3", status+" stale", status+"|Cache-Control: max-age=2||"))
	}
	return all
}()

var targetedRules = []rule{
	reused("RFC 9213 2", "max-age", "200|CDN-Cache-Control: max-age=3600||x"),
	reused("ours", "max-age in another case", "200|CDN-Cache-Control: MaX-aGe=3600||x"),
	notReused("ours", "no-store in another case", "200|CDN-Cache-Control: No-Store, MAX-AGE=3600|Cache-Control: max-age=3600||x"),
	reused("RFC 9213 2", "large", "200|CDN-Cache-Control: max-age=99999999999||x"),
	notReused("RFC 9213 2", "max-age 0", "200|CDN-Cache-Control: max-age=0||x"),
	notReused("RFC 9213 2", "Age", "200|CDN-Cache-Control: max-age=3600|Age: 7200||x"),
	reused("RFC 9213 2", "extension", "200|CDN-Cache-Control: foobar, max-age=3600||x"),
	reused("RFC 9213 2.2", "past Expires", "200|CDN-Cache-Control: max-age=3600|Expires: {-10000}|Date: {0}||x"),
	notReused("RFC 9213 2.2", "0 and future Expires", "200|CDN-Cache-Control: max-age=0|Expires: {10000}|Date: {0}||x"),
	reused("RFC 9213 2.2", "longer than Cache-Control", "200|Cache-Control: max-age=1|CDN-Cache-Control: max-age=3600||x"),
	notReused("RFC 9213 2.2", "shorter than Cache-Control", "200|Cache-Control: max-age=3600|CDN-Cache-Control: max-age=1||x"),
	notReused("RFC 9213 2.2", "private", "200|CDN-Cache-Control: private|Cache-Control: max-age=10000||x"),
	notReused("RFC 9213 2.2", "no-cache", "200|CDN-Cache-Control: no-cache|Cache-Control: max-age=10000||x"),
	notReused("RFC 9213 2.2", "no-store", "200|CDN-Cache-Control: no-store|Cache-Control: max-age=10000|Expires: {10000}||x"),
	reused("RFC 9213 2.2", "before no-store", "200|Cache-Control: no-store|CDN-Cache-Control: max-age=10000||x"),
	notReused("RFC 9213 2.1", "invalid", "200|CDN-Cache-Control: max-age=10000, &&&&&|Cache-Control: no-store||x"),
	notReused("RFC 9213 2.1", "wrong type", `200|CDN-Cache-Control: max-age="10000"|Cache-Control: no-store||x`),
	notReused("RFC 9213 2.1", "space before =", "200|Cache-Control: max-age=1|CDN-Cache-Control: max-age =100||x"),
	notReused("RFC 9213 2.1", "space after =", "200|Cache-Control: max-age=1|CDN-Cache-Control: max-age= 100||x"),
	reused("RFC 9213 2.1", "empty is absent", "200|Cache-Control: max-age=3600|CDN-Cache-Control: ||x"),
	reused("RFC 9651 3.2", "last of two", "200|CDN-Cache-Control: max-age=1, max-age=3600||x"),
	{section: "RFC 9213 3", name: "it is passed on", turns: []turn{
		{reply: "200|Cache-Control: max-age=100|CDN-Cache-Control: foo||x", asked: true, want: "|CDN-Cache-Control: foo"},
	}},
}

func ofSize(n unit.Size) func(*Config) { return func(c *Config) { c.MaxEntry = n } }
