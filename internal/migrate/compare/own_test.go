package compare

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// pages are those that proxies generate themselves, as they were received from them.
var pages = map[string]http.HandlerFunc{
	"headgate":      answers(404, "404 No site here\n\nNo proxy answers.\n\nReason: no_such_host\nRequest id: 1\n", "Content-Type: text/plain; charset=utf-8", "Cache-Control: no-store", `Proxy-Status: headgate; details="no_such_host"`),
	"headgate HTML": answers(404, "<!doctype html><html lang=\"en\"></html>\n", "Content-Type: text/html; charset=utf-8", "Cache-Control: no-store", `Proxy-Status: headgate; error=destination_not_found; details="no_such_host"`),
	"nginx":         answers(404, "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center>\r\n<hr><center>nginx/1.26.3</center>\r\n</body>\r\n</html>\r\n", "Content-Type: text/html"),
	"HAProxy":       answers(404, "<html><body><h1>404 Not Found</h1>\nThe resource could not be found.\n</body></html>\n", "Content-Type: text/html", "Cache-Control: no-cache"),
	"Traefik":       answers(404, "404 page not found\n", "Content-Type: text/plain; charset=utf-8", "X-Content-Type-Options: nosniff"),
	"Apache":        answers(404, "<!DOCTYPE HTML PUBLIC \"-//IETF//DTD HTML 2.0//EN\">\n<html><head>\n<title>404 Not Found</title>\n</head></html>\n", "Content-Type: text/html; charset=iso-8859-1"),
	"Caddy": func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		w.WriteHeader(404)
	},
}

// found are the differences of a single request other than notes.
func found(t *testing.T, old, ours http.HandlerFunc) (all []string) {
	t.Helper()
	for _, one := range run(t, two(t, old, ours, "/")).Results {
		for _, d := range one.Differences {
			if d.Weight != Note || d.Kind == KindBody {
				all = append(all, strings.TrimSpace(strings.Join([]string{string(d.Kind), string(d.Weight), d.Name}, " ")))
			}
		}
	}
	return all
}

// An error page that each proxy generates itself is no difference.
func TestPagesOfTheProxiesThemselvesAreAlike(t *testing.T) {
	for one, old := range pages {
		for other, ours := range pages {
			if got := found(t, old, ours); len(got) > 0 {
				t.Errorf("%s and %s: %q", one, other, got)
			}
		}
	}
}

// A page that looks like the proxy's own in part is one of a server.
func TestPagesOfServersAreNotTheProxysOwn(t *testing.T) {
	for name, page := range map[string]http.HandlerFunc{
		"an application":          answers(404, "<html><head><title>404 Not Found</title></head><body>Our shop</body></html>", "Content-Type: text/html"),
		"nginx with another code": answers(404, "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<hr><center>nginx</center>", "Content-Type: text/html"),
		"a text":                  answers(404, "no such cart", "Content-Type: text/plain"),
		"as JSON":                 answers(404, "404 page not found", "Content-Type: application/json"),
		"Proxy-Status of another": answers(404, "x", "Content-Type: text/plain", `Proxy-Status: cdn; details="x"`),
		"longer than a page":      answers(404, "<html><body><h1>404 "+strings.Repeat("x", maxPage)+"</body></html>", "Content-Type: text/html"),
	} {
		for own, ours := range pages {
			if got := found(t, page, ours); !slices.Contains(got, "body differs") {
				t.Errorf("%s and %s: %q", name, own, got)
			}
		}
	}
	// What is said about the site counts on a page of the proxy's own, too.
	secure := answers(404, "404 page not found\n", "Content-Type: text/plain", "Strict-Transport-Security: max-age=1")
	if got := found(t, secure, pages["headgate"]); !slices.Equal(got, []string{"security differs Strict-Transport-Security"}) {
		t.Errorf("got %q", got)
	}
}
