package compare

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
)

// maxPage is how much of a body is kept to find out which program generated a
// page, in bytes.
const maxPage = 4 << 10

// pageFields are the header fields that say something about a page, not about the site.
var pageFields = []string{"Content-Type", "Cache-Control", "X-Content-Type-Options"}

// ownPages reports whether each side answers with an error page that the proxy generates
// itself: the words are the proxy's, and a client does not depend on them.
func (c *comparison) ownPages() bool {
	return c.old.status == c.new.status && c.old.ownPage(c.request.Method) && c.new.ownPage(c.request.Method)
}

// ownPage reports whether a proxy generated an error response, and did not pass one on. The
// marks are those of the default pages of headgate, nginx and its forks, HAProxy, Traefik and
// Apache. Caddy and Envoy send no body. A response that has been customized has no such mark.
func (a *answer) ownPage(method string) bool {
	if a.err != nil || a.status < 400 || a.broken || a.size > int64(len(a.page)) {
		return false
	}
	if words := a.header.Get("Proxy-Status"); strings.HasPrefix(words, "headgate;") && strings.Contains(words, "details=") {
		return true
	}
	kind := a.header.Get("Content-Type")
	if a.size == 0 {
		return method != http.MethodHead && kind == ""
	}
	page := bytes.TrimSpace(a.page)
	starts := func(format string) bool { return bytes.HasPrefix(page, fmt.Appendf(nil, format, a.status)) }
	switch {
	case starts("<html>\r\n<head><title>%d "): // nginx
		return bytes.Contains(page, []byte("<hr><center>"))
	case starts("<html><body><h1>%d "): // HAProxy
		return bytes.HasSuffix(page, []byte("</body></html>"))
	case bytes.HasPrefix(page, []byte(`<!DOCTYPE HTML PUBLIC "-//IETF//DTD HTML 2.0//EN">`)): // Apache
		return bytes.Contains(page, fmt.Appendf(nil, "<title>%d ", a.status))
	case !strings.HasPrefix(kind, "text/plain"):
		return false
	}
	switch text := string(page); text { // Traefik
	case "404 page not found":
		return a.status == http.StatusNotFound
	case "no available server":
		return a.status == http.StatusServiceUnavailable
	default:
		return text == http.StatusText(a.status)
	}
}

// errorPageText says in what two error pages differ.
func errorPageText(old, ours bool, otherwise string) string {
	switch {
	case ours && !old:
		return "the new proxy generates the error page itself; the old proxy's page is customized or comes from a server"
	case old && !ours:
		return "the old proxy generates the error page itself; the new proxy's page is customized or comes from a server"
	}
	return otherwise
}

// pageText keeps the beginning of a body.
type pageText []byte

func (p *pageText) Write(b []byte) (int, error) {
	*p = append(*p, b[:min(len(b), maxPage-len(*p))]...)
	return len(b), nil
}
