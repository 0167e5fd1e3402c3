package spec

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
)

// response is what a client got, taken apart without any tolerance.
type response struct {
	status string
	fields []string
	body   string
}

// has reports whether a field line begins with what a script names.
func (r *response) has(line string) bool {
	name, value, _ := strings.Cut(line, ":")
	for _, f := range r.fields {
		n, v, _ := strings.Cut(f, ":")
		if strings.EqualFold(n, name) && (strings.TrimSpace(value) == "" || strings.TrimSpace(v) == strings.TrimSpace(value)) {
			return true
		}
	}
	return false
}

// matches compares a response with what a step of a script names.
func matches(t *testing.T, step int, got *response, want string) {
	t.Helper()
	wantHead, wantBody, _ := strings.Cut(want, "\n\n")
	wantBody = strings.TrimSuffix(wantBody, "\\\n")
	lines := strings.Split(strings.TrimSpace(wantHead), "\n")
	if status := strings.TrimSuffix(lines[0], " (HEAD)"); got.status != status {
		t.Errorf("step %d: client got %q, want %q\n%s\n%s", step, got.status, status, strings.Join(got.fields, "\n"), got.body)
	}
	for _, line := range lines[1:] {
		if name, absent := strings.CutPrefix(line, "!"); absent {
			if got.has(name + ":") {
				t.Errorf("step %d: client got a field %s, want none:\n%s", step, name, strings.Join(got.fields, "\n"))
			}
		} else if !got.has(line) {
			t.Errorf("step %d: client did not get %q:\n%s", step, line, strings.Join(got.fields, "\n"))
		}
	}
	if body, some := strings.CutPrefix(wantBody, "..."); some {
		if body = strings.TrimSuffix(strings.TrimSpace(body), "..."); !strings.Contains(got.body, body) {
			t.Errorf("step %d: client got body %q, want one with %q", step, got.body, body)
		}
	} else if got.body != wantBody {
		t.Errorf("step %d: client got body %q, want %q", step, got.body, wantBody)
	}
}

func (r *response) get(name string) string {
	for _, f := range r.fields {
		if n, v, _ := strings.Cut(f, ":"); strings.EqualFold(n, name) {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// readResponse reads one response; head says that it answers HEAD.
func readResponse(r *bufio.Reader, head bool) (*response, error) {
	got := &response{}
	var err error
	if got.status, err = readLine(r); err != nil {
		return got, err
	}
	for {
		line, err := readLine(r)
		if err != nil {
			return got, err
		}
		if line == "" {
			break
		}
		got.fields = append(got.fields, line)
	}
	status := strings.Fields(got.status)
	if len(status) < 2 || head || status[1][0] == '1' || status[1] == "204" || status[1] == "304" {
		return got, nil
	}
	return got, got.readBody(r)
}

func (r *response) readBody(in *bufio.Reader) error {
	switch {
	case strings.EqualFold(r.get("Transfer-Encoding"), "chunked"):
		return r.readChunks(in, false)
	case r.get("Content-Length") != "":
		n, err := strconv.Atoi(r.get("Content-Length"))
		if err != nil {
			return err
		}
		b := make([]byte, n)
		n, err = io.ReadFull(in, b)
		r.body = string(b[:n])
		return err
	}
	b, err := io.ReadAll(in)
	r.body = string(b)
	return err
}

// readChunks reads a chunked body, in which chunks have extensions only where
// that is said. Trailers are added to the fields.
func (r *response) readChunks(in *bufio.Reader, extensions bool) error {
	for {
		line, err := readLine(in)
		if err != nil {
			return err
		}
		if extensions {
			line, _, _ = strings.Cut(line, ";")
		}
		n, err := strconv.ParseUint(line, 16, 31)
		if err != nil {
			return err
		}
		if n == 0 {
			break
		}
		b := make([]byte, n+2)
		if _, err := io.ReadFull(in, b); err != nil {
			return err
		}
		if string(b[n:]) != "\r\n" {
			return fmt.Errorf("chunk ends in %q", b[n:])
		}
		r.body += string(b[:n])
	}
	for {
		line, err := readLine(in)
		if err != nil || line == "" {
			return err
		}
		r.fields = append(r.fields, line)
	}
}

// readLine reads a line that must end in CRLF.
func readLine(r *bufio.Reader) (string, error) {
	line, err := r.ReadString('\n')
	if err != nil {
		return line, err
	}
	text, ok := strings.CutSuffix(line, "\r\n")
	if !ok {
		return line, fmt.Errorf("line %q does not end in CRLF", line)
	}
	return text, nil
}
