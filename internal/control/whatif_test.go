package control

import (
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"headgate/internal/accesslog/recent"
	"headgate/internal/plan/whatif"
	"headgate/internal/testhouse"
)

const whatIfDocument = `version: 1
admin: {address: ""}
access_log: {enabled: false}
ports:
  web: {address: %q, protocol: http}
proxies:
  shop:
    virtual_hosts: [shop.example.com]
    routes:
      - {path: /gone, fixed_response: {status: 410}}
      - {path: /old, redirects: [{regex: "^/old", target: "/new", status: 301}], fixed_response: {status: 204}}
      - {path: /api, servers: [{url: "http://127.0.0.1:1"}]}
      - {fixed_response: {status: 204}}
  other:
    virtual_hosts: [other.example.com]
    routes: [{fixed_response: {status: 204}}]
`

// TestRecentRequestsAreDecidedByADraft sends requests, and asks what would become of them
// for each kind of change.
func TestRecentRequestsAreDecidedByADraft(t *testing.T) {
	at := testhouse.Address(t)
	text := fmt.Sprintf(whatIfDocument, at)
	h := start(t, text)
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	send := func(n int, host, path string) {
		for range n {
			rq, _ := http.NewRequestWithContext(t.Context(), "GET", "http://"+at+path, nil)
			rq.Host = host
			rs, err := client.Do(rq)
			if err != nil {
				t.Fatal(err)
			}
			rs.Body.Close()
		}
	}
	send(3, "shop.example.com", "/?secret=1")
	send(2, "shop.example.com", "/api/users")
	send(1, "shop.example.com", "/old/a")
	send(1, "shop.example.com", "/gone")
	send(2, "other.example.com", "/")
	send(1, "nobody.example.com", "/")
	testhouse.Eventually(t, "all requests are kept", func() bool {
		return len(h.c.Recent().Find(recent.Query{StatusFrom: 1}, recent.Cursor{}, 100).Requests) == 10
	})
	replace := strings.NewReplacer
	for name, test := range map[string]struct {
		change *strings.Replacer
		want   whatif.Result
		says   string
	}{
		"nothing that matters": {replace("version: 1", "version: 1\ndefaults: {request_timeout: 7s}"),
			whatif.Result{}, "of the last 10 requests none would be handled otherwise"},
		"another port":   {replace(at, testhouse.Address(t)), whatif.Result{}, "none"},
		"another server": {replace("127.0.0.1:1\"", "127.0.0.1:2\""), whatif.Result{Changed: 2, Servers: 2}, "http://127.0.0.1:1 -> proxy shop /api, http://127.0.0.1:2 (2 requests)"},
		"a host is lost": {replace("[other.example.com]", "[another.example.com]"),
			whatif.Result{Changed: 2, Refused: 2}, "http://other.example.com/: proxy other /, status 204"},
		"a route is lost": {replace(`      - {path: /api, servers: [{url: "http://127.0.0.1:1"}]}`+"\n", ""),
			whatif.Result{Changed: 2, Route: 2}, "2 taken by another route"},
		"a redirect leads elsewhere": {replace(`target: "/new"`, `target: "/newer?token=x"`),
			whatif.Result{Changed: 1, Answer: 1}, "status 301 to /newer ("},
		"what was gone comes back": {replace("410", "200"), whatif.Result{Changed: 1, Allowed: 1}, "1 no longer refused"},
		"an address is refused": {replace("  shop:\n", "  shop:\n    ip_filter: {deny: [127.0.0.0/8]}\n"),
			whatif.Result{Changed: 7, Answer: 1, Refused: 6}, "6 refused"},
		"a password is wanted": {replace("  other:\n", "  other:\n    basic_auth: {users: [{name: ada, password_hash: \"$2y$12$abcdefghijklmnopqrstuuhX0qcGnmcz0DC0GI4ihGoSUtTvsT7Se\"}]}\n"),
			whatif.Result{Changed: 2, Password: 2}, "2 now need a password"},
		"a proxy is renamed": {replace("  other:\n", "  renamed:\n"), whatif.Result{Changed: 2, Proxy: 2}, "2 taken by another proxy"},
		"no port is left": {replace("protocol: http}", "protocol: http, active: false}"),
			whatif.Result{Changed: 10, Answer: 2, Refused: 8}, "no port"},
	} {
		t.Run(name, func(t *testing.T) {
			edit := replaceWith(Cause{Via: ViaAPI}, test.change.Replace(text))
			edit.DryRun = true
			e, err := h.c.Change(edit)
			if err != nil {
				t.Fatal(err)
			}
			told := strings.Join(e.WhatIf.Lines(), "\n")
			got := *e.WhatIf
			if got.Requests != 10 || got.Since.IsZero() {
				t.Errorf("%d requests since %s", got.Requests, got.Since)
			}
			for _, example := range got.Examples {
				if strings.Contains(fmt.Sprint(example), "secret") || strings.Contains(fmt.Sprint(example), "token") {
					t.Errorf("a query is shown: %+v", example)
				}
			}
			got.Requests, got.Examples = 0, nil
			test.want.Since = got.Since
			if !reflect.DeepEqual(got, test.want) {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if !strings.Contains(told, test.says) {
				t.Errorf("it says\n%s\nwant %q", told, test.says)
			}
		})
	}
	if h.text() != text {
		t.Error("the document was changed")
	}
	e, err := h.c.Change(replaceWith(Cause{Via: ViaAPI}, text+"# a comment\n"))
	if err != nil || e.WhatIf != nil {
		t.Errorf("a change that is made tells of %+v, %v", e.WhatIf, err)
	}
}
