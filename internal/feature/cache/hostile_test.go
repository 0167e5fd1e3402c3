package cache

import (
	"strings"
	"testing"

	"headgate/internal/exchange"
	"headgate/internal/exchange/exchangetest"
)

// TestInvalidatedWhileHeadIsAsked does not put back what a POST took out.
func TestInvalidatedWhileHeadIsAsked(t *testing.T) {
	s := newStage(t, settings())
	s.origin.reply = answer(`200|Cache-Control: max-age=60|ETag: "a"||old`, s.clock)
	s.request("GET /")
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		if ex.Request.Method == "HEAD" {
			s.cache.store.forget([]byte("http\x00example.com\x00/"), takeOut)
		}
		return answer(`200|Cache-Control: max-age=60|ETag: "a"||old`, s.clock)(ex)
	}
	s.request("HEAD /|Cache-Control: no-cache")
	s.origin.reply = answer("200|Cache-Control: max-age=60||new", s.clock)
	if f := s.request("GET /"); f.Body != "new" {
		t.Errorf("got %q, want what the POST left", f.Body)
	}
}

// TestHeadOfAnotherQuery changes nothing of what is stored without the parameter.
func TestHeadOfAnotherQuery(t *testing.T) {
	s := newStage(t, settings(func(c *Config) { c.IgnoreQuery = []string{"utm_*"} }))
	s.origin.reply = func(ex *exchange.Exchange) *exchange.Answer {
		return answer(`200|Cache-Control: max-age=60|ETag: "a"|X-Query: is`+ex.Request.Query+`||body`, s.clock)(ex)
	}
	s.request("GET /")
	s.request("HEAD /?utm_evil|Cache-Control: no-cache")
	if got := s.request("GET /").Field("X-Query"); got != "is" {
		t.Errorf("got the query %q of somebody else", got)
	}
}

// TestManyWritingsOfAHost cost no more than a few: all of them have one hash.
func TestManyWritingsOfAHost(t *testing.T) {
	s := newStage(t, settings())
	s.origin.reply = answer("200|Cache-Control: max-age=60||x", s.clock)
	const letters = "abcdefghijk"
	for n := range 1 << len(letters) {
		host := []byte(letters + ".example")
		for i := range letters {
			if n>>i&1 != 0 {
				host[i] -= 0x20
			}
		}
		s.request("GET /", exchangetest.Host(string(host)))
	}
	longest := 0
	for i := range s.cache.store.shards {
		for _, e := range s.cache.store.shards[i].mu.entries {
			n := 0
			for ; e != nil; e = e.next {
				n++
			}
			longest = max(longest, n)
		}
	}
	if longest > variants {
		t.Errorf("%d responses have one hash, want no more than %d", longest, variants)
	}
}

// TestWeightsThatWantThePlainBody are told apart from those that do not.
func TestWeightsThatWantThePlainBody(t *testing.T) {
	for accept, want := range map[string]bool{
		"gzip, deflate, br, zstd": false, "gzip;q=1.0, deflate;q=0.6, identity;q=0.3": false,
		"identity": false, "gzip, identity;q=0": false, "*": false,
		"identity, gzip;q=0.5": true, "gzip;q=0.5, identity;q=0.5": true, "identity, *;q=0.5": true,
		"gzip;q=2": true, "gzip;level=1": true, "gzip;q=0.0001": true,
	} {
		s := newStage(t, settings())
		s.origin.reply = answer("200|Cache-Control: max-age=60|Vary: Accept-Encoding||x", s.clock)
		s.request("GET /|Accept-Encoding: " + accept)
		same := strings.NewReplacer(";q=1.0", "", ";q=0.6", "", ", identity;q=0.3", "", "identity, ", "", ", identity;q=0.5", "",
			";q=0.5", "", ";q=2", "", ";level=1", "", ";q=0.0001", "").Replace(accept)
		s.request("GET /|Accept-Encoding: " + same)
		if got := s.origin.count() > 1; got != want {
			t.Errorf("%q: told apart from %q: %v, want %v", accept, same, got, want)
		}
	}
}

// TestAnswersForOneLeaveWhatIsForAll: an answer to who signed in, or to fields that
// are in no key, says nothing of what others get.
func TestAnswersForOneLeaveWhatIsForAll(t *testing.T) {
	for _, field := range []string{"Authorization: Basic eDp5", "Accept_Language: de"} {
		s := newStage(t, settings())
		s.origin.reply = answer("200|Cache-Control: max-age=60|Vary: Accept-Language||all", s.clock)
		s.request("GET /")
		for _, status := range []string{"200", "401"} {
			s.origin.reply = answer(status+"|Cache-Control: max-age=60|Vary: Accept-Language||one", s.clock)
			if f := s.request("GET /|Cache-Control: no-cache|" + field); f.Body != "one" {
				t.Errorf("%s: got %q", field, f.Body)
			}
			if f := s.request("GET /"); f.Body != "all" {
				t.Errorf("%s: others got %q after %s", field, f.Body, status)
			}
		}
	}
}

// TestRevalidatedKeepsItsCoding: a 304 of a server that knows nothing of the coding
// names other fields in Vary; the body is compressed all the same.
func TestRevalidatedKeepsItsCoding(t *testing.T) {
	for _, method := range []string{"GET", "HEAD"} {
		s := newStage(t, settings())
		s.origin.reply = answer(`200|Cache-Control: max-age=1|ETag: W/"x"|Vary: Origin, Accept-Encoding|Content-Encoding: gzip||zipped`, s.clock)
		s.request("GET /|Accept-Encoding: gzip")
		s.wait(2)
		s.origin.reply = answer(`304|Cache-Control: max-age=60|ETag: W/"x"|Vary: Origin`, s.clock)
		if method == "HEAD" {
			s.origin.reply = answer(`200|Cache-Control: max-age=60|ETag: W/"x"|Vary: Origin|Content-Encoding: gzip||zipped`, s.clock)
		}
		s.request(method + " /|Accept-Encoding: gzip")
		s.origin.reply = answer(`200|Cache-Control: max-age=60|ETag: W/"x"|Vary: Origin||plain`, s.clock)
		if f := s.request("GET /|Accept-Encoding: gzip"); f.Body != "zipped" || f.Field("Vary") == "" {
			t.Errorf("%s: got %q %q, want what is stored", method, f.Body, f.Fields)
		}
		if f := s.request("GET /"); f.Body != "plain" {
			t.Errorf("%s: who reads no gzip got %q %q", method, f.Body, f.Fields)
		}
	}
}
