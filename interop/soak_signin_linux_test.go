package interop

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/cookiejar"
	"regexp"
	"strings"
	"time"

	"github.com/oauth2-proxy/mockoidc"
)

// identityProvider starts a provider that signs people in by OpenID Connect.
func (s *soak) identityProvider() {
	m, err := mockoidc.Run()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { m.Shutdown() })
	s.provider = m
}

// signInConfig is what the configuration has for a gate: the page, and a proxy behind it.
func (s *soak) signInConfig() string {
	return fmt.Sprintf(`
sign_in:
  providers:
    company: {issuer: %q, client_id: %q, client_secret: %q, scopes: [profile, email, groups]}
`, s.provider.Issuer(), s.provider.Config().ClientID, s.provider.Config().ClientSecret)
}

// failuresInARow is how often in a row a person may fail to sign in: a change that goes back,
// or a restored state, may end a sign-in on its way.
const failuresInARow = 6

var (
	pageRefresh = regexp.MustCompile(`http-equiv="refresh" content="0; url=([^"]*)"`)
	pageButton  = regexp.MustCompile(`class="button" href="([^"]*)"`)
)

// people sign in, use an application, and go. Nothing of it is for clients without a session.
func (s *soak) people() {
	_, port, _ := net.SplitHostPort(s.secure)
	address := "https://gated.example.com:" + port
	failed := 0
	s.each(1, func(r *rand.Rand) {
		defer s.pause(r, time.Second)
		jar, err := cookiejar.New(nil)
		if err != nil {
			s.t.Fatal(err)
		}
		client := &http.Client{Jar: jar, Timeout: patience, Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: s.toExamples},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
		path := fmt.Sprintf("/%d/%d", r.IntN(1<<30), 1+r.IntN(5000))
		want := string(content(path))
		if status, text, _ := s.page(client, address+path, nil); text == want || status == http.StatusOK && strings.Contains(text, want[:1+len(want)/2]) {
			s.never("a client without a session got the page %s behind the gate", path)
			return
		}
		s.provider.QueueUser(&mockoidc.MockUser{Subject: "ann", PreferredUsername: "ann", Email: "ann@example.com", EmailVerified: true})
		text, err := s.signIn(client, address+path)
		if text == want {
			failed = 0
			s.saw("signed in by OIDC")
			s.stays(r, client, address)
			return
		}
		if failed++; failed >= failuresInARow {
			s.wrong("%d sign-ins in a row failed: %.300s, %v", failed, text, err)
			failed = 0
		}
		s.saw("sign-in failed")
	})
}

// stays uses the session for a few more pages.
func (s *soak) stays(r *rand.Rand, client *http.Client, address string) {
	for range r.IntN(5) {
		path := fmt.Sprintf("/%d/%d", r.IntN(1<<30), 1+r.IntN(5000))
		status, text, err := s.page(client, address+path, nil)
		switch {
		case err != nil:
			s.saw("page behind the gate failed")
		case status == http.StatusOK && text != string(content(path)):
			s.never("the page %s behind the gate has %d other bytes", path, len(text))
		case status == http.StatusOK:
			s.saw("page behind the gate")
		default: // a restored state may not have the session
			s.saw(fmt.Sprint("page behind the gate ", status))
		}
	}
}

// signIn opens a page as a browser does, and goes where it is led until there is nothing more.
func (s *soak) signIn(client *http.Client, address string) (text string, err error) {
	pressed := false
	for range 15 {
		var to string
		var status int
		if status, text, err = s.page(client, address, &to); err != nil {
			return "", err
		}
		if m := pageButton.FindStringSubmatch(text); to == "" && m != nil && !pressed && status == http.StatusOK {
			pressed, to = true, resolve(address, m[1])
		}
		if to == "" {
			return text, nil
		}
		address = to
	}
	return text, nil
}

// page opens a page; next is where it leads by itself.
func (s *soak) page(client *http.Client, address string, next *string) (status int, text string, err error) {
	rq, err := http.NewRequestWithContext(s.ctx, "GET", address, nil)
	if err != nil {
		return 0, "", err
	}
	for name, value := range map[string]string{"Accept": "text/html,*/*;q=0.8", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document", "Accept-Language": "en", "Remote-User": "forged"} {
		rq.Header.Set(name, value)
	}
	rs, err := client.Do(rq)
	if err != nil {
		return 0, "", err
	}
	defer rs.Body.Close()
	data, err := io.ReadAll(rs.Body)
	text = string(data)
	if next != nil {
		if to := rs.Header.Get("Location"); to != "" {
			*next = resolve(address, to)
		} else if m := pageRefresh.FindStringSubmatch(text); m != nil {
			*next = resolve(address, m[1])
		}
	}
	return rs.StatusCode, text, err
}

// resolve returns where a link of a page leads.
func resolve(from, to string) string {
	rq, err := http.NewRequest("GET", from, nil)
	if err != nil {
		return ""
	}
	u, err := rq.URL.Parse(strings.NewReplacer("&amp;", "&", "&#43;", "+").Replace(to))
	if err != nil {
		return ""
	}
	return u.String()
}

// toExamples dials hosts of example.com at this machine.
func (s *soak) toExamples(ctx context.Context, network, address string) (net.Conn, error) {
	if host, port, err := net.SplitHostPort(address); err == nil && strings.HasSuffix(host, ".example.com") {
		address = net.JoinHostPort("127.0.0.1", port)
	}
	return (&net.Dialer{Timeout: patience}).DialContext(ctx, network, address)
}
