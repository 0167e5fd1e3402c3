package client

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"strings"
)

// maxProblem is how much of a rejection is read, in bytes.
const maxProblem = 1 << 20

// ProblemOf reads why a request was rejected. It does not close the body.
func ProblemOf(rs *http.Response) *Problem {
	data, _ := io.ReadAll(io.LimitReader(rs.Body, maxProblem)) // what was received is shown
	p := &Problem{}
	kind, _, _ := mime.ParseMediaType(rs.Header.Get("Content-Type"))
	if kind != "application/problem+json" || json.Unmarshal(data, p) != nil {
		p = &Problem{Detail: strings.TrimSpace(string(data))}
	}
	p.Status = rs.StatusCode
	if p.Detail == "" {
		p.Detail = fmt.Sprintf("rejected with status %d", rs.StatusCode)
	}
	return p
}

// Error describes what is wrong, where, and how to fix it.
func (p *Problem) Error() string {
	text := p.Detail
	if at := cmp.Or(FieldPath(p.Pointer), p.Parameter); at != "" {
		text = at + ": " + text
	}
	if p.Remedy != "" {
		text += "; " + p.Remedy
	}
	return text
}

// FieldPath returns a JSON pointer (RFC 6901) as configuration files and messages write the
// path of a field: proxies.shop.routes[0].path.
func FieldPath(pointer string) string {
	unescape := strings.NewReplacer("~1", "/", "~0", "~")
	path := ""
	for i, step := range strings.Split(pointer, "/") {
		step = unescape.Replace(step)
		_, err := strconv.ParseUint(step, 10, 32)
		switch {
		case i == 0: // the text before the first slash
		case err == nil && path != "":
			path += "[" + step + "]"
		case step == "" || strings.ContainsAny(step, ".[]\" "):
			path += "[" + strconv.Quote(step) + "]"
		case path == "":
			path = step
		default:
			path += "." + step
		}
	}
	return path
}
