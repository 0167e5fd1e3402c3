package exchange

import (
	"fmt"
	"strings"
)

// ReasonReference returns the reference page of all reasons, in Markdown.
func ReasonReference() string {
	var b strings.Builder
	b.WriteString(`# Reasons

<!-- Made from internal/exchange/reason.go by "go generate ./internal/exchange". Do not edit. -->

When a response is headgate's own and not a server's, or breaks off, a reason says why. The same word is in the
access log, in metrics, in the body of the answer and in the details of its ` + "`Proxy-Status`" + ` field (RFC 9209).
The body is text, HTML or ` + "`application/problem+json`" + ` (RFC 9457), as the client accepts, and names the request id;
it never names a server.

| reason | status | connection | what a person reads |
|---|---|---|---|
`)
	for _, r := range Reasons() {
		status, after := "–", "kept"
		if r.Status() > 0 {
			status = fmt.Sprint(r.Status())
		}
		if r.Status() == StatusClientClosed {
			status += " (log only)"
		}
		if r.Closes() {
			after = "closed"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", r, status, after, r.Hint())
	}
	return b.String()
}
