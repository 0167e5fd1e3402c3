package safedial

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

func TestCheck(t *testing.T) {
	for address, refused := range map[string]bool{
		"127.0.0.1": false, "10.0.0.1": false, "::1": false, "2001:db8::1": false, "fd00::1": false, "8.8.8.8": false,
		"169.254.169.254": true, "::ffff:169.254.169.254": true, "64:ff9b::a9fe:a9fe": true, "2002:a9fe:a9fe::1": true, "::a9fe:a9fe": true,
		"fe80::1": true, "fe80::1%eth0": true, "fd00:ec2::254": true, "100.100.100.200": true, "::ffff:168.63.129.16": true,
		"0.0.0.0": true, "::": true, "224.0.0.1": true, "ff02::1": true, "255.255.255.255": true,
	} {
		if err := Check(netip.MustParseAddr(address)); errors.Is(err, ErrRefused) != refused {
			t.Errorf("%s: got %v, want refused: %v", address, err, refused)
		}
	}
}

func TestClientRefusesWhenItDials(t *testing.T) {
	c := Client(5*time.Second, nil)
	defer c.CloseIdleConnections()
	for _, url := range []string{"http://169.254.169.254/latest", "http://[::ffff:169.254.169.254]/", "http://[fe80::1]/", "http://0.0.0.0:1/", "http://2852039166/"} {
		rs, err := c.Get(url)
		if err == nil {
			rs.Body.Close()
			t.Errorf("%s was asked", url)
		}
		if url != "http://2852039166/" && !errors.Is(err, ErrRefused) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

func TestClientFollowsNoRedirect(t *testing.T) {
	s := httptest.NewServer(http.RedirectHandler("http://169.254.169.254/", http.StatusFound))
	defer s.Close()
	c := Client(5*time.Second, nil)
	defer c.CloseIdleConnections()
	rs, err := c.Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	rs.Body.Close()
	if rs.StatusCode != http.StatusFound {
		t.Errorf("got %d", rs.StatusCode)
	}
}

func TestLimit(t *testing.T) {
	for _, c := range []struct {
		text string
		max  int64
		want string
		more bool
	}{{"abc", 3, "abc", false}, {"abc", 2, "ab", true}, {"abc", 0, "", true}, {"", 0, "", false}} {
		for _, one := range []bool{false, true} {
			var r io.Reader = strings.NewReader(c.text)
			if one {
				r = iotest.OneByteReader(r)
			}
			got, err := io.ReadAll(Limit(io.NopCloser(r), c.max))
			if string(got) != c.want || (err != nil) != c.more {
				t.Errorf("%q within %d bytes: got %q, %v", c.text, c.max, got, err)
			}
		}
	}
}
