package h2_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"headgate/internal/exchange"
)

// TestH2Spec runs the conformance tests of github.com/summerwind/h2spec, which
// live in a module of their own: tools/h2spec.
func TestH2Spec(t *testing.T) {
	if testing.Short() || racing {
		t.Skip("takes a build")
	}
	both(t, func(t *testing.T, options ...option) {
		p := newProxy(t, "", append(options, source(patient))...)
		host, port, _ := net.SplitHostPort(p.addr)
		args := []string{"tool", "h2spec", "-h", host, "-p", port, "-o", "5"}
		if p.tls != nil {
			args = append(args, "-t", "-k")
		}
		out, err := run(t, "../../../tools/h2spec", "go", args...)
		if !strings.Contains(out, "tests, ") {
			missing(t, "h2spec does not run here: %v\n%s", err, out)
		}
		t.Log(out[strings.LastIndex(strings.TrimSpace(out), "\n")+1:])
		if err != nil || !strings.Contains(out, " 0 failed") {
			t.Errorf("%v\n%s", err, out)
		}
	})
}

// missing skips a test for want of a program, or fails it where HEADGATE_TOOLS says
// that programs have to be there.
func missing(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("HEADGATE_TOOLS") == "required" {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// patient reads the request to its end before it answers: an early answer, which
// is allowed, would come before what some of the tests look for.
func patient(ex *exchange.Exchange) *exchange.Answer {
	if ex.Request.Body != nil {
		if _, err := io.Copy(io.Discard, reader{ex.Request.Body}); err != nil {
			return exchange.Fail(exchange.BadRequest, err.Error())
		}
	}
	ex.Response.Status = 200
	ex.Response.Text, ex.Response.Length = []byte("hello, world"), 12
	return nil
}

// TestRealClients asks with the programs that are installed.
func TestRealClients(t *testing.T) {
	p := newProxy(t, "", text("hello, world"))
	s := newProxy(t, "", text("hello, world"), overTLS)
	tests := []struct {
		want string
		args []string
	}{
		{"hello, world", []string{"curl", "-sS", "--http2-prior-knowledge", p.url("/")}},
		{"hello, world", []string{"curl", "-sS", "-k", "--http2", s.url("/")}},
		{"hello, world", []string{"nghttp", p.url("/")}},
		{"1000 succeeded, 0 failed", []string{"h2load", "-n1000", "-c4", "-m16", p.url("/")}},
		{"1000 succeeded, 0 failed", []string{"h2load", "-n1000", "-c4", "-m16", s.url("/")}},
	}
	for _, tt := range tests {
		t.Run(strings.Join(tt.args[:2], " ")+" "+strconv.FormatBool(strings.Contains(tt.args[len(tt.args)-1], "https")), func(t *testing.T) {
			if _, err := exec.LookPath(tt.args[0]); err != nil {
				missing(t, "%v", err)
			}
			out, err := run(t, "", tt.args[0], tt.args[1:]...)
			if err != nil || !strings.Contains(out, tt.want) {
				t.Errorf("%v: got %q, %v", tt.args, out, err)
			}
		})
	}
}

// run runs a program and returns what it printed.
func run(t *testing.T, dir, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}
